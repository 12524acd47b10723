package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// telling tells one of those who ask which calls of the batch nobody was asked about, or
// which too few people can approve.
type telling func(ctx context.Context, b approvals.Batch, calls []card.Unasked, person approvals.UserID) error

// unasked records which open calls nobody could be asked about, so that the card says
// so, and tells the requester about each of them once.
func (c *Cards) unasked(ctx context.Context, h *memo.Claim[anchors], b approvals.Batch, asked []audience) error {
	now := slices.DeleteFunc(slices.Clone(h.Body.Unasked), func(u card.Unasked) bool {
		return slices.ContainsFunc(asked, func(of audience) bool { return of.call == u.Call })
	})
	sent := recipientsOf(asked)
	for _, of := range asked {
		u, is := h.Body.unaskedOf(of, sent)
		said := slices.IndexFunc(h.Body.Unasked, func(u card.Unasked) bool { return u.Call == of.call && u.Why == card.TooFew })
		switch {
		case is:
		case of.few:
			u, is = card.Unasked{Call: of.call, Why: card.TooFew, Denied: of.deny}, true
		case of.maybe && said >= 0:
			u, is = h.Body.Unasked[said], true
		}
		if is {
			now = append(now, u.Asking(b))
		}
	}
	slices.SortFunc(now, func(x, y card.Unasked) int { return x.Call - y.Call })
	if !slices.EqualFunc(now, h.Body.Unasked, card.Unasked.Equal) {
		if err := h.Save(ctx, func(n *anchors) { n.setUnasked(now) }); err != nil {
			return fmt.Errorf("remember whom batch %s reached: %w", b.ID, err)
		}
	}
	var nobody, few []card.Unasked
	for _, u := range now {
		switch {
		case slices.Contains(h.Body.Told, u.Call) || !b.Approvals[u.Call].OpenAt(c.Now()):
		case u.Why == card.TooFew:
			few = append(few, u)
		default:
			nobody = append(nobody, u)
		}
	}
	if err := c.tell(ctx, h, b, nobody); err != nil {
		return err
	}
	return c.tell(ctx, h, b, few) // apart, so that a message that must wait does not repeat the other
}

// tell tells each of those who ask about the calls, once, and remembers that.
func (c *Cards) tell(ctx context.Context, h *memo.Claim[anchors], b approvals.Batch, fresh []card.Unasked) error {
	if len(fresh) == 0 {
		return nil
	}
	all := askers(b)
	var waits error
	for _, person := range all {
		left := slices.DeleteFunc(slices.Clone(fresh), func(u card.Unasked) bool { return slices.Contains(h.Body.ToldEach[person], u.Call) })
		if len(left) == 0 {
			continue
		}
		err := c.Tell(ctx, b, left, person)
		if slackapi.HasCode(err, slackapi.Unreachable...) {
			c.Log.WarnContext(ctx, "the requester cannot be told that nobody was asked",
				slog.String("batch", string(b.ID)), slog.String("user", string(person)), slog.Any("err", err))
			err = nil // the card says it
		}
		if err == nil && len(all) > 1 {
			err = h.Save(ctx, func(n *anchors) { n.toldEach(person, left) })
		}
		if waits == nil {
			waits = err
		}
	}
	if waits != nil {
		return fmt.Errorf("tell the requester whom batch %s reached: %w", b.ID, waits)
	}
	return h.Save(ctx, func(n *anchors) { n.Told = withCalls(n.Told, fresh) })
}

// toldEach records that one of several who ask was told about the calls.
func (a *anchors) toldEach(person approvals.UserID, calls []card.Unasked) {
	all := maps.Clone(a.ToldEach)
	if all == nil {
		all = map[approvals.UserID][]int{}
	}
	all[person] = withCalls(all[person], calls)
	a.ToldEach = all
}

// withCalls returns the numbers with those of the calls, each once.
func withCalls(numbers []int, calls []card.Unasked) []int {
	numbers = slices.Clone(numbers)
	for _, u := range calls {
		if !slices.Contains(numbers, u.Call) {
			numbers = append(numbers, u.Call)
		}
	}
	return numbers
}

// askAgain returns a [*slackapi.LaterError] if whom the batch asks, or what its cards show,
// changes though the batch does not: when somebody is back for whom a delegate was asked, when
// somebody joins a group of which nobody or too few could be asked, and when an approval lapses.
func (c *Cards) askAgain(b approvals.Batch, body *anchors, asked []audience) error {
	var first slackapi.Soonest
	if _, lapses := card.Unused(b, c.Now()); !lapses.IsZero() {
		first.Add(&slackapi.LaterError{After: lapses.Sub(c.Now()), Err: errUnused})
	}
	for _, of := range asked {
		if !of.until.IsZero() {
			first.Add(&slackapi.LaterError{After: of.until.Sub(c.Now()), Err: errAskAgain})
		}
		if slices.ContainsFunc(body.Unasked, func(u card.Unasked) bool {
			return u.Call == of.call && (u.Why == card.NobodyCan || u.Why == card.TooFew)
		}) {
			first.Add(&slackapi.LaterError{After: 5 * time.Minute, Err: errAskAgain})
		}
	}
	return first.Err()
}

var (
	errAskAgain = errors.New("others may be asked later")
	errUnused   = errors.New("the approval may still be used")
)

// unaskedOf reports whether nobody was asked about the call, and why.
func (a *anchors) unaskedOf(of audience, sent map[approvals.UserID]target) (card.Unasked, bool) {
	u := card.Unasked{Call: of.call, Why: card.NobodyCan}
	if of.here {
		return u, false
	}
	for user := range of.who {
		if _, gets := sent[user]; gets && !slices.Contains(a.Unreached, user) {
			return u, false
		}
		u.People = append(u.People, user)
	}
	slices.Sort(u.People)
	switch {
	case of.many || (len(of.who) > 0 && len(sent) == 0):
		u.Why, u.People = card.TooMany, nil
	case len(of.who) > 0:
		u.Why = card.NoMessage
	case of.lost:
		u.Why = card.NotKnown
	case of.muted:
		u.Why = card.NoneSent
	}
	return u, true
}

// fromOf are those whom the quorums of a call ask.
func fromOf(a approvals.Approval) []approvals.From {
	var all []approvals.From
	for _, q := range a.Requirement.Quorums {
		all = append(all, q.From)
	}
	return all
}

// Unasked tells one of those who ask which calls nobody was asked about, or which too few people
// can approve: all of calls are of one kind. It leaves out those that a notice already says
// nobody is left to approve, see [stuck].
func (n *Notices) Unasked(ctx context.Context, b approvals.Batch, calls []card.Unasked, person approvals.UserID) error {
	var left []card.Unasked
	for _, u := range calls {
		told := news{notices: map[approvals.UserID]notice{}}
		if err := n.addStuck(ctx, told, b, u.Call); err != nil && u.Why != card.NotKnown {
			return err
		}
		if len(told.notices) == 0 {
			left = append(left, u)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return n.tellUnasked(ctx, b, left, person)
}

// askers are the people who are told what becomes of a request: its requester, or,
// if that is an agent whose credential several people share, those people.
func askers(b approvals.Batch) []approvals.UserID {
	if _, shared := b.Requester.Service(); shared {
		return b.Participants
	}
	if b.Requester == "" {
		return nil
	}
	return []approvals.UserID{b.Requester}
}

func (n *Notices) tellUnasked(ctx context.Context, b approvals.Batch, left []card.Unasked, person approvals.UserID) error {
	channel, err := n.API.OpenDirect(ctx, string(person))
	if err != nil {
		return err
	}
	what := []string{string(b.ID), "unasked"}
	for _, u := range left {
		what = append(what, blockkit.Number(u.Call))
	}
	if err := n.Budget.takeReserved(ctx, channel, strings.Join(what, " ")); err != nil {
		return err
	}
	_, err = n.API.Post(ctx, channel, "", n.unaskedMessage(ctx, b, left, person))
	return err
}

// unaskedMessage says which calls nobody was asked about, or which too few people can
// approve, why, and what can be done.
func (n *Notices) unaskedMessage(ctx context.Context, b approvals.Batch, calls []card.Unasked, person approvals.UserID) blockkit.Message {
	nobody, do := sayNobodyElse, sayShowTheCard
	switch {
	case calls[0].Why == card.TooFew:
		nobody, do = sayTooFewCan, sayMoreOrAgain
	case slices.ContainsFunc(calls, func(u card.Unasked) bool { a := b.Approvals[u.Call]; return len(a.Deciders(a.Yes())) == 0 }):
		nobody = sayNobodyWasAsked
	}
	head := nobody + blockkit.Count(len(calls), "call") + sayYouAskedFor
	paras := []blockkit.Para{blockkit.Line(blockkit.Styled(head, blockkit.Bold), blockkit.Say(" from the agent "),
		blockkit.Styled(blockkit.Brief(b.Agent, 60), blockkit.Bold), blockkit.Say("."))}
	paras = append(paras, callLines(calls, func(u card.Unasked) []blockkit.Span {
		a := b.Approvals[u.Call]
		spans := []blockkit.Span{blockkit.Say("• "), blockkit.Styled(blockkit.Brief(a.Call.Name, 60), blockkit.Code), blockkit.Say(": ")}
		return append(append(spans, u.Words()...), n.link(ctx, b, u.Call, person)...)
	})...)
	paras = append(paras, blockkit.Line(blockkit.Say(do)))
	return blockkit.Message{Text: blockkit.Escape(head + "."), Blocks: []slack.Block{blockkit.RichText(paras...)}}
}
