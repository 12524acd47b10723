package agentrun

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/approvals"
)

// Config is what a [Runner] works with. All fields but Ledger, NewFence,
// LeaseTime, Lease, Parallel, Log, Rollout, PerAgent, PerRequester, Watchers, Deliver
// and DeliverReads are required.
type Config struct {
	Store    Store
	Policy   approvals.Policy
	Ledger   Ledger // of the calls that were allowed to run, for a policy that counts them
	Agents   func(name string) (Agent, bool)
	Now      func() time.Time
	NewFence func() Fence // nil: random
	// LeaseTime is the time by which leases are judged, the same for all runners
	// of a store. With an error that comes with a time nothing is claimed, and what
	// is held goes on; nil: Now.
	LeaseTime func(ctx context.Context) (time.Time, error)
	Lease     time.Duration // how long a claim lasts without renewal; 0 means 30 s
	Parallel  int           // calls of one step that run at the same time; 0 means 8
	Log       *slog.Logger

	// Rollout is how long a new run waits for a runner that has its agent, and the tools
	// of its approved calls; Work returns an error meanwhile. While replicas are replaced
	// one by one, the older ones do not know what people were asked about by the newer
	// ones. Afterwards, and with 0, the agent or the tool does not exist.
	Rollout time.Duration

	// PerAgent and PerRequester are how many runs of one agent and of one person Work
	// works on at the same time; it returns a [*BusyError] for others. 0 is no bound.
	PerAgent, PerRequester int

	// Watchers see responses while models write them; nil: nobody does.
	Watchers Watchers

	// Deliver says who is given the answers of remote runs, by executor.
	Deliver map[approvals.Executor]Deliverer
	// DeliverReads names the memos that a Deliverer reads first about a run, so that they
	// are read together with it; may be nil.
	DeliverReads func(run approvals.RunID) []approvals.MemoKey
}

// DefaultLease is how long a claim lasts without renewal if nothing else is said.
const DefaultLease = 30 * time.Second

// A Runner runs agents. It holds no run: everything between two steps is in the
// store, and any runner can continue it.
type Runner struct {
	c        Config
	places   *places
	draining chan struct{}
	drain    func()
}

// NewRunner returns a runner.
func NewRunner(c Config) *Runner {
	if c.NewFence == nil {
		c.NewFence = func() Fence { return Fence(uuid.NewString()) }
	}
	if c.Lease <= 0 {
		c.Lease = DefaultLease
	}
	if c.LeaseTime == nil {
		c.LeaseTime = func(context.Context) (time.Time, error) { return c.Now(), nil }
	}
	if c.Parallel <= 0 {
		c.Parallel = 8
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	draining := make(chan struct{})
	return &Runner{c: c, places: newPlaces(c.PerAgent, c.PerRequester), draining: draining, drain: sync.OnceFunc(func() { close(draining) })}
}

// rollingOut reports whether another runner may have what this one does not know.
func (r *Runner) rollingOut(run Run) bool { return r.c.Now().Before(run.CreatedAt.Add(r.c.Rollout)) }

// Drain makes every Work return at its next commit, the run released for
// another worker to claim at once. It does not wait.
func (r *Runner) Drain() { r.drain() }

func (r *Runner) isDraining() bool {
	select {
	case <-r.draining:
		return true
	default:
		return false
	}
}
