package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// reserve counts a new request, or says that it is one too many. Requests that one agent
// makes at the same time are counted in one change of its document, so that they do not
// lose races to each other, and those that are admitted are stored in the same commit. It
// is enough that one process does so: the document is changed under its version.
func (s *Service) reserve(ctx context.Context, r *reservation) error {
	r.counted = make(chan struct{})
	of := s.counters.of(r.client.Name)
	of.join(r)
	defer of.leave(r)
	select {
	case <-r.counted:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	case of.turn <- struct{}{}:
	}
	defer func() { <-of.turn }()
	for {
		select {
		case <-r.counted:
			return r.err
		default:
		}
		all, done := of.next()
		err := s.count(ctx, r.client.Name, of, all, done)
		if err != nil && ctx.Err() != nil {
			return err // it says nothing about the others: the next of them tries again
		}
		of.end(all, done, err)
	}
}

// count changes the document of the agent so that it has these requests, each
// unless it is one too many. The document is the one that this process has stored
// last. If another process has changed it since, or it says that something is one
// too many, it is read.
func (s *Service) count(ctx context.Context, agent string, of *counter, all []*reservation, done []approvals.RunID) error {
	for range maxTries {
		d, version, known := of.known()
		if !known {
			var err error
			if d, version, err = s.agent(ctx, agent); err != nil {
				return err
			}
		}
		changed, limited, err := s.enter(ctx, &d, all, done, known)
		if err != nil {
			return err
		}
		if limited {
			of.keep(nil, 0)
			continue
		}
		if !changed {
			return nil
		}
		with := admissions(all)
		m, err := d.change(agent, version)
		switch {
		case err != nil:
			return err
		case len(with) == 0:
			err = s.c.Store.ChangeMemo(ctx, m)
		default:
			err = s.c.Runner.Admit(ctx, m, with...)
		}
		part, moved := errors.AsType[*agentrun.PartError](err)
		switch {
		case err == nil:
			of.keep(&d, version+1)
			return nil
		case moved:
			for _, r := range all {
				if r.admission == with[part.Part] {
					r.moved = true
				}
			}
		case errors.Is(err, approvals.ErrConflict):
			of.keep(nil, 0)
		default:
			of.keep(nil, 0)
			return err
		}
	}
	return fmt.Errorf("count %d requests of %s: lost %d races: %w", len(all), agent, maxTries, approvals.ErrConflict)
}

// enter writes requests into the document, and into each that is one too many why.
// It stops at the first of these, as limited, if the document may be old.
func (s *Service) enter(ctx context.Context, d *agentDoc, all []*reservation, done []approvals.RunID, old bool) (changed, limited bool, err error) {
	now := s.c.Now().UTC()
	minute, learned := now.Truncate(time.Minute), false
	changed = d.settle(done)
	var first time.Time
	stored := map[agentrun.MemoRef]bool{} // with the others
	for _, r := range all {
		if r.err = nil; !r.fits(stored) {
			r.moved, r.err = true, errMoved
			continue
		}
		if slices.ContainsFunc(d.Recent, func(o agentRequest) bool { return o.Run == r.request.Run }) {
			if r.admission != nil { // it was counted, and perhaps stored
				r.moved, r.err = true, errMoved
			}
			continue
		}
		if old && d.full(r.client, now) {
			return false, true, nil
		}
		if most := r.client.perMinute(); d.made(now) >= most {
			r.err = &LimitError{What: "requests in a minute", Limit: most, RetryAfter: minute.Add(time.Minute).Sub(now)}
			continue
		}
		most := r.client.openLimit()
		if d.open() >= most && !learned {
			if first, err = s.learn(ctx, d, now); err != nil {
				return false, false, err
			}
			learned = true
		}
		if d.open() >= most {
			r.err = &LimitError{What: "open requests", Limit: most, RetryAfter: soon(first, now)}
			continue
		}
		r.request.At = d.after(now)
		d.Minute, d.Made, d.Recent = minute, d.made(now)+1, append(d.Recent, r.request)
		changed = true
	}
	d.Schema = schema
	d.forget()
	return changed, false, nil
}

// A reservation is a request that is to be counted. Its error is of use once it is.
type reservation struct {
	client    Client
	request   agentRequest
	admission *agentrun.Admission // that is stored with it; nil for none
	moved     bool                // the admission does not fit what is stored
	counted   chan struct{}       // closed
	err       error
}

// fits reports whether nothing of the admission was written already, by another
// process or with one of the others.
func (r *reservation) fits(stored map[agentrun.MemoRef]bool) bool {
	if r.moved || r.admission == nil {
		return !r.moved
	}
	for _, m := range r.admission.Memos {
		if stored[m.MemoRef] {
			return false
		}
	}
	for _, m := range r.admission.Memos {
		stored[m.MemoRef] = true
	}
	return true
}

// admissions are what is to be stored with these reservations.
func admissions(all []*reservation) []*agentrun.Admission {
	var with []*agentrun.Admission
	for _, r := range all {
		if r.admission != nil && r.err == nil {
			with = append(with, r.admission)
		}
	}
	return with
}
