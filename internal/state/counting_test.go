package state_test

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

// scripts counts the commits of a client, without those that are sent again.
type scripts struct{ n *atomic.Int64 }

func (s scripts) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s scripts) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			s.n.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (s scripts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// nothing is a policy for desks at which nothing is amended.
type nothing struct{}

func (nothing) Rule(context.Context, approvals.Proposal) (approvals.Ruling, error) {
	return approvals.Refuse{}, nil
}

func (nothing) Strictest(time.Time) approvals.Requirement { return approvals.Requirement{} }

func newDesk(s *state.Store, now func() time.Time) *approvals.Desk {
	return approvals.NewDesk(s, nothing{}, nil, now)
}
