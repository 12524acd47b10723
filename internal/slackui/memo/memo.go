package memo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// lease is how long a claim lasts without a sign of life, which is how long a
// card stands still when the process that draws it is killed. Every call to Slack
// under it is shorter, and every saved step renews it.
const lease = slackapi.CallTimeout + 3*time.Second

// Attempts bounds how often a lost race for a memo is tried again.
const Attempts = 8

// A Record is what a memo holds: who draws now, how often Slack was away since
// the last step that worked, and what is drawn.
type Record[T any] struct {
	Owner string    `json:"owner,omitempty"`
	Until time.Time `json:"until,omitzero"`
	Away  int       `json:"away,omitempty"`
	Body  T         `json:"body"`
}

// A Notes keeps notes beside the documents of one kind.
type Notes[T any] struct {
	Memos   Store
	Surface string
	Now     func() time.Time
}

// Load returns the record beside a document and its version, which is 0 if there is none.
func (l Notes[T]) Load(ctx context.Context, id string) (Record[T], int64, error) {
	var n Record[T]
	raw, version, err := l.Memos.Memo(ctx, id, l.Surface)
	if errors.Is(err, approvals.ErrNotFound) {
		return n, 0, nil
	}
	if err != nil {
		return n, 0, fmt.Errorf("load the %s memo of %s: %w", l.Surface, id, err)
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &n); err != nil {
			return n, version, fmt.Errorf("%w: the %s memo of %s: %w", ErrUnreadable, l.Surface, id, err)
		}
	}
	return n, version, nil
}

// ErrUnreadable is of a memo that the store has, and that makes no sense.
var ErrUnreadable = errors.New("cannot be read")

// Store keeps a record if the stored one still has the version. drawn > 0 also removes the due entry of the surface, if the document still has that version.
func (l Notes[T]) Store(ctx context.Context, id string, n Record[T], version, drawn int64) error {
	raw, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("write the %s memo of %s: %w", l.Surface, id, err)
	}
	if err := l.Memos.CommitMemo(ctx, id, l.Surface, raw, version, drawn); err != nil {
		return fmt.Errorf("commit the %s memo of %s: %w", l.Surface, id, err)
	}
	return nil
}

// Edit changes a note whoever has claimed it. The one who has will find the
// change when it saves.
func (l Notes[T]) Edit(ctx context.Context, id string, change func(*T)) error {
	for range Attempts {
		n, version, err := l.Load(ctx, id)
		if err != nil {
			return err
		}
		change(&n.Body)
		err = l.Store(ctx, id, n, version, 0)
		if !errors.Is(err, approvals.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("change the %s memo of %s: %w", l.Surface, id, approvals.ErrConflict)
}

// Claim makes the caller the only one who draws the document, until release or
// until the lease is over. If somebody else is, it is a [*LaterError].
func (l Notes[T]) Claim(ctx context.Context, id string) (*Claim[T], error) {
	n, version, err := l.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	if left := n.Until.Sub(l.Now()); n.Owner != "" && left > 0 {
		return nil, &slackapi.LaterError{After: min(left, lookAgain(lease-left)), Err: ErrBusy}
	}
	h := &Claim[T]{ledger: l, Id: id, version: version, away: n.Away, Body: n.Body, owner: rand.Text()}
	if err := h.commit(ctx, h.owner, 0); err != nil {
		if errors.Is(err, approvals.ErrConflict) {
			return nil, &slackapi.LaterError{After: lookAgain(0), Err: ErrBusy}
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

// ErrBusy is that somebody else has claimed the record.
var ErrBusy = errors.New("somebody else is drawing it")

// Claim is a claimed note.
type Claim[T any] struct {
	ledger  Notes[T]
	Id      string
	owner   string
	version int64
	away    int
	Body    T
}

// Save changes the note and renews the claim. change may run more than once.
func (h *Claim[T]) Save(ctx context.Context, change func(*T)) error {
	change(&h.Body)
	h.away = 0
	return h.settle(ctx, change, h.owner, 0)
}

// Release gives the claim up. drawn is the version of the document that is
// now shown completely, 0 if it is not.
func (h *Claim[T]) Release(ctx context.Context, drawn int64) error {
	h.away = 0
	return h.settle(ctx, func(*T) {}, "", drawn)
}

func (h *Claim[T]) settle(ctx context.Context, change func(*T), owner string, drawn int64) error {
	for range Attempts {
		err := h.commit(ctx, owner, drawn)
		if !errors.Is(err, approvals.ErrConflict) {
			return err
		}
		n, version, err := h.ledger.Load(ctx, h.Id)
		if err != nil {
			return err
		}
		if n.Owner != h.owner {
			return &slackapi.LaterError{After: time.Second, Err: ErrBusy}
		}
		h.Body, h.version = n.Body, version
		change(&h.Body)
		if drawn > 0 && owner == "" {
			drawn = 0 // what was added meanwhile has not been drawn
		}
	}
	return fmt.Errorf("save the %s memo of %s: %w", h.ledger.Surface, h.Id, approvals.ErrConflict)
}

func (h *Claim[T]) commit(ctx context.Context, owner string, drawn int64) error {
	n := Record[T]{Owner: owner, Away: h.away, Body: h.Body}
	if owner != "" {
		n.Until = h.ledger.Now().Add(lease)
	}
	if err := h.ledger.Store(ctx, h.Id, n, h.version, drawn); err != nil {
		return err
	}
	h.version++
	return nil
}

// Abandon gives the claim up after cause, so that the next attempt need not
// wait for the lease, and returns what to tell the due index. It is best effort.
func (h *Claim[T]) Abandon(ctx context.Context, cause error) error {
	if later, ok := errors.AsType[*slackapi.LaterError](cause); ok && later.Outage {
		// Every card and reply meets the same outage: they wait longer each
		// time, and each for itself, and none is ever given up.
		cause = &slackapi.LaterError{After: slackapi.WaitAfter(h.away), Err: cause}
		h.away++
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = h.settle(ctx, func(*T) {}, "", 0)
	return cause
}

// Store keeps bytes of ours beside a document. CommitMemo stores them if the
// memo still has the version (0: there is none), otherwise it is
// [approvals.ErrConflict]. drawn > 0 also removes the due entry of the surface
// if the document still has that version. Confirm returns once everything near
// the document is durable: a memo alone may be lost with the store's machine.
type Store interface {
	Memo(ctx context.Context, id, surface string) (data []byte, version int64, err error)
	CommitMemo(ctx context.Context, id, surface string, data []byte, version, drawn int64) error
	Confirm(ctx context.Context, id string) error
}

// Reconcile claims the record of a document for draw, which returns the version
// of the document that is drawn now. The claim is released with that version, or
// abandoned with draw's error.
func (l Notes[T]) Reconcile(ctx context.Context, id string, draw func(context.Context, *Claim[T]) (int64, error)) error {
	h, err := l.Claim(ctx, id)
	if err != nil {
		return err
	}
	version, err := draw(ctx, h)
	if err != nil {
		return h.Abandon(ctx, err)
	}
	return h.Release(ctx, version)
}
