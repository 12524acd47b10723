package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/chats"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// Cards draws batches. It keeps no state of its own, so any number of replicas may
// draw.
type Cards struct {
	Desk  Desk
	Runs  Runs
	API   *slackapi.Client
	Tools directory.Tools // may be nil
	// Fulfillers are the agents that may give the results of external calls.
	Fulfillers blockkit.Fulfillers
	Now        func() time.Time
	Log        *slog.Logger

	Placements *Placements
	Chats      *chats.Chats
	People     *directory.Directory // makes the readers of what is drawn
	Budget     *Budget
	Digests    *Digests
	Status     *slackapi.StatusLine

	Asked asking
	Tell  telling
	// RefreshReply updates the message that shows the run.
	RefreshReply func(ctx context.Context, run approvals.RunID) error
}

// Reconcile makes the messages of the batch show its stored state. The due index
// calls it. A [*slackapi.LaterError] says when to try again; any other error is a
// failure.
func (c *Cards) Reconcile(ctx context.Context, id string) error {
	// Nobody has drawn anything between the read of the record and the claim, so the
	// batch, which is read after the record, is no older than what was drawn.
	ctx = c.Placements.Memos.Prefetch(ctx, approvals.Reads{
		Memos: []approvals.MemoKey{c.Placements.Key(approvals.BatchID(id))}, Batches: []approvals.BatchID{approvals.BatchID(id)},
	})
	var b approvals.Batch
	ctx, h, err := c.Placements.notes().ClaimIf(ctx, id, func(body *anchors) (_ approvals.Reads, err error) {
		if b, err = c.Desk.Batch(ctx, approvals.BatchID(id)); err != nil {
			return approvals.Reads{}, err
		}
		return approvals.Reads{Runs: []approvals.RunID{b.Run}, Args: body.redraws(b)}, c.mustWait(ctx, b, body)
	})
	if err != nil {
		return err
	}
	return h.Draw(ctx, func(ctx context.Context, h *memo.Claim[anchors]) (int64, error) { return c.draw(ctx, h, b) })
}

// mustWait returns a [*slackapi.LaterError] if every message of the batch that has to
// be updated must wait for Slack, the card in the thread among them, or if all that is
// left must wait for lookups and digests. Otherwise it returns nil.
func (c *Cards) mustWait(ctx context.Context, b approvals.Batch, body *anchors) error {
	if body.Waits == b.Version && !body.outdated(b) {
		return c.restMustWait(ctx, b, body)
	}
	for _, channel := range b.Channels() {
		posted := func(a Anchor) bool { return a.Further && a.Channel == channel }
		if !body.missed(channel) && !slices.ContainsFunc(body.Anchors, posted) {
			return nil // it may have to be posted there
		}
	}
	var late slackapi.Soonest
	home := false
	for _, a := range body.Anchors {
		if a.Version >= b.Version {
			continue
		}
		err := c.API.MayUpdate(ctx, a.Channel, a.TS, c.lowPriority(ctx, card.Card{Batch: b, Part: a.Part}))
		if err == nil {
			return nil
		}
		home = home || a.Part == 0 && !a.Further && a.Direct == ""
		late.Add(err)
	}
	if !home {
		return nil
	}
	return late.Err()
}

// lowPriority is of a card that still waits for people, unless someone has just done
// something about it.
func (c *Cards) lowPriority(ctx context.Context, shown card.Card) bool {
	return shown.Waits() && (c.API.Awaits == nil || !c.API.Awaits(ctx))
}

// draw draws the batch under the claim, so that it never draws an older state over a
// newer one.
func (c *Cards) draw(ctx context.Context, h *memo.Claim[anchors], b approvals.Batch) (int64, error) {
	run, err := c.Runs.Run(ctx, b.Run)
	if err != nil {
		return 0, err
	}
	at, shown := home(run, b)
	if !shown {
		return b.Version, nil
	}
	b.Channel = cmp.Or(b.Channel, run.Origin.Channel) // old documents have none
	for range maxRounds {
		// A failure in the channel of an escalation does not delay the thread, and where
		// Slack refuses the card in the thread, people are still asked elsewhere.
		furtherErr := c.escalated(ctx, h, b)
		before := slices.Clone(h.Body.Anchors)
		homeErr := c.at(ctx, h, b, at)
		if homeErr != nil && !slackapi.Refused(homeErr) {
			return 0, homeErr
		}
		if !b.Settled() && !slices.Equal(before, h.Body.Anchors) {
			c.Status.Show(ctx, at.channel, at.thread, waitsWords(b, c.Now()))
		}
		var late slackapi.Soonest
		late.Add(furtherErr)
		late.Add(homeErr)
		unseen := refusesAll(at, homeErr) && !h.Body.atHome()
		asked, askedErr := c.asked(ctx, &h.Body, b, unseen)
		late.Add(c.inDirectMessages(ctx, h, b, asked))
		digestsErr := c.inDigests(ctx, h, b)
		late.Add(c.list(ctx, h, b))
		if late.Err() == nil && (askedErr != nil || digestsErr != nil) {
			late.Add(h.Note(ctx, func(n *anchors) { n.waits(b.Version, askedErr != nil, c.Now()) }))
		}
		late.Add(askedErr)
		late.Add(digestsErr)
		if err := late.Err(); err != nil {
			return 0, err
		}
		if !h.Body.outdated(b) { // Adopt may have added a copy meanwhile
			return b.Version, c.askAgain(b, &h.Body, asked)
		}
	}
	return 0, fmt.Errorf("draw batch %s: %w", b.ID, errUnsettled)
}

// refusesAll reports whether the target takes no card until someone changes that.
func refusesAll(t target, err error) bool {
	return slackapi.HasCode(err, slackapi.Closed...) ||
		t.chat == nil && slackapi.HasCode(err, slackapi.NoThread...) // a chat begins another thread
}

// maxRounds is how often one reconciliation starts again because there was more to
// do at its end.
const maxRounds = 8

// errUnsettled says that there was more to do after [maxRounds]. It is a failure, so
// that the due index waits longer each time.
var errUnsettled = errors.New("there was more to show after every round")

// list makes the thread of a batch say in which digest the batch is listed.
func (c *Cards) list(ctx context.Context, h *memo.Claim[anchors], b approvals.Batch) error {
	if h.Body.digest() == "" || h.Body.Listed {
		return nil
	}
	if err := c.RefreshReply(ctx, b.Run); err != nil {
		return fmt.Errorf("say in its thread where batch %s is: %w", b.ID, err)
	}
	return h.Save(ctx, func(n *anchors) { n.Listed = true })
}

// escalated draws the batch in the channels of its escalations.
func (c *Cards) escalated(ctx context.Context, h *memo.Claim[anchors], b approvals.Batch) error {
	channels := b.Channels()
	targets := make([]target, len(channels))
	for i, channel := range channels {
		targets[i] = target{channel: channel, further: true}
	}
	for _, a := range h.Body.Anchors {
		if a.Further && !slices.Contains(channels, a.Channel) {
			targets = append(targets, target{channel: a.Channel, further: true, left: true})
		}
	}
	for _, t := range targets {
		missed := h.Body.missed(t.channel)
		if missed && !slices.ContainsFunc(h.Body.Anchors, func(a Anchor) bool { return t.has(a) && a.Version < b.Version }) {
			continue
		}
		err := c.at(ctx, h, b, t)
		switch code, shut := slackapi.CodeOf(err, slackapi.Closed...); {
		case shut && missed:
			err = nil
		case err == nil && missed:
			err = h.Save(ctx, func(n *anchors) { n.reach(t.channel) })
		case shut:
			c.Log.WarnContext(ctx, "escalation not shown in a channel", slog.String("batch", string(b.ID)),
				slog.String("channel", t.channel), slog.Any("err", err))
			err = h.Save(ctx, func(n *anchors) { n.miss(card.Missed{Channel: t.channel, Code: code}) })
		}
		if err != nil {
			return fmt.Errorf("show batch %s in %s: %w", b.ID, t.channel, err)
		}
	}
	return nil
}

// part updates the messages that show one part of the batch at the target. If there
// is none, it posts one if the placement has the part.
func (c *Cards) part(ctx context.Context, h *memo.Claim[anchors], b approvals.Batch, part int, t target, r Placement) error {
	here, old := 0, []Anchor(nil)
	lapsed, _ := card.Unused(b, c.Now())
	for _, a := range h.Body.Anchors {
		if a.Part == part && t.has(a) {
			here++
			if a.Version < b.Version || t.mayBeOver(b) || lapsed { // else it shows this already
				old = append(old, a)
			}
		}
	}
	if here > 0 && len(old) == 0 {
		return nil
	}
	if here == 0 && (!slices.Contains(r.Parts, part) || ((t.further || t.direct != "") && (t.left || b.Settled()))) {
		return nil // it has no message here, or nobody here is asked any more
	}
	reader, err := c.readerAt(ctx, b, t)
	if err != nil {
		return err
	}
	m := card.Card{Batch: b, Part: part}.Revoked()
	if reader.Reads(b) {
		shown, err := c.cardAt(ctx, &h.Body, reader, b, part, t, r)
		if err != nil {
			return err
		}
		m = shown.Message(c.Now())
	} else if here == 0 {
		return nil // nothing is posted where nobody may read it
	}
	gone, err := c.redraw(ctx, h, b, part, old, m)
	if err != nil || here > gone || t.left || !reader.Reads(b) || !slices.Contains(r.Parts, part) || (len(old) > 0 && b.Settled()) {
		return err // the card of a settled batch that someone removed is not posted again
	}
	ts, thread, err := c.post(ctx, b, t, m)
	if err != nil {
		return fmt.Errorf("post part %d of batch %s in %s: %w", part, b.ID, t.channel, err)
	}
	posted := Anchor{Part: part, Channel: t.channel, TS: ts, Thread: thread, Version: b.Version, Sum: m.Sum(), Whole: m.Whole, Further: t.further, Direct: t.direct}
	err = h.Save(ctx, func(n *anchors) { n.put(posted) })
	if errors.Is(err, memo.ErrLost) { // others may have posted one, too
		err = errors.Join(err, c.Placements.Adopt(ctx, b.ID, posted))
	}
	if err != nil {
		return fmt.Errorf("remember part %d of batch %s: %w", part, b.ID, err)
	}
	return nil
}

// cardAt loads what is shown of one part of the batch at the target.
func (c *Cards) cardAt(ctx context.Context, n *anchors, reader directory.Reader, b approvals.Batch, part int, t target, r Placement) (card.Card, error) {
	shown, err := c.Load(ctx, reader, b, part)
	if err != nil {
		return shown, err
	}
	shown.Place, shown.Person, shown.Missed, shown.Unposted, shown.Unasked = t.place(), t.direct, n.Missed, r.others(part, t.wants(b)), n.Unasked
	if t.direct == "" {
		return shown, nil
	}
	if i := slices.IndexFunc(n.Anchors, func(a Anchor) bool {
		return a.Part == part && !a.Further && a.Direct == "" && !a.withSomebodyElse(b, t.direct)
	}); i >= 0 {
		home := n.Anchors[i]
		shown.Link = c.API.Permalink(ctx, home.Channel, home.TS, home.Thread)
	}
	return shown, nil
}

// redraw puts the message in the place of the old ones, and forgets and counts those that are gone.
func (c *Cards) redraw(ctx context.Context, h *memo.Claim[anchors], b approvals.Batch, part int, old []Anchor, m blockkit.Message) (gone int, err error) {
	m.LowPriority = c.lowPriority(ctx, card.Card{Batch: b, Part: part})
	sum := m.Sum()
	for _, a := range old {
		var err error
		if a.Sum == "" || a.Sum != sum {
			err = c.API.Update(ctx, a.Channel, a.TS, m)
		}
		switch {
		case err == nil:
			a.Version, a.Sum, a.Whole = b.Version, sum, m.Whole
			err = h.Note(ctx, func(n *anchors) { n.put(a) }) // repeating an update does no harm
		case slackapi.HasCode(err, slackapi.Gone...):
			gone++
			err = h.Save(ctx, func(n *anchors) { n.drop(a) })
		}
		if err != nil {
			return gone, fmt.Errorf("redraw part %d of batch %s: %w", part, b.ID, err)
		}
	}
	return gone, nil
}

// post posts a card at the target. The card of a chat goes into the thread of the chat.
// If someone removed the first message of that thread, post fails, and the next attempt
// begins another one.
func (c *Cards) post(ctx context.Context, b approvals.Batch, t target, m blockkit.Message) (ts, thread string, err error) {
	if t.chat == nil {
		ts, err = c.API.Post(ctx, t.channel, t.thread, m)
		return ts, t.thread, err
	}
	if thread, err = c.Chats.Thread(ctx, *t.chat, b); err != nil {
		return "", "", err
	}
	ts, err = c.API.Post(ctx, t.channel, thread, m)
	if slackapi.HasCode(err, slackapi.NoThread...) {
		err = errors.Join(err, c.Chats.Lost(ctx, *t.chat, thread))
	}
	return ts, thread, err
}

// Load collects what a card shows to the reader: the arguments are those of the
// digests. It is an error for a reader that may not read the batch.
func (c *Cards) Load(ctx context.Context, r directory.Reader, b approvals.Batch, part int) (card.Card, error) {
	shown := card.Card{
		Batch: b, Part: part, Sheets: c.Digests.Several, Calls: map[approvals.ToolCallID]approvals.ToolCall{},
		Earlier: map[approvals.Digest]approvals.ToolCall{}, Tools: map[string]agentrun.Spec{}, Fulfillers: c.Fulfillers,
	}
	for _, a := range shown.OnCard() {
		call, err := r.Call(ctx, b, a.Call.ID)
		if err != nil {
			return card.Card{}, err
		}
		shown.Calls[a.Call.ID] = call
		if err := c.loadEarlier(ctx, r, shown, a); err != nil {
			return card.Card{}, err
		}
		if spec, ok := directory.SpecOf(c.Tools, b, a); ok {
			shown.Tools[call.Name] = spec
		}
	}
	return shown, nil
}

// loadEarlier adds the arguments that the newest amendments replaced. Arguments that
// are not stored any more are left out, and the card says so.
func (c *Cards) loadEarlier(ctx context.Context, r directory.Reader, shown card.Card, a approvals.Approval) error {
	for _, m := range a.Amendments[max(0, len(a.Amendments)-card.AmendmentsShown):] {
		call, err := r.CallAs(ctx, shown.Batch, a.Call.ID, m.From)
		switch {
		case err == nil:
			shown.Earlier[m.From] = call
		case !errors.Is(err, approvals.ErrStale):
			return err
		}
	}
	return nil
}

// Desk is what reconcilers need of [approvals.Desk].
type Desk interface {
	Batch(ctx context.Context, id approvals.BatchID) (approvals.Batch, error)
}

// Runs is where a card belongs.
type Runs interface {
	Run(ctx context.Context, id approvals.RunID) (agentrun.Run, error)
}

// waitsWords say how many approvals the open calls of the batch still need. Of
// alternatives it is not known how many that will be.
func waitsWords(b approvals.Batch, now time.Time) string {
	left, all := 0, 0
	for _, a := range b.Approvals {
		if !a.OpenAt(now) {
			continue
		}
		for _, p := range a.Progress() {
			if p.Quorum.Choice > 0 {
				return statusWaiting
			}
			left, all = left+max(0, p.Quorum.Need-len(p.By)), all+max(0, p.Quorum.Need)
		}
	}
	switch {
	case all == 0:
		return statusWaiting
	case left == all:
		return "is waiting for " + blockkit.Count(all, "approval")
	}
	return fmt.Sprintf(statusWaitingOf, left, blockkit.Count(all, "approval"))
}
