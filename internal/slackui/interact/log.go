package interact

import (
	"context"
	"log/slog"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/respond"
)

// Slack may deliver a press again, even after its person has taken back what it
// said. The desk answers it as it did the first time and changes nothing, so the
// log says of a press that it counted only if the batch shows that it did.

// logDecision logs a decision that the desk has answered for.
func (s *verdicts) logDecision(ctx context.Context, ptr ref.Pointer, after approvals.Batch, d approvals.Decision) {
	a, _ := ptr.In(after)
	counted := slices.ContainsFunc(a.Decisions, func(e approvals.Decision) bool {
		return e.By.User == d.By.User && e.Verdict == d.Verdict && e.Digest == d.Digest && e.At.Equal(d.At)
	})
	if !counted {
		s.logReplay(ctx, ptr, a, d.By.User)
		return
	}
	s.cfg.Log.InfoContext(ctx, "decision committed", slog.String("batch", string(ptr.Batch)),
		slog.String("call", blockkit.Brief(string(a.Call.ID), 64)), slog.String("user", string(d.By.User)), slog.String("verdict", string(d.Verdict)))
}

// logRetraction logs that a person took back the decision that they had made
// before.
func (s *verdicts) logRetraction(ctx context.Context, ptr ref.Pointer, before respond.Subject, after approvals.Batch) {
	a, _ := ptr.In(after)
	_, had := before.Approval.DecisionBy(approvals.UserID(before.User))
	if _, has := a.DecisionBy(approvals.UserID(before.User)); !had || has {
		s.logReplay(ctx, ptr, a, approvals.UserID(before.User))
		return
	}
	s.cfg.Log.InfoContext(ctx, "decision taken back", slog.String("batch", string(ptr.Batch)),
		slog.String("call", blockkit.Brief(string(a.Call.ID), 64)), slog.String("user", before.User))
}

// logAmendment logs that a person changed the arguments that they were shown.
func (s *verdicts) logAmendment(ctx context.Context, ptr ref.Pointer, after approvals.Batch, d approvals.Decision) {
	a, _ := ptr.In(after)
	counted := slices.ContainsFunc(a.Amendments, func(e approvals.Amendment) bool {
		return e.By.User == d.By.User && e.From == ptr.Digest && e.At.Equal(d.At)
	})
	if !counted {
		s.logReplay(ctx, ptr, a, d.By.User)
		return
	}
	s.cfg.Log.InfoContext(ctx, "arguments changed", slog.String("batch", string(ptr.Batch)),
		slog.String("call", blockkit.Brief(string(a.Call.ID), 64)), slog.String("user", string(d.By.User)))
}

func (s *verdicts) logReplay(ctx context.Context, ptr ref.Pointer, a approvals.Approval, user approvals.UserID) {
	s.cfg.Log.DebugContext(ctx, "press delivered again", slog.String("batch", string(ptr.Batch)),
		slog.String("call", blockkit.Brief(string(a.Call.ID), 64)), slog.String("user", string(user)))
}
