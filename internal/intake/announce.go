package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// announceMemo is what was announced of a batch. It has the name of the kind of due
// work, which ends when the memo is stored.
const announceMemo = "announcements"

// An announcedDoc is that memo. What a batch still says needs none; a decision that
// was taken back it does not say. While nothing is decided there is no memo, and none
// is begun once the batch is settled: then nothing is taken back.
type announcedDoc struct {
	Schema  int            `json:"v"`
	Decided []decisionTold `json:"decided,omitempty"`
}

type decisionTold struct {
	Call approvals.ToolCallID `json:"call"`
	By   approvals.UserID     `json:"by"`
	At   time.Time            `json:"at"`
}

func (d decisionTold) key() string { return string(d.By) + "|" + d.At.UTC().Format(time.RFC3339Nano) }

// Announce tells the endpoints of agents what happened to a batch, and which of its calls
// wait for a result. It is due whenever a batch changes that is of a remote agent or has
// external calls. What happened and was undone before Announce ran is not told; what is
// told may be told again after a crash, as the same message. [EventCreated] and
// [EventSettled] are told by [Service.Ask] and [Service.Deliver].
func (s *Service) Announce(ctx context.Context, id approvals.BatchID) error {
	ctx = s.c.Store.Prefetch(ctx, approvals.Reads{
		Memos: []approvals.MemoKey{{ID: string(id), Surface: announceMemo}}, Batches: []approvals.BatchID{id},
	})
	b, err := s.c.Desk.Batch(ctx, id)
	if err != nil {
		return err
	}
	var told announcedDoc
	version, err := s.load(ctx, string(id), announceMemo, &told)
	if err != nil {
		return err
	}
	now := announcedDoc{Schema: schema, Decided: decisionsOf(b)}
	if s.c.Notify != nil {
		if err := s.tellAsker(ctx, b, told, now); err != nil {
			return err
		}
		if err := s.tellFulfillers(ctx, b); err != nil {
			return err
		}
	}
	var doc []byte
	if version > 0 || (len(now.Decided) > 0 && !b.Settled()) {
		if doc, err = json.Marshal(now); err != nil {
			return fmt.Errorf("encode what was announced of %s: %w", id, err)
		}
	}
	err = s.c.Store.CommitMemo(ctx, string(id), announceMemo, doc, version, b.Version)
	if errors.Is(err, approvals.ErrConflict) {
		return nil // another process has announced it at the same time; what it did not know of is still due
	}
	return err
}

// tellAsker tells the endpoint that the request names, if it names one.
func (s *Service) tellAsker(ctx context.Context, b approvals.Batch, told, now announcedDoc) error {
	if b.Executor != Executor {
		return nil
	}
	rec, _, err := s.record(ctx, b.Run)
	if err != nil || rec.Notify == "" {
		return err
	}
	about := Request{ID: b.Run, Agent: rec.Agent, ExternalID: rec.ExternalID, Group: rec.Group, State: stateOf(b)}
	for _, n := range append(happened(b), retracted(b, told, now, s.c.Now())...) {
		n.Agent, n.Endpoint, n.Request = rec.Agent, rec.Notify, about
		if err := s.c.Notify(ctx, n); err != nil {
			return fmt.Errorf("announce %s of request %s: %w", n.Type, b.Run, err)
		}
	}
	return nil
}

// tellFulfillers tells the agents that may give the result of a call that it waits.
// They are told no arguments, and nothing of the request but its id.
func (s *Service) tellFulfillers(ctx context.Context, b approvals.Batch) error {
	if s.c.Fulfillers == nil {
		return nil
	}
	for _, e := range b.Calls {
		if e.Result != nil {
			continue
		}
		for _, c := range s.c.Fulfillers(b.Agent, e.Call.Name) {
			for _, endpoint := range c.Endpoints {
				err := s.c.Notify(ctx, Notice{
					Agent: c.Name, Endpoint: endpoint, Type: EventWaiting, At: b.OpenedAt, Call: e.Call.ID, Tool: e.Call.Name, Key: string(e.Call.ID),
					Request: Request{ID: b.Run, Agent: b.Agent, State: StatePending},
				})
				if err != nil {
					return fmt.Errorf("announce call %q of %s: %w", string(e.Call.ID), b.Run, err)
				}
			}
		}
	}
	return nil
}

func stateOf(b approvals.Batch) State {
	if b.Settled() {
		return StateSettled
	}
	return StatePending
}

// happened is what a batch says of its past, besides that it was opened and settled.
func happened(b approvals.Batch) []Notice {
	var all []Notice
	add := func(event string, call approvals.CallRef, key string, at time.Time) {
		all = append(all, Notice{Type: event, At: at, Call: call.ID, Tool: call.Name, Key: string(call.ID) + "|" + key})
	}
	for _, a := range b.Approvals {
		for _, d := range a.Decisions {
			add(EventDecided, a.Call, decisionTold{By: d.By.User, At: d.At}.key(), d.At)
		}
		for i, m := range a.Amendments {
			add(EventAmended, a.Call, fmt.Sprint(i), m.At)
		}
		if a.Status != approvals.Pending {
			add(EventCall, a.Call, "", a.Ending.At)
		}
		switch a.Execution.State {
		case "":
		case approvals.Claimed:
			add(EventClaimed, a.Call, "", a.Execution.At)
		default:
			add(EventReported, a.Call, string(a.Execution.State), a.Execution.At)
		}
	}
	for _, e := range b.Calls {
		if e.Result != nil && !e.Withdrawn() {
			add(EventFulfilled, e.Call, "", e.Ending.At)
		}
	}
	return all
}

func decisionsOf(b approvals.Batch) []decisionTold {
	var all []decisionTold
	for _, a := range b.Approvals {
		for _, d := range a.Decisions {
			all = append(all, decisionTold{Call: a.Call.ID, By: d.By.User, At: d.At.UTC()})
		}
	}
	return all
}

// retracted are the decisions that were told and are gone, unless an edit cleared
// them.
func retracted(b approvals.Batch, told, now announcedDoc, at time.Time) []Notice {
	var all []Notice
	for _, d := range told.Decided {
		a, ok := b.Approval(d.Call)
		cleared := slices.ContainsFunc(a.Amendments, func(m approvals.Amendment) bool { return !m.At.Before(d.At) && slices.Contains(m.Cleared, d.By) })
		if ok && !cleared && !slices.ContainsFunc(now.Decided, func(o decisionTold) bool { return o.Call == d.Call && o.key() == d.key() }) {
			all = append(all, Notice{Type: EventRetracted, At: at, Call: d.Call, Tool: a.Call.Name, Key: string(d.Call) + "|" + d.key()})
		}
	}
	return all
}
