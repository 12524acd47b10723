package state

import (
	"context"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"
)

// listeners are those who are to be woken when a batch of their partition
// changes. They share one subscription, which there is while there are any: so a
// thousand followers cost one connection.
type listeners struct {
	mu    sync.Mutex
	woken map[chan struct{}]int // the partition of each
	end   func()                // ends the subscription and waits for it
}

// listen returns a channel that is ready after each change in the partition,
// and a function to be called when nobody reads it any more. Nothing that
// changes after listen has returned goes unnoticed for long: the channel is
// ready once the subscription begins, and after each interruption of it.
func (l *listeners) listen(s *Store, partition int) (woken <-chan struct{}, leave func()) {
	c := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.woken) == 0 {
		l.woken = make(map[chan struct{}]int)
		l.begin(s)
	}
	l.woken[c] = partition
	return c, func() {
		l.mu.Lock()
		delete(l.woken, c)
		end := l.end
		if len(l.woken) > 0 {
			end = func() {}
		}
		l.mu.Unlock()
		end()
	}
}

// begin subscribes to the wake-ups of [Cards], which every change of a batch
// sends.
func (l *listeners) begin(s *Store) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	l.end = func() {
		cancel()
		<-done
	}
	go func() {
		defer close(done)
		sub := s.client.Subscribe(ctx, s.wake(Cards))
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
				l.heard(m)
			}
		}
	}()
}

// heard wakes those whom a message concerns: it names a partition, or says that
// the subscription is new, so that earlier ones may have been missed.
func (l *listeners) heard(m any) {
	partition := -1
	switch m := m.(type) {
	case *redis.Message:
		n, err := strconv.Atoi(m.Payload)
		if err != nil {
			return
		}
		partition = n
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
