package interact

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/respond"
)

// approveAll approves, in one commit, the calls that the card of the button
// showed, each on the arguments that were shown. A call that cannot be approved
// this way, or can no longer be approved, is left as it is, and the person is told
// which and why. A call that the card did not show is never approved.
func (s *decisions) approveAll(ctx context.Context, p inbound.Interaction, value string) (at respond.Subject, decided bool, err error) {
	at = respond.Subject{User: p.User, Now: s.cfg.Now()}
	t, err := ref.ParseTogether(value)
	if err != nil {
		return at, false, err
	}
	b, err := s.cfg.Desk.Batch(ctx, t.Batch)
	at.Batch = b
	if err != nil {
		return at, false, err
	}
	at.Stop = s.cfg.stopping(b)
	reader, err := s.readerOf(ctx, p, b)
	if err != nil {
		return at, false, err
	}
	shown, err := s.asDrawn(ctx, p, reader, b, t.Part)
	if err != nil {
		return at, false, err
	}
	who, err := s.verdicts.deciders.Principal(ctx, p.Who(), p.Channel, b.Asked())
	if err != nil {
		return at, false, err
	}
	cmds, left := approvalsOf(shown, t.Digests, who, at.Now)
	if len(cmds) == 0 && len(left) == 0 {
		return at, false, fmt.Errorf("calls of the button in batch %s: %w", b.ID, approvals.ErrStale)
	}
	repeated := len(cmds) > 0 && !slices.ContainsFunc(cmds, func(c approvals.Decide) bool { return !b.Has(c.Decision) })
	again := false // the press was delivered before
	if repeated {
		if again, err = s.cfg.Desk.DecidedAll(ctx, b.ID, s.requestAll(p, value), cmds); err != nil {
			return at, false, err
		}
	}
	after, skipped, err := s.cfg.Desk.DecideAll(ctx, b.ID, s.requestAll(p, value), cmds)
	if err != nil {
		return at, false, fmt.Errorf("approve %d calls of batch %s: %w", len(cmds), b.ID, err)
	}
	at.Batch = after
	if n := len(cmds) - len(skipped); n > 0 && !repeated {
		s.logAll(ctx, p, after, n)
	}
	for _, x := range skipped {
		if errors.Is(x.Err, approvals.ErrAnswered) {
			continue // the press was delivered again, and its person has decided again since
		}
		a, _ := after.Approval(x.Call)
		if len(skipped) == len(cmds) && len(left) == 0 {
			at.Approval = a
			return at, false, fmt.Errorf("approve call %s of batch %s: %w", x.Call, b.ID, x.Err)
		}
		one := at
		one.Approval = a
		why, _ := respond.Explain(x.Err, one)
		left = append(left, leftCall{a: a, why: why})
	}
	if repeated && len(left) == 0 {
		if !again {
			err = respond.ErrCounted
		}
		at.Approval, _ = after.Approval(cmds[0].Call)
		return at, err == nil, err
	}
	if len(left) > 0 {
		err = s.tellLeft(ctx, p, shown, len(cmds)-len(skipped), left)
	}
	return at, len(cmds) > len(skipped), err
}

// approvalsOf returns the decisions that the button stands for, and the calls of the card
// that it leaves out because each needs an approval of its own.
func approvalsOf(shown card.Card, digests []approvals.Digest, who approvals.Principal, now time.Time) (cmds []approvals.Decide, left []leftCall) {
	for _, a := range shown.OnCard() {
		digest, meant := digestShown(a, digests)
		_, decided := a.DecisionBy(who.User) // then nothing is approved again
		switch {
		case !meant:
		case !decided && digest == a.Call.Digest && a.OpenAt(now) && !shown.MayBeTogether(a, now):
			left = append(left, leftCall{a: a, why: blockkit.Ours(approveAlone)})
		default:
			cmds = append(cmds, approvals.Decide{Decision: approvals.Decision{
				Call: a.Call.ID, By: who, Verdict: approvals.Approve, Digest: digest, At: now,
			}})
		}
	}
	return cmds, left
}

// digestShown is the digest under which the button showed the call, if it did.
// That may be one from before a change.
func digestShown(a approvals.Approval, digests []approvals.Digest) (approvals.Digest, bool) {
	all := []approvals.Digest{a.Call.Digest}
	for _, m := range a.Amendments {
		all = append(all, m.From)
	}
	for _, d := range all {
		if slices.Contains(digests, d) {
			return d, true
		}
	}
	return approvals.Digest{}, false
}

// A leftCall is a call that was not approved with the others, and why.
type leftCall struct {
	a   approvals.Approval
	why blockkit.Mrkdwn
}

// tellLeft says which calls were left as they are.
func (s *decisions) tellLeft(ctx context.Context, p inbound.Interaction, shown card.Card, approved int, left []leftCall) error {
	words := blockkit.Ours(approvedTogether, blockkit.Counted(approved, "call"))
	if approved == 0 {
		words = blockkit.Ours(approvedNone)
	}
	for _, l := range left {
		n := slices.IndexFunc(shown.Batch.Approvals, func(a approvals.Approval) bool { return a.Call.ID == l.a.Call.ID }) + 1
		words = blockkit.Ours(approvedNot, words, blockkit.Num(n), l.why)
	}
	if on := screenOf(p); on.View != "" {
		return s.reviews.reviewAgain(ctx, p.Who(), on, words)
	}
	return s.respond.Tell(ctx, p.Place(), words)
}

// requestAll names the press, so that one that is delivered again is answered
// as the first time.
func (s *decisions) requestAll(p inbound.Interaction, value string) approvals.RequestID {
	return respond.RequestID(s.cfg.Team, append(p.IDs(), value), ref.Pointer{}, approvals.Approve, "")
}

func (s *decisions) logAll(ctx context.Context, p inbound.Interaction, b approvals.Batch, n int) {
	s.cfg.Log.InfoContext(ctx, "calls approved together", slog.String("batch", string(b.ID)), slog.String("user", p.User), slog.Int("calls", n))
}
