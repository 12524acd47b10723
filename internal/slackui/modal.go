package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
)

const (
	reasonBlock = "reason"
	reasonInput = "text"
)

// errForm is a form that Slack did not open.
var errForm = errors.New("form not opened")

// origin is what a form remembers of the card that it came from: pointers.
type origin struct {
	Value   string `json:"p"`
	Channel string `json:"c"`
	Thread  string `json:"t,omitempty"`
	Review  screen `json:"r,omitzero"` // the review that it was pressed in
}

// askReason opens the form for a denial, or it explains at once why the denial
// would not be taken.
func (s *decisions) askReason(ctx context.Context, p Interaction, value string) (about, error) {
	at, _, decision, err := s.verdicts.judge(ctx, p, value, approvals.Deny)
	if err != nil {
		return at, err
	}
	b, a := at.batch, at.approval
	decision.Reason = "a reason"
	if _, _, err := b.Apply(approvals.Decide{Decision: decision}); err != nil {
		return at, fmt.Errorf("try to deny call %s of batch %s: %w", a.Call.ID, b.ID, err)
	}
	call, err := s.cfg.Desk.Call(ctx, b, a.Call.ID)
	if err != nil {
		return at, fmt.Errorf("load call %s of batch %s: %w", a.Call.ID, b.ID, err)
	}
	view, err := denialView(a, call, originOf(p, value))
	if err != nil {
		return at, err
	}
	return at, s.respond.open(ctx, p, view)
}

// open shows a form: over the modal that the person is in, if they are in one.
func (s *responder) open(ctx context.Context, p Interaction, view slack.ModalViewRequest) error {
	show := s.api.openView
	if p.View.Type == string(slack.VTModal) {
		show = s.api.pushView
	}
	err := show(ctx, p.Trigger, view)
	if err == nil {
		return nil
	}
	if !hasCode(err, "expired_trigger_id", "exchanged_trigger_id", "invalid_trigger_id") {
		s.log.WarnContext(ctx, "form not opened", slog.Any("error", err))
	}
	return fmt.Errorf("%w: %w", errForm, err)
}

// denialView is the form in which a denial is given with its reason.
func denialView(a approvals.Approval, call approvals.ToolCall, o origin) (slack.ModalViewRequest, error) {
	metadata, err := json.Marshal(o)
	if err != nil {
		return slack.ModalViewRequest{}, fmt.Errorf("write the form: %w", err)
	}
	text := []para{line(styled(brief(call.Name, 80), bold))}
	drawn, incomplete := draw(arguments(call.Args, a.WriteOnly), detail{value: 300, keys: 10})
	text = append(text, boxes(drawn)...)
	if incomplete {
		text = append(text, line(say("Not everything is shown here.")))
	}
	view := slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: callbackDeny, PrivateMetadata: string(metadata),
		Title: literal("Deny this call"), Submit: literal("Deny"), Close: literal("Cancel"),
	}
	reason := reasonInputBlock("Why not?", whoReads+
		" Whoever gives a reason cannot approve what the agent does next in this thread, unless the rule allows it.", false, true)
	view.Blocks = slack.Blocks{BlockSet: []slack.Block{richText(text...), reason}}
	return view, nil
}

// whoReads a reason.
const whoReads = "The agent and everybody in the thread will read it."

func reasonInputBlock(label, hint string, needed, focus bool) *slack.InputBlock {
	input := slack.NewPlainTextInputBlockElement(literal("For example: use the archive instead"), reasonInput)
	if label != "Why not?" {
		input.Placeholder = literal("For example: checked against the backup of today")
	}
	input.Multiline, input.MaxLength, input.FocusOnLoad = true, maxReason, focus
	b := slack.NewInputBlock(reasonBlock, literal(label), literal(hint), input)
	b.Optional = !needed
	return b
}

// submitted handles a form. It is closed only after what it asks for is
// committed; what the person may read about a refusal is shown in the form
// itself.
func (s *handler) submitted(ctx context.Context, p Interaction) (reply, error) {
	switch p.View.Callback {
	case callbackDeny:
		return s.decisions.given(ctx, p, approvals.Deny)
	case callbackApprove:
		return s.decisions.approvedForm(ctx, p)
	case callbackEdit:
		return s.edits.edited(ctx, p)
	case callbackSheet:
		return s.sheets.submittedSheet(ctx, p)
	}
	s.cfg.Log.WarnContext(ctx, "unknown form", slog.String("callback", brief(p.View.Callback, 64)))
	return replace(notice("This form is from another version of Countersign. Nothing was decided.")), nil
}

// given handles a verdict that came with its reason.
func (s *decisions) given(ctx context.Context, p Interaction, v approvals.Verdict) (reply, error) {
	reason := trimReason(p.View.Values[reasonBlock][reasonInput].Value)
	at, err := s.verdicts.decide(ctx, p, readOrigin(p).Value, v, reason)
	if err == nil {
		s.reviews.redrawReview(ctx, p)
		return reply{}, nil
	}
	words, known := explain(err, at)
	if !known {
		return reply{}, err
	}
	s.cfg.Log.InfoContext(ctx, "verdict refused", slog.String("user", p.User), slog.String("verdict", string(v)), slog.Any("reason", err))
	_, field := p.View.Values[reasonBlock]
	switch {
	case errors.Is(err, approvals.ErrReasonNeeded) && field:
		return under(map[string]string{reasonBlock: "Write why you approve it: blanks are no reason."}), nil
	case isTryAgain(err) && field:
		return under(map[string]string{reasonBlock: notDecidedYet}), nil
	case isTryAgain(err) && v == approvals.Approve:
		m := readSigning(p)
		return replace(m.aside(notDecidedYet, "Back to the arguments", m.Read-1)), nil
	}
	return replace(notice(words)), nil
}

const notDecidedYet = "Not decided yet: Slack or the store did not answer in time. Press the button below again."

// notice is a view that only says something, in our own words.
func notice(words string) slack.ModalViewRequest {
	return slack.ModalViewRequest{
		Type: slack.VTModal, Title: literal("Countersign"), Close: literal("Close"),
		Blocks: slack.Blocks{BlockSet: []slack.Block{slack.NewSectionBlock(ours(words), nil, nil)}},
	}
}

// replace answers a submission with another view.
func replace(v slack.ModalViewRequest) reply {
	return reply{map[string]any{"response_action": "update", "view": v}}
}
