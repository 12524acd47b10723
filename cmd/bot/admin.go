package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/state"
)

// openAdmin opens the store for a command of the operator, and returns its
// arguments. Of the environment it needs only what says where Redis is. What is stored can be
// looked at in any Redis, even in a full one; to change it, Redis must keep what the
// configuration requires.
func openAdmin(ctx context.Context, in *call, changes bool) (a admin, args []string, err error) {
	path := in.flags.String("config", "", "The bot's configuration `FILE`. Needed if it says where Redis is or how to log in there (redis.addresses, redis.tls, redis.user), or sets redis.prefix, redis.durability, retention or webhooks.")
	data := dataFlag(in)
	if args, err = in.parse(); err != nil {
		return a, nil, err
	}
	e, _ := config.ReadEnvironment(in.environ) // only the Redis is needed
	e.Data = *data
	var c config.Config
	if *path != "" {
		c, err = config.Read(*path)
	}
	if !c.Redis.Named(e) {
		err = errors.Join(err, errors.New("REDIS_URL is not set; set it to the Redis that the bot works on, name the configuration that has redis.addresses, or give --data the folder of the bot"))
	}
	if err != nil {
		return a, nil, err
	}
	log := e.NewLogger(in.stderr)
	if *path == "" || !changes {
		c.Redis.Durability = state.None
	}
	store, err := openForCommand(ctx, c, e, log)
	if err != nil {
		return a, nil, err
	}
	switch holds := store.Holds(ctx); {
	case errors.Is(holds, state.ErrLayoutChanged), errors.Is(holds, state.ErrConverting) && in.name != "convert":
		return a, nil, errors.Join(holds, store.Close())
	case errors.Is(holds, state.ErrEmptied):
		_, _ = fmt.Fprintf(in.stderr, "bot: no bot has started on this Redis with the prefix %q; if the configuration of the bot sets redis.prefix, name it with --config\n", store.Prefix())
	}
	return admin{store: store.Store, close: store.Close, stdout: in.stdout, log: log, threads: c.Retention.ThreadAge(), configured: *path != "", remote: c.RemoteAgents}, args, nil
}

// administer runs f, which only reads, on the store that the call names.
func administer(ctx context.Context, in *call, f func(a admin, args []string) error) error {
	return administerAs(ctx, in, false, f)
}

func administerAs(ctx context.Context, in *call, changes bool, f func(a admin, args []string) error) error {
	a, args, err := openAdmin(ctx, in, changes)
	if err != nil {
		return err
	}
	return errors.Join(f(a, args), a.close())
}

// A done is what a command has changed, as text and as JSON.
type done struct {
	words string
	doc   map[string]any
}

// act runs a command that changes something, and prints what it did.
func act(ctx context.Context, in *call, f func(a admin, args []string) (done, error)) error {
	asJSON := in.flags.Bool("json", false, "Write JSON.")
	return administerAs(ctx, in, true, func(a admin, args []string) error {
		d, err := f(a, args)
		switch {
		case err != nil:
			return err
		case *asJSON:
			return a.sayJSON(d.doc)
		}
		return a.say(d.words + "\n")
	})
}

func adminParked(ctx context.Context, in *call) error {
	asJSON := in.flags.Bool("json", false, "Write JSON.")
	return administer(ctx, in, func(a admin, _ []string) error { return a.parked(ctx, *asJSON) })
}

func adminRetry(ctx context.Context, in *call) error {
	return act(ctx, in, func(a admin, args []string) (done, error) { return a.retry(ctx, state.Kind(args[0]), args[1]) })
}

func adminAbandon(ctx context.Context, in *call) error {
	return act(ctx, in, func(a admin, args []string) (done, error) { return a.abandon(ctx, approvals.RunID(args[0])) })
}

func adminFulfill(ctx context.Context, in *call) error {
	return act(ctx, in, func(a admin, args []string) (done, error) {
		return a.fulfill(ctx, approvals.BatchID(args[0]), approvals.ToolCallID(args[1]), args[2])
	})
}

// isKind refuses an unknown kind of work before Redis is asked.
func isKind(value string) error {
	kinds := state.Kinds()
	if slices.Contains(kinds, state.Kind(value)) {
		return nil
	}
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return fmt.Errorf("there is no kind of work %q; the kinds are %s", value, strings.Join(names, ", "))
}

func isJSON(value string) error {
	if !json.Valid([]byte(value)) {
		return errors.New("the result must be JSON; a text needs its quotes")
	}
	return nil
}

type admin struct {
	store   *state.Store
	close   func() error
	stdout  io.Writer
	log     *slog.Logger
	threads time.Duration // how long conversations are kept after their last use; 0 means for ever

	configured bool // whether there is a configuration, which has these remote agents
	remote     []config.RemoteAgent
}

// mostParked is how many runs one command prints.
const mostParked = 200

// parked lists the work that was given up after many failures, and the runs
// that wait for an operator, because they failed too often.
func (a admin) parked(ctx context.Context, asJSON bool) error {
	runs, unreadable, err := a.store.ParkedRuns(ctx, mostParked+1)
	if err != nil {
		return err
	}
	items, err := a.due().Parked(ctx)
	if err != nil {
		return err
	}
	rows := []parkedRow{}
	for _, r := range runs {
		rows = append(rows, parkedRow{Kind: state.Runs, ID: string(r.ID), Agent: r.Agent, Since: r.CreatedAt, Reason: r.Failure})
	}
	for _, i := range unreadable {
		rows = append(rows, rowOf(i))
	}
	more := ""
	if len(rows) > mostParked {
		rows, more = rows[:mostParked], ", and there are more"
	}
	for _, i := range items {
		rows = append(rows, rowOf(i))
	}
	if asJSON {
		return a.sayJSON(rows)
	}
	var out strings.Builder
	for _, r := range rows {
		out.WriteString(tableLine(r.columns()...))
	}
	fmt.Fprintf(&out, "%d parked%s\n", len(rows), more)
	return a.say(out.String())
}

// parkedRow is work that was given up, or a run that waits for an operator, which
// has an agent.
type parkedRow struct {
	Kind     state.Kind `json:"kind"`
	ID       string     `json:"id"`
	Agent    string     `json:"agent,omitempty"`
	Attempts int        `json:"attempts,omitempty"`
	Since    time.Time  `json:"since,omitzero"` // left out if it is not known
	Reason   string     `json:"reason"`
}

func rowOf(i state.ParkedItem) parkedRow {
	return parkedRow{Kind: i.Kind, ID: i.ID, Attempts: i.Attempts, Since: i.Since.UTC(), Reason: i.Reason}
}

// columns are the row as text.
func (r parkedRow) columns() []string {
	what, when := counted(r.Attempts, "attempt", "attempts"), "since unknown"
	switch {
	case r.Reason == state.Unreadable:
		what = "cannot be read"
	case r.Agent != "":
		what = "agent " + r.Agent
	}
	if !r.Since.IsZero() {
		when = "since " + since(r.Since)
	}
	return []string{string(r.Kind), r.ID, what, when, r.Reason}
}

// retry makes parked work due again: an item of the due index, or a run.
func (a admin) retry(ctx context.Context, kind state.Kind, id string) (done, error) {
	err := a.due().Unpark(ctx, kind, id)
	if errors.Is(err, approvals.ErrNotFound) && kind == state.Runs {
		err = a.where(ctx, approvals.RunID(id), a.runner().Retry(ctx, approvals.RunID(id)))
	}
	if errors.Is(err, approvals.ErrNotFound) {
		return done{}, fmt.Errorf("retry %s %s: %w: it is not parked; bot admin parked lists what is, with its kind and id", kind, id, approvals.ErrNotFound)
	}
	if err != nil {
		return done{}, fmt.Errorf("retry %s %s: %w", kind, id, err)
	}
	return done{"due again", map[string]any{"kind": kind, "id": id, "state": "due"}}, nil
}

// abandon ends a run that cannot continue. The bot says so in its thread, and the
// thread can be used again.
func (a admin) abandon(ctx context.Context, id approvals.RunID) (done, error) {
	if err := a.known(ctx, id); err != nil {
		return done{}, err
	}
	words := "An operator ended this run. It is not known whether the calls without a result happened."
	if err := a.where(ctx, id, a.runner().Abandon(ctx, id, words)); err != nil {
		return done{}, fmt.Errorf("abandon %s: %w", id, err)
	}
	return done{"abandoned", map[string]any{"run": id, "state": "abandoned"}}, nil
}

// known returns an error with advice if there is no such run. A request of a remote
// agent is a run too.
func (a admin) known(ctx context.Context, id approvals.RunID) error {
	if _, err := a.store.Run(ctx, id); !errors.Is(err, approvals.ErrNotFound) {
		return err
	}
	if _, err := approvals.Partition(string(id)); err != nil {
		return fmt.Errorf("run %q: %w: the id of a run, or of a request of a remote agent, looks like run-01-7f3a5c0e-…; bot admin list shows it", string(id), approvals.ErrNotFound)
	}
	return fmt.Errorf("run %q: %w: compare the id; bot admin list shows those of requests that wait, and bot admin facts --json those of all that people were asked about", string(id), approvals.ErrNotFound)
}

func (a admin) due() *state.Due { return state.NewDue(a.store, state.DueOptions{}) }

func (a admin) runner() *agentrun.Runner {
	return agentrun.NewRunner(agentrun.Config{
		Store: a.store, Policy: refuseAll{}, Now: time.Now, Log: a.log,
		Agents: func(string) (agentrun.Agent, bool) { return agentrun.Agent{}, false },
	})
}

func (a admin) say(words string) error {
	_, err := io.WriteString(a.stdout, words)
	return err
}

// fulfill delivers the result of a call that ran elsewhere.
func (a admin) fulfill(ctx context.Context, id approvals.BatchID, call approvals.ToolCallID, value string) (done, error) {
	by := "operator"
	if u, err := user.Current(); err == nil {
		by = u.Username
	}
	desk := approvals.NewDesk(a.store, refuseAll{}, nil, time.Now)
	_, err := desk.Fulfill(ctx, id, approvals.RequestID(uuid.NewString()), approvals.Fulfill{
		Call: call, By: approvals.UserID("cli:" + by), At: time.Now(),
		Result: approvals.ToolReturn{ReturnValue: json.RawMessage(value)},
	})
	if errors.Is(err, approvals.ErrNotFound) {
		return done{}, fmt.Errorf("call %q of batch %q: %w: the id of a batch looks like batch-01-7f3a5c0e-…; bot admin run shows the batches and calls of a run", string(call), string(id), approvals.ErrNotFound)
	}
	if err != nil {
		return done{}, fmt.Errorf("fulfill %s: %w", call, err)
	}
	return done{"delivered", map[string]any{"batch": id, "call": call, "state": "delivered"}}, nil
}

// refuseAll is the policy of a process that runs no agent.
type refuseAll struct{}

func (refuseAll) Rule(context.Context, approvals.Proposal) (approvals.Ruling, error) {
	return approvals.Refuse{Reason: "No agent runs here."}, nil
}

func (refuseAll) Strictest(time.Time) approvals.Requirement { return approvals.Requirement{} }
