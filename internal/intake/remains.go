package intake

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
)

// A removed record is what stays of one whose request was removed, so that the
// request is not made once more when a caller repeats it.
type removed struct {
	Schema    int       `json:"v"`
	Agent     string    `json:"agent"`
	RemovedAt time.Time `json:"removed_at"`
}

// Remains says what stays of a request when its thread is removed, and until when it
// is of use to its caller.
func (s *Service) Remains(ctx context.Context, run agentrun.Run) (agentrun.Remains, error) {
	if run.Executor != Executor {
		return agentrun.Remains{}, nil
	}
	rec, version, err := s.record(ctx, run.ID)
	if isNotFound(err) {
		return agentrun.Remains{}, nil
	}
	if err != nil {
		return agentrun.Remains{}, err
	}
	remote, err := s.c.Runner.Remote(ctx, run.ID)
	if err != nil {
		return agentrun.Remains{}, err
	}
	r, err := s.standing(ctx, found{id: run.ID, rec: rec, remote: remote})
	if err != nil {
		return agentrun.Remains{}, err
	}
	out := agentrun.Remains{Used: rec.AnsweredAt}
	for i, c := range rec.Calls {
		out.Until = latest(out.Until, r.Calls[i].UsableUntil)
		if s.usable(r, found{rec: rec}) && !c.ClaimedAt.IsZero() {
			// Whoever makes the call again is to get its result, and not another
			// execution.
			out.Until = latest(out.Until, c.ClaimedAt.Add(agentrun.NamesKept))
		}
		out.Used = latest(out.Used, c.ClaimedAt)
		if c.Report != nil {
			out.Used = latest(out.Used, c.Report.At)
		}
		if rec.Reuse {
			out.Names = append(out.Names, agentrun.MemoRef{ID: indexID(rec.Agent, "print", c.Fingerprint), Surface: printMemo})
		}
	}
	for _, external := range append([]string{rec.ExternalID}, rec.Joins...) {
		out.Names = append(out.Names, agentrun.MemoRef{ID: indexID(rec.Agent, "external", external), Surface: externalMemo})
	}
	for _, key := range rec.Keys {
		out.Names = append(out.Names, agentrun.MemoRef{ID: key, Surface: keyMemo})
	}
	data, err := json.Marshal(removed{schema, rec.Agent, s.c.Now().UTC()})
	if err != nil {
		return agentrun.Remains{}, fmt.Errorf("encode what stays of %s: %w", run.ID, err)
	}
	out.Marker = agentrun.MemoChange{MemoRef: agentrun.MemoRef{ID: string(run.ID), Surface: recordMemo}, Version: version, Data: data}
	return out, nil
}

func latest(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
