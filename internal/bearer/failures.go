package bearer

import (
	"net/netip"
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
	now func() time.Time

	mu sync.Mutex
	by map[netip.Prefix]failure
}

type failure struct {
	since time.Time
	count int
}

// add counts a failure and reports whether there are too many, and for how long.
func (f *failures) add(remote string) (time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from, now := address(remote), f.now()
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
func (f *failures) limited(remote string) (time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, now := f.by[address(remote)], f.now()
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

// address is who sends: one address, or for IPv6 the network of one customer.
func address(remote string) netip.Prefix {
	a, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := a.Addr().Unmap(), 64
	if ip.Is4() {
		bits = 32
	}
	p, _ := ip.WithZone("").Prefix(bits)
	return p
}
