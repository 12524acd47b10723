package state

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/agentrun"
)

// A Relay passes messages about threads between processes. Nothing is stored: a message
// reaches the processes that listen when it is sent, and may be lost. A process needs
// one relay. Its listeners share a connection, which exists while there are any.
type Relay struct {
	c *conn

	mu        sync.Mutex // guards what follows; never held while anything is sent
	listeners map[string]map[*func(string)]bool
	sub       *subscription // nil: there are no listeners
}

// NewRelay returns the relay of the store.
func NewRelay(s *Store) *Relay {
	return &Relay{c: s.conn, listeners: map[string]map[*func(string)]bool{}}
}

// channel returns the name of the channel for messages about a thread. It is not a key.
func (r *Relay) channel(id agentrun.ThreadID) (string, error) {
	p, err := r.c.partitionOf(string(id))
	return p.base + "live:" + string(id), err
}

// Publish sends a message. heard is false only if nobody listens; in a cluster it is
// always true.
func (r *Relay) Publish(ctx context.Context, id agentrun.ThreadID, message string) (heard bool, err error) {
	channel, err := r.channel(id)
	if err != nil {
		return false, err
	}
	n, err := r.c.client.Publish(ctx, channel, message).Result()
	if err != nil {
		return false, fmt.Errorf("publish about %s: %w", id, err)
	}
	_, cluster := r.c.client.(*redis.ClusterClient) // a node of it counts its own listeners
	return n > 0 || cluster, nil
}

// Listen calls to with messages about a thread, one after the other, until leave is
// called. It does not wait for the server: messages come once that has the subscription.
// One that arrived before may still be passed on after leave has returned, if the relay
// has other listeners. to must not block.
func (r *Relay) Listen(id agentrun.ThreadID, to func(message string)) (leave func(), err error) {
	channel, err := r.channel(id)
	if err != nil {
		return nil, err
	}
	key := &to
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sub == nil {
		r.sub = r.subscribe()
	}
	if r.listeners[channel] == nil {
		r.listeners[channel] = map[*func(string)]bool{}
		r.sub.changed()
	}
	r.listeners[channel][key] = true
	return sync.OnceFunc(func() { r.leave(channel, key) }), nil
}

func (r *Relay) leave(channel string, key *func(string)) {
	r.mu.Lock()
	sub := r.sub
	delete(r.listeners[channel], key)
	if len(r.listeners[channel]) == 0 {
		delete(r.listeners, channel)
		sub.changed()
	}
	last := len(r.listeners) == 0
	if last {
		r.sub = nil
	}
	r.mu.Unlock()
	if last {
		sub.end()
	}
}

// A subscription is a connection that is subscribed to what the listeners of a relay
// want.
type subscription struct {
	pubsub *redis.PubSub
	wake   chan struct{} // ready if they may want other channels now
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// changed says that the listeners may want other channels.
func (s *subscription) changed() {
	select {
	case s.wake <- struct{}{}:
	default: // it is about to look
	}
}

// end ends the subscription and waits for it.
func (s *subscription) end() {
	s.stop()
	_ = s.pubsub.Close() // nothing is written on it
	s.ended.Wait()
}

// subscribe opens the connection.
func (r *Relay) subscribe() *subscription {
	ctx, stop := context.WithCancel(context.Background())
	s := &subscription{pubsub: r.c.client.Subscribe(ctx), wake: make(chan struct{}, 1), stop: stop}
	messages := s.pubsub.Channel()
	s.ended.Go(func() { r.follow(ctx, s) })
	s.ended.Go(func() {
		for m := range messages {
			for _, to := range r.listening(s, m.Channel) {
				to(m.Payload)
			}
		}
	})
	return s
}

// follow subscribes to what the listeners want, until ctx ends. After an error the
// client opens the connection and subscribes again.
func (r *Relay) follow(ctx context.Context, s *subscription) {
	have := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		want := r.wanted(s)
		if gone := without(have, want); len(gone) > 0 {
			_ = s.pubsub.Unsubscribe(ctx, gone...)
		}
		if added := without(want, have); len(added) > 0 {
			_ = s.pubsub.Subscribe(ctx, added...)
		}
		have = want
	}
}

// without returns what is in all and not in these.
func without(all, these map[string]bool) []string {
	var out []string
	for x := range all {
		if !these[x] {
			out = append(out, x)
		}
	}
	return out
}

// wanted are the channels that have listeners.
func (r *Relay) wanted(s *subscription) map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	want := map[string]bool{}
	if r.sub == s {
		for channel := range r.listeners {
			want[channel] = true
		}
	}
	return want
}

// listening are the listeners of a channel.
func (r *Relay) listening(s *subscription, channel string) []func(string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []func(string)
	if r.sub == s {
		for to := range r.listeners[channel] {
			all = append(all, *to)
		}
	}
	return all
}
