package webhook

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
)

// A refusedError says that an address is not one to which messages go. It names
// the range and not the address, so that the person who gave the URL does not learn
// the addresses of internal names.
type refusedError struct{ what string }

func (e *refusedError) Error() string {
	return fmt.Sprintf("the host has an address that is not allowed: %s", e.what)
}

// A guard judges the addresses that are dialed.
type guard struct{ allow, deny []netip.Prefix }

// control is the dialer's Control: it runs after name resolution, for every address
// that is tried, before anything is sent.
func (g guard) control(network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return &refusedError{"the network " + network}
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &refusedError{"not an IP address"}
	}
	return g.check(to.Addr())
}

// check returns nil if messages may go to the address.
func (g guard) check(a netip.Addr) error {
	if !a.IsValid() || a.Zone() != "" {
		return &refusedError{"not an address outside of one link"}
	}
	a = a.Unmap() // ::ffff:10.0.0.1 is 10.0.0.1 in other words
	if contains(g.deny, a) {
		return &refusedError{"a range that the configuration denies"}
	}
	allowed := contains(g.allow, a)
	if inside, what, ok := embedded(a); ok {
		if !allowed {
			return &refusedError{what}
		}
		return g.check(inside)
	}
	if r, special := rangeOf(a); special && (r.never || !allowed) {
		return &refusedError{r.String()}
	}
	return nil
}

func contains(all []netip.Prefix, a netip.Addr) bool {
	for _, p := range all {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// embedded returns the IPv4 address to which a router that knows the form would send
// a packet for this IPv6 address.
func embedded(a netip.Addr) (inside netip.Addr, what string, ok bool) {
	b := a.As16()
	switch {
	case !a.Is6():
		return netip.Addr{}, "", false
	case nat64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:16])), "64:ff9b::/96 (NAT64, an IPv4 address inside an IPv6 address)", true
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), "2002::/16 (6to4, an IPv4 address inside an IPv6 address)", true
	case teredo.Contains(a):
		return netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}), "2001::/32 (Teredo, an IPv4 address inside an IPv6 address)", true
	}
	return netip.Addr{}, "", false
}

// literal returns the address that a host is, if it is one instead of a name.
func literal(host string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return a, err == nil
}

// dialer returns a dialer that connects only to what the guard lets through.
func (g guard) dialer(resolver *net.Resolver) *net.Dialer {
	return &net.Dialer{Timeout: dialTimeout, KeepAlive: -1, Resolver: resolver, Control: g.control}
}
