package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// Fulfill gives the result of an external call of another agent. The client must
// be one that may fulfill calls of that tool of that agent, and never the agent
// itself; for any other there is no such request. A call of the agent itself that is
// not external has a report instead, which is [approvals.ErrInvalid]. The same result
// again is answered as the first time, and another one is [approvals.ErrSettled].
func (s *Service) Fulfill(ctx context.Context, c Client, id approvals.RunID, call approvals.ToolCallID, result approvals.CallResult) error {
	b, err := s.fulfillable(ctx, c, id, call)
	if errors.Is(err, approvals.ErrNotFound) {
		if own, no := s.find(ctx, c, id); no == nil && own.claims(call) {
			return invalid("result", "is for external calls of other agents; this call is the agent's own, and is claimed and reported with state")
		}
	}
	if err != nil {
		return err
	}
	request := approvals.RequestID("fulfill:" + string(id) + ":" + string(call))
	if _, err := s.c.Desk.Fulfill(ctx, b.ID, request, approvals.Fulfill{Call: call, By: c.actor(), Result: result}); err != nil {
		return fmt.Errorf("fulfill call %q: %w", string(call), err)
	}
	return nil
}

// fulfillable returns the batch of an external call that the client may fulfill. For
// any other call it is [approvals.ErrNotFound].
func (s *Service) fulfillable(ctx context.Context, c Client, id approvals.RunID, call approvals.ToolCallID) (approvals.Batch, error) {
	missing := fmt.Errorf("call %q of request %s: %w", string(call), id, approvals.ErrNotFound)
	run, err := s.c.Store.Run(ctx, id)
	if err != nil {
		return approvals.Batch{}, err
	}
	if run.Deferred == "" {
		return approvals.Batch{}, missing
	}
	b, err := s.c.Desk.Batch(ctx, run.Deferred)
	if err != nil {
		return approvals.Batch{}, err
	}
	i := slices.IndexFunc(b.Calls, func(e approvals.External) bool { return e.Call.ID == call })
	if i < 0 || !c.fulfills(run.Agent, b.Calls[i].Call.Name) {
		return approvals.Batch{}, missing
	}
	return b, nil
}

// claims reports whether the agent that asked executes the call, and reports it.
func (x found) claims(call approvals.ToolCallID) bool {
	external := slices.ContainsFunc(x.remote.Batch.Calls, func(e approvals.External) bool { return e.Call.ID == call })
	return x.rec.call(call) >= 0 && !external
}

// A WaitingCall is an external call of another agent that has no result yet.
type WaitingCall struct {
	Request  approvals.RunID // with Call it names the call for [Service.Fulfill]
	Call     approvals.ToolCallID
	Agent    string
	Tool     string
	Args     json.RawMessage
	Digest   approvals.Digest
	Metadata json.RawMessage // of its tool: a JSON object, or nil
	Place    approvals.Place
	Since    time.Time
}

// Waiting returns a page of the external calls that the client may fulfill, the oldest
// first, and where the next page begins: nowhere if that is empty. A page has the calls
// of at most limit batches, and may have none before the end. The client never sees calls
// of its own here.
func (s *Service) Waiting(ctx context.Context, c Client, after approvals.Cursor, limit int) ([]WaitingCall, approvals.Cursor, error) {
	if limit == 0 {
		limit = DefaultList
	}
	if limit < 0 || limit > MaxDone {
		return nil, "", invalid("limit", "must be between 1 and %d", MaxDone)
	}
	var keys []approvals.ListKey
	for _, f := range c.Fulfills {
		if f.Agent != c.Name {
			keys = append(keys, approvals.AwaitsResult(f.Agent))
		}
	}
	batches, next, err := s.c.Store.Inbox(ctx, keys, after, limit)
	if errors.Is(err, approvals.ErrInvalid) {
		return nil, "", invalid("after", "must be next of an answer before")
	}
	if err != nil {
		return nil, "", fmt.Errorf("list what waits for %s: %w", c.Name, err)
	}
	var all []WaitingCall
	for _, b := range batches {
		for _, e := range b.Calls {
			if e.Result != nil || !c.fulfills(b.Agent, e.Call.Name) {
				continue
			}
			call, err := s.c.Desk.Call(ctx, b, e.Call.ID)
			if errors.Is(err, approvals.ErrStale) {
				s.c.Log.ErrorContext(ctx, "an external call cannot be read", slog.String("run", string(b.Run)), slog.String("call", string(e.Call.ID)))
				continue // it must not hide the others
			}
			if err != nil {
				return nil, "", err
			}
			all = append(all, WaitingCall{
				Request: b.Run, Call: call.ID, Agent: b.Agent, Tool: call.Name, Args: call.Args, Digest: e.Call.Digest,
				Metadata: e.Metadata, Place: e.Place, Since: b.OpenedAt,
			})
		}
	}
	return all, next, nil
}

// fulfills reports whether the client may give the results of these calls.
func (c Client) fulfills(agent, tool string) bool {
	return agent != c.Name && slices.Contains(c.Fulfills, Fulfills{Agent: agent, Tool: tool})
}

func isNotFound(err error) bool { return errors.Is(err, approvals.ErrNotFound) }
