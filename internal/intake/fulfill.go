package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
)

// Fulfill gives the result of an external call of another agent. The client must
// be one that may fulfill calls of that tool of that agent, and never the agent
// itself; for any other there is no such request. The same result again is
// answered as the first time, and another one is [approvals.ErrSettled].
func (s *Service) Fulfill(ctx context.Context, c Client, id approvals.RunID, call approvals.ToolCallID, result approvals.CallResult) error {
	missing := fmt.Errorf("call %q of request %s: %w", string(call), id, approvals.ErrNotFound)
	run, err := s.c.Store.Run(ctx, id)
	if err != nil {
		return err
	}
	if run.Deferred == "" || run.Agent == c.Name {
		return missing
	}
	b, err := s.c.Desk.Batch(ctx, run.Deferred)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(b.Calls, func(e approvals.External) bool { return e.Call.ID == call })
	if i < 0 || !slices.Contains(c.Fulfills, Fulfills{Agent: run.Agent, Tool: b.Calls[i].Call.Name}) {
		return missing
	}
	request := approvals.RequestID("fulfill:" + string(id) + ":" + string(call))
	if _, err := s.c.Desk.Fulfill(ctx, b.ID, request, approvals.Fulfill{Call: call, By: c.actor(), Result: result}); err != nil {
		return fmt.Errorf("fulfill call %q: %w", string(call), err)
	}
	return nil
}

func isNotFound(err error) bool { return errors.Is(err, approvals.ErrNotFound) }
