package state

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// listeners are the followers that are woken when there is work of these kinds in
// their partition. They share one subscription, which exists while there is a
// listener: a thousand followers cost one connection.
type listeners struct {
	kinds []Kind

	mu    sync.Mutex
	woken map[chan struct{}]int // the partition of each
	end   func()                // ends the subscription and waits for it
}

// listen returns a channel that is ready after each change in the partition,
// and a function to be called when it is not read any more. No change after
// listen has returned is missed for long: the channel is also ready once the
// subscription begins, and after each interruption of it.
func (l *listeners) listen(c *conn, partition int) (woken <-chan struct{}, leave func()) {
	ready := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.woken) == 0 {
		l.woken = make(map[chan struct{}]int)
		l.begin(c)
	}
	l.woken[ready] = partition
	return ready, func() {
		l.mu.Lock()
		delete(l.woken, ready)
		end := l.end
		if len(l.woken) > 0 {
			end = func() {}
		}
		l.mu.Unlock()
		end()
	}
}

// begin subscribes to the wake-ups.
func (l *listeners) begin(c *conn) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	l.end = func() {
		cancel()
		<-done
	}
	go func() {
		defer close(done)
		c.follow(ctx, l.wake)
	}()
}

// follow passes on the wake-ups until ctx ends. It passes on a [redis.Subscription] first,
// and whenever the connection is a new one: earlier messages may have been missed.
func (s *conn) follow(ctx context.Context, to func(m any)) {
	sub := s.client.Subscribe(ctx, s.wakes())
	defer sub.Close() //nolint:errcheck // nothing is written on it
	messages := sub.ChannelWithSubscriptions()
	for {
		select {
		case <-ctx.Done():
			return
		case m, ok := <-messages:
			if !ok {
				return
			}
			to(m)
		}
	}
}

// wake wakes the listeners of the partition that a message names, or all of
// them if the subscription is new, because earlier messages may have been missed.
func (l *listeners) wake(m any) {
	partition := -1
	switch m := m.(type) {
	case *redis.Message:
		w, ok := parseWakes(m.Payload)
		if !ok || !slices.ContainsFunc(l.kinds, func(k Kind) bool { _, is := w.entries[k]; return is }) {
			return
		}
		partition = w.partition
	case *redis.Subscription:
	default:
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for c, n := range l.woken {
		if partition >= 0 && n != partition {
			continue
		}
		select {
		case c <- struct{}{}:
		default: // it will look anyway
		}
	}
}
