package bearer

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// How many requests of one address may be refused in a minute, and how many
// addresses are remembered.
const (
	maxFailures  = 20
	maxAddresses = 10_000
	failuresIn   = time.Minute
)

// failures counts refused requests by address. A credential that is good is taken
// from any address, so that nobody can lock an agent out from behind the same
// proxy; the one exception are JSON Web Tokens, which take time to verify.
type failures struct {
	now     func() time.Time
	proxies []netip.Prefix // whose X-Forwarded-For is true

	mu sync.Mutex
	by map[netip.Prefix]failure
}

type failure struct {
	since time.Time
	count int
}

// add counts a failure and reports whether there are too many, and for how long.
func (f *failures) add(r *http.Request) (time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from, now := f.from(r), f.now()
	if len(f.by) >= maxAddresses {
		f.forget(now)
	}
	if f.by == nil {
		f.by = map[netip.Prefix]failure{}
	}
	e := f.by[from]
	if now.Sub(e.since) >= failuresIn {
		e = failure{since: now}
	}
	e.count++
	f.by[from] = e
	return e.since.Add(failuresIn).Sub(now), e.count > maxFailures
}

// limited is what add would report.
func (f *failures) limited(r *http.Request) (time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, now := f.by[f.from(r)], f.now()
	left := e.since.Add(failuresIn).Sub(now)
	return left, left > 0 && e.count >= maxFailures
}

// forget drops what is over; if that is nothing, everything.
func (f *failures) forget(now time.Time) {
	for a, e := range f.by {
		if now.Sub(e.since) >= failuresIn {
			delete(f.by, a)
		}
	}
	if len(f.by) >= maxAddresses {
		clear(f.by)
	}
}

// from is who sends: one address, or for IPv6 the network of one customer.
func (f *failures) from(r *http.Request) netip.Prefix {
	ip := f.sender(r)
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	p, _ := ip.Prefix(bits) // of no address it is none
	return p
}

// sender is the address that the request comes from. A proxy that is trusted adds to
// X-Forwarded-For who sent it the request. The address that is nearest to us and is no
// such proxy counts: anyone can have written what stands before it.
func (f *failures) sender(r *http.Request) netip.Addr {
	at := ipOf(r.RemoteAddr)
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		before := ipOf(strings.TrimSpace(hop))
		if !before.IsValid() || !slices.ContainsFunc(f.proxies, func(p netip.Prefix) bool { return p.Contains(at) }) {
			break
		}
		at = before
	}
	return at
}

// ipOf reads an address, with a port or without. One of IPv6 may be in brackets.
func ipOf(text string) netip.Addr {
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		text += ":0"
	}
	if p, err := netip.ParseAddrPort(text); err == nil {
		return p.Addr().Unmap().WithZone("")
	}
	a, _ := netip.ParseAddr(text) // the zero one if it is none
	return a.Unmap().WithZone("")
}
