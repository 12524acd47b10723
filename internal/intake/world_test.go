package intake_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

var server redis.UniversalClient

func TestMain(m *testing.M) {
	statetest.Main(m, func(c redis.UniversalClient) { server = c })
}

// rules is a policy: by the name of a tool, and otherwise bob is asked.
type rules struct {
	mu  sync.Mutex
	by  map[string]approvals.Ruling
	day int // how many calls of "counted" are permitted in a day; 0 for no such rule
	log state.Ledger
	n   int // how often it was asked
}

func (r *rules) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

func (r *rules) Rule(ctx context.Context, p approvals.Proposal) (approvals.Ruling, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	if p.Call.Name == "counted" {
		entries, err := r.log.Entries(ctx, p.Requester)
		if err != nil {
			return nil, err
		}
		before := 0
		for _, e := range entries {
			if e.Key == p.Entry {
				break
			}
			if !e.At.Before(r.Midnight(p.At)) {
				before++
			}
		}
		if before >= r.day {
			return approvals.Refuse{Reason: "five a day"}, nil
		}
		return approvals.Permit{}, nil
	}
	if ruling, ok := r.by[p.Call.Name]; ok {
		return ruling, nil
	}
	return approvals.Ask{Requirement: needs("bob"), Why: "it writes", Rule: "writes@1"}, nil
}

func (r *rules) set(tool string, ruling approvals.Ruling) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by[tool] = ruling
}

func (*rules) Strictest(time.Time) approvals.Requirement { return needs("bob", "carol") }
func (r *rules) CountsToday() bool                       { return r.day > 0 }
func (*rules) Midnight(at time.Time) time.Time           { return at.Truncate(24 * time.Hour) }

func needs(users ...approvals.UserID) approvals.Requirement {
	r := approvals.Requirement{Separation: true}
	for _, u := range users {
		r.Quorums = append(r.Quorums, approvals.Quorum{Need: 1, From: approvals.From{Users: []approvals.UserID{u}}})
	}
	return r
}

type world struct {
	*testing.T
	*intake.Service
	store  *state.Store
	client redis.UniversalClient
	prefix string
	policy *rules
	runner *agentrun.Runner
	desk   *approvals.Desk
	clock  *statetest.Clock
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, server, rand.Text())
}

func newWorldOn(t *testing.T, client redis.UniversalClient, prefix string) *world {
	t.Helper()
	w := &world{T: t, client: client, prefix: prefix, clock: statetest.NewClock(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))}
	w.policy = &rules{by: map[string]approvals.Ruling{
		"free": approvals.Permit{}, "never": approvals.Refuse{Reason: "not on Fridays"},
	}}
	w.open(client)
	return w
}

// open gives the world services of its own on the same store, as another process
// would have.
func (w *world) open(client redis.UniversalClient) {
	w.Helper()
	store, err := state.Open(w.Context(), state.Options{Client: client, Prefix: w.prefix})
	require.NoError(w, err)
	w.store, w.policy.log = store, state.NewLedger(store)
	w.desk = approvals.NewDesk(store, w.policy, func(context.Context, approvals.Batch, approvals.ToolCall) error { return nil }, w.clock.Now)
	w.runner = agentrun.NewRunner(agentrun.Config{
		Store: store, Policy: w.policy, Ledger: state.NewLedger(store), Now: w.clock.Now,
		Agents:  func(string) (agentrun.Agent, bool) { return agentrun.Agent{}, false },
		Deliver: map[approvals.Executor]agentrun.Deliverer{intake.Executor: w.deliver}, DeliverReads: intake.DeliverReads,
	})
	w.Service, err = intake.New(intake.Config{Store: store, Feed: state.NewFeed(store), Runner: w.runner, Desk: w.desk, Now: w.clock.Now})
	require.NoError(w, err)
}

func (w *world) deliver(ctx context.Context, d agentrun.Delivery) error { return w.Deliver(ctx, d) }

var claude = intake.Client{Name: "claude", Owner: "alice", Channel: "C1", Credential: "cred-1", PerMinute: 10_000, OpenLimit: 10_000}

// ask is a request with a call of each tool, with the ids "c0", "c1", ...
func ask(external string, tools ...string) intake.Ask {
	a := intake.Ask{Door: "api", ExternalID: external, Carries: intake.Carries{Edits: true, Reasons: true, Late: true}}
	for i, tool := range tools {
		a.Calls = append(a.Calls, intake.Call{
			ID: approvals.ToolCallID(fmt.Sprintf("c%d", i)), Tool: tool, Args: json.RawMessage(`{"n": 9007199254740993}`), Cwd: "/srv/app",
		})
	}
	return a
}

func (w *world) ask(a intake.Ask) intake.Request {
	w.Helper()
	r, err := w.Ask(w.Context(), claude, a)
	require.NoError(w, err)
	return r
}

func (w *world) get(id approvals.RunID) intake.Request {
	w.Helper()
	r, err := w.Get(w.Context(), claude, id)
	require.NoError(w, err)
	return r
}

// decide is the word of bob.
func (w *world) decide(r intake.Request, call approvals.ToolCallID, v approvals.Verdict, reason string) error {
	w.Helper()
	return w.decideAs("bob", r, call, v, reason)
}

func (w *world) decideAs(by approvals.UserID, r intake.Request, call approvals.ToolCallID, v approvals.Verdict, reason string) error {
	w.Helper()
	b, err := w.store.Batch(w.Context(), r.Batch)
	require.NoError(w, err)
	a, ok := b.Approval(call)
	require.True(w, ok)
	_, err = w.desk.Decide(w.Context(), r.Batch, approvals.RequestID(rand.Text()), approvals.Decide{Decision: approvals.Decision{
		Call: call, By: approvals.Principal{User: by}, Verdict: v, Digest: a.Call.Digest, Reason: reason,
	}})
	return err
}

func (w *world) approve(r intake.Request, call approvals.ToolCallID) {
	w.Helper()
	require.NoError(w, w.decide(r, call, approvals.Approve, ""))
}

func (w *world) deny(r intake.Request, call approvals.ToolCallID, reason string) {
	w.Helper()
	require.NoError(w, w.decide(r, call, approvals.Deny, reason))
}

func outcomes(r intake.Request) []intake.Outcome {
	var all []intake.Outcome
	for _, c := range r.Calls {
		all = append(all, c.Outcome)
	}
	return all
}

func partitionOf(agent string) int { return agentrun.RemotePartition(intake.Executor, agent) }
