package state_test

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// scripts counts the scripts that a client has run.
func scripts(n *atomic.Int64) statetest.Hook {
	return func(_ context.Context, cmds []redis.Cmder, send func() error) error {
		for _, cmd := range cmds {
			if cmd.Name() == "evalsha" {
				n.Add(1)
			}
		}
		return send()
	}
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
