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
	callbackDeny = "countersign.deny"
	reasonBlock  = "reason"
	reasonInput  = "text"
)

// errForm is a form that Slack did not open.
var errForm = errors.New("form not opened")

// origin is what a form remembers of the card that it came from: pointers.
type origin struct {
	Value   string `json:"p"`
	Channel string `json:"c"`
	Thread  string `json:"t,omitempty"`
}

// askReason opens the form for a denial, or explains at once why it would not
// be taken.
func (s *Server) askReason(ctx context.Context, p payload, value string) (about, error) {
	at, _, decision, err := s.judge(ctx, p, value, approvals.Deny)
	if err != nil {
		return at, err
	}
	b, a := at.batch, at.approval
	if _, _, err := b.Apply(approvals.Decide{Decision: decision}); err != nil {
		return at, fmt.Errorf("try to deny call %s of batch %s: %w", a.Call.ID, b.ID, err)
	}
	call, err := s.cfg.Desk.Call(ctx, b, a.Call.ID)
	if err != nil {
		return at, fmt.Errorf("load call %s of batch %s: %w", a.Call.ID, b.ID, err)
	}
	view, err := denyView(a, call, origin{Value: value, Channel: p.place().channel, Thread: p.place().thread})
	if err != nil {
		return at, err
	}
	return at, s.open(ctx, p.Trigger, view)
}

func (s *Server) open(ctx context.Context, trigger string, view slack.ModalViewRequest) error {
	err := s.api.openView(ctx, trigger, view)
	if err == nil {
		return nil
	}
	if !hasCode(err, "expired_trigger_id", "exchanged_trigger_id", "invalid_trigger_id") {
		s.cfg.Log.WarnContext(ctx, "form not opened", slog.Any("error", err))
	}
	return fmt.Errorf("%w: %w", errForm, err)
}

func denyView(a approvals.Approval, call approvals.ToolCall, o origin) (slack.ModalViewRequest, error) {
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
	input := slack.NewPlainTextInputBlockElement(literal("For example: use the archive instead"), reasonInput)
	input.Multiline, input.MaxLength, input.FocusOnLoad = true, maxReason, true
	reason := slack.NewInputBlock(reasonBlock, literal("Why not?"), literal("The agent and everybody in the thread will read it."), input)
	reason.Optional = true
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: callbackDeny, PrivateMetadata: string(metadata),
		Title: literal("Deny this call"), Submit: literal("Deny"), Close: literal("Cancel"),
		Blocks: slack.Blocks{BlockSet: []slack.Block{richText(text...), reason}},
	}, nil
}

// submitted handles a form. It is closed only after the decision is committed;
// what the person may read about a refusal is shown in the form itself.
func (s *Server) submitted(ctx context.Context, p payload) (reply, error) {
	if p.View.Callback != callbackDeny {
		s.cfg.Log.WarnContext(ctx, "unknown form", slog.String("callback", brief(p.View.Callback, 64)))
		return replace(notice("This form is from another version of Countersign. Nothing was decided.")), nil
	}
	var o origin
	if err := json.Unmarshal([]byte(p.View.Metadata), &o); err != nil {
		o = origin{}
	}
	reason := trimReason(p.View.State.Values[reasonBlock][reasonInput].Value)
	at, err := s.decide(ctx, p, o.Value, approvals.Deny, reason)
	if err == nil {
		return reply{}, nil
	}
	words, known := explain(err, at)
	if !known {
		return reply{}, err
	}
	s.cfg.Log.InfoContext(ctx, "denial refused", slog.String("user", p.User.ID), slog.Any("reason", err))
	if isTryAgain(err) {
		return reply{map[string]any{"response_action": "errors", "errors": map[string]string{
			reasonBlock: "Not decided yet: Slack or the store did not answer in time. Press Deny again.",
		}}}, nil
	}
	return replace(notice(words)), nil
}

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
