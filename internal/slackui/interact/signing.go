package interact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/form"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/respond"
)

// What was shown is what runs: a call is approved by one click only where the
// card shows everything of it. Every other is approved in the signing form,
// which shows it page by page and has its button on the last one.

// signing is what the form keeps. Slack gives it back as we wrote it.
type signing struct {
	origin

	Read   int    `json:"n,omitempty"` // so many pages were shown, from the first on
	Reason string `json:"w,omitempty"` // as it was typed before a page was turned
}

func readSigning(p inbound.Interaction) signing {
	var m signing
	if json.Unmarshal([]byte(p.View.Metadata), &m) != nil {
		return signing{}
	}
	return m
}

// approveAs commits an approval of a call that the card shows whole, by the verdict
// of the button. Any other it opens in the signing form: then nothing is decided yet.
func (s *decisions) approveAs(ctx context.Context, p inbound.Interaction, value string, v approvals.Verdict) (_ respond.Subject, decided bool, _ error) {
	ptr, at, err := s.verdicts.read(ctx, p, value)
	if err != nil {
		return at, false, err
	}
	whole, err := s.shownWhole(ctx, p, &at)
	if err != nil {
		return at, false, err
	}
	if whole {
		at, err = s.verdicts.decideAt(ctx, p, at, ptr, v, "")
	}
	if !whole || errors.Is(err, approvals.ErrReasonNeeded) {
		at, err = s.openSigning(ctx, p, value)
		return at, false, err
	}
	return at, true, err
}

// read finds out which call a button means.
func (s *verdicts) read(ctx context.Context, p inbound.Interaction, value string) (ref.Pointer, respond.Subject, error) {
	at := respond.Subject{User: p.User, Now: s.cfg.Now()}
	ptr, b, a, err := s.resolve(ctx, value)
	at.Batch, at.Approval = b, a
	return ptr, at, err
}

// shownWhole reports whether the card in which the person pressed shows
// everything of the call. A decided call needs no reading. Where it was not noted when
// the card was drawn, the card is drawn again, for nobody to see.
func (s *decisions) shownWhole(ctx context.Context, p inbound.Interaction, at *respond.Subject) (bool, error) {
	b, a := at.Batch, at.Approval
	if a.Status != approvals.Pending {
		return true, nil
	}
	reader, err := s.readerOf(ctx, p, b)
	if directory.IsRefusal(err) {
		return false, nil // the signing form says why
	}
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(b.Approvals, func(x approvals.Approval) bool { return x.Call.ID == a.Call.ID })
	if s.placements.ShowsWhole(ctx, b, i, p.Channel, p.MessageTS) {
		at.OnCard = true
		return true, nil
	}
	call, err := reader.Call(ctx, b, a.Call.ID)
	if err != nil {
		return false, err
	}
	if card.Details[len(card.Details)-1].Shows(a, call) {
		return true, nil // on any card
	}
	shown, err := s.asDrawn(ctx, p, reader, b, i/card.CallsPerCard)
	return err == nil && shown.Shows(a, s.cfg.Now()), err
}

// readerOf returns the Reader of the card in which the person pressed: that of its channel,
// or in a review or a direct message that of the person.
func (s *decisions) readerOf(ctx context.Context, p inbound.Interaction, b approvals.Batch) (directory.Reader, error) {
	if reader := s.people.Audience(b, p.Channel); reader.Reads(b) {
		return reader, nil
	}
	return s.people.MayRead(ctx, p.Who(), b)
}

// asDrawn is the card in which the person pressed, as it is drawn now.
func (s *decisions) asDrawn(ctx context.Context, p inbound.Interaction, reader directory.Reader, b approvals.Batch, part int) (card.Card, error) {
	shown, err := s.cards.Load(ctx, reader, b, part)
	if err != nil {
		return card.Card{}, err
	}
	if screenOf(p).View != "" {
		shown.Place, shown.Viewer = card.PlaceReview, approvals.UserID(p.User)
		return shown, nil
	}
	return shown, s.placements.Placed(ctx, &shown, p.Channel, p.MessageTS)
}

// openSigning opens the signing form at its first page, or explains at once why
// the person's approval would not be taken.
func (s *decisions) openSigning(ctx context.Context, p inbound.Interaction, value string) (respond.Subject, error) {
	at, view, err := s.signingView(ctx, p, signing{origin: originOf(p, value)}, 0)
	if err != nil {
		return at, err
	}
	return at, s.respond.Open(ctx, p.Trigger, view)
}

// signingPage is another page of the form that is open. Pages are read in their
// order: none behind the first that was not shown is turned to.
func (s *decisions) signingPage(ctx context.Context, p inbound.Interaction, value string, page int) (respond.Subject, slack.ModalViewRequest, error) {
	m := readSigning(p)
	if value != m.Value {
		return respond.Subject{}, slack.ModalViewRequest{}, ref.ErrPointer
	}
	if typed, field := p.View.Values[form.ReasonBlock][form.ReasonInput]; field {
		m.Reason = typed.Value
	}
	return s.signingView(ctx, p, m, page)
}

// signingView draws a page of the form.
func (s *decisions) signingView(ctx context.Context, p inbound.Interaction, m signing, page int) (respond.Subject, slack.ModalViewRequest, error) {
	none := slack.ModalViewRequest{}
	at, c, err := s.verdicts.caseOf(ctx, p, m.Value)
	if err != nil {
		return at, none, err
	}
	b, a := c.Batch, c.Approval
	if err := c.MayDecide(a.Yes()); err != nil {
		return at, none, s.verdicts.refusal(ctx, at, fmt.Errorf("try to approve call %s of batch %s: %w", a.Call.ID, b.ID, err))
	}
	if _, decided := a.DecisionBy(c.Decision.By.User); decided {
		return at, none, s.verdicts.refusal(ctx, at, respond.ErrCounted)
	}
	reader, err := s.people.MayRead(ctx, p.Who(), b)
	if err != nil {
		return at, none, err
	}
	call, err := reader.Call(ctx, b, a.Call.ID)
	if err != nil {
		return at, none, err
	}
	ptr := ref.Pointer{Batch: b.ID, Call: a.Call.ID, Digest: c.Decision.Digest}
	pages := card.Paginate(blockkit.Arguments(call.Args, a.WriteOnly))
	page = max(0, min(page, m.Read, len(pages)-1))
	m.Read = max(m.Read, page+1)
	blocks := []slack.Block{card.FullHead(ptr, a, call, page, len(pages))}
	view := slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: ref.CallbackApprove, PrivateMetadata: m.String(),
		Title: blockkit.Literal(approveTitle), Close: blockkit.Literal(cancel),
	}
	submit, readFirst := approve, readAllFirst
	if a.InDoubt() {
		view.Title, submit, readFirst = blockkit.Literal(againTitle), runAgain, readAllFirstAgain
	}
	blocks = append(blocks, pages[page]...)
	if page == len(pages)-1 {
		view.Submit = blockkit.Literal(submit)
		blocks = append(blocks, s.lastWords(b, a, len(pages), m.Reason)...)
	} else {
		blocks = append(blocks, blockkit.RichText(blockkit.Line(blockkit.Styled(readFirst, blockkit.Bold))))
	}
	if turn := card.PageButtons(ptr, page, len(pages)); turn != nil {
		blocks = append(blocks, turn)
	}
	view.Blocks = slack.Blocks{BlockSet: blocks}
	return at, view, nil
}

// String is the private metadata of the form. A reason for which it has no room
// is not kept.
func (m signing) String() string {
	const most = 3000 // of Slack
	for {
		raw, err := json.Marshal(m)
		if err != nil {
			return ""
		}
		if utf8.RuneCount(raw) <= most || m.Reason == "" {
			return string(raw)
		}
		m.Reason = ""
	}
}

// lastWords say what Approve means, and ask for the reason if one is needed.
func (s *decisions) lastWords(b approvals.Batch, a approvals.Approval, pages int, reason string) []slack.Block {
	words := exactlyAbove
	if pages > 1 {
		words = exactlyOnPages + blockkit.Number(pages) + " pages."
	}
	spec, known := directory.SpecOf(s.cfg.Tools, b, a)
	if a.InDoubt() {
		words = mayHaveHappened + words
	}
	if card.Confirmed(a, spec, known) {
		words = card.HarmWarning(a.Severity, known) + " " + words
	}
	blocks := []slack.Block{blockkit.RichText(blockkit.Line(blockkit.Styled(words, blockkit.Bold)))}
	if !a.Requirement.ReasonNeeded {
		return blocks
	}
	input := form.ReasonInputBlock(whyApprove, whyApproveHint, true, pages == 1)
	if field, ok := input.Element.(*slack.PlainTextInputBlockElement); ok {
		field.InitialValue = reason
	}
	return append(blocks, input)
}

// approvedForm handles the form. One that has not shown everything decides nothing,
// and leads on to what it has not shown.
func (s *decisions) approvedForm(ctx context.Context, p inbound.Interaction) (inbound.Reply, error) {
	m := readSigning(p)
	at, _, err := s.verdicts.caseOf(ctx, p, m.Value)
	if err != nil {
		return s.notGiven(ctx, p, at, at.Approval.Yes(), err)
	}
	if at.Approval.Status == approvals.Pending {
		reader, err := s.people.MayRead(ctx, p.Who(), at.Batch)
		if err != nil {
			return s.notGiven(ctx, p, at, at.Approval.Yes(), err)
		}
		call, err := reader.Call(ctx, at.Batch, at.Approval.Call.ID)
		if err != nil {
			return inbound.Reply{}, err
		}
		if m.Read < len(card.Paginate(blockkit.Arguments(call.Args, at.Approval.WriteOnly))) {
			return inbound.Replace(m.aside(blockkit.Ours(notAllRead), readOn, m.Read)), nil
		}
	}
	return s.given(ctx, p, at.Approval.Yes()) // it explains what is wrong with the call, too
}

// aside is a small form that stands for the signing form where that is too
// large to be an answer: over Socket Mode Slack drops one of 20 KB. It leads
// back to a page. Where all of them were shown it can be sent as the form can.
func (m signing) aside(words blockkit.Mrkdwn, label string, page int) slack.ModalViewRequest {
	v := blockkit.Notice(words)
	v.CallbackID, v.PrivateMetadata, v.Close = ref.CallbackApprove, m.String(), blockkit.Literal(cancel)
	if page < m.Read {
		v.Submit = blockkit.Literal(approve)
	}
	button := blockkit.Button(ref.ActionPage.ID(page), fmt.Sprintf("%s|%d", m.Value, page), label, fmt.Sprintf(pageOfArguments, label, page+1))
	v.Blocks.BlockSet = append(v.Blocks.BlockSet, slack.NewActionBlock("", button))
	return v
}
