package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// asking returns the people who can still help to settle a call of a batch, without
// those who are in the conversation.
type asking func(ctx context.Context, b approvals.Batch, call int, rungs []approvals.Rung, in attendance) (audience, error)

// inDirectMessages draws the batch in a direct message to each person who can help
// with a call and whom its rule asks so, and keeps these copies current like all
// cards. When more than [maxRecipients] people are to get one, only the cards in
// channels ask them. A person who can help only later, after an escalation or an
// earlier quorum, gets a copy then. Then it records, and tells the requester, which
// calls nobody was asked about.
func (c *Cards) inDirectMessages(ctx context.Context, h *memo.Claim[anchors], b approvals.Batch, asked []audience) error {
	var late slackapi.Soonest // a person who has to wait does not delay the others
	targets := recipientsOf(asked)
	for _, a := range h.Body.Anchors {
		if a.Direct != "" {
			t := targets[a.Direct]
			t.channel, t.direct = a.Channel, a.Direct
			targets[a.Direct] = t
		}
	}
	for _, user := range slices.Sorted(maps.Keys(targets)) {
		late.Add(c.toPerson(ctx, h, b, targets[user]))
	}
	late.Add(c.unasked(ctx, h, b, asked))
	return late.Err()
}

// asked returns for each open call who is asked about it. While people cannot be
// looked up, the error says when to try again; their call is left out, and after
// [lookupLimit] its audience is empty. unseen says that the thread takes no card.
func (c *Cards) asked(ctx context.Context, body *anchors, b approvals.Batch, unseen bool) ([]audience, error) {
	open := func(a approvals.Approval) bool { return a.OpenAt(c.Now()) }
	if !slices.ContainsFunc(b.Approvals, open) {
		return nil, nil
	}
	in, err := c.attendance(ctx, body, b, unseen)
	if err != nil {
		return nil, err
	}
	var all []audience
	var late slackapi.Soonest
	for i, a := range b.Approvals {
		if !open(a) {
			continue
		}
		in.direct = a.Requirement.Direct
		who, err := c.Asked(ctx, b, i, []approvals.Rung{{Kind: approvals.Remind}}, in)
		late.Add(err)
		switch {
		case err == nil:
			// Where it is not known who is in the conversation, one of them may be.
			who.here = who.here || (!in.known && (who.many || in.direct == approvals.DirectNobody))
			all = append(all, who)
		case c.Now().Sub(b.OpenedAt) >= lookupLimit:
			all = append(all, audience{call: i, from: fromOf(a), lost: true})
		}
	}
	return all, late.Err()
}

// recipientsOf returns the people who get a direct message now, with the parts of the
// batch that they can help with.
func recipientsOf(asked []audience) map[approvals.UserID]target {
	targets := map[approvals.UserID]target{}
	for _, of := range asked {
		if of.many {
			continue
		}
		for user := range of.who {
			t := targets[user]
			t.direct = user
			if part := of.call / card.CallsPerCard; !slices.Contains(t.parts, part) {
				t.parts = append(t.parts, part)
			}
			targets[user] = t
		}
	}
	if len(targets) > maxRecipients {
		clear(targets)
	}
	return targets
}

// toPerson draws the parts that a person has or needs. To a person who takes no
// direct message nothing more is posted; the messages that they have are updated for
// as long as Slack allows it.
func (c *Cards) toPerson(ctx context.Context, h *memo.Claim[anchors], b approvals.Batch, t target) error {
	for part := range card.Parts(b) {
		at := t
		at.left = !slices.Contains(t.parts, part)
		has := slices.ContainsFunc(h.Body.Anchors, func(a Anchor) bool { return a.Part == part && at.has(a) })
		unreached := slices.Contains(h.Body.Unreached, t.direct)
		if !has && (at.left || unreached) {
			continue
		}
		var err error
		if at.channel = h.Body.directly(at); at.channel == "" {
			at.channel, err = c.API.OpenDirect(ctx, string(t.direct))
		}
		var r Placement // empty for an unreached person, so that nothing is posted
		if err == nil && !unreached {
			r, err = c.placement(ctx, h, b, at)
		}
		if err == nil {
			err = c.part(ctx, h, b, part, at, r)
		}
		if slackapi.HasCode(err, slackapi.Unreachable...) {
			c.Log.WarnContext(ctx, "approver takes no direct messages", slog.String("batch", string(b.ID)),
				slog.String("user", string(t.direct)), slog.Any("err", err))
			err = h.Save(ctx, func(n *anchors) {
				n.unreached(t.direct)
				n.loses(t.direct, part)
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readerAt returns the reader of what is drawn at the target: the person of a
// direct message, else everybody who reads the channel. It reads nothing where
// nobody is asked any more and the person may not read the batch, or the channel
// is only one that an escalation has left: what is there is redacted.
func (c *Cards) readerAt(ctx context.Context, b approvals.Batch, t target) (directory.Reader, error) {
	switch {
	case t.further && t.left:
		return directory.Reader{}, nil
	case t.direct == "":
		return c.People.Audience(b, t.channel), nil
	}
	r, err := c.People.MayRead(ctx, directory.Who{User: string(t.direct)}, b)
	if err != nil && !directory.IsRefusal(err) {
		return r, fmt.Errorf("ask whether %s may read batch %s: %w", t.direct, b.ID, err)
	}
	return r, nil
}
