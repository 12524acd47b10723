package slackui

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// Replies draws runs: one message each in their thread, edited in place, and
// further ones for a long answer. It holds nothing; any number of replicas may
// draw.
type Replies struct {
	desk  deliveryDesk
	runs  deliveryRuns
	api   *api
	memos memos
	cards *Cards
	now   func() time.Time
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

const (
	// editEvery is how often a message may change while its run is working, and
	// editBusy is when there is much to tell: then only where it ends is told soon.
	editEvery = time.Second
	editBusy  = 30 * time.Second
)

func (r *Replies) ledger() ledger[replies] {
	return ledger[replies]{memos: r.memos, surface: "replies", now: r.now}
}

// Reconcile makes the thread say what the run is doing or has answered. It is
// what the due index calls. A [*LaterError] says when to look again; any other
// error is a failure.
func (r *Replies) Reconcile(ctx context.Context, id string) error {
	h, err := r.ledger().claim(ctx, id)
	if err != nil {
		return err
	}
	version, err := r.draw(ctx, h, approvals.RunID(id))
	if err != nil {
		return h.abandon(ctx, err)
	}
	return h.release(ctx, version)
}

func (r *Replies) draw(ctx context.Context, h *held[replies], id approvals.RunID) (int64, error) {
	run, err := r.runs.Run(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("load run %s: %w", id, err)
	}
	if run.Origin.Surface != surface {
		return run.Version, nil
	}
	messages, err := r.messages(ctx, run)
	if err != nil {
		return 0, err
	}
	for i, m := range messages {
		if err := r.show(ctx, h, run, i, m); err != nil {
			return 0, err
		}
	}
	// People wait for what the run itself says. Whoever still draws another
	// run must not keep that from them, so the others come afterwards.
	if run.Parent != "" && !h.body.Resumed {
		if err := r.refresh(ctx, run.Parent); err != nil {
			return 0, err
		}
		if err := h.save(ctx, func(n *replies) { n.Resumed = true }); err != nil {
			return 0, err
		}
	}
	return run.Version, r.behind(ctx, run)
}

// refresh brings the message of another run up to date: of one that is resumed,
// which said that it was waiting, or of one that waits for this.
func (r *Replies) refresh(ctx context.Context, id approvals.RunID) error {
	h, err := r.ledger().claim(ctx, string(id))
	if err != nil {
		return err
	}
	defer func() { _ = h.abandon(ctx, nil) }()
	run, err := r.runs.Run(ctx, id)
	if err != nil {
		return fmt.Errorf("load run %s: %w", id, err)
	}
	if len(h.body.Replies) == 0 {
		return nil // its own turn will come
	}
	messages, err := r.messages(ctx, run)
	if err != nil {
		return err
	}
	return r.show(ctx, h, run, 0, messages[0])
}

func (r *Replies) show(ctx context.Context, h *held[replies], run agentrun.Run, i int, m message) error {
	sum, now := m.sum(), r.now()
	m.calm = !finished(run)
	if i >= len(h.body.Replies) || h.body.Replies[i].TS == "" {
		ts, err := r.api.post(ctx, run.Origin.Channel, run.Origin.Root, m)
		if err != nil {
			return fmt.Errorf("post message %d of run %s in %s: %w", i, run.ID, run.Origin.Channel, err)
		}
		posted := Reply{Channel: run.Origin.Channel, TS: ts, Sum: sum, At: now}
		return h.save(ctx, func(n *replies) { n.set(i, posted) })
	}
	old := h.body.Replies[i]
	if old.Sum == sum {
		return nil
	}
	every := editEvery
	if r.api.paused.busy(postUpdate, old.Channel, now) {
		every = editBusy
	}
	if left := old.At.Add(every).Sub(now); left > 0 && !finished(run) {
		return &LaterError{After: left, Err: errTooOften}
	}
	err := r.api.update(ctx, old.Channel, old.TS, m)
	if hasCode(err, gone...) {
		// Somebody removed it. What the run ends with is worth saying again.
		old.TS, old.Sum = "", ""
		if err := h.save(ctx, func(n *replies) { n.set(i, old) }); err != nil {
			return err
		}
		return r.show(ctx, h, run, i, m)
	}
	if err != nil {
		return fmt.Errorf("redraw message %d of run %s: %w", i, run.ID, err)
	}
	old.Sum, old.At = sum, now
	return h.save(ctx, func(n *replies) { n.set(i, old) })
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

// sum tells contents apart.
func (m message) sum() string {
	raw, err := json.Marshal(struct {
		Text   string
		Blocks any
	}{m.text, m.blocks})
	if err != nil {
		return ""
	}
	h := sha256.Sum256(raw)
	return hex.EncodeToString(h[:12])
}
