package intake

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// Wait returns the request as soon as its version is another one than this, or as it
// stands when ctx ends. All callers in a process that wait for requests of one agent
// share one subscription.
func (s *Service) Wait(ctx context.Context, c Client, id approvals.RunID, version string) (Request, error) {
	whole := context.WithoutCancel(ctx) // the end of the wait ends no question to the store
	r, err := s.Get(whole, c, id)
	if err != nil || r.Version != version || ctx.Err() != nil {
		return r, err
	}
	woken, leave, err := s.hubs.join(whole, id, r.Batch)
	if err != nil {
		return Request{}, err
	}
	defer leave()
	for {
		// Read after the subscription began, so that nothing falls between.
		x, err := s.find(whole, c, id)
		if err == nil {
			r, err = s.standing(whole, x)
		}
		if err != nil {
			return Request{}, err
		}
		if r.Version != version || ctx.Err() != nil {
			return s.view(whole, x)
		}
		// Time alone changes what a client sees: a deadline, and the end of a claim.
		// Facts follow a deadline, but they may be late.
		var due <-chan time.Time
		stop := func() bool { return true }
		if !r.ExpiresAt.IsZero() {
			timer := time.NewTimer(max(r.ExpiresAt.Sub(s.c.Shown()), time.Second))
			due, stop = timer.C, timer.Stop
		}
		select {
		case <-ctx.Done():
		case <-woken:
		case <-due:
		}
		stop()
	}
}

// hubs wake those who wait, by partition.
type hubs struct {
	feed Feed
	log  *slog.Logger

	mu  sync.Mutex
	all map[int]*hub
}

// A hub follows the facts of one partition while a caller waits for one of them.
type hub struct {
	waiting map[chan struct{}]subject
	end     context.CancelFunc
}

// A subject is what a caller waits for.
type subject struct {
	run   approvals.RunID
	batch approvals.BatchID
}

// join returns a channel that is ready after each change of the request, and a
// function to be called when nobody reads it any more.
func (h *hubs) join(ctx context.Context, id approvals.RunID, batch approvals.BatchID) (woken <-chan struct{}, leave func(), err error) {
	n, err := approvals.Partition(string(id))
	if err != nil {
		return nil, nil, err
	}
	place, err := h.feed.LastFact(ctx, n)
	if err != nil {
		return nil, nil, err
	}
	c := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[int]*hub{}
	}
	of := h.all[n]
	if of == nil {
		following, end := context.WithCancel(context.WithoutCancel(ctx)) // the first to wait may be the first to leave
		of = &hub{waiting: map[chan struct{}]subject{}, end: end}
		h.all[n] = of
		go h.follow(following, n, of, place)
	}
	of.waiting[c] = subject{id, batch}
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if delete(of.waiting, c); len(of.waiting) == 0 {
			of.end()
			delete(h.all, n)
		}
	}, nil
}

// follow wakes the callers that the facts of a partition concern. After a failure it wakes
// every waiting caller and continues after the last fact.
func (h *hubs) follow(ctx context.Context, partition int, of *hub, after string) {
	for ctx.Err() == nil {
		for e, err := range h.feed.Follow(ctx, partition, after) {
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					h.log.LogAttrs(ctx, slog.LevelWarn, "facts cannot be followed", slog.Int("partition", partition), slog.Any("err", err))
				}
				break
			}
			after = e.ID
			h.tell(of, func(s subject) bool { return s.batch == approvals.BatchOf(e.Event) })
		}
		retry := time.NewTimer(time.Second)
		select {
		case <-ctx.Done():
		case <-retry.C:
			h.tell(of, func(subject) bool { return true })
		}
		retry.Stop()
	}
}

// wake wakes the callers in this process that wait for a request. It is for a change of
// its record, which is no fact.
func (h *hubs) wake(id approvals.RunID) {
	n, err := approvals.Partition(string(id))
	if err != nil {
		return
	}
	h.mu.Lock()
	of := h.all[n]
	h.mu.Unlock()
	if of != nil {
		h.tell(of, func(s subject) bool { return s.run == id })
	}
}

func (h *hubs) tell(of *hub, concerns func(subject) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c, s := range of.waiting {
		if !concerns(s) {
			continue
		}
		select {
		case c <- struct{}{}:
		default: // it will look anyway
		}
	}
}
