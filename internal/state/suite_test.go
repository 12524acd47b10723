package state_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// suite is what every Redis must do for the store: where servers differ, the
// store has to hide it. It opens one client and gives every part a prefix of its
// own.
func suite(t *testing.T, open func(t testing.TB) redis.UniversalClient) {
	t.Helper()
	c := open(t)
	for name, test := range map[string]func(t *testing.T, c redis.UniversalClient){
		"documents":    documents,
		"commits":      commits,
		"parts":        parts,
		"memo parts":   memoParts,
		"requests":     requests,
		"requested":    requested,
		"batches":      batches,
		"parked runs":  parkedRuns,
		"memos":        memos,
		"prefetches":   prefetches,
		"notices":      notices,
		"rungs":        rungs,
		"calls":        calls,
		"calls gone":   callsGone,
		"lists":        lists,
		"pages":        pages,
		"decided":      decided,
		"sheets":       sheets,
		"bulk":         bulk,
		"bulk crashes": bulkCrashes,
		"slots":        slots,
		"lost replies": lostReplies,
		"remembered":   remembered,
		"repeated":     repeated,
		"cuts":         cuts,
		"crashes":      crashes,
		"derived":      derived,
		"wakes":        wakes,
		"sweeps":       sweeps,
		"follow":       follow,
		"relays":       relays,
		"outcomes":     outcomes,
		"races":        races,
		"claims":       claims,
		"backs off":    backsOff,
		"stale":        stale,
		"unmoved":      unmoved,
		"ends":         ends,
		"limits":       limits,
		"forgotten":    forgotten,
		"remembers":    remembers,
		"outage":       outage,
		"storm":        storm,
		"backlog":      backlog,
		"ledger":       ledger,
		"timed":        timed,
		"removals":     removals,
		"converts":     converts,
		"cites":        cites,
		"cites args":   citesNoPreview,
		"packs memos":  packsMemos,
	} {
		t.Run(name, func(t *testing.T) { test(t, c) })
	}
}

// held is a client whose stores are opened with a durability, so that the suite
// runs behind the barrier.
type held struct {
	redis.UniversalClient
	durability state.Durability
	replicas   int
	apart      bool // the stores have the layout of older versions
}

// through is the same with another client.
func (h held) through(c redis.UniversalClient) *held {
	h.UniversalClient = c
	return &h
}

func newClock() *statetest.Clock {
	return statetest.NewClock(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))
}

// openStore returns a store with a prefix that nothing else uses.
func openStore(t *testing.T, c redis.UniversalClient, now func() time.Time) *state.Store {
	t.Helper()
	return openStoreAt(t, c, now, prefix())
}

func prefix() string { return "t" + rand.Text()[:10] }

func openStoreAt(t *testing.T, c redis.UniversalClient, now func() time.Time, prefix string) *state.Store {
	t.Helper()
	o := state.Options{Client: c, Prefix: prefix, Now: now, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if behind, ok := c.(*held); ok {
		o.Client, o.Durability, o.Replicas = behind.UniversalClient, behind.durability, behind.replicas
		if behind.apart {
			require.NoError(t, state.SetApart(t.Context(), behind.UniversalClient, prefix))
		}
	}
	s, err := state.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// ids of one partition.
type ids struct{ n int }

func (i ids) thread(u string) agentrun.ThreadID {
	return agentrun.ThreadID(approvals.NewID("thread", i.n, u))
}

func (i ids) run(u string) approvals.RunID { return approvals.RunID(approvals.NewID("run", i.n, u)) }

func (i ids) batch(u string) approvals.BatchID {
	return approvals.BatchID(approvals.NewID("batch", i.n, u))
}

var start0 = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// a batch of n calls that ann must approve, with its facts and arguments.
func openBatch(tb testing.TB, id approvals.BatchID, run approvals.RunID, n int, deadline time.Time) agentrun.OpenBatch {
	tb.Helper()
	args := make(map[approvals.Digest]json.RawMessage)
	var deferrals []approvals.Deferral
	for i := range n {
		call := approvals.ToolCall{
			ID: approvals.ToolCallID(fmt.Sprintf("call-%d", i)), Name: "delete_file",
			Args: json.RawMessage(`{"path": "/srv/` + rand.Text() + `" }`),
		}
		args[approvals.DigestOf(id, call)] = call.Args
		deferrals = append(deferrals, approvals.Deferral{Call: call, Ask: approvals.Ask{
			Why: "it deletes",
			Requirement: approvals.Requirement{
				Quorums:  []approvals.Quorum{{Name: "ops", Need: 1, From: approvals.From{Users: []approvals.UserID{"ann"}}}},
				Deadline: deadline,
			},
		}})
	}
	b, events, err := approvals.Open(approvals.Batch{
		ID: id, Run: run, Thread: "thread", Agent: "ops", Requester: "bo", OpenedAt: start0,
	}, deferrals, nil)
	require.NoError(tb, err)
	return agentrun.OpenBatch{Batch: b, Events: events, Args: args}
}

// decide is ann's word on the first call, as a commit.
func decide(t *testing.T, b approvals.Batch, v approvals.Verdict, r approvals.RequestID) approvals.BatchCommit {
	t.Helper()
	call := b.Approvals[0].Call
	next, events, err := b.Apply(approvals.Decide{Decision: approvals.Decision{
		Call: call.ID, By: approvals.Principal{User: "ann"}, Verdict: v, Digest: call.Digest, At: start0,
	}})
	require.NoError(t, err)
	return approvals.BatchCommit{Request: r, Before: b, Batch: next, Events: events}
}
