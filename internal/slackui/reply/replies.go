package reply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// Replies draws runs: one message each in their thread, edited in place, and
// further ones for a long answer. It keeps no state of its own, so any number of
// replicas may draw.
type Replies struct {
	Desk  Desk
	Runs  Runs
	API   *slackapi.Client
	Memos memo.Store
	Cards Cards
	Now   func() time.Time
	Lease time.Duration // of a claim, see [memo.Notes]

	Status *slackapi.StatusLine
	// Fulfillers are the agents that may give the results of external calls.
	Fulfillers blockkit.Fulfillers
	// Page returns the address at which people of the thread of a run open it on the
	// web; empty if there is none. It may be nil.
	Page func(run agentrun.Run) string
}

// Desk is what replies need of [approvals.Desk].
type Desk interface {
	Batch(ctx context.Context, id approvals.BatchID) (approvals.Batch, error)
}

// Runs is what a reply shows.
type Runs interface {
	Run(ctx context.Context, id approvals.RunID) (agentrun.Run, error)
	Thread(ctx context.Context, id agentrun.ThreadID) (agentrun.Thread, error)
}

// Cards says where a batch is shown.
type Cards interface {
	// LeadTo links to the card of the first open call, if it is posted.
	LeadTo(ctx context.Context, b approvals.Batch) []blockkit.Span
	// Listing reports whether a digest lists the batch instead of a card in its
	// thread, and links to the digest, if it is posted.
	Listing(ctx context.Context, b approvals.Batch) (link []blockkit.Span, listed bool)
}

// A Reply is one message of a run, and what it shows.
type Reply struct {
	Channel string    `json:"channel"`
	TS      string    `json:"ts"`
	Sum     string    `json:"sum"` // of the content
	At      time.Time `json:"at"`  // when it was drawn
}

// replies is the memo of a run.
type replies struct {
	Replies []Reply `json:"replies"`
	// Resumed says that the message of the run that this one resumes has been
	// brought up to date.
	Resumed bool `json:"resumed,omitempty"`
}

func (r *replies) set(i int, x Reply) {
	for len(r.Replies) <= i {
		r.Replies = append(r.Replies, Reply{})
	}
	r.Replies[i] = x
}

// outdate has every message of the run drawn again.
func (r *replies) outdate() {
	for i := range r.Replies {
		r.Replies[i].Sum = ""
	}
}

const (
	// editEvery is the least time between two edits of a message while its run is
	// working, and editBusy the same while Slack limits updates.
	editEvery = time.Second
	editBusy  = 30 * time.Second
)

func (r *Replies) notes() memo.Notes[replies] {
	return memo.Notes[replies]{Memos: r.Memos, Surface: "replies", Now: r.Now, Lease: r.Lease, Outdate: (*replies).outdate, Due: "replies"}
}

// Redraw makes the run due so that its messages are redrawn, whatever they show now.
func (r *Replies) Redraw(ctx context.Context, run approvals.RunID) error {
	return r.notes().Redraw(ctx, string(run))
}

// Reconcile makes the thread show what the run is doing or has answered. The due index
// calls it. A [*slackapi.LaterError] says when to try again; any other error is a
// failure.
func (r *Replies) Reconcile(ctx context.Context, id string) error {
	// The run is read after the record, so it is no older than what was drawn.
	ctx = r.Memos.Prefetch(ctx, approvals.Reads{
		Memos: []approvals.MemoKey{{ID: id, Surface: r.notes().Surface}}, Runs: []approvals.RunID{approvals.RunID(id)},
	})
	var run agentrun.Run
	ctx, h, err := r.notes().ClaimIf(ctx, id, func(body *replies) (_ approvals.Reads, err error) {
		if run, err = r.Runs.Run(ctx, approvals.RunID(id)); err != nil {
			return approvals.Reads{}, err
		}
		return approvals.Reads{}, r.mustWait(ctx, run, body)
	})
	if err != nil {
		return err
	}
	return h.Draw(ctx, func(ctx context.Context, h *memo.Claim[replies]) (int64, error) { return r.draw(ctx, h, run) })
}

// mustWait returns a [*slackapi.LaterError] if the message of the run shows its progress,
// is to say something else, and was edited a moment ago. Otherwise it returns nil.
func (r *Replies) mustWait(ctx context.Context, run agentrun.Run, body *replies) error {
	at := len(body.Replies) > 0 && body.Replies[0].TS != ""
	if !at || run.Parent != "" || finished(run) || run.Origin.Surface != ref.Surface {
		return nil
	}
	late := r.tooSoon(body.Replies[0])
	if late == nil {
		return nil
	}
	messages, err := r.messages(ctx, run)
	if err != nil || messages[0].Sum() == body.Replies[0].Sum {
		return err
	}
	return late
}

// tooSoon returns a [*slackapi.LaterError] within the least time between two edits of a
// message.
func (r *Replies) tooSoon(shown Reply) error {
	now, every := r.Now(), editEvery
	if r.API.Throttle.Busy(slackapi.PostUpdate, shown.Channel, now) {
		every = editBusy
	}
	if left := shown.At.Add(every).Sub(now); left > 0 {
		return &slackapi.LaterError{After: left, Err: errTooOften}
	}
	return nil
}

func (r *Replies) draw(ctx context.Context, h *memo.Claim[replies], run agentrun.Run) (int64, error) {
	if run.Origin.Surface != ref.Surface {
		return run.Version, nil
	}
	if run.Parent != "" && !finished(run) {
		// An edit notifies nobody. So the message of the run that this one resumes
		// shows its progress, and this one ends in a message of its own.
		return run.Version, r.Refresh(ctx, run.Parent)
	}
	messages, err := r.messages(ctx, run)
	if err != nil {
		return 0, err
	}
	for i, m := range messages {
		if err := r.show(ctx, h, run, i, m, finished(run)); err != nil {
			return 0, err
		}
	}
	// The run's own message comes first: another process that draws the resumed
	// run must not delay it.
	if run.Parent != "" && !h.Body.Resumed {
		if err := r.Refresh(ctx, run.Parent); err != nil {
			return 0, err
		}
		if err := h.Save(ctx, func(n *replies) { n.Resumed = true }); err != nil {
			return 0, err
		}
	}
	return run.Version, r.behind(ctx, run)
}

// Refresh updates the message of another run: one that was resumed and said that it
// waits, or one that waits for this run.
func (r *Replies) Refresh(ctx context.Context, id approvals.RunID) error {
	return r.notes().Reconcile(ctx, string(id), func(ctx context.Context, h *memo.Claim[replies]) (int64, error) {
		return 0, r.refresh(ctx, h, id)
	})
}

func (r *Replies) refresh(ctx context.Context, h *memo.Claim[replies], id approvals.RunID) error {
	run, err := r.Runs.Run(ctx, id)
	if err != nil {
		return err
	}
	if len(h.Body.Replies) == 0 {
		return nil // its own reconciliation posts it
	}
	messages, err := r.messages(ctx, run)
	if err != nil {
		return err
	}
	soon, before := finished(run), h.Body.Replies[0].Sum
	var resumed agentrun.Run
	if run.Status == agentrun.RunDeferred {
		if resumed, err = r.resumed(ctx, run); err != nil {
			return err
		}
		soon = resumed.ID == "" || finished(resumed)
	}
	if err := r.show(ctx, h, run, 0, messages[0], soon); err != nil {
		return err
	}
	if resumed.ID != "" && !finished(resumed) && h.Body.Replies[0].Sum != before {
		r.Status.Show(ctx, run.Origin.Channel, run.Origin.Root, worksWords(resumed))
	}
	return nil
}

// resumed returns the run that resumes this one, and the zero value if there is
// none yet.
func (r *Replies) resumed(ctx context.Context, run agentrun.Run) (agentrun.Run, error) {
	id, err := agentrun.ResumeRunID(run.Deferred)
	if err != nil {
		return agentrun.Run{}, fmt.Errorf("name the run that resumes %s: %w", run.ID, err)
	}
	resumed, err := r.Runs.Run(ctx, id)
	if errors.Is(err, approvals.ErrNotFound) {
		return agentrun.Run{}, nil
	}
	return resumed, err
}

// show posts or updates the i-th message of a run. Unless it is to be shown soon, an
// update waits for the least time between two edits of a message.
func (r *Replies) show(ctx context.Context, h *memo.Claim[replies], run agentrun.Run, i int, m blockkit.Message, soon bool) error {
	sum, now := m.Sum(), r.Now()
	m.LowPriority = !soon
	if i >= len(h.Body.Replies) || h.Body.Replies[i].TS == "" {
		ts, err := r.API.Post(ctx, run.Origin.Channel, run.Origin.Root, m)
		if err != nil {
			return fmt.Errorf("post message %d of run %s in %s: %w", i, run.ID, run.Origin.Channel, err)
		}
		posted := Reply{Channel: run.Origin.Channel, TS: ts, Sum: sum, At: now}
		return h.Save(ctx, func(n *replies) { n.set(i, posted) })
	}
	old := h.Body.Replies[i]
	if old.Sum == sum {
		return nil
	}
	if !soon {
		if err := r.tooSoon(old); err != nil {
			return err
		}
	}
	err := r.API.Update(ctx, old.Channel, old.TS, m)
	if slackapi.HasCode(err, slackapi.Gone...) {
		// Someone removed it, so it is posted again.
		old.TS, old.Sum = "", ""
		if err := h.Save(ctx, func(n *replies) { n.set(i, old) }); err != nil {
			return err
		}
		return r.show(ctx, h, run, i, m, soon)
	}
	if err != nil {
		return fmt.Errorf("redraw message %d of run %s: %w", i, run.ID, err)
	}
	old.Sum, old.At = sum, now
	return h.Save(ctx, func(n *replies) { n.set(i, old) })
}

var errTooOften = errors.New("the message changed a moment ago")

// finished reports whether what the run shows now is worth showing at once.
func finished(run agentrun.Run) bool {
	switch run.Status {
	case agentrun.RunWaiting, agentrun.RunQueued, agentrun.RunRunning:
		return false
	default:
		return true
	}
}
