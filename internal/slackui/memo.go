package slackui

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// lease is how long a claim lasts without a sign of life, which is how long a
// card stands still when the process that draws it is killed. Every call to Slack
// under it is shorter, and every saved step renews it.
const lease = callTimeout + 3*time.Second

// attempts bounds how often a lost race for a memo is tried again.
const attempts = 8

// A note is what a memo holds: who draws now, how often Slack was away since
// the last step that worked, and what is drawn.
type note[T any] struct {
	Owner string    `json:"owner,omitempty"`
	Until time.Time `json:"until,omitzero"`
	Away  int       `json:"away,omitempty"`
	Body  T         `json:"body"`
}

// A ledger keeps notes beside the documents of one kind.
type ledger[T any] struct {
	memos   memos
	surface string
	now     func() time.Time
}

func (l ledger[T]) load(ctx context.Context, id string) (note[T], int64, error) {
	var n note[T]
	raw, version, err := l.memos.Memo(ctx, id, l.surface)
	if errors.Is(err, approvals.ErrNotFound) {
		return n, 0, nil
	}
	if err != nil {
		return n, 0, fmt.Errorf("load the %s memo of %s: %w", l.surface, id, err)
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &n); err != nil {
			return n, version, fmt.Errorf("%w: the %s memo of %s: %w", errUnreadable, l.surface, id, err)
		}
	}
	return n, version, nil
}

// errUnreadable is of a memo that the store has, and that makes no sense.
var errUnreadable = errors.New("cannot be read")

func (l ledger[T]) store(ctx context.Context, id string, n note[T], version, drawn int64) error {
	raw, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("write the %s memo of %s: %w", l.surface, id, err)
	}
	if err := l.memos.CommitMemo(ctx, id, l.surface, raw, version, drawn); err != nil {
		return fmt.Errorf("commit the %s memo of %s: %w", l.surface, id, err)
	}
	return nil
}

// edit changes a note whoever has claimed it. The one who has will find the
// change when it saves.
func (l ledger[T]) edit(ctx context.Context, id string, change func(*T)) error {
	for range attempts {
		n, version, err := l.load(ctx, id)
		if err != nil {
			return err
		}
		change(&n.Body)
		err = l.store(ctx, id, n, version, 0)
		if !errors.Is(err, approvals.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("change the %s memo of %s: %w", l.surface, id, approvals.ErrConflict)
}

// claim makes the caller the only one who draws the document, until release or
// until the lease is over. If somebody else is, it is a [*LaterError].
func (l ledger[T]) claim(ctx context.Context, id string) (*held[T], error) {
	n, version, err := l.load(ctx, id)
	if err != nil {
		return nil, err
	}
	if left := n.Until.Sub(l.now()); n.Owner != "" && left > 0 {
		return nil, &LaterError{After: min(left, lookAgain(lease-left)), Err: errBusy}
	}
	h := &held[T]{ledger: l, id: id, version: version, away: n.Away, body: n.Body, owner: rand.Text()}
	if err := h.commit(ctx, h.owner, 0); err != nil {
		if errors.Is(err, approvals.ErrConflict) {
			return nil, &LaterError{After: lookAgain(0), Err: errBusy}
		}
		return nil, err
	}
	return h, nil
}

// lookAgain is how long to wait for somebody who claimed the document, or saved
// a step, so long ago: most drawings are over in a moment, and few take
// seconds.
func lookAgain(since time.Duration) time.Duration {
	return max(50*time.Millisecond, min(since, time.Second))
}

var errBusy = errors.New("somebody else is drawing it")

// held is a claimed note.
type held[T any] struct {
	ledger  ledger[T]
	id      string
	owner   string
	version int64
	away    int
	body    T
}

// save changes the note and renews the claim. change may run more than once.
func (h *held[T]) save(ctx context.Context, change func(*T)) error {
	change(&h.body)
	h.away = 0
	return h.settle(ctx, change, h.owner, 0)
}

// release gives the claim up. drawn is the version of the document that is
// now shown completely, 0 if it is not.
func (h *held[T]) release(ctx context.Context, drawn int64) error {
	h.away = 0
	return h.settle(ctx, func(*T) {}, "", drawn)
}

func (h *held[T]) settle(ctx context.Context, change func(*T), owner string, drawn int64) error {
	for range attempts {
		err := h.commit(ctx, owner, drawn)
		if !errors.Is(err, approvals.ErrConflict) {
			return err
		}
		n, version, err := h.ledger.load(ctx, h.id)
		if err != nil {
			return err
		}
		if n.Owner != h.owner {
			return &LaterError{After: time.Second, Err: errBusy}
		}
		h.body, h.version = n.Body, version
		change(&h.body)
		if drawn > 0 && owner == "" {
			drawn = 0 // what was added meanwhile has not been drawn
		}
	}
	return fmt.Errorf("save the %s memo of %s: %w", h.ledger.surface, h.id, approvals.ErrConflict)
}

func (h *held[T]) commit(ctx context.Context, owner string, drawn int64) error {
	n := note[T]{Owner: owner, Away: h.away, Body: h.body}
	if owner != "" {
		n.Until = h.ledger.now().Add(lease)
	}
	if err := h.ledger.store(ctx, h.id, n, h.version, drawn); err != nil {
		return err
	}
	h.version++
	return nil
}

// abandon gives the claim up after cause, so that the next attempt need not
// wait for the lease, and returns what to tell the due index. It is best effort.
func (h *held[T]) abandon(ctx context.Context, cause error) error {
	if later, ok := errors.AsType[*LaterError](cause); ok && later.outage {
		// Every card and reply meets the same outage: they wait longer each
		// time, and each for itself, and none is ever given up.
		cause = &LaterError{After: waitAfter(h.away), Err: cause}
		h.away++
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = h.settle(ctx, func(*T) {}, "", 0)
	return cause
}

// memos keeps bytes of ours beside a document. CommitMemo stores them if the
// memo still has the version (0: there is none), otherwise it is
// [approvals.ErrConflict]. drawn > 0 also removes the due entry of the surface
// if the document still has that version. Confirm returns once everything near
// the document is durable: a memo alone may be lost with the store's machine.
type memos interface {
	Memo(ctx context.Context, id, surface string) (data []byte, version int64, err error)
	CommitMemo(ctx context.Context, id, surface string, data []byte, version, drawn int64) error
	Confirm(ctx context.Context, id string) error
}
