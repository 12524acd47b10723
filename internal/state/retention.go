package state

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// RetentionOptions say how long threads are kept.
type RetentionOptions struct {
	// Age returns how long a thread is kept after its last use; 0 means for ever. It is
	// called every time, so the answer may change.
	Age func() time.Duration
	// Remains returns what must be kept of a run that is executed elsewhere. If it is
	// nil, nothing is kept.
	Remains func(ctx context.Context, r agentrun.Run) (agentrun.Remains, error)
}

// A Retention removes threads that nobody has used for a long time, with their messages,
// runs, journals, batches and arguments, and with the memos of surfaces about them. It
// keeps facts, and every thread in which anything is open, in doubt, due or parked,
// however old it is. A person who writes in the place of a removed thread begins a new
// one.
//
// A thread is removed in one commit. A thread that is too large for one is removed in
// several, its oldest runs first and the thread itself last, so that people can still use
// it in between.
type Retention struct {
	store *Store
	o     RetentionOptions
}

// NewRetention returns the retention of the store.
func NewRetention(s *Store, o RetentionOptions) *Retention {
	if o.Remains == nil {
		o.Remains = func(context.Context, agentrun.Run) (agentrun.Remains, error) { return agentrun.Remains{}, nil }
	}
	return &Retention{store: s, o: o}
}

const (
	// longestLook is the longest time between two looks at the idle threads of a
	// partition.
	longestLook = time.Hour
	// atOnce is how many threads one look removes at most, and nextLook the time until
	// the next look if there are more. People must not have to wait for removals.
	atOnce   = 50
	nextLook = 10 * time.Second
	// blocked is the time until the next look at a thread that is old enough and must
	// be kept.
	blocked = 24 * time.Hour
)

// A waitError says when to look again. It is not a failure.
type waitError struct{ after time.Duration }

func (e *waitError) Error() string             { return "nothing is to be removed yet" }
func (e *waitError) RetryAfter() time.Duration { return e.after }

// Reconcile removes idle threads of a partition, or takes a step of the search for
// those of older versions. The due index calls it.
func (r *Retention) Reconcile(ctx context.Context, id string) error {
	p, err := r.store.partitionOf(id)
	if err != nil {
		return err
	}
	if id == searchID {
		return r.search(ctx)
	}
	age := r.o.Age()
	if age <= 0 {
		return &waitError{longestLook}
	}
	now := r.store.now()
	old, err := r.store.idleThreads(ctx, p, now.Add(-age), atOnce)
	if err != nil {
		return err
	}
	removed := 0
	for _, e := range old {
		gone, err := r.remove(ctx, e, now, age)
		if err != nil {
			return err
		}
		if gone {
			removed++
		}
	}
	if removed > 0 {
		r.store.log.InfoContext(ctx, "idle threads removed", slog.Int("threads", removed), slog.Int("partition", p.n))
	}
	if len(old) == atOnce {
		return &waitError{nextLook}
	}
	first, err := r.store.firstIdle(ctx, p)
	if err != nil {
		return err
	}
	if first.IsZero() {
		return &waitError{longestLook}
	}
	return &waitError{min(max(first.Add(age).Sub(now), nextLook), longestLook)}
}

// remove removes a thread, or stores when to look at it again. It returns an error only
// if the store fails: a problem of one thread must not block the others.
func (r *Retention) remove(ctx context.Context, e entry, now time.Time, age time.Duration) (gone bool, err error) {
	until, err := r.removeThread(ctx, e, now, age)
	if stays, ok := errors.AsType[*staysError](err); ok {
		r.store.log.DebugContext(ctx, "an idle thread is kept", slog.String("thread", e.id), slog.String("why", stays.why))
		return false, r.store.moveIdle(ctx, e, now.Add(blocked-age))
	}
	switch {
	case err == nil && until.IsZero():
		return true, nil
	case err == nil:
		return false, r.store.moveIdle(ctx, e, until.Add(-age))
	case errors.Is(err, errUsedAgain):
		return false, r.store.moveIdle(ctx, e, time.Time{})
	case errors.Is(err, approvals.ErrConflict): // something in it is due or parked, or has just changed
		return false, r.store.moveIdle(ctx, e, now.Add(longestLook-age))
	}
	r.store.log.WarnContext(ctx, "cannot remove an idle thread; the next attempt is in a day", slog.String("thread", e.id), slog.Any("err", err))
	return false, r.store.moveIdle(ctx, e, now.Add(blocked-age))
}

// A staysError says why an old thread must be kept.
type staysError struct{ why string }

func (e *staysError) Error() string { return "the thread stays: " + e.why }

// errUsedAgain: the thread is not idle any more.
var errUsedAgain = errors.New("the thread is in use")
