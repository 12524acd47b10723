package interact

import (
	"context"
	"log/slog"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// Slack may deliver a press again, even after its person has taken back what it
// said. The desk answers it as it did the first time and changes nothing, so the
// log says of a press that it counted only if the batch shows that it did.

// logDecision logs a decision that the desk has answered for.
func (s *verdicts) logDecision(ctx context.Context, c approvals.Case) {
	said := c.Decision
	if d, _ := c.Approval.DecisionBy(said.By.User); d.Verdict != said.Verdict || d.Digest != said.Digest || !d.At.Equal(said.At) {
		s.logReplay(ctx, c)
		return
	}
	if s.cfg.Log.Enabled(ctx, slog.LevelInfo) {
		s.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "decision committed", append(aboutCase(c), slog.String("verdict", string(said.Verdict)))...)
	}
}

// logRetraction logs that a person took back the decision that they had made
// before.
func (s *verdicts) logRetraction(ctx context.Context, before approvals.Approval, c approvals.Case) {
	_, had := before.DecisionBy(c.Decision.By.User)
	if _, has := c.Approval.DecisionBy(c.Decision.By.User); !had || has {
		s.logReplay(ctx, c)
		return
	}
	s.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "decision taken back", aboutCase(c)...)
}

// logAmendment logs that a person changed the arguments that they were shown.
func (s *verdicts) logAmendment(ctx context.Context, shown approvals.Digest, c approvals.Case) {
	counted := slices.ContainsFunc(c.Approval.Amendments, func(e approvals.Amendment) bool {
		return e.By.User == c.Decision.By.User && e.From == shown && e.At.Equal(c.Decision.At)
	})
	if !counted {
		s.logReplay(ctx, c)
		return
	}
	s.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "arguments changed", aboutCase(c)...)
}

func (s *verdicts) logReplay(ctx context.Context, c approvals.Case) {
	s.cfg.Log.LogAttrs(ctx, slog.LevelDebug, "press delivered again", aboutCase(c)...)
}

// aboutCase says which call it is and who acts on it.
func aboutCase(c approvals.Case) []slog.Attr {
	return []slog.Attr{
		slog.String("batch", string(c.Batch.ID)), slog.String("call", blockkit.Brief(string(c.Decision.Call), 64)),
		slog.String("user", string(c.Decision.By.User)),
	}
}
