package interact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/form"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/respond"
	"github.com/slack-go/slack"
)

// origin is what a form remembers of the card that it came from: pointers.
type origin struct {
	Value  string     `json:"p"`
	Review ref.Screen `json:"r,omitzero"` // the review that it was pressed in
}

// askReason returns what opens the form for a denial, or for an answer to a call in
// doubt, or explains at once why the verdict would not be taken.
func (s *decisions) askReason(v approvals.Verdict) opener {
	return func(ctx context.Context, p inbound.Interaction, value string) (respond.Subject, error) {
		return s.openReason(ctx, p, value, v)
	}
}

func (s *decisions) openReason(ctx context.Context, p inbound.Interaction, value string, v approvals.Verdict) (respond.Subject, error) {
	at, c, err := s.verdicts.caseOf(ctx, p, value)
	at.Attempt = attempts[v]
	if err != nil {
		return at, err
	}
	b, a := c.Batch, c.Approval
	if err := c.MayDecide(v); err != nil {
		return at, s.verdicts.refusal(ctx, at, fmt.Errorf("try to say %s about call %s of batch %s: %w", v, a.Call.ID, b.ID, err))
	}
	reader, err := s.people.MayRead(ctx, p.Who(), b)
	if err != nil {
		return at, err
	}
	call, err := reader.Call(ctx, b, a.Call.ID)
	if err != nil {
		return at, err
	}
	view, err := reasonForms[v].view(b, a, call, originOf(p, value))
	if err != nil {
		return at, err
	}
	return at, s.respond.Open(ctx, p.Trigger, view)
}

// attempts says what a person tries with a verdict.
var attempts = map[approvals.Verdict]respond.Attempt{
	approvals.Deny: respond.Denying, approvals.RunAgain: respond.Answering, approvals.Happened: respond.Answering, approvals.GiveUp: respond.Answering,
}

// A reasonForm is what a form asks in which a verdict is given with its reason. Whoever
// gives one takes part in the conversation of the agent, if it has one here: bars says what
// follows from that.
type reasonForm struct{ callback, title, submit, label, hint, bars string }

// reasonForms are the forms of the verdicts that have one of their own.
var reasonForms = map[approvals.Verdict]reasonForm{
	approvals.Deny:     {ref.CallbackDeny, denyTitle, deny, whyNot, whyNotHint, reasonBars},
	approvals.Happened: {ref.CallbackHappened, happenedTitle, happened, whatHappened, whatHappenedHint, wordsBar},
	approvals.GiveUp:   {ref.CallbackGiveUp, giveUpTitle, giveUp, whyGiveUp, whyGiveUpHint, reasonBars},
}

// view is the form in which a verdict is given, with its reason if the agent can
// be given one.
func (f reasonForm) view(b approvals.Batch, a approvals.Approval, call approvals.ToolCall, o origin) (slack.ModalViewRequest, error) {
	metadata, err := json.Marshal(o)
	if err != nil {
		return slack.ModalViewRequest{}, fmt.Errorf("write the form: %w", err)
	}
	text := form.Head(a, call.Args)
	drawn, incomplete := blockkit.DrawArguments(blockkit.Arguments(call.Args, a.WriteOnly), blockkit.Detail{Value: 300, Keys: 10})
	text = append(text, blockkit.BoxParas(drawn)...)
	if incomplete {
		text = append(text, blockkit.Line(blockkit.Say(notAllShown)))
	}
	view := slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: f.callback, PrivateMetadata: string(metadata),
		Title: blockkit.Literal(f.title), Submit: blockkit.Literal(f.submit), Close: blockkit.Literal(cancel),
	}
	if b.Limits.NoReasons {
		view.Blocks = slack.Blocks{BlockSet: []slack.Block{blockkit.RichText(append(text, blockkit.Line(blockkit.Say(unreasoned)))...)}}
		return view, nil
	}
	hint := f.hint
	if b.Executor == "" {
		hint += f.bars
	}
	reason := form.ReasonInputBlock(f.label, hint, false, true)
	view.Blocks = slack.Blocks{BlockSet: []slack.Block{blockkit.RichText(text...), reason}}
	return view, nil
}

// submitted handles a form. It is closed only after what it asks for is
// committed; what the person may read about a refusal is shown in the form
// itself.
func (s *Handler) submitted(ctx context.Context, p inbound.Interaction) (inbound.Reply, error) {
	switch p.View.Callback {
	case ref.CallbackDeny:
		return s.decisions.given(ctx, p, approvals.Deny)
	case ref.CallbackHappened:
		return s.decisions.given(ctx, p, approvals.Happened)
	case ref.CallbackGiveUp:
		return s.decisions.given(ctx, p, approvals.GiveUp)
	case ref.CallbackApprove:
		return s.decisions.approvedForm(ctx, p)
	case ref.CallbackEdit:
		return s.edits.edited(ctx, p)
	case ref.CallbackSheet:
		return s.Sheets.SubmittedSheet(ctx, p), nil
	}
	s.cfg.Log.WarnContext(ctx, "unknown form", slog.String("callback", blockkit.Brief(p.View.Callback, 64)))
	return inbound.Replace(blockkit.Notice(blockkit.Ours(oldForm))), nil
}

// given handles a verdict that came with its reason.
func (s *decisions) given(ctx context.Context, p inbound.Interaction, v approvals.Verdict) (inbound.Reply, error) {
	reason := form.TrimReason(p.View.Values[form.ReasonBlock][form.ReasonInput].Value)
	value := readOrigin(p).Value
	at, err := s.verdicts.decide(s.verdicts.prefetch(ctx, p, value), p, value, v, reason)
	if err == nil {
		s.reviews.redrawReview(ctx, p)
		return inbound.Reply{}, nil
	}
	return s.notGiven(ctx, p, at, v, err)
}

// notGiven explains in its form why a verdict does not count.
func (s *decisions) notGiven(ctx context.Context, p inbound.Interaction, at respond.Subject, v approvals.Verdict, err error) (inbound.Reply, error) {
	words, known := s.verdicts.explain(ctx, err, at)
	if !known {
		return inbound.Reply{}, err
	}
	s.cfg.Log.InfoContext(ctx, "verdict refused", slog.String("user", p.User), slog.String("verdict", string(v)), slog.Any("reason", err))
	_, field := p.View.Values[form.ReasonBlock]
	switch {
	case errors.Is(err, approvals.ErrReasonNeeded) && field:
		return inbound.Under(map[string]string{form.ReasonBlock: needsReason}), nil
	case respond.IsTryAgain(err) && field:
		return inbound.Under(map[string]string{form.ReasonBlock: notDecidedYet}), nil
	case respond.IsTryAgain(err) && (v == approvals.Approve || v == approvals.RunAgain):
		m := readSigning(p)
		return inbound.Replace(m.aside(blockkit.Ours(notDecidedYet), backToArguments, max(0, m.Read-1))), nil
	}
	return inbound.Replace(blockkit.Notice(words)), nil
}

// stopping tells the requester how to stop the batch: with a message, if the agent
// takes one as that. The requester can neither approve nor deny.
func (c Config) stopping(b approvals.Batch) blockkit.Mrkdwn {
	if b.Executor != "" {
		return blockkit.Mrkdwn{} // no message in Slack reaches who executes it
	}
	switch c.Pending[b.Agent] {
	case agentrun.PendingKeep, agentrun.PendingRefuse:
		return blockkit.Mrkdwn{}
	case agentrun.PendingReject, "":
	}
	if c.Overhear[b.Agent] {
		return blockkit.Ours(stopByMessage)
	}
	return blockkit.Ours(stopByMention)
}
