// Package dialguard judges the addresses that are dialed on behalf of a configuration
// or a person: only public ones, and those that an operator allows. It judges the
// address and not the name, after name resolution and immediately before the
// connection. A proxy would dial in its place, so who uses it uses none.
package dialguard

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// A RefusedError says that an address is not one to connect to. It names the range and
// not the address, so that the person who gave the URL does not learn the addresses of
// internal names.
type RefusedError struct{ what string }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the host has an address that is not allowed: %s", e.what)
}

// A Guard judges the addresses that are dialed.
type Guard struct {
	Allow []netip.Prefix // addresses that are not public and may be dialed all the same
	Deny  []netip.Prefix // public addresses that may not
	// Listed refuses every address that is not in Allow, for connections that are not
	// encrypted.
	Listed bool
}

// Check returns what is wrong with the ranges of the guard.
func (g Guard) Check() error {
	for _, p := range g.Allow {
		smallest := 8
		if p.Addr().Is6() {
			smallest = 7
		}
		if p.Addr().Is4In6() || p.Bits() < smallest { // -1 if it is not valid
			return fmt.Errorf("%s: allow smaller ranges, IPv4 from /8 and IPv6 from /7", p)
		}
	}
	return nil
}

// control is the dialer's Control: it runs after name resolution, for every address
// that is tried, before anything is sent.
func (g Guard) control(network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return &RefusedError{"the network " + network}
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &RefusedError{"not an IP address"}
	}
	return g.Judge(to.Addr())
}

// Judge returns nil if the address may be dialed.
func (g Guard) Judge(a netip.Addr) error {
	if !a.IsValid() || a.Zone() != "" {
		return &RefusedError{"not an address outside of one link"}
	}
	a = a.Unmap() // ::ffff:10.0.0.1 is 10.0.0.1 in other words
	if contains(g.Deny, a) {
		return &RefusedError{"a range that the configuration denies"}
	}
	allowed := contains(g.Allow, a)
	if g.Listed && !allowed {
		return &RefusedError{"not one that the configuration allows"}
	}
	if inside, what, ok := embedded(a); ok {
		if !allowed {
			return &RefusedError{what}
		}
		return g.Judge(inside)
	}
	if r, special := rangeOf(a); special && (r.never || !allowed) {
		return &RefusedError{r.String()}
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

// Literal returns the address that a host is, if it is one instead of a name.
func Literal(host string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return a, err == nil
}

// Timeout is how long a connection may take.
const Timeout = 10 * time.Second

// Dialer returns a dialer that connects only to what the guard lets through.
func (g Guard) Dialer(resolver *net.Resolver) *net.Dialer {
	return &net.Dialer{Timeout: Timeout, KeepAlive: -1, Resolver: resolver, Control: g.control}
}
