package agentrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// A claim is one worker's hold on one run. Every change of the run goes through
// it, so that the loop and the renewal of the lease do not race each other.
type claim struct {
	store Store
	now   func() time.Time
	time  func(context.Context) (time.Time, error) // by which leases are judged
	lease time.Duration
	log   *slog.Logger
	fence Fence
	id    approvals.RunID

	ends atomic.Pointer[time.Time] // by the clock of this process, also of a lease whose renewal may be lost with the store's machine

	mu      lock      // guards what follows, also while a commit is under way
	run     Run       // as stored
	thread  Thread    // as stored when it was last read
	renewed time.Time // when, by the clock of this process
	drawn   time.Time // when a commit had surfaces draw the run
	behind  bool      // it has changed since in what they show

	made *made // nil if the run was there before
}

// A made run was stored with its claim: all that the store has of it is known.
type made struct {
	history []Message
	lineage lineage
	used    atomic.Bool // its work has begun
}

// newClaim returns a claim that is not stored.
func (r *Runner) newClaim(id approvals.RunID) *claim {
	return &claim{
		store: r.c.Store, now: r.c.Now, time: r.c.LeaseTime, lease: r.c.Lease, log: r.c.Log, fence: r.c.NewFence(), id: id, mu: newLock(),
	}
}

// on returns the run as the claim is to be stored in it.
func (c *claim) on(run Run, now clocks) Run {
	run.Status, run.Owner, run.LeaseEnds = RunRunning, c.fence, now.store.Add(c.lease)
	return run
}

// taken notes that the claim is stored in the run, or will be when it is used.
func (c *claim) taken(run Run, thread Thread, now clocks) {
	run.Version++
	c.run, c.thread, c.renewed, c.drawn = run, thread, now.here, now.here
	c.ends.Store(new(now.here.Add(c.lease)))
}

// A lock is a mutex that may be held for as long as the store takes. It is a channel, so
// that in testing/synctest time passes for its holder while others wait.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

// Lock waits for the lock and takes it.
func (l lock) Lock() { l <- struct{}{} }

// lockFor waits for the lock no longer than until ctx ends, which is an error.
func (l lock) lockFor(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Unlock gives it back.
func (l lock) Unlock() { <-l }

// snapshot returns the run as it is stored.
func (c *claim) snapshot() Run {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.run
}

// commit stores what change makes of the run, and renews the lease with it.
// change sets the commit's Thread, to t, if it changes the thread. If the
// thread has changed in between, change is called again with the new one.
func (c *claim) commit(ctx context.Context, change func(r *Run, t *Thread, out *Commit) error) error {
	if err := c.mu.lockFor(ctx); err != nil {
		return fmt.Errorf("commit run %s: %w", c.id, err)
	}
	defer c.mu.Unlock()
	for range maxConflicts {
		run, thread, out := c.run, c.thread, Commit{}
		run.Activity, thread.Queue = slices.Clone(run.Activity), slices.Clone(thread.Queue)
		renewed := c.now() // before the store says its time: the lease is never taken for longer than it is
		at := c.leaseTime(ctx)
		run.LeaseEnds = at.Add(c.lease)
		if err := change(&run, &thread, &out); err != nil {
			return err
		}
		out.Runs = append(out.Runs, run)
		behind := c.behind || looksOther(c.run, run)
		out.Undrawn = run.Status == RunRunning && (!behind || renewed.Sub(c.drawn) < drawEvery)
		err := c.store.Commit(ctx, out)
		if err == nil || errors.Is(err, approvals.ErrNotDurable) {
			c.ends.Store(new(renewed.Add(c.lease)))
		}
		if err == nil {
			run.Version++
			c.run, c.renewed, c.behind = run, renewed, behind && out.Undrawn
			if !out.Undrawn {
				c.drawn = renewed
			}
			if out.Thread != nil {
				thread.Version++
				c.thread = thread
			}
			return nil
		}
		if !errors.Is(err, approvals.ErrConflict) {
			return err
		}
		if err := c.reload(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("commit run %s: %w", c.run.ID, approvals.ErrConflict)
}

// drawEvery is how often surfaces draw the progress of a run at most. That is about how
// often they may edit a message, while a step may take milliseconds.
const drawEvery = time.Second

// looksOther reports whether surfaces show something else of a run that goes on.
func looksOther(a, b Run) bool {
	return a.Status != b.Status || a.Steps != b.Steps || !slices.Equal(a.Activity, b.Activity)
}

// overdue reports whether the run has changed a while ago, and surfaces have not drawn that.
// While a commit is under way, it is not known.
func (c *claim) overdue() bool {
	select {
	case c.mu <- struct{}{}:
	default:
		return false
	}
	defer c.mu.Unlock()
	return c.behind && c.now().Sub(c.drawn) >= drawEvery
}

// maxConflicts is how often a commit is tried when others change the same
// documents.
const maxConflicts = 20

// retryConflicts tries until the error is not a conflict, at most maxConflicts times.
func retryConflicts(try func(attempt int) error) error {
	var err error
	for attempt := range maxConflicts {
		if err = try(attempt); !errors.Is(err, approvals.ErrConflict) {
			return err
		}
	}
	return err
}

// reload reads run and thread again, after a conflict. A run that still carries
// this worker's fence was last written by it, in a commit whose reply was lost.
func (c *claim) reload(ctx context.Context) error {
	run, err := c.store.Run(ctx, c.run.ID)
	if err != nil {
		return err
	}
	if run.Owner != c.fence || run.Status != RunRunning {
		return errClaimLost
	}
	c.run = run
	c.thread, err = c.store.Thread(ctx, run.Thread)
	return err
}

// hold renews the lease until ctx ends or the claim is lost; then it cancels what runs
// under the claim. It also makes surfaces draw what commits left undrawn.
func (c *claim) hold(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(c.lease / 4)
	defer tick.Stop()
	draw := time.NewTicker(drawEvery)
	defer draw.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-draw.C:
			if !c.overdue() {
				continue
			}
		}
		before := c.ends.Load()
		if err := c.renew(ctx); err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "claim lost", slog.String("run", string(c.id)), slog.Any("err", err))
			cancel(errClaimLost)
			return
		}
		if c.ends.Load() != before {
			tick.Reset(c.lease / 4)
		}
	}
}

// renew extends the lease. An error of the store is ignored until the lease is
// over.
func (c *claim) renew(ctx context.Context) error {
	err := c.extendInTime(ctx)
	if err == nil || errors.Is(err, errClaimLost) || errors.Is(err, approvals.ErrConflict) {
		return err
	}
	if c.lasts() {
		return nil
	}
	return err
}

// lasts reports whether the lease is not over, by the clock of this process.
func (c *claim) lasts() bool { return c.now().Before(*c.ends.Load()) }

// leaseTime is the time by which the lease is renewed. A store that does not say
// it does not take the renewal either.
func (c *claim) leaseTime(ctx context.Context) time.Time {
	at, _ := c.time(ctx)
	if at.IsZero() {
		return c.now()
	}
	return at
}

// fresh makes sure that no more than half of the lease is gone: an execution
// may begin only then.
func (c *claim) fresh(ctx context.Context) error {
	c.mu.Lock()
	stale := c.now().Sub(c.renewed) > c.lease/2
	c.mu.Unlock()
	if !stale {
		return nil
	}
	return c.extend(ctx)
}

// extend stores the run with a new lease, and as it is otherwise.
func (c *claim) extend(ctx context.Context) error {
	return c.commit(ctx, func(*Run, *Thread, *Commit) error { return nil })
}

// extendInTime is extend, and does not wait for a store that hangs: what runs under the
// claim has to stop at the end of the lease. A lease that is over may still be extended,
// if nobody has taken the run.
func (c *claim) extendInTime(ctx context.Context) error {
	left := c.ends.Load().Sub(c.now())
	if left <= 0 {
		left = c.lease / 4
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	return c.extend(ctx)
}
