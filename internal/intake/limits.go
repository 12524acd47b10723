package intake

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// An agentDoc holds the newest requests of an agent, and counts them. All replicas
// change the one, so its limits hold across them.
type agentDoc struct {
	Schema int            `json:"v"`
	Minute time.Time      `json:"minute,omitzero"` // that is counted
	Made   int            `json:"made,omitempty"`  // new requests in it
	Recent []agentRequest `json:"recent,omitempty"`
}

// An agentRequest is one of the newest requests; Done is that it is known to have
// its outcome.
type agentRequest struct {
	Run      approvals.RunID `json:"run"`
	External string          `json:"external_id"`
	Group    string          `json:"group,omitempty"`
	At       time.Time       `json:"at"`
	Done     bool            `json:"done,omitempty"`
}

// MaxDone is how many requests are kept for a list that have their outcome.
const MaxDone = 200

// unborn is how long a request that was counted may take to be stored.
const unborn = time.Minute

func (d *agentDoc) open() int {
	n := 0
	for _, r := range d.Recent {
		if !r.Done {
			n++
		}
	}
	return n
}

// made is how many new requests there are in the minute of now.
func (d *agentDoc) made(now time.Time) int {
	if !d.Minute.Equal(now.UTC().Truncate(time.Minute)) {
		return 0
	}
	return d.Made
}

// full reports whether a further request is one too many.
func (d *agentDoc) full(c Client, now time.Time) bool {
	return d.made(now) >= c.perMinute() || d.open() >= c.openLimit()
}

func (c Client) perMinute() int { return cmp.Or(c.PerMinute, DefaultPerMinute) }

func (c Client) openLimit() int { return cmp.Or(c.OpenLimit, DefaultOpenLimit) }

// again is when to look again whether one of the open requests has its outcome:
// people decide at any time.
const again = 30 * time.Second

// soon is how long to wait until again, or until the first of the open requests
// ends by itself.
func soon(first, now time.Time) time.Duration {
	if first.IsZero() {
		return again
	}
	return min(again, max(first.Sub(now), time.Second))
}

// learn finds out which of the requests have their outcome, or never began, and
// when the first of the others ends if nobody decides it; zero if none does.
func (s *Service) learn(ctx context.Context, d *agentDoc, now time.Time) (first time.Time, err error) {
	for i, r := range d.Recent {
		if r.Done {
			continue
		}
		var ends time.Time
		run, err := s.c.Store.Run(ctx, r.Run)
		switch {
		case errors.Is(err, approvals.ErrNotFound):
			ends = r.At.Add(unborn)
			d.Recent[i].Done = now.After(ends)
		case err != nil:
			return first, err
		case run.Status != agentrun.RunDeferred:
			d.Recent[i].Done = true
		default:
			b, err := s.c.Desk.Batch(ctx, run.Deferred)
			if err != nil {
				return first, err
			}
			ends = b.Deadline()
			d.Recent[i].Done = b.Settled()
		}
		if !d.Recent[i].Done && !ends.IsZero() && (first.IsZero() || ends.Before(first)) {
			first = ends
		}
	}
	return first, nil
}

// settle marks the requests that are known to have their outcome, and reports
// whether there are any.
func (d *agentDoc) settle(done []approvals.RunID) bool {
	changed := false
	for i, r := range d.Recent {
		if !r.Done && slices.Contains(done, r.Run) {
			d.Recent[i].Done, changed = true, true
		}
	}
	return changed
}

// forget drops the oldest of those that have their outcome.
func (d *agentDoc) forget() {
	for done := len(d.Recent) - d.open(); done > MaxDone; done-- {
		i := slices.IndexFunc(d.Recent, func(r agentRequest) bool { return r.Done })
		d.Recent = slices.Delete(d.Recent, i, i+1)
	}
}
