package slackui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// errNoForm is a call whose arguments no form can change.
var errNoForm = errors.New("no form for these arguments")

// openEdit opens the form that changes the arguments, or explains at once why
// the person could not.
func (s *edits) openEdit(ctx context.Context, p Interaction, value string) (about, error) {
	at, ptr, decision, err := s.verdicts.judge(ctx, p, value, "")
	at.deed = editing
	if err != nil {
		return at, err
	}
	b, a := at.batch, at.approval
	f, call, err := s.formOf(ctx, b, a, ptr.Digest)
	if err != nil {
		return at, err
	}
	if _, _, err := b.Apply(approvals.Amend{
		Call: a.Call.ID, From: ptr.Digest, Args: object(call.Args), Ruling: approvals.Permit{}, By: decision.By, At: decision.At,
	}); err != nil {
		return at, fmt.Errorf("try to edit call %s of batch %s: %w", a.Call.ID, b.ID, err)
	}
	metadata, err := json.Marshal(originOf(p, value))
	if err != nil {
		return at, fmt.Errorf("write the form: %w", err)
	}
	return at, s.respond.open(ctx, p, editView(a, f, string(metadata), maySignAsEdited(b, a, decision)))
}

// formOf makes the form of a call as it was shown.
func (s *edits) formOf(ctx context.Context, b approvals.Batch, a approvals.Approval, shown approvals.Digest) (editForm, approvals.ToolCall, error) {
	call, err := callAs(ctx, s.cfg.Desk, b, a.Call.ID, shown)
	if err != nil {
		return editForm{}, call, fmt.Errorf("load call %s of batch %s: %w", a.Call.ID, b.ID, err)
	}
	if s.cfg.Tools == nil {
		return editForm{}, call, errNoForm
	}
	spec, known := s.cfg.Tools.ToolSpec(b.Agent, call.Name)
	f, can := newForm(spec, call.Args, a.WriteOnly)
	if !known || !can {
		return editForm{}, call, errNoForm
	}
	return f, call, nil
}

// callAs loads a call with the arguments of a digest, which need not be the
// current ones. Other bytes than those are [approvals.ErrStale].
func callAs(ctx context.Context, d directoryCalls, b approvals.Batch, id approvals.ToolCallID, digest approvals.Digest) (approvals.ToolCall, error) {
	for _, a := range b.Approvals {
		if a.Call.ID != id {
			continue
		}
		for _, size := range []int{0, 1} { // of no arguments nothing is stored
			a.Call.Digest, a.Call.Size = digest, size
			as := approvals.Batch{ID: b.ID, Approvals: []approvals.Approval{a}}
			call, err := d.Call(ctx, as, id)
			if size == 1 && errors.Is(err, approvals.ErrNotFound) {
				return call, approvals.ErrStale
			}
			if err == nil || size == 1 {
				return call, err
			}
		}
	}
	return approvals.ToolCall{}, approvals.ErrNotFound
}

// maySignAsEdited reports whether the person could sign what they change, as
// far as the requirement of now says.
func maySignAsEdited(b approvals.Batch, a approvals.Approval, d approvals.Decision) bool {
	if !a.Requirement.EditorMaySign {
		return false
	}
	a.Decisions = nil
	d.Verdict, d.Digest, d.Reason = approvals.Approve, a.Call.Digest, "a reason"
	alone := b
	alone.Approvals, alone.Calls = []approvals.Approval{a}, nil
	_, _, err := alone.Apply(approvals.Decide{Decision: d})
	return err == nil
}

// edited handles the form. The new arguments are committed before it is
// answered; it then says what became of what others had decided.
func (s *edits) edited(ctx context.Context, p Interaction) (reply, error) {
	o := readOrigin(p)
	at, ptr, decision, err := s.verdicts.judge(ctx, p, o.Value, "")
	at.deed = editing
	if err != nil {
		return s.notEdited(ctx, p, at, editForm{}, err)
	}
	b, a := at.batch, at.approval
	f, _, err := s.formOf(ctx, b, a, ptr.Digest)
	if err != nil {
		return s.notEdited(ctx, p, at, editForm{}, err)
	}
	args, problems, known := f.read(p.View.Values)
	switch {
	case !known:
		return replace(notice("This form is from another version of Countersign or of the tool. Nothing was changed. Open it again with Edit on the card.")), nil
	case len(problems) > 0:
		return under(problems), nil
	case sameJSON(args, f.args):
		return underFirst(f, "Nothing is changed yet. Change something, or cancel."), nil
	}
	form := func() (slack.ModalViewRequest, error) {
		return editView(a, f, p.View.Metadata, maySignAsEdited(b, a, decision)), nil
	}
	if err := approvals.CheckArgs(args); err != nil {
		return refuseForm(f, args, sentence(strings.TrimPrefix(err.Error(), "arguments: "+approvals.ErrInvalid.Error()+": ")), form)
	}
	after, err := s.cfg.Desk.Amend(ctx, b.ID, requestID(s.cfg.Team, p, ptr, "amend", string(args)), approvals.Amend{
		Call: a.Call.ID, From: ptr.Digest, Args: args, By: decision.By, At: decision.At,
	})
	if err != nil {
		s.verdicts.refresh(ctx, &at, ptr)
		if errors.Is(err, approvals.ErrRefused) {
			s.cfg.Log.InfoContext(ctx, "edit refused", slog.String("user", p.User), slog.Any("reason", err))
			return refuseForm(f, args, refusedWords(err), form)
		}
		return s.notEdited(ctx, p, at, f, fmt.Errorf("amend call %s of batch %s: %w", a.Call.ID, b.ID, err))
	}
	s.verdicts.logAmendment(ctx, ptr, after, decision)
	at.batch = after
	at.approval, _ = ptr.in(after)
	decision.Digest = approvals.DigestOf(b.ID, approvals.ToolCall{ID: a.Call.ID, Name: a.Call.Name, Args: args})
	sum := changes(f.args, args, approvals.HiddenAt(a.WriteOnly))
	signed, again := s.signsToo(ctx, p, &at, ptr, decision)
	s.reviews.redrawReview(ctx, p)
	return replace(editedView(at, sum, signed, again)), nil
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

// signsToo approves what was changed if the person wants to, and says what came
// of it. Whatever goes wrong here, the change itself is made. What the card does
// not show whole is approved where everything is shown: then it returns the
// button that leads there.
func (s *edits) signsToo(ctx context.Context, p Interaction, at *about, ptr pointer, d approvals.Decision) (words string, sign slack.Block) {
	if len(p.View.Values[signBlock][signInput].Chosen) == 0 {
		return "", nil
	}
	whole, err := s.decisions.shownWhole(ctx, p, *at)
	if err != nil || !whole {
		return s.signsLater(ctx, at, d, err)
	}
	d.Verdict, d.Reason = approvals.Approve, trimReason(p.View.Values[reasonBlock][reasonInput].Value)
	after, err := s.cfg.Desk.Decide(ctx, at.batch.ID, requestID(s.cfg.Team, p, ptr, approvals.Approve, d.Reason+d.Digest.String()), approvals.Decide{Decision: d})
	if err == nil {
		s.verdicts.logDecision(ctx, ptr, after, d)
		at.batch = after
		at.approval, _ = ptr.in(after)
		return "Your approval of the new arguments counts.", nil
	}
	s.cfg.Log.WarnContext(ctx, "changed, but not approved", slog.String("user", p.User), slog.Any("reason", err))
	if words, known := explain(err, *at); known {
		return words, nil
	}
	return "It is not known whether your approval counted. Look at the card, and approve there if it did not.", nil
}

// signsLater leads to the form in which the new arguments are read and approved.
func (s *edits) signsLater(ctx context.Context, at *about, d approvals.Decision, err error) (string, slack.Block) {
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "changed, but not approved", slog.String("user", string(d.By.User)), slog.Any("reason", err))
	}
	value, err := pointer{Batch: at.batch.ID, Call: d.Call, Digest: d.Digest}.encode()
	if err != nil {
		return "The new arguments are not approved yet. Approve them on the card.", nil
	}
	button := slack.NewButtonBlockElement(actionSign.id(0), value, literal("Approve…"))
	button.Style = slack.StylePrimary
	return "The new arguments are not approved yet: the card does not show everything of them. Approve opens all of it, and you sign there.",
		slack.NewActionBlock("", button)
}

// editedView is what the editor reads afterwards.
func editedView(at about, sum []difference, signed string, sign slack.Block) slack.ModalViewRequest {
	a := at.approval
	text := append([]para{line(styled("The arguments are changed.", bold), say(" The card shows the new ones in a moment."))},
		differences(sum, details[0])...)
	if n := len(a.Amendments); n > 0 {
		text = append(text, line(cleared(a.Amendments[n-1])...))
	}
	blocks := []slack.Block{richText(text...)}
	if signed != "" {
		blocks = append(blocks, slack.NewSectionBlock(ours(signed), nil, nil))
	}
	if sign != nil {
		blocks = append(blocks, sign)
	}
	status := shown(a, at.now)
	if status == approvals.Pending {
		blocks = append(blocks, richText(append([]para{line(styled("What it needs now:", bold))}, progress(at.batch, a)...)...))
	} else {
		blocks = append(blocks, richText(line(outcome(a, status)...)))
	}
	v := notice("")
	v.Title, v.Blocks = literal("Arguments changed"), slack.Blocks{BlockSet: blocks}
	return v
}

// notEdited explains a change that was not made: under the inputs if it can be
// corrected there, instead of the form if not.
func (s *edits) notEdited(ctx context.Context, p Interaction, at about, f editForm, err error) (reply, error) {
	wrong := argumentErrors(err)
	words, known := explain(err, at)
	if len(wrong) == 0 && !known {
		return reply{}, err
	}
	reason := "arguments that do not fit the tool" // what is wrong with them may quote them
	if len(wrong) == 0 {
		reason = err.Error()
	}
	s.cfg.Log.InfoContext(ctx, "edit refused", slog.String("user", p.User), slog.String("reason", reason))
	open := len(f.fields) > 0
	switch {
	case open && len(wrong) > 0:
		return under(f.place(wrong)), nil
	case open && isTryAgain(err):
		return underFirst(f, "Not changed yet: Slack or the store did not answer in time. Press Change again."), nil
	case len(wrong) > 0:
		return replace(notice("The tool does not take these arguments. Nothing was changed.")), nil
	}
	return replace(notice(words)), nil
}

// place puts what is wrong with arguments under their inputs; what belongs to
// none is under the first.
func (f editForm) place(wrong []*agentrun.ArgumentError) map[string]string {
	problems := map[string]string{}
	for _, e := range wrong {
		best, length := f.fields[0], -1
		for _, x := range f.fields {
			pointer := pointerTo(x.path)
			if inside := e.Pointer == pointer || strings.HasPrefix(e.Pointer, pointer+"/"); inside && len(pointer) > length {
				best, length = x, len(pointer)
			}
		}
		words := sentence(e.Message)
		if length < 0 && e.Pointer != "" {
			words = sentence(brief(e.Pointer, 80) + ": " + e.Message)
		}
		if before := problems[best.key()]; before != "" {
			words = before + " " + words
		}
		problems[best.key()] = clip(words, 1000)
	}
	return problems
}

// refusedWords say why the policy refuses what was changed.
func refusedWords(err error) string {
	said := "The policy refuses these arguments, whoever signs them."
	if refused, ok := errors.AsType[*approvals.RefusedError](err); ok && refused.Reason != "" {
		said += " It says: " + brief(refused.Reason, 300)
	}
	return said
}

// refuseForm says what is wrong with the new arguments as a whole: under the input
// that was changed if there is one, and on top of the same form if there are
// several. Slack keeps there what was typed. It shows words of ours only under
// inputs or in blocks, and a form that is too long to be an answer has them
// under each input that was changed.
func refuseForm(f editForm, args []byte, words string, form func() (slack.ModalViewRequest, error)) (reply, error) {
	problems := map[string]string{}
	for _, x := range f.fields {
		was, before := valueAt(f.args, x.path)
		now, after := valueAt(args, x.path)
		if before != after || !bytes.Equal(was, now) {
			problems[x.key()] = words
		}
	}
	if len(problems) == 1 {
		return under(problems), nil
	}
	view, err := form()
	if err != nil {
		return reply{}, err
	}
	view.Blocks.BlockSet = slices.Insert(view.Blocks.BlockSet, 0, richText(line(styled(words, bold))))
	raw, err := json.Marshal(view)
	if err != nil {
		return reply{}, fmt.Errorf("write the form: %w", err)
	}
	if len(problems) > 0 && len(raw) > maxAnswer {
		return under(problems), nil
	}
	return replace(view), nil
}

// underFirst says something under the first input.
func underFirst(f editForm, words string) reply {
	return under(map[string]string{f.fields[0].key(): words})
}

func under(problems map[string]string) reply {
	return reply{map[string]any{"response_action": "errors", "errors": problems}}
}

// sentence makes the words of an error one.
func sentence(s string) string {
	if s = brief(s, 500); s == "" {
		return "The tool does not take this."
	}
	first, size := utf8.DecodeRuneInString(s)
	s = string(unicode.ToUpper(first)) + s[size:]
	return strings.TrimRight(s, ".") + "."
}

// argumentErrors returns all of them in the tree of err.
func argumentErrors(err error) []*agentrun.ArgumentError {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case *agentrun.ArgumentError:
		return []*agentrun.ArgumentError{e}
	case interface{ Unwrap() error }:
		return argumentErrors(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all []*agentrun.ArgumentError
		for _, inner := range e.Unwrap() {
			all = append(all, argumentErrors(inner)...)
		}
		return all
	}
	return nil
}

func originOf(p Interaction, value string) origin {
	return origin{Value: value, Channel: p.Channel, Thread: p.Thread, Review: screenOf(p)}
}

func readOrigin(p Interaction) origin {
	var o origin
	if json.Unmarshal([]byte(p.View.Metadata), &o) != nil {
		return origin{}
	}
	return o
}
