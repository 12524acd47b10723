package agentrun

import (
	"context"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// An Agent is a model with instructions, tools and limits.
type Agent struct {
	Name         string
	Instructions string
	Model        Model
	Tools        []Tool
	Limits       Limits
}

// Limits end a run before it does more: they are checked before every request
// and before any call is executed, over a run and those that it resumes.
// 0 means the default, a negative number none.
type Limits struct {
	Requests    int // default 50
	ToolCalls   int // executed calls; default 200
	TotalTokens int // default none
}

// Config is what a [Runner] works with. All fields but Lease, Parallel and
// Log are required.
type Config struct {
	Store    Store
	Policy   approvals.Policy
	Agents   func(name string) (Agent, bool)
	Now      func() time.Time
	NewFence func() Fence  // nil: random
	Lease    time.Duration // how long a claim lasts without renewal; 0 means 30 s
	Parallel int           // calls of one step that run at the same time; 0 means 8
	Log      *slog.Logger
}

// A Runner runs agents. It holds no run: everything between two steps is in
// the store, and any runner can go on with it.
type Runner struct{}

// NewRunner returns a runner.
func NewRunner(c Config) *Runner { panic("unimplemented") }

// A Mention is a person asking an agent for something.
type Mention struct {
	Event     string // unique to the message, the key by which a repeated delivery is known for 25 hours
	Origin    Origin
	Agent     string
	Requester approvals.UserID
	Text      string
}

// Mention commits a run for m: queued if its thread is free, otherwise waiting
// behind what is going on there. The same event again returns the same run.
func (r *Runner) Mention(ctx context.Context, m Mention) (Run, error) { panic("unimplemented") }

// Work claims the run and goes on with it until it ends, defers, or the runner
// drains. A run that somebody else has, or that is not to be run now, is left
// alone without an error. It is what the due index calls.
func (r *Runner) Work(ctx context.Context, id approvals.RunID) error { panic("unimplemented") }

// Resume makes sure that a settled batch has its resume run, whose id is
// derived from the batch's. It is what the due index calls; a batch that is
// not settled is left alone without an error.
func (r *Runner) Resume(ctx context.Context, id approvals.BatchID) error { panic("unimplemented") }

// Abandon ends a run that nobody can go on with: calls without a result are
// recorded as interrupted, the run has failed with these words, and its thread
// goes on. It refuses a run that a worker has, or that is final.
func (r *Runner) Abandon(ctx context.Context, id approvals.RunID, words string) error {
	panic("unimplemented")
}

// Drain makes every Work return at its next commit, the run released for
// another worker to claim at once. It does not wait.
func (r *Runner) Drain() { panic("unimplemented") }
