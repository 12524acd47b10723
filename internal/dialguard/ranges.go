package dialguard

import (
	"fmt"
	"net/netip"
)

// An addressRange is a range of addresses that are not those of receivers on the
// Internet. An operator can allow it, unless it is never one to send to.
type addressRange struct {
	netip.Prefix
	what  string
	never bool
}

func (r addressRange) String() string { return fmt.Sprintf("%s (%s)", r.Prefix, r.what) }

const never = true

// ranges follow the registries of special-purpose addresses that IANA keeps (RFC
// 6890 and its updates), with the metadata services of clouds in front: those give
// out credentials, and some have an address that looks public. The first match counts.
var ranges = []addressRange{
	of("169.254.169.254/32", "a metadata service", never),     // AWS, GCP, Azure, DigitalOcean, Oracle and others
	of("100.100.100.200/32", "a metadata service", never),     // Alibaba
	of("168.63.129.16/32", "a metadata service", never),       // Azure
	of("192.0.0.192/32", "a metadata service", never),         // Oracle, old
	of("fd00:ec2::/32", "a metadata service", never),          // AWS
	of("fd20:ce::254/128", "a metadata service", never),       // GCP
	of("fd00:c1::a9fe:a9fe/128", "a metadata service", never), // Oracle
	of("fd00:42::42/128", "a metadata service", never),        // Scaleway

	of("0.0.0.0/8", "this host", never),
	of("10.0.0.0/8", "private", false),
	of("100.64.0.0/10", "shared by a carrier's customers", false),
	of("127.0.0.0/8", "loopback", false),
	of("169.254.0.0/16", "link-local", never),
	of("172.16.0.0/12", "private", false),
	of("192.0.0.0/24", "for protocols", false),
	of("192.0.2.0/24", "for documentation", false),
	of("192.31.196.0/24", "AS112", false),
	of("192.52.193.0/24", "AMT relays", false),
	of("192.88.99.0/24", "6to4 relays", false),
	of("192.168.0.0/16", "private", false),
	of("192.175.48.0/24", "AS112", false),
	of("198.18.0.0/15", "for benchmarks", false),
	of("198.51.100.0/24", "for documentation", false),
	of("203.0.113.0/24", "for documentation", false),
	of("224.0.0.0/4", "multicast", never),
	of("255.255.255.255/32", "broadcast", never),
	of("240.0.0.0/4", "reserved", never),

	of("::/128", "unspecified", never),
	of("::1/128", "loopback", false),
	of("::/96", "IPv4-compatible", never),
	of("::ffff:0:0:0/96", "IPv4-translated", never),
	of("64:ff9b:1::/48", "local NAT64", never),
	of("100::/64", "discarded", never),
	of("100:0:0:1::/64", "a dummy prefix", never),
	of("2001::/23", "for protocols", false),
	of("2001:db8::/32", "for documentation", false),
	of("2620:4f:8000::/48", "AS112", false),
	of("3fff::/20", "for documentation", false),
	of("5f00::/16", "segment routing", never),
	of("fc00::/7", "unique local", false),
	of("fe80::/10", "link-local", never),
	of("fec0::/10", "site-local", false),
	of("ff00::/8", "multicast", never),
}

var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
	teredo    = netip.MustParsePrefix("2001::/32")
	// global is all of IPv6 that IANA has given out for global unicast. The rest is
	// not on the Internet, known to the table or not.
	global = netip.MustParsePrefix("2000::/3")
)

func of(prefix, what string, never bool) addressRange {
	return addressRange{netip.MustParsePrefix(prefix), what, never}
}

// rangeOf returns the range in which the address is, if it is not an ordinary
// address of the Internet.
func rangeOf(a netip.Addr) (addressRange, bool) {
	for _, r := range ranges {
		if r.Contains(a) {
			return r, true
		}
	}
	if a.Is6() && !global.Contains(a) {
		return addressRange{netip.PrefixFrom(a, 16).Masked(), "not global unicast", never}, true
	}
	return addressRange{}, false
}
