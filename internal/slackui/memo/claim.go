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

// lease is how long a claim lasts at most after it was made or last saved. When the
// process that holds it is killed, nobody draws the record for that long. A call
// to Slack begins only in the first eighth of it, see [Claim.Draw], and so ends
// before it does.
const lease = slackapi.CallTimeout + 3*time.Second

// Claim makes the caller the only one who draws the document, until it releases
// the claim or the lease ends. While someone else holds the claim, Claim returns
// a [*slackapi.LaterError].
func (l Notes[T]) Claim(ctx context.Context, id string) (*Claim[T], error) {
	_, h, err := l.ClaimIf(ctx, id, func(*T) (approvals.Reads, error) { return approvals.Reads{}, nil })
	return h, err
}

// ClaimIf calls ready with the record, and then is [Notes.Claim]. What ready returns is
// read together with the claim, for the context that is returned. If ready returns an
// error, ClaimIf returns it and claims nothing, so that work that has to wait is put off
// cheaply.
func (l Notes[T]) ClaimIf(ctx context.Context, id string, ready func(body *T) (approvals.Reads, error)) (context.Context, *Claim[T], error) {
	n, version, err := l.Load(ctx, id)
	if err != nil {
		return ctx, nil, err
	}
	if err := l.Busy(&n); err != nil {
		return ctx, nil, err
	}
	reads, err := ready(&n.Body)
	if err != nil {
		return ctx, nil, err
	}
	ctx = l.Memos.Prefetch(ctx, reads)
	h := &Claim[T]{notes: l, ID: id, version: version, away: n.Away, Body: n.Body, owner: rand.Text(), mu: make(lock, 1)}
	if n.Owner != "" {
		h.settled = n.Until.Add(l.outlasts())
	}
	if err := h.commit(ctx, h.owner, 0); err != nil {
		if errors.Is(err, approvals.ErrConflict) {
			return ctx, nil, &slackapi.LaterError{After: lookAgain(0), Err: ErrBusy}
		}
		return ctx, nil, err
	}
	return ctx, h, nil
}

// Busy returns a [*slackapi.LaterError] while someone holds the claim of the record.
func (l Notes[T]) Busy(n *Record[T]) error {
	if left := n.Until.Sub(l.Memos.Time()); n.Owner != "" && left > 0 {
		return &slackapi.LaterError{After: min(left, lookAgain(l.lasts()-left)), Err: ErrBusy}
	}
	return nil
}

// lasts is how long a claim lasts.
func (l Notes[T]) lasts() time.Duration {
	if l.Lease <= 0 {
		return lease
	}
	return min(l.Lease, lease)
}

// noteFor is how long after the last save a claim need not be renewed: a call to Slack that
// begins within this time ends within a claim of eight seconds.
func (l Notes[T]) noteFor() time.Duration { return l.lasts() / 8 }

// outlasts is how long after the end of a claim a call to Slack may still arrive that its
// holder began in time.
func (l Notes[T]) outlasts() time.Duration { return lease - lease/8 - l.lasts() + l.noteFor() }

// lookAgain is how long to wait for a holder whose claim was last saved so long
// ago. Most drawings end within milliseconds, so the wait begins short and grows
// with the age of the claim.
func lookAgain(since time.Duration) time.Duration {
	return max(50*time.Millisecond, min(since, time.Second))
}

var (
	// ErrBusy says that someone else holds the claim.
	ErrBusy = errors.New("it is being drawn elsewhere")
	// ErrLost says that someone else has taken the claim of the caller, who was too slow.
	// It is an ErrBusy.
	ErrLost = fmt.Errorf("%w: the claim was taken over", ErrBusy)
)

// A Claim is the sole right to draw what a record is about. Body is the record as
// it was last read or saved.
type Claim[T any] struct {
	notes   Notes[T]
	ID      string
	owner   string
	away    int
	noted   []func(*T) // changes of Body that are not stored yet
	called  bool       // Slack was called under the claim
	settled time.Time  // when no call of the holder before arrives any more, who ended without releasing the claim
	Body    T

	mu      lock // of what follows, which renewals change, too
	version int64
	saved   time.Time // when the lease began
	lost    bool      // someone else has taken the claim
	added   bool      // the last step found a change by someone else
}

// A lock is a mutex that may be held for as long as the store takes. It is a channel, for
// whose holder testing/synctest lets the time pass while others wait.
type lock chan struct{}

func (l lock) Lock() { l <- struct{}{} }

func (l lock) Unlock() { <-l }

// within is Lock, but gives up when ctx ends.
func (l lock) within(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// old reports whether the claim must be renewed before Slack is called.
func (h *Claim[T]) old() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	since := h.notes.Now().Sub(h.saved)
	return since < 0 || since > h.notes.noteFor()
}

// fresh makes sure, right before a call to Slack, that most of the claim is ahead.
func (h *Claim[T]) fresh(ctx context.Context) error {
	if h.old() {
		if err := h.settle(ctx, func(*T) {}, h.owner, 0); err != nil {
			return err
		}
	}
	h.called = true
	return nil
}

// keep renews the claim until end is called, or it is lost. A call to Slack may take
// longer than a short claim lasts.
func (h *Claim[T]) keep(ctx context.Context) (end func()) {
	every, over := h.notes.lasts()/3, false
	h.mu.Lock()
	defer h.mu.Unlock()
	var next *time.Timer
	next = time.AfterFunc(every, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if over || h.lost || ctx.Err() != nil {
			return
		}
		h.renew() //nolint:contextcheck // what the drawing reads in advance is not for the renewal to take
		next.Reset(every)
	})
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		over = true
		next.Stop()
	}
}

// renew extends the claim, and leaves the rest of what is stored as it is. It is called
// with the lock. An error of the store is for the next step of the drawing to find.
func (h *Claim[T]) renew() {
	ctx, cancel := context.WithTimeout(context.Background(), h.notes.lasts())
	defer cancel()
	l := Notes[json.RawMessage]{Memos: h.notes.Memos, Surface: h.notes.Surface}
	n, version, err := l.Load(ctx, h.ID)
	if err != nil {
		return
	}
	if n.Owner != h.owner {
		h.lost = true
		return
	}
	now := h.notes.Now()
	n.Until = h.notes.Memos.Time().Add(h.notes.lasts())
	if l.Store(ctx, h.ID, n, version, 0) != nil {
		return
	}
	h.saved = now
	if h.version == version { // otherwise someone has changed the record, and the next save takes that over
		h.version++
	}
}

// Note changes the record like Save, and the next Save, Release or Abandon stores the
// change. It stores it at once if the claim must be renewed. If this process is killed
// before, the change is lost: Note is for work that may be repeated. change may run more
// than once.
func (h *Claim[T]) Note(ctx context.Context, change func(*T)) error {
	if h.old() {
		return h.Save(ctx, change)
	}
	change(&h.Body)
	h.away = 0
	h.noted = append(h.noted, change)
	return nil
}

// Save changes the record and renews the claim. change may run more than once.
func (h *Claim[T]) Save(ctx context.Context, change func(*T)) error {
	change(&h.Body)
	h.away = 0
	return h.settle(ctx, change, h.owner, 0)
}

// Release ends the claim. drawn is the version of the document that is now shown
// completely, or 0 if it is not. Where the claim was taken over from a process that may
// have died in a call to Slack, everything is to be drawn once more when that call cannot
// arrive any more, and Release returns a [*slackapi.LaterError].
func (h *Claim[T]) Release(ctx context.Context, drawn int64) error {
	h.away = 0
	return h.release(ctx, drawn)
}

func (h *Claim[T]) release(ctx context.Context, drawn int64) error {
	left := h.settled.Sub(h.notes.Memos.Time())
	if left <= 0 || h.notes.Outdate == nil {
		return h.settle(ctx, func(*T) {}, "", drawn)
	}
	h.notes.Outdate(&h.Body)
	if err := h.settle(ctx, h.notes.Outdate, "", 0); err != nil {
		return err
	}
	return &slackapi.LaterError{After: left, Err: errUnsettled}
}

// settle stores the record with the owner. If others have changed it meanwhile, it
// applies change to what they stored and tries again.
func (h *Claim[T]) settle(ctx context.Context, change func(*T), owner string, drawn int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost {
		return errLost()
	}
	h.added = false
	for range Attempts {
		err := h.commit(ctx, owner, drawn)
		if !errors.Is(err, approvals.ErrConflict) {
			return err
		}
		n, version, err := h.notes.Load(ctx, h.ID)
		if err != nil {
			return err
		}
		if n.Owner != h.owner {
			h.lost = true
			return errLost()
		}
		h.Body, h.version, h.added = n.Body, version, true
		for _, noted := range h.noted {
			noted(&h.Body)
		}
		change(&h.Body)
		if drawn > 0 && owner == "" {
			drawn = 0 // what others have added is not drawn yet
		}
	}
	return fmt.Errorf("save the %s memo of %s: %w", h.notes.Surface, h.ID, approvals.ErrConflict)
}

func (h *Claim[T]) commit(ctx context.Context, owner string, drawn int64) error {
	n := Record[T]{Owner: owner, Away: h.away, Body: h.Body}
	now := h.notes.Now()
	if owner != "" {
		n.Until = h.notes.Memos.Time().Add(h.notes.lasts())
	}
	if err := h.notes.Store(ctx, h.ID, n, h.version, drawn); err != nil {
		return err
	}
	h.version++
	h.saved, h.noted = now, nil
	return nil
}

// Abandon ends the claim after cause, so that the next attempt need not wait for
// the lease, and returns the error for the due index. If the claim cannot be ended
// in the store, its lease ends it. A [*slackapi.LaterError] ends at once if someone else
// has changed the record meanwhile: what they added is not drawn yet.
func (h *Claim[T]) Abandon(ctx context.Context, cause error) error {
	if later, ok := errors.AsType[*slackapi.LaterError](cause); ok && later.Outage {
		// Each record waits longer after each outage of its own, and an outage
		// never counts as a failure of the work.
		cause = &slackapi.LaterError{After: slackapi.WaitAfter(h.away), Err: cause}
		h.away++
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = h.release(ctx, 0)
	if later, ok := errors.AsType[*slackapi.LaterError](cause); ok && h.added {
		soon := *later
		soon.After = min(later.After, lookAgain(0))
		return &soon
	}
	return cause
}

// errUnsettled says that what the holder before began to send may arrive later than what
// is drawn now.
var errUnsettled = errors.New("the process that drew it before may have sent something")

func errLost() error { return &slackapi.LaterError{After: time.Second, Err: ErrLost} }

// Reconcile claims the record of a document and draws it, see [Claim.Draw].
func (l Notes[T]) Reconcile(ctx context.Context, id string, draw func(context.Context, *Claim[T]) (int64, error)) error {
	h, err := l.Claim(ctx, id)
	if err != nil {
		return err
	}
	return h.Draw(ctx, draw)
}

// Draw calls draw, which returns the version of the document that is drawn now. The
// claim is released with that version, or abandoned with draw's error.
//
// In the context of draw, messages are sent to Slack only while the claim lasts for the
// call. If the process freezes right before it sends one, another process may draw
// something newer meanwhile, and Slack accepts the old message after it. The claim turns
// out to be lost then, and Draw has the record drawn again.
func (h *Claim[T]) Draw(ctx context.Context, draw func(context.Context, *Claim[T]) (int64, error)) error {
	end := h.keep(ctx)
	version, err := draw(slackapi.Guarded(ctx, h.fresh), h)
	end()
	if err != nil {
		err = h.Abandon(ctx, err)
	} else {
		err = h.Release(ctx, version)
	}
	if h.lost && h.called && h.notes.Outdate != nil {
		return errors.Join(errLost(), h.notes.redraw(ctx, h.ID))
	}
	return err
}
