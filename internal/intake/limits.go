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

// reserve counts a new request, or says that it is one too many.
func (s *Service) reserve(ctx context.Context, c Client, a Ask, id approvals.RunID) error {
	now := s.c.Now().UTC()
	open, perMinute := cmp.Or(c.OpenLimit, DefaultOpenLimit), cmp.Or(c.PerMinute, DefaultPerMinute)
	_, err := update(ctx, s, indexID(c.Name, "agent", ""), agentMemo, func(d *agentDoc, _ bool) (bool, error) {
		if slices.ContainsFunc(d.Recent, func(r agentRequest) bool { return r.Run == id }) {
			return false, nil
		}
		if minute := now.Truncate(time.Minute); !d.Minute.Equal(minute) {
			d.Minute, d.Made = minute, 0
		}
		if d.Made++; d.Made > perMinute {
			return false, &LimitError{What: "requests in a minute", Limit: perMinute, RetryAfter: d.Minute.Add(time.Minute).Sub(now)}
		}
		d.Recent = append(d.Recent, agentRequest{Run: id, External: a.ExternalID, Group: a.Group, At: now})
		if d.open() > open {
			if err := s.learn(ctx, d, now); err != nil {
				return false, err
			}
		}
		if d.open() > open {
			return false, &LimitError{What: "open requests", Limit: open, RetryAfter: 30 * time.Second}
		}
		d.Schema = schema
		d.forget()
		return true, nil
	})
	return err
}

func (d *agentDoc) open() int {
	n := 0
	for _, r := range d.Recent {
		if !r.Done {
			n++
		}
	}
	return n
}

// learn finds out which of the requests have their outcome, or never began.
func (s *Service) learn(ctx context.Context, d *agentDoc, now time.Time) error {
	for i, r := range d.Recent {
		if r.Done {
			continue
		}
		run, err := s.c.Store.Run(ctx, r.Run)
		switch {
		case errors.Is(err, approvals.ErrNotFound):
			d.Recent[i].Done = now.Sub(r.At) > unborn
		case err != nil:
			return err
		case run.Status != agentrun.RunDeferred:
			d.Recent[i].Done = true
		default:
			b, err := s.c.Desk.Batch(ctx, run.Deferred)
			if err != nil {
				return err
			}
			d.Recent[i].Done = b.Settled()
		}
	}
	return nil
}

// forget drops the oldest of those that have their outcome.
func (d *agentDoc) forget() {
	for done := len(d.Recent) - d.open(); done > MaxDone; done-- {
		i := slices.IndexFunc(d.Recent, func(r agentRequest) bool { return r.Done })
		d.Recent = slices.Delete(d.Recent, i, i+1)
	}
}
