package interact

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/bulk"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/form"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/respond"
	"github.com/countersign/countersign/internal/slackui/verdict"
)

// openEdit opens the form that changes the arguments. If the person may not change
// them, it returns the reason, and no form opens.
func (s *edits) openEdit(ctx context.Context, p inbound.Interaction, value string) (respond.Subject, error) {
	at, c, err := s.verdicts.caseOf(ctx, p, value)
	at.Attempt = respond.Editing
	if err != nil {
		return at, err
	}
	b, a, decision := c.Batch, c.Approval, c.Decision
	f, call, err := s.formOf(ctx, p, b, a, decision.Digest)
	if err != nil {
		return at, err
	}
	if _, _, err := b.Apply(approvals.Amend{
		Call: a.Call.ID, From: decision.Digest, Args: form.Object(call.Args), Ruling: approvals.Permit{}, By: decision.By, At: decision.At,
	}); err != nil {
		return at, s.verdicts.refusal(ctx, at, fmt.Errorf("try to edit call %s of batch %s: %w", a.Call.ID, b.ID, err))
	}
	metadata, err := json.Marshal(originOf(p, value))
	if err != nil {
		return at, fmt.Errorf("write the form: %w", err)
	}
	return at, s.respond.Open(ctx, p.Trigger, form.EditView(a, f, string(metadata), mayApproveAsEdited(b, a, decision)))
}

// formOf makes the form of a call as it was shown, for a person who may read it.
func (s *edits) formOf(ctx context.Context, p inbound.Interaction, b approvals.Batch, a approvals.Approval, shown approvals.Digest) (form.EditForm, approvals.ToolCall, error) {
	reader, err := s.people.MayRead(ctx, p.Who(), b)
	if err != nil {
		return form.EditForm{}, approvals.ToolCall{}, err
	}
	call, err := reader.CallAs(ctx, b, a.Call.ID, shown)
	if err != nil {
		return form.EditForm{}, call, err
	}
	if s.cfg.Tools == nil {
		return form.EditForm{}, call, respond.ErrNoForm
	}
	spec, known := s.cfg.Tools.ToolSpec(b.Agent, call.Name)
	spec, known = form.Spec(b, a, spec, known)
	f, can := form.NewForm(spec, call.Args, a.WriteOnly)
	if !known || !can {
		return form.EditForm{}, call, respond.ErrNoForm
	}
	return f, call, nil
}

// mayApproveAsEdited reports whether the current requirement lets the person approve
// what they change.
func mayApproveAsEdited(b approvals.Batch, a approvals.Approval, d approvals.Decision) bool {
	if !a.Requirement.EditorMaySign {
		return false
	}
	return b.Reopened(a).MayDecide(a, d.By, approvals.Approve, d.At) == nil
}

// edited handles the form. The new arguments are committed before it is
// answered; it then says what became of what others had decided.
func (s *edits) edited(ctx context.Context, p inbound.Interaction) (inbound.Reply, error) {
	o := readOrigin(p)
	at, c, err := s.verdicts.caseOf(ctx, p, o.Value)
	at.Attempt = respond.Editing
	if err != nil {
		return s.notEdited(ctx, p, at, form.EditForm{}, err)
	}
	b, a, shown := c.Batch, c.Approval, c.Decision.Digest
	f, _, err := s.formOf(ctx, p, b, a, shown)
	if err != nil {
		return s.notEdited(ctx, p, at, form.EditForm{}, err)
	}
	args, problems, known := f.Read(p.View.Values)
	switch {
	case !known:
		return inbound.Replace(blockkit.Notice(blockkit.Ours(oldEditForm))), nil
	case len(problems) > 0:
		return inbound.Under(problems), nil
	case sameJSON(args, f.Args):
		return underFirst(f, nothingToSave), nil
	}
	form := func() (slack.ModalViewRequest, error) {
		return form.EditView(a, f, p.View.Metadata, mayApproveAsEdited(b, a, c.Decision)), nil
	}
	if err := approvals.CheckArgs(args); err != nil {
		return refuseForm(f, args, blockkit.Sentence(strings.TrimPrefix(err.Error(), "arguments: "+approvals.ErrInvalid.Error()+": ")), form)
	}
	c, err = s.cfg.Desk.AmendCase(ctx, c, s.verdicts.request(p, o.Value, "amend", string(args)), args)
	at.Batch, at.Approval = c.Batch, c.Approval
	if err != nil {
		if errors.Is(err, approvals.ErrRefused) {
			s.cfg.Log.InfoContext(ctx, "edit refused", slog.String("user", p.User), slog.Any("reason", err))
			return refuseForm(f, args, refusedWords(err), form)
		}
		return s.notEdited(ctx, p, at, f, fmt.Errorf("amend call %s of batch %s: %w", a.Call.ID, b.ID, err))
	}
	s.verdicts.logAmendment(ctx, shown, c)
	sum := card.Changes(f.Args, args, approvals.HiddenAt(a.WriteOnly))
	approved, again := s.approvesToo(ctx, p, &at, c)
	s.reviews.redrawReview(ctx, p)
	view := editedView(at, args, sum, approved, again)
	view.PrivateMetadata = p.View.Metadata
	return inbound.Replace(view), nil
}

// sameJSON reports whether two arguments differ in white space at most, that is
// not at all.
func sameJSON(x, y []byte) bool {
	var one, two bytes.Buffer
	if json.Compact(&one, x) != nil || json.Compact(&two, y) != nil {
		return bytes.Equal(x, y)
	}
	return bytes.Equal(one.Bytes(), two.Bytes())
}

// approvesToo approves what was changed if the person wants to, and says what came
// of it. Whatever goes wrong here, the change itself is made. What the card does
// not show whole is approved where everything is shown: then it returns the
// button that leads there.
func (s *edits) approvesToo(ctx context.Context, p inbound.Interaction, at *respond.Subject, c approvals.Case) (words blockkit.Mrkdwn, button slack.Block) {
	if len(p.View.Values[form.ApproveBlock][form.ApproveInput].Chosen) == 0 {
		return blockkit.Mrkdwn{}, nil
	}
	whole, err := s.decisions.shownWhole(ctx, p, at)
	if err != nil || !whole {
		return s.approvesLater(ctx, at, c.Decision, err)
	}
	reason := form.TrimReason(p.View.Values[form.ReasonBlock][form.ReasonInput].Value)
	request := s.verdicts.request(p, readOrigin(p).Value, approvals.Approve, reason+c.Decision.Digest.String())
	c, err = s.cfg.Desk.DecideCase(ctx, c, request, approvals.Approve, reason)
	if err == nil {
		s.verdicts.logDecision(ctx, c)
		at.Batch, at.Approval = c.Batch, c.Approval
		return blockkit.Ours(editApproved), nil
	}
	s.cfg.Log.WarnContext(ctx, "changed, but not approved", slog.String("user", p.User), slog.Any("reason", err))
	if words, known := s.verdicts.explain(ctx, err, *at); known {
		return words, nil
	}
	return blockkit.Ours(editApprovalUnknown), nil
}

// approvesLater leads to the form in which the new arguments are read and approved.
func (s *edits) approvesLater(ctx context.Context, at *respond.Subject, d approvals.Decision, err error) (blockkit.Mrkdwn, slack.Block) {
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "changed, but not approved", slog.String("user", string(d.By.User)), slog.Any("reason", err))
	}
	value, err := ref.Pointer{Batch: at.Batch.ID, Call: d.Call, Digest: d.Digest}.Encode()
	if err != nil {
		return blockkit.Ours(editApproveOnCard), nil
	}
	button := blockkit.Button(ref.ActionSign.ID(0), value, approveLater, approveLaterSpoken)
	button.Style = slack.StylePrimary
	return blockkit.Ours(editApproveHere),
		slack.NewActionBlock("", button)
}

// editedView is what the editor reads afterwards.
func editedView(at respond.Subject, args []byte, sum []card.Difference, approved blockkit.Mrkdwn, button slack.Block) slack.ModalViewRequest {
	a := at.Approval
	text := append([]blockkit.Para{blockkit.Line(blockkit.Styled(edited, blockkit.Bold), blockkit.Say(editedRest))},
		form.Head(a, args)...)
	text = append(text, card.Differences(sum, card.Details[0])...)
	if n := len(a.Amendments); n > 0 {
		text = append(text, blockkit.Line(card.ClearedDecisions(a.Amendments[n-1])...))
	}
	blocks := []slack.Block{blockkit.RichText(text...)}
	if !approved.IsZero() {
		blocks = append(blocks, blockkit.Section(approved))
	}
	if button != nil {
		blocks = append(blocks, button)
	}
	outcome := a.Outcome(at.Now)
	if outcome.Status == approvals.Pending {
		blocks = append(blocks, blockkit.RichText(append([]blockkit.Para{blockkit.Line(blockkit.Styled(stillNeeded, blockkit.Bold))}, verdict.Progress(at.Batch, a)...)...))
	} else {
		blocks = append(blocks, blockkit.RichText(blockkit.Line(verdict.Outcome(outcome)...)))
	}
	v := blockkit.Message{Blocks: blocks}.View()
	v.Title = blockkit.Literal(editedTitle)
	return v
}

// notEdited explains a change that was not made: under the inputs if it can be
// corrected there, instead of the form if not.
func (s *edits) notEdited(ctx context.Context, p inbound.Interaction, at respond.Subject, f form.EditForm, err error) (inbound.Reply, error) {
	wrong := agentrun.ArgumentErrors(err)
	words, known := s.verdicts.explain(ctx, err, at)
	if len(wrong) == 0 && !known {
		return inbound.Reply{}, err
	}
	reason := "arguments that do not fit the tool" // what is wrong with them may quote them
	if len(wrong) == 0 {
		reason = err.Error()
	}
	s.cfg.Log.InfoContext(ctx, "edit refused", slog.String("user", p.User), slog.String("reason", reason))
	open := len(f.Fields) > 0
	switch {
	case open && len(wrong) > 0:
		return inbound.Under(f.Place(wrong)), nil
	case open && respond.IsTryAgain(err):
		return underFirst(f, notSavedYet), nil
	case len(wrong) > 0:
		return inbound.Replace(blockkit.Notice(blockkit.Ours(toolRefuses))), nil
	}
	return inbound.Replace(blockkit.Notice(words)), nil
}

// refusedWords say why the policy refuses what was changed.
func refusedWords(err error) string {
	said := policyRefuses
	if refused, ok := errors.AsType[*approvals.RefusedError](err); ok && refused.Reason != "" {
		said += policySays + blockkit.Brief(refused.Reason, 300)
	}
	return said
}

// refuseForm says what is wrong with the new arguments as a whole: under the input
// that was changed if there is one, and on top of the same form if there are
// several. Slack keeps there what was typed. It shows words of ours only under
// inputs or in blocks, and a form that is too long to be an answer has them
// under each input that was changed.
func refuseForm(f form.EditForm, args []byte, words string, reopen func() (slack.ModalViewRequest, error)) (inbound.Reply, error) {
	problems := map[string]string{}
	for _, x := range f.Fields {
		was, before := form.ValueAt(f.Args, x.Path)
		now, after := form.ValueAt(args, x.Path)
		if before != after || !bytes.Equal(was, now) {
			problems[x.Key()] = words
		}
	}
	if len(problems) == 1 {
		return inbound.Under(problems), nil
	}
	view, err := reopen()
	if err != nil {
		return inbound.Reply{}, err
	}
	view.Blocks.BlockSet = slices.Insert(view.Blocks.BlockSet, 0, blockkit.RichText(blockkit.Line(blockkit.Styled(words, blockkit.Bold))))
	raw, err := json.Marshal(view)
	if err != nil {
		return inbound.Reply{}, fmt.Errorf("write the form: %w", err)
	}
	if len(problems) > 0 && len(raw) > bulk.MaxAnswer {
		return inbound.Under(problems), nil
	}
	return inbound.Replace(view), nil
}

// underFirst says something under the first input.
func underFirst(f form.EditForm, words string) inbound.Reply {
	return inbound.Under(map[string]string{f.Fields[0].Key(): words})
}

// originOf is where a form comes from whose button was pressed: in a card, in a review, or
// in what an editor reads afterwards, which comes from one of these.
func originOf(p inbound.Interaction, value string) origin {
	o := origin{Value: value, Review: screenOf(p)}
	if o.Review.View == "" {
		o.Review = readOrigin(p).Review
	}
	return o
}

func readOrigin(p inbound.Interaction) origin {
	var o origin
	if json.Unmarshal([]byte(p.View.Metadata), &o) != nil {
		return origin{}
	}
	return o
}
