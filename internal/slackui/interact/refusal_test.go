package interact

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/respond"
)

// A lostReplica is a desk whose store cannot be as durable as it promises.
type lostReplica struct{ Desk }

func (lostReplica) Confirm(context.Context, approvals.Batch) error { return approvals.ErrNotDurable }

// "You have approved this" acknowledges a decision, so a form that is not opened
// for that reason waits for the decision to be durable, as a decision does.
func TestAFormIsRefusedOnlyByWhatIsDurable(t *testing.T) {
	v := &verdicts{cfg: Config{Desk: lostReplica{}}}
	require.ErrorIs(t, v.refusal(t.Context(), respond.Subject{}, respond.ErrCounted), approvals.ErrNotDurable)
}
