package webhook_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/webhook"
)

const secretText = "whsec_" + "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

func secret(t *testing.T, text string) webhook.Secret {
	t.Helper()
	s, err := webhook.ParseSecret(text)
	require.NoError(t, err)
	return s
}

func sender(t *testing.T, cfg webhook.Config) *webhook.Sender {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s, err := webhook.New(cfg)
	require.NoError(t, err)
	return s
}

func prefixes(all ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range all {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// at is an endpoint at the address.
func at(t *testing.T, address string) webhook.Endpoint {
	t.Helper()
	return webhook.Endpoint{URL: "https://" + net.JoinHostPort(address, "443") + "/hooks", Secrets: []webhook.Secret{secret(t, secretText)}}
}

func TestOnlyPublicAddressesAreSentTo(t *testing.T) {
	s := sender(t, webhook.Config{})
	for _, public := range []string{
		"1.1.1.1", "8.8.8.8", "93.184.216.34", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
		"128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255",
		"192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "168.63.129.15",
		"2001:4860:4860::8888", "2606:4700:4700::1111", "2a00:1450:4001::1", "2001:200::", "2003::1", "3ffe::1", "::ffff:8.8.8.8",
	} {
		require.NoError(t, s.Check(at(t, public)), public)
	}
	for address, why := range map[string]string{
		"0.0.0.0": "this host", "0.1.2.3": "this host",
		"10.0.0.0": "private", "10.255.255.255": "private", "172.16.0.1": "private", "172.31.255.255": "private",
		"192.168.0.1": "private", "192.168.255.255": "private",
		"100.64.0.0": "carrier", "100.127.255.255": "carrier",
		"127.0.0.1": "loopback", "127.255.255.254": "loopback", "::1": "loopback",
		"169.254.0.1": "link-local", "169.254.170.2": "link-local", "fe80::1": "link-local", "febf::1": "link-local",
		"169.254.169.254": "metadata", "100.100.100.200": "metadata", "168.63.129.16": "metadata", "192.0.0.192": "metadata",
		"fd00:ec2::254": "metadata", "fd20:ce::254": "metadata", "fd00:c1::a9fe:a9fe": "metadata", "fd00:42::42": "metadata",
		"192.0.0.1": "protocols", "192.0.2.1": "documentation", "198.51.100.7": "documentation", "203.0.113.9": "documentation",
		"2001:db8::1": "documentation", "3fff::1": "documentation",
		"192.88.99.1": "6to4 relays", "198.18.0.1": "benchmarks", "198.19.255.255": "benchmarks", "2001:2::1": "protocols",
		"224.0.0.1": "multicast", "239.255.255.255": "multicast", "ff02::1": "multicast", "ff0e::1": "multicast",
		"240.0.0.1": "reserved", "255.255.255.254": "reserved", "255.255.255.255": "broadcast",
		"::": "unspecified", "fc00::1": "unique local", "fdff::1": "unique local", "fec0::1": "site-local",
		"::ffff:10.0.0.1": "private", "::ffff:127.0.0.1": "loopback", "::ffff:169.254.169.254": "metadata", "::ffff:0.0.0.0": "this host",
		"::10.0.0.1": "IPv4-compatible", "::8.8.8.8": "IPv4-compatible", "::ffff:0:10.0.0.1": "IPv4-translated",
		"64:ff9b::10.0.0.1": "NAT64", "64:ff9b::8.8.8.8": "NAT64", "64:ff9b:1::10.0.0.1": "NAT64",
		"2002:a00:1::": "6to4", "2002:808:808::1": "6to4", "2001:0:4136:e378:8000:63bf:3fff:fdd2": "Teredo",
		"2001:20::1": "protocols", "2001:10::1": "protocols", "100::1": "discarded", "5f00::1": "segment routing",
		"4000::1": "not global unicast", "200::1": "not global unicast", "a000::1": "not global unicast",
	} {
		err := s.Check(at(t, address))
		require.ErrorIs(t, err, webhook.ErrEndpoint, address)
		require.ErrorContains(t, err, "an address that is not allowed", address)
		require.ErrorContains(t, err, why, address)
	}
	require.Error(t, s.Check(at(t, "fe80::1%25eth0")))
	require.Error(t, s.Check(at(t, "2606:4700:4700::1111%25eth0")))
}

func TestAnOperatorAllowsAndDeniesRanges(t *testing.T) {
	s := sender(t, webhook.Config{
		Allow: prefixes("10.1.0.0/16", "fd00::/8", "127.0.0.1/32", "169.254.0.0/16", "100.64.0.0/10", "224.0.0.0/8", "64:ff9b::/96", "2002::/16"),
		Deny:  prefixes("198.100.0.0/16", "2a00:64::/96", "10.1.9.0/24"),
	})
	for _, yes := range []string{"10.1.2.3", "fd12::1", "127.0.0.1", "::ffff:10.1.2.3", "100.64.0.1", "64:ff9b::8.8.8.8", "64:ff9b::10.1.2.3", "2002:808:808::1", "8.8.8.8"} {
		require.NoError(t, s.Check(at(t, yes)), yes)
	}
	for _, no := range []string{
		"10.2.0.1", "127.0.0.2", "::1", "198.100.1.1", "::ffff:198.100.1.1", "2a00:64::a00:1", "10.1.9.1",
		"169.254.169.254", "169.254.1.1", "fd00:ec2::254", "100.100.100.200", "224.0.0.1", // never, allowed or not
		"64:ff9b::10.2.0.1", "64:ff9b::169.254.169.254", "2002:a02:1::1", // what is inside counts
	} {
		require.Error(t, s.Check(at(t, no)), no)
	}
	for _, wide := range []string{"0.0.0.0/0", "0.0.0.0/7", "::/0", "c000::/6", "::ffff:10.0.0.0/104"} {
		_, err := webhook.New(webhook.Config{Allow: prefixes(wide), Now: time.Now})
		require.ErrorContains(t, err, "allow smaller ranges", wide)
	}
	_, err := webhook.New(webhook.Config{Allow: []netip.Prefix{{}}, Now: time.Now})
	require.Error(t, err)
}

func TestAURLIsHTTPSOnAnAllowedPortAndHoldsNoPassword(t *testing.T) {
	s := sender(t, webhook.Config{PlainHosts: []string{"plain.example.com", "fd00::7"}, Ports: []int{8443}, Allow: prefixes("fd00::/8")})
	key := []webhook.Secret{secret(t, secretText)}
	for _, yes := range []string{
		"https://example.com", "https://example.com/a?b=c", "https://example.com:443/", "https://EXAMPLE.com:8443/",
		"http://plain.example.com/", "http://Plain.Example.com.:80/", "http://[fd00::7]/",
	} {
		require.NoError(t, s.Check(webhook.Endpoint{URL: yes, Secrets: key}), yes)
	}
	for no, why := range map[string]string{
		"":                             "expected a URL",
		"example.com/hooks":            "expected a URL",
		"https://":                     "expected a URL",
		"https:example.com":            "expected a URL",
		"https://exa mple.com/":        "expected a URL",
		"https://example.com/\n":       "expected a URL",
		"ftp://example.com/":           "must begin with https",
		"gopher://example.com/":        "must begin with https",
		"http://example.com/":          "http is not allowed",
		"http://sub.plain.example.com": "http is not allowed",
		"https://user@example.com/":    "name or a password",
		"https://u:p@example.com/":     "name or a password",
		"https://@example.com/":        "name or a password",
		"https://example.com/#x":       "fragment",
		"https://example.com:22/":      "port",
		"https://example.com:80/":      "port",
		"https://example.com:/":        "port",
		"http://plain.example.com:443": "port",
		"https://[::1]/":               "loopback",
	} {
		err := s.Check(webhook.Endpoint{URL: no, Secrets: key})
		require.ErrorIs(t, err, webhook.ErrEndpoint, no)
		require.ErrorContains(t, err, why, no)
	}
	for _, none := range [][]webhook.Secret{nil, {{}}, {key[0], {}}} {
		require.ErrorContains(t, s.Check(webhook.Endpoint{URL: "https://example.com", Secrets: none}), "no signing secret")
	}
}

// Whatever the table says, an address that passes is one that the standard library
// knows as an ordinary one too.
func FuzzAddress(f *testing.F) {
	for _, a := range []string{"8.8.8.8", "10.0.0.1", "2606:4700::1111", "fd00::1", "64:ff9b::a00:1", "::ffff:7f00:1", "2002:7f00:1::"} {
		f.Add(netip.MustParseAddr(a).AsSlice())
	}
	s, err := webhook.New(webhook.Config{Now: time.Now})
	require.NoError(f, err)
	key, err := webhook.ParseSecret(secretText)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, ok := netip.AddrFromSlice(raw)
		if !ok || s.Check(webhook.Endpoint{URL: "https://" + net.JoinHostPort(a.String(), "443"), Secrets: []webhook.Secret{key}}) != nil {
			return
		}
		a = a.Unmap()
		require.True(t, a.IsGlobalUnicast() && !a.IsPrivate() && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !a.IsMulticast() && !a.IsUnspecified(), a)
		if a.Is6() {
			require.True(t, netip.MustParsePrefix("2000::/3").Contains(a), a)
		}
	})
}
