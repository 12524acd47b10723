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

	mu        sync.Mutex // guards what follows, also while a subscription changes
	listeners map[string]map[*func(string)]bool
	sub       *redis.PubSub
	end       func() // ends the subscription and waits for it
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

// Publish sends a message. heard is false only if nobody listens, and in a cluster it is
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

// Listen calls to with every message about a thread, one after the other, until leave is
// called. A message that arrived before may still be passed on after leave has returned,
// if the relay has other listeners. to must not block.
func (r *Relay) Listen(id agentrun.ThreadID, to func(message string)) (leave func(), err error) {
	channel, err := r.channel(id)
	if err != nil {
		return nil, err
	}
	key := &to
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.listeners) == 0 {
		r.begin()
	}
	if r.listeners[channel] == nil {
		r.listeners[channel] = map[*func(string)]bool{}
		_ = r.sub.Subscribe(context.Background(), channel) // after an error the connection is opened and subscribed again
	}
	r.listeners[channel][key] = true
	return func() { r.leave(channel, key) }, nil
}

func (r *Relay) leave(channel string, key *func(string)) {
	r.mu.Lock()
	end := func() {}
	defer func() { end() }()
	defer r.mu.Unlock()
	delete(r.listeners[channel], key)
	if len(r.listeners[channel]) > 0 {
		return
	}
	delete(r.listeners, channel)
	if len(r.listeners) == 0 {
		end = r.end
		return
	}
	_ = r.sub.Unsubscribe(context.Background(), channel) // likewise
}

// begin opens the connection.
func (r *Relay) begin() {
	sub, done := r.c.client.Subscribe(context.Background()), make(chan struct{})
	r.sub = sub
	r.end = func() {
		_ = sub.Close() // nothing is written on it
		<-done
	}
	messages := sub.Channel()
	go func() {
		defer close(done)
		for m := range messages {
			r.mu.Lock()
			var to []func(string)
			if r.sub == sub {
				for f := range r.listeners[m.Channel] {
					to = append(to, *f)
				}
			}
			r.mu.Unlock()
			for _, f := range to {
				f(m.Payload)
			}
		}
	}()
}
