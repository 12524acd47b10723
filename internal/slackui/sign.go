package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
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

func readSigning(p Interaction) signing {
	var m signing
	if json.Unmarshal([]byte(p.View.Metadata), &m) != nil {
		return signing{}
	}
	return m
}

// approve commits an approval of a call that the card shows whole. Any other it
// opens in the signing form: then nothing is decided yet.
func (s *decisions) approve(ctx context.Context, p Interaction, value string) (at about, decided bool, err error) {
	if at, err = s.verdicts.read(ctx, p, value); err != nil {
		return at, false, err
	}
	whole, err := s.shownWhole(ctx, p, at)
	if err != nil {
		return at, false, err
	}
	if whole {
		at, err = s.verdicts.decide(ctx, p, value, approvals.Approve, "")
	}
	if !whole || errors.Is(err, approvals.ErrReasonNeeded) {
		at, err = s.openSigning(ctx, p, value)
		return at, false, err
	}
	return at, true, err
}

// read finds out which call a button means.
func (s *verdicts) read(ctx context.Context, p Interaction, value string) (about, error) {
	at := about{user: p.User, now: s.cfg.Now()}
	_, b, a, err := s.resolve(ctx, value)
	at.batch, at.approval = b, a
	return at, err
}

// shownWhole reports whether the card in which the person pressed shows
// everything of the call. What is settled needs no reading.
func (s *decisions) shownWhole(ctx context.Context, p Interaction, at about) (bool, error) {
	b, a := at.batch, at.approval
	if a.Status != approvals.Pending {
		return true, nil
	}
	call, err := s.cfg.Desk.Call(ctx, b, a.Call.ID)
	if err != nil {
		return false, fmt.Errorf("load call %s of batch %s: %w", a.Call.ID, b.ID, err)
	}
	if details[len(details)-1].shows(a, call) {
		return true, nil // on any card
	}
	i := slices.IndexFunc(b.Approvals, func(x approvals.Approval) bool { return x.Call.ID == a.Call.ID })
	card, err := s.cards.load(ctx, b, i/callsPerCard)
	if err != nil {
		return false, err
	}
	if screenOf(p).View != "" {
		card.Place = PlaceReview
	} else if err := s.cards.placed(ctx, &card, p.Channel, p.MessageTS); err != nil {
		return false, err
	}
	return card.shows(a, s.cfg.Now()), nil
}

// placed makes the card the one that is drawn in this message.
func (c *Cards) placed(ctx context.Context, card *Card, channel, ts string) error {
	n, _, err := c.ledger().load(ctx, string(card.Batch.ID))
	if err != nil {
		return fmt.Errorf("look for the card of batch %s: %w", card.Batch.ID, err)
	}
	card.Missed = n.Body.Missed
	i := n.Body.find(channel, ts)
	if i < 0 {
		return nil
	}
	x := n.Body.Anchors[i]
	t := target{channel: channel, further: x.Further, direct: x.Direct}
	card.Place, card.Person = t.place(), x.Direct
	if r, known := n.Body.room(t); known {
		card.Others = r.others(card.Part, t.wants(card.Batch))
	}
	return nil
}

// openSigning opens the signing form at its first page, or explains at once why
// the person's approval would not be taken.
func (s *decisions) openSigning(ctx context.Context, p Interaction, value string) (about, error) {
	at, view, err := s.signingView(ctx, p, signing{origin: originOf(p, value)}, 0)
	if err != nil {
		return at, err
	}
	return at, s.respond.open(ctx, p, view)
}

// signingPage is another page of the form that is open. Pages are read in their
// order: none behind the first that was not shown is turned to.
func (s *decisions) signingPage(ctx context.Context, p Interaction, value string, page int) (about, slack.ModalViewRequest, error) {
	m := readSigning(p)
	if value != m.Value {
		return about{}, slack.ModalViewRequest{}, errPointer
	}
	if typed, field := p.View.Values[reasonBlock][reasonInput]; field {
		m.Reason = typed.Value
	}
	return s.signingView(ctx, p, m, page)
}

// signingView draws a page of the form.
func (s *decisions) signingView(ctx context.Context, p Interaction, m signing, page int) (about, slack.ModalViewRequest, error) {
	none := slack.ModalViewRequest{}
	at, ptr, decision, err := s.verdicts.judge(ctx, p, m.Value, approvals.Approve)
	if err != nil {
		return at, none, err
	}
	b, a := at.batch, at.approval
	decision.Reason = "a reason"
	if _, _, err := b.Apply(approvals.Decide{Decision: decision}); err != nil {
		return at, none, fmt.Errorf("try to approve call %s of batch %s: %w", a.Call.ID, b.ID, err)
	}
	if slices.ContainsFunc(a.Decisions, func(d approvals.Decision) bool { return d.By.User == decision.By.User }) {
		return at, none, errCounted
	}
	call, err := s.cfg.Desk.Call(ctx, b, a.Call.ID)
	if err != nil {
		return at, none, fmt.Errorf("load call %s of batch %s: %w", a.Call.ID, b.ID, err)
	}
	ptr.Call = a.Call.ID
	pages := paginate(arguments(call.Args, a.WriteOnly))
	page = min(page, m.Read, len(pages)-1)
	m.Read = max(m.Read, page+1)
	blocks := []slack.Block{fullHead(ptr, a, call, page, len(pages))}
	view := slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: callbackApprove, PrivateMetadata: m.String(),
		Title: literal("Approve this call"), Close: literal("Cancel"),
	}
	blocks = append(blocks, pages[page]...)
	if page == len(pages)-1 {
		view.Submit = literal("Approve")
		blocks = append(blocks, s.lastWords(b, a, len(pages), m.Reason)...)
	} else {
		blocks = append(blocks, richText(line(styled("Approve is on the last page. Read on first.", bold))))
	}
	if turn := turns(ptr, page, len(pages)); turn != nil {
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
	words := "You sign exactly the arguments above."
	if pages > 1 {
		words = "You sign exactly the arguments of these " + number(pages) + " pages."
	}
	spec, known := specOf(s.cfg.Tools, b, a)
	if !known || destructive(spec.Annotations) {
		words = harmWords(known) + " " + words
	}
	blocks := []slack.Block{richText(line(styled(words, bold)))}
	if !a.Requirement.ReasonNeeded {
		return blocks
	}
	input := reasonInputBlock("Why do you approve it?", whoReads, true, pages == 1)
	if field, ok := input.Element.(*slack.PlainTextInputBlockElement); ok {
		field.InitialValue = reason
	}
	return append(blocks, input)
}

func specOf(t directoryTools, b approvals.Batch, a approvals.Approval) (agentrun.Spec, bool) {
	if t == nil {
		return agentrun.Spec{}, false
	}
	return t.ToolSpec(b.Agent, a.Call.Name)
}

// approvedForm handles the form. One that has not shown everything decides nothing,
// and leads on to what it has not shown.
func (s *decisions) approvedForm(ctx context.Context, p Interaction) (reply, error) {
	m := readSigning(p)
	at, err := s.verdicts.read(ctx, p, m.Value)
	if err == nil && at.approval.Status == approvals.Pending {
		call, err := s.cfg.Desk.Call(ctx, at.batch, at.approval.Call.ID)
		if err != nil {
			return reply{}, fmt.Errorf("load call %s of batch %s: %w", at.approval.Call.ID, at.batch.ID, err)
		}
		if m.Read < len(paginate(arguments(call.Args, at.approval.WriteOnly))) {
			return replace(m.aside("Nothing is approved yet: not everything of this call was shown.", "Read on", m.Read)), nil
		}
	}
	return s.given(ctx, p, approvals.Approve) // it explains what is wrong with the call, too
}

// aside is a small form that stands for the signing form where that is too
// large to be an answer: over Socket Mode Slack drops one of 20 KB. It leads
// back to a page. Where all of them were shown it can be sent as the form can.
func (m signing) aside(words, label string, page int) slack.ModalViewRequest {
	v := notice(words)
	v.CallbackID, v.PrivateMetadata, v.Close = callbackApprove, m.String(), literal("Cancel")
	if page < m.Read {
		v.Submit = literal("Approve")
	}
	button := slack.NewButtonBlockElement(actionPage.id(page), fmt.Sprintf("%s|%d", m.Value, page), literal(label))
	v.Blocks.BlockSet = append(v.Blocks.BlockSet, slack.NewActionBlock("", button))
	return v
}
