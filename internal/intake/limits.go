package intake

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// An agentDoc holds the newest requests of an agent, and counts them. All replicas
// change the one, so its limits hold across them. Those that have their outcome are
// stored as a part each, which nothing changes until it is removed: the document is
// written for every request, and is small.
type agentDoc struct {
	Schema int            `json:"v"`
	Minute time.Time      `json:"minute,omitzero"` // that is counted
	Made   int            `json:"made,omitempty"`  // new requests in it
	Recent []agentRequest `json:"recent,omitempty"`

	dropped []string // parts that are to be removed
}

// An agentRequest is one of the newest requests. Done says that it is known to have its
// outcome.
type agentRequest struct {
	Run      approvals.RunID `json:"run"`
	External string          `json:"external_id"`
	Group    string          `json:"group,omitempty"`
	At       time.Time       `json:"at"`
	Done     bool            `json:"done,omitempty"`

	part bool // it is stored as one
}

// A donePart is a request that has its outcome, as a part of the document.
type donePart struct {
	Schema int `json:"v"`
	agentRequest
}

// agent loads the document of an agent.
func (s *Service) agent(ctx context.Context, name string) (d agentDoc, version int64, err error) {
	id := indexID(name, "agent", "")
	data, parts, version, err := s.c.Store.MemoParts(ctx, id, agentMemo)
	if err != nil || version == 0 {
		return agentDoc{}, 0, err
	}
	if err = approvals.DecodeMemo(data, schema, &d); err != nil {
		return agentDoc{}, 0, fmt.Errorf("decode %s of %s: %w", agentMemo, id, err)
	}
	for name, data := range parts {
		var of donePart
		if err = approvals.DecodeMemo(data, schema, &of); err != nil {
			return agentDoc{}, 0, fmt.Errorf("decode part %s of %s of %s: %w", name, agentMemo, id, err)
		}
		of.part = true
		d.Recent = append(d.Recent, of.agentRequest)
	}
	slices.SortStableFunc(d.Recent, func(a, b agentRequest) int { return a.At.Compare(b.At) })
	return d, version, nil
}

// change is what is written of the document.
func (d agentDoc) change(agent string, version int64) (agentrun.MemoChange, error) {
	m := agentrun.MemoChange{
		MemoRef: agentrun.MemoRef{ID: indexID(agent, "agent", ""), Surface: agentMemo}, Version: version,
		Set: map[string]json.RawMessage{}, Drop: d.dropped,
	}
	var err error
	all := d.Recent
	d.Recent = nil
	for _, r := range all {
		switch {
		case !r.Done:
			d.Recent = append(d.Recent, r)
		case !r.part:
			if m.Set[string(r.Run)], err = json.Marshal(donePart{schema, r}); err != nil {
				return m, fmt.Errorf("encode request %s: %w", r.Run, err)
			}
		}
	}
	if m.Data, err = json.Marshal(d); err != nil {
		return m, fmt.Errorf("encode %s of %s: %w", agentMemo, m.ID, err)
	}
	return m, nil
}

// stored says that the document is stored as it is.
func (d *agentDoc) stored() {
	d.dropped = nil
	for i := range d.Recent {
		d.Recent[i].part = d.Recent[i].Done
	}
}

// after is now, or just after the last request: their times are their order.
func (d *agentDoc) after(now time.Time) time.Time {
	if n := len(d.Recent); n > 0 && !now.After(d.Recent[n-1].At) {
		return d.Recent[n-1].At.Add(1)
	}
	return now
}

// MaxDone is how many requests are kept for a list that have their outcome.
const MaxDone = 200

// unborn is how long it may take until a request that was counted is stored.
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

// made is how many new requests there are in the current minute.
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

// spare is how many more there may be, so that they are removed together.
const spare = 32

// forget drops the oldest of those that have their outcome.
func (d *agentDoc) forget() {
	done := len(d.Recent) - d.open()
	if done <= MaxDone+spare {
		return
	}
	d.Recent = slices.DeleteFunc(d.Recent, func(r agentRequest) bool {
		if !r.Done || done <= MaxDone {
			return false
		}
		done--
		if r.part {
			d.dropped = append(d.dropped, string(r.Run))
		}
		return true
	})
}
