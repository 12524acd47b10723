package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

const (
	// digestAge is how long a digest takes further requests. An older message is
	// far up in the channel, where nobody would see them.
	digestAge = time.Hour
	// maxDigested is how many requests one digest holds.
	maxDigested = 300
)

// Digests draw the messages that list requests for which the budget of a channel, or
// of a person, had no room. Such a message is updated in place. Like [Cards] they keep
// no state of their own. The due entry of a batch stays until its digest shows the
// batch, so that a process that is killed loses nothing.
type Digests struct {
	Desk   Desk
	Memos  memo.Store
	API    *slackapi.Client
	People *directory.Directory
	Team   string
	Now    func() time.Time
	Lease  time.Duration // of a claim, see [memo.Notes]

	Several bool // whether several calls can be approved together

	shared memo.Shared[Digest]
}

// lastDigest is the memo of a channel that says which of its digests takes
// requests now.
type lastDigest struct {
	Number int `json:"number,omitempty"` // 0: there was none yet
}

// A Digest is the memo of one such message.
type Digest struct {
	Channel  string                         `json:"channel,omitempty"`
	TS       string                         `json:"ts,omitempty"`
	Born     time.Time                      `json:"born,omitzero"`
	Changes  int64                          `json:"changes,omitempty"`  // how many changes were recorded
	Drawn    int64                          `json:"drawn,omitempty"`    // how many of them the message shows
	Next     time.Time                      `json:"next,omitzero"`      // when it may be drawn again
	PutOff   int                            `json:"put_off,omitempty"`  // how often in a row it had to wait then
	Requests map[approvals.BatchID]digested `json:"requests,omitempty"` // that wait, and those that were decided since Drawn
	Decided  int                            `json:"decided,omitempty"`  // calls of all other requests
}

// digested is what a digest says of one request.
type digested struct {
	Version int64          `json:"v"`
	Change  int64          `json:"c"` // the change that brought this state
	Agent   string         `json:"a"`
	Tools   map[string]int `json:"t,omitempty"` // its open calls by tool
	// Risks are its open calls by severity, and Leads is the digest of the one that
	// names it. Earlier versions did not store them.
	Risks    map[approvals.Severity]int `json:"s,omitempty"`
	Leads    string                     `json:"l,omitempty"`
	Decided  int                        `json:"n,omitempty"` // its other calls
	Opened   time.Time                  `json:"o"`
	Deadline time.Time                  `json:"d,omitzero"`
	Reminded bool                       `json:"r,omitempty"` // a reminder is due that found no room
}

func digestOf(b approvals.Batch) digested {
	d := digested{Version: b.Version, Agent: b.Agent, Opened: b.OpenedAt, Deadline: b.Deadline()}
	for _, a := range b.Approvals {
		if a.Status != approvals.Pending {
			d.Decided++
			continue
		}
		if d.Tools == nil {
			d.Tools, d.Risks = map[string]int{}, map[approvals.Severity]int{}
		}
		d.Tools[a.Call.Name]++
		d.Risks[a.Severity]++
	}
	if row := card.Open(b); len(row.Calls) > 0 {
		d.Leads = ref.ShortID(row.Leading().Call.Digest)
	}
	return d
}

func (d digested) Open() bool { return len(d.Tools) > 0 }

// reads reports whether the digest shows both in the same way.
func (d digested) reads(e digested) bool {
	return d.Decided == e.Decided && d.Deadline.Equal(e.Deadline) && d.Leads == e.Leads &&
		maps.Equal(d.Tools, e.Tools) && maps.Equal(d.Risks, e.Risks)
}

// note records the state of a batch, unless it is a new one that is decided already. It
// reports whether there is room for the batch.
func (d *Digest) note(channel string, b approvals.Batch, now time.Time) bool {
	if !d.lacks(b) {
		return true
	}
	if _, ok := d.Requests[b.ID]; !ok && len(d.Requests) >= maxDigested {
		return false
	}
	next := digestOf(b)
	next.Change, next.Reminded = d.Requests[b.ID].Change, d.Requests[b.ID].Reminded
	if old, ok := d.Requests[b.ID]; !ok || !old.reads(next) {
		d.Changes++
		next.Change = d.Changes
	}
	if d.Requests == nil {
		d.Requests = map[approvals.BatchID]digested{}
	}
	if d.Born.IsZero() {
		d.Born, d.Channel = now, channel
	}
	d.Requests[b.ID] = next
	return true
}

// lacks reports whether the memo does not know this state of the batch.
func (d *Digest) lacks(b approvals.Batch) bool {
	old, ok := d.Requests[b.ID]
	return ok && old.Version < b.Version || !ok && digestOf(b).Open()
}

// shows reports whether the message says what is known of the batch.
func (d *Digest) shows(id approvals.BatchID) bool {
	return d.Requests[id].Change <= d.Drawn
}

// outdate has the message drawn again for any batch, also for one that is decided and no
// longer listed.
func (d *Digest) outdate() { d.Drawn = -1 }

// remind records that a reminder of the request is to be shown.
func (d *Digest) remind(b approvals.BatchID) {
	if r, ok := d.Requests[b]; ok && r.Open() && !r.Reminded {
		d.Changes++
		r.Reminded, r.Change = true, d.Changes
		d.Requests[b] = r
	}
}

// leads reports whether the request has waited longest for the digest to be drawn.
// Its batch draws the digest when it is due; the others look later.
func (d *Digest) leads(id approvals.BatchID) bool {
	mine := d.Requests[id].Change
	for _, r := range d.Requests {
		if r.Change > d.Drawn && r.Change < mine {
			return false
		}
	}
	return true
}

// drew records that the message shows this many changes.
func (d *Digest) drew(ts string, changes int64, next time.Time) {
	d.TS, d.Drawn, d.Next, d.PutOff = ts, changes, next, 0
	for id, r := range d.Requests {
		if !r.Open() && r.Change <= changes {
			d.Decided += r.Decided
			delete(d.Requests, id)
		}
	}
}

func (d *Digest) waits() bool {
	for _, r := range d.Requests {
		if r.Open() {
			return true
		}
	}
	return false
}

// takes reports whether a further request may go into it. There is at most one new
// digest a minute, and one for each that is full.
func (d *Digest) takes(now time.Time) bool {
	if d.Born.IsZero() {
		return true
	}
	age := now.Sub(d.Born)
	return len(d.Requests) < maxDigested && (age < slackapi.BudgetSpan || d.waits() && age < digestAge)
}

// Notes are the records of digests.
func (d *Digests) Notes() memo.Notes[Digest] {
	return memo.Notes[Digest]{Memos: d.Memos, Surface: "digest", Now: d.Now, Lease: d.Lease, Outdate: (*Digest).outdate}
}

func (d *Digests) id(channel string, number int) string {
	return channelID("digest", d.Team, channel) + "-" + strconv.Itoa(number)
}

// current returns the digest of the channel that takes requests now.
func (d *Digests) current(ctx context.Context, channel string) (string, error) {
	last, id := memo.Notes[lastDigest]{Memos: d.Memos, Surface: "digests", Now: d.Now, Derived: d.API.Log}, channelID("digests", d.Team, channel)
	for range memo.Attempts {
		n, version, err := last.Load(ctx, id)
		if err != nil {
			return "", err
		}
		if n.Body.Number > 0 {
			x, err := d.look(ctx, d.id(channel, n.Body.Number))
			switch {
			case errors.Is(err, memo.ErrUnreadable): // further requests need not wait for those that it lists
			case err != nil:
				return "", err
			case x.Body.takes(d.Now()):
				return d.id(channel, n.Body.Number), nil
			}
		} else if version > 0 { // the number was lost, and this is beyond it
			n.Body.Number = int(d.Now().Unix())
		}
		n.Body.Number++
		err = last.Store(ctx, id, n, version, 0)
		if err == nil {
			return d.id(channel, n.Body.Number), nil
		}
		if !errors.Is(err, approvals.ErrConflict) {
			return "", err
		}
	}
	return "", lostRace(approvals.ErrConflict)
}

func (d *Digests) look(ctx context.Context, id string) (*memo.Record[Digest], error) {
	return d.shared.Look(ctx, d.Notes(), id)
}

// show makes the digest show the state of the batch. It returns a
// [*slackapi.LaterError] until the message shows it, and errDigestFull if the batch has to
// go into another digest.
func (d *Digests) show(ctx context.Context, id, channel string, b approvals.Batch) error {
	return d.shows(ctx, id, channel, b, nil)
}

// remind also makes the digest show that a reminder of the batch is due.
func (d *Digests) remind(ctx context.Context, id, channel string, b approvals.Batch) error {
	return d.shows(ctx, id, channel, b, func(x *Digest) { x.remind(b.ID) })
}

func (d *Digests) shows(ctx context.Context, id, channel string, b approvals.Batch, and func(*Digest)) error {
	n, err := d.look(ctx, id)
	if err != nil {
		return err
	}
	lacks := n.Body.lacks(b)
	if r := n.Body.Requests[b.ID]; and != nil && r.Open() && !r.Reminded {
		lacks = true
	}
	if lacks {
		room := true
		n, err = d.shared.Edit(ctx, d.Notes(), id, func(x *Digest) {
			if room = x.note(channel, b, d.Now()); room && and != nil {
				and(x)
			}
		})
		switch {
		case errors.Is(err, approvals.ErrConflict):
			return lostRace(err)
		case err != nil:
			return err
		case !room:
			return errDigestFull
		}
	}
	if shown, err := d.shown(n, b.ID); shown || err != nil {
		return err
	}
	h, err := d.Notes().Claim(ctx, id)
	if later, ok := errors.AsType[*slackapi.LaterError](err); ok && errors.Is(err, memo.ErrBusy) {
		return d.later(&n.Body, b.ID, later.After)
	}
	if err != nil {
		return err
	}
	return h.Draw(ctx, func(ctx context.Context, h *memo.Claim[Digest]) (int64, error) { return 0, d.draw(ctx, h, b.ID) })
}

// draw runs under the claim, so that it never draws an older state over a newer one.
func (d *Digests) draw(ctx context.Context, h *memo.Claim[Digest], b approvals.BatchID) error {
	changes, at := h.Body.Changes, d.Now()
	if h.Body.Drawn == changes {
		return nil
	}
	if left := h.Body.Next.Sub(at); left > 0 {
		return d.later(&h.Body, b, left)
	}
	next, err := d.send(ctx, h, at)
	if later, ok := errors.AsType[*slackapi.LaterError](err); ok {
		left := later.After
		if later.Outage {
			left = slackapi.WaitAfter(h.Body.PutOff)
		}
		if err := h.Save(ctx, func(x *Digest) { x.Next, x.PutOff = at.Add(left), x.PutOff+1 }); err != nil {
			return err
		}
		return d.later(&h.Body, b, left)
	}
	if err != nil {
		return fmt.Errorf("draw digest %s: %w", h.ID, err)
	}
	return h.Save(ctx, func(x *Digest) { x.drew(next.ts, changes, next.at) })
}

// A sentDigest is where a digest is now, and when it may be drawn again.
type sentDigest struct {
	ts string
	at time.Time
}

func (d *Digests) send(ctx context.Context, h *memo.Claim[Digest], at time.Time) (sentDigest, error) {
	ts, m := h.Body.TS, card.DigestMessage(h.ID, h.Body.sums(), d.oldest(ctx, h.Body), d.Several)
	next := at.Add(paceOf(h.Body.Channel).every)
	if ts != "" {
		var err error
		if next, err = d.pace(ctx, h.Body.Channel, h.ID, at); err != nil {
			return sentDigest{}, err
		}
		m.LowPriority = true
		err = d.API.Update(ctx, h.Body.Channel, ts, m)
		if err == nil || !slackapi.HasCode(err, slackapi.Gone...) {
			return sentDigest{ts, next}, err
		}
		ts = ""
	}
	if !h.Body.waits() {
		return sentDigest{ts, next}, nil
	}
	m.LowPriority = false
	ts, err := d.API.Post(ctx, h.Body.Channel, "", m)
	return sentDigest{ts, next}, err
}

// oldest are the rows of the digest that show what they do: the oldest that wait.
// Each is one read, and their arguments are one more. What cannot be read now is
// left out.
func (d *Digests) oldest(ctx context.Context, x Digest) []card.OpenCalls {
	var rows []*card.OpenCalls
	open := x.ByAge()
	for _, id := range open[:min(card.DigestRows, len(open))] {
		b, err := d.Desk.Batch(ctx, id)
		if row := card.Open(b); err == nil && len(row.Calls) > 0 {
			rows = append(rows, &row)
		}
	}
	d.People.SummarizeIn(ctx, x.Channel, rows)
	out := make([]card.OpenCalls, len(rows))
	for i, row := range rows {
		out[i] = *row
	}
	return out
}

// ByAge returns the requests that wait, the oldest first.
func (d Digest) ByAge() []approvals.BatchID {
	open := slices.DeleteFunc(slices.Collect(maps.Keys(d.Requests)), func(id approvals.BatchID) bool { return !d.Requests[id].Open() })
	slices.SortFunc(open, func(a, b approvals.BatchID) int {
		return cmp.Or(d.Requests[a].Opened.Compare(d.Requests[b].Opened), cmp.Compare(a, b))
	})
	return open
}

// place is where the digest is, if it is posted.
func (d *Digests) place(ctx context.Context, id string) (Anchor, bool) {
	n, err := d.look(ctx, id)
	if err != nil || n.Body.TS == "" {
		return Anchor{}, false
	}
	return Anchor{Channel: n.Body.Channel, TS: n.Body.TS}, true
}

// ParseDigest checks the value of a button of a digest.
func ParseDigest(value string) (string, error) {
	if _, err := approvals.Partition(value); err != nil || len(value) > ref.MaxPointer || !strings.HasPrefix(value, "digest-") ||
		strings.Trim(value, ref.IDChars) != "" {
		return "", ref.ErrPointer
	}
	return value, nil
}
