package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// Notices sends people direct messages about a batch: that a call still waits for
// them, that an escalation asks them now, that their decision no longer counts, that
// nobody is left to approve what they asked for. A notice says in words what a call
// does to those who may read its arguments, and names the tool to others. Like [Cards]
// it keeps no state of its own; a memo records what people have been told.
type Notices struct {
	Desk   Desk
	Runs   Runs
	API    *slackapi.Client
	Memos  memo.Store
	People *directory.Directory
	Now    func() time.Time
	Log    *slog.Logger

	Placements *Placements
	Budget     *Budget
}

// noticed is the memo of the notices of a batch: what has been told, and the round
// that tells the rest.
type noticed struct {
	Told  marks  `json:"told"`
	Round *round `json:"round,omitempty"`
}

// marks count, for each call in order, the rungs and amendments that were told.
type marks struct {
	Rungs   []int `json:"rungs,omitempty"`   // of the ladder
	Amended []int `json:"amended,omitempty"` // changes of the arguments
}

// A round tells the news up to a mark. Each person gets one message of it.
type round struct {
	To     marks    `json:"to"`
	People []string `json:"people,omitempty"` // who have got theirs
	Listed []string `json:"listed,omitempty"` // whose digest is to say it
	Thread bool     `json:"thread,omitempty"` // the thread has
}

// untold reports whether no message of the round is known to have been sent.
func (r *round) untold() bool { return len(r.People) == 0 && !r.Thread }

func marksOf(b approvals.Batch) marks {
	var m marks
	for _, a := range b.Approvals {
		m.Rungs = append(m.Rungs, len(a.TakenRungs()))
		m.Amended = append(m.Amended, len(a.Amendments))
	}
	return m
}

func (m marks) equal(n marks) bool {
	return slices.Equal(m.Rungs, n.Rungs) && slices.Equal(m.Amended, n.Amended)
}

// news returns the rungs and the amendments of a call between two marks. Changed
// arguments begin a new ladder.
func (m marks) news(to marks, a approvals.Approval, i int) ([]approvals.Rung, []approvals.Amendment) {
	rungs, amended := at(m.Rungs, i), at(m.Amended, i)
	if at(to.Amended, i) != amended {
		rungs = 0
	}
	taken := min(at(to.Rungs, i), len(a.Requirement.Ladder))
	changed := min(at(to.Amended, i), len(a.Amendments))
	return a.Requirement.Ladder[min(rungs, taken):taken], a.Amendments[min(amended, changed):changed]
}

func at(list []int, i int) int {
	if i < len(list) {
		return max(0, list[i])
	}
	return 0
}

func (n *Notices) notes() memo.Notes[noticed] {
	return memo.Notes[noticed]{Memos: n.Memos, Surface: "notices", Now: n.Now}
}

// Reconcile sends the notices that were not sent yet. The due index calls it. A
// [*slackapi.LaterError] says when to try again; any other error is a failure.
func (n *Notices) Reconcile(ctx context.Context, id string) error {
	return n.notes().Reconcile(ctx, id, func(ctx context.Context, h *memo.Claim[noticed]) (int64, error) {
		return n.tell(ctx, h, approvals.BatchID(id))
	})
}

// tell finishes the round that was begun, and then begins one with what is new. A round
// of which nothing was sent, as in an outage of Slack, takes in what is new.
func (n *Notices) tell(ctx context.Context, h *memo.Claim[noticed], id approvals.BatchID) (int64, error) {
	b, err := n.Desk.Batch(ctx, id)
	if err != nil {
		return 0, err
	}
	run, err := n.Runs.Run(ctx, b.Run)
	if err != nil {
		return 0, err
	}
	at, shown := home(run, b)
	if !shown {
		return b.Version, nil
	}
	if at.thread == "" { // then the notice goes into the thread of the card, or below the card
		if card, drawn := n.Placements.Anchor(ctx, b, 0, ""); drawn && card.Channel == at.channel {
			at.thread = cmp.Or(card.Thread, card.TS)
		}
	}
	now := marksOf(b)
	for range maxRounds {
		if h.Body.Round == nil && h.Body.Told.equal(now) {
			return b.Version, nil
		}
		if r := h.Body.Round; r == nil || r.untold() && !r.To.equal(now) {
			if err := h.Save(ctx, func(x *noticed) { x.Round = &round{To: now} }); err != nil {
				return 0, err
			}
		}
		if err := n.round(ctx, h, b, inbound.Place{Channel: at.channel, Thread: at.thread}); err != nil {
			return 0, err
		}
		err := h.Save(ctx, func(x *noticed) {
			if x.Round != nil {
				x.Told, x.Round = x.Round.To, nil
			}
		})
		if err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("tell people of batch %s: %w", id, errUnsettled)
}

// round sends the notice to everyone of the round who has not got it.
func (n *Notices) round(ctx context.Context, h *memo.Claim[noticed], b approvals.Batch, home inbound.Place) error {
	news, err := n.news(ctx, b, h.Body.Told, h.Body.Round.To)
	if err != nil {
		return err
	}
	var late slackapi.Soonest // a person who has to wait does not delay the others
	for _, user := range news.people() {
		if slices.Contains(h.Body.Round.People, string(user)) {
			continue
		}
		err := n.reach(ctx, h, b, string(user), news.notices[user])
		if later, ok := errors.AsType[*slackapi.LaterError](err); ok && !later.Outage {
			late.Add(err)
			continue
		}
		if slackapi.HasCode(err, slackapi.Unreachable...) {
			n.Log.WarnContext(ctx, "person not notified", slog.String("batch", string(b.ID)), slog.String("user", string(user)), slog.Any("err", err))
			err = nil
		}
		if err != nil {
			return fmt.Errorf("tell %s of batch %s: %w", user, b.ID, err)
		}
		if err := h.Save(ctx, func(x *noticed) { x.told(string(user), false) }); err != nil {
			return err
		}
	}
	if err := late.Err(); err != nil || len(news.groups) == 0 || h.Body.Round.Thread {
		return err
	}
	_, err = n.API.Post(ctx, home.Channel, home.Thread, n.call(ctx, n.People.Audience(b, home.Channel), b, news))
	if err != nil && !slackapi.HasCode(err, slackapi.Unreachable...) {
		return fmt.Errorf("tell the thread of batch %s: %w", b.ID, err)
	}
	return h.Save(ctx, func(x *noticed) {
		if x.Round != nil {
			x.Round.Thread = true
		}
	})
}

// reach sends a person their notice. If their budget has no room, it puts the batch
// into the digest in their direct messages, and leaves it there however long the digest
// has to wait. That does not hold for notices that the person must not miss: that their
// decision no longer counts, and that nobody is left to approve a call.
func (n *Notices) reach(ctx context.Context, h *memo.Claim[noticed], b approvals.Batch, user string, l notice) error {
	channel, err := n.API.OpenDirect(ctx, user)
	if err != nil {
		return err
	}
	what, room := fmt.Sprintf("%s notice %v", b.ID, h.Body.Round.To), 0
	if len(l.cleared)+len(l.stuck) > 0 {
		room, err = 1, n.Budget.takeReserved(ctx, channel, what)
	} else if !slices.Contains(h.Body.Round.Listed, user) {
		if room, err = n.Budget.take(ctx, channel, what); err == nil && room == 0 {
			err = h.Save(ctx, func(x *noticed) { x.told(user, true) })
		}
	}
	if err == nil && room > 0 {
		_, err = n.API.Post(ctx, channel, "", n.message(ctx, n.readerOf(ctx, b, user), b, l, approvals.UserID(user)))
	} else if err == nil {
		err = n.Placements.addToDigest(ctx, b, channel, approvals.UserID(user))
	}
	return err
}

// readerOf returns the Reader of the person. If they may not read the batch, or that
// cannot be looked up, it reads nothing.
func (n *Notices) readerOf(ctx context.Context, b approvals.Batch, user string) directory.Reader {
	reader, _ := n.People.MayRead(ctx, directory.Who{User: user}, b)
	return reader
}

// told records that the person has got theirs, or that their digest is to say it.
func (x *noticed) told(user string, listed bool) {
	switch r := x.Round; {
	case r == nil:
	case listed && !slices.Contains(r.Listed, user):
		r.Listed = append(r.Listed, user)
	case !listed && !slices.Contains(r.People, user):
		r.People = append(r.People, user)
	}
}
