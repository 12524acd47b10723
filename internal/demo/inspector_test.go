package demo

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state"
)

// TestTheTimelineTellsWhatEachPersonDecidedOn: people who approved before an
// edit signed other arguments than those that are stored now.
func TestTheTimelineTellsWhatEachPersonDecidedOn(t *testing.T) {
	m := miniredis.RunT(t)
	h, err := newInspector("redis://"+m.Addr(), "app", slacksim.DefaultPeople())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.close()) })
	ctx := t.Context()
	store, err := state.Open(ctx, state.Options{Client: h.client, Prefix: "app"})
	require.NoError(t, err)

	now := time.Now().Truncate(time.Millisecond)
	tick := func() time.Time { now = now.Add(time.Second); return now }
	two := approvals.Quorum{Name: "finance", Need: 2, From: approvals.From{Users: []approvals.UserID{"U0BOB", "U0CAROL", "U0DAVE"}}}
	pay := approvals.ToolCall{ID: "c1", Name: "pay", Args: json.RawMessage(`{"amount":10}`)}
	p := approvals.PartitionOf("pay")
	run := agentrun.Run{
		ID: approvals.RunID(approvals.NewID("run", p, "x")), Thread: agentrun.ThreadIDOf(agentrun.Origin{Surface: "slack", Team: "T", Channel: "C", Root: "1"}),
		Status: agentrun.RunDeferred, Agent: "ops", Requester: "U0ALICE", CreatedAt: now,
	}
	run.Deferred = approvals.BatchID(approvals.NewID("batch", p, "x"))
	b, events, err := approvals.Open(approvals.Batch{
		ID: run.Deferred, Run: run.ID, Thread: string(run.Thread), Channel: "C", Agent: "ops", Requester: "U0ALICE", OpenedAt: tick(),
	}, []approvals.Deferral{{Call: pay, Ask: approvals.Ask{Requirement: approvals.Requirement{Quorums: []approvals.Quorum{two}, EditorMaySign: true}}}}, nil)
	require.NoError(t, err)
	first := b.Approvals[0].Call.Digest
	require.NoError(t, store.Commit(ctx, agentrun.Commit{
		Runs: []agentrun.Run{run}, Opens: &agentrun.OpenBatch{Batch: b, Events: events, Args: map[approvals.Digest]json.RawMessage{first: pay.Args}},
	}))
	desk := approvals.NewDesk(store, permits{}, func(context.Context, approvals.Batch, approvals.ToolCall) error { return nil }, func() time.Time { return now })
	says := func(user approvals.UserID, v approvals.Verdict, d approvals.Digest) {
		t.Helper()
		_, err := desk.Decide(ctx, b.ID, approvals.RequestID("d"+tick().String()), approvals.Decide{Decision: approvals.Decision{
			Call: "c1", By: approvals.Principal{User: user, GroupsAt: now}, Verdict: v, Digest: d, At: now,
		}})
		require.NoError(t, err)
	}
	says("U0BOB", approvals.Approve, first)
	_, err = desk.Retract(ctx, b.ID, "r1", approvals.Retract{Call: "c1", By: approvals.Principal{User: "U0BOB", GroupsAt: now}, At: tick()})
	require.NoError(t, err)
	says("U0BOB", approvals.Approve, first)
	raised := json.RawMessage(`{"amount":9000}`)
	_, err = desk.Amend(ctx, b.ID, "a1", approvals.Amend{Call: "c1", From: first, Args: raised, By: approvals.Principal{User: "U0CAROL", GroupsAt: now}, At: tick()})
	require.NoError(t, err)
	second := approvals.DigestOf(b.ID, approvals.ToolCall{ID: "c1", Name: "pay", Args: raised})
	says("U0CAROL", approvals.Approve, second)
	says("U0DAVE", approvals.Approve, second)

	page, err := h.look(ctx)
	require.NoError(t, err)
	var told []string
	for _, e := range page.Timeline {
		if strings.Contains(e.Detail, "amount") {
			told = append(told, e.What+": "+e.Detail)
		}
	}
	require.Equal(t, []string{
		`Bob approved pay: {"amount":10}`,
		`Bob took back a decision on pay: {"amount":10}`,
		`Bob approved pay: {"amount":10}`,
		`Carol changed the arguments of pay: earlier decisions no longer count: {"amount":9000}`,
		`Carol approved pay: {"amount":9000}`,
		`Dave approved pay: {"amount":9000}`,
		`pay is decided: approved: {"amount":9000}`,
	}, told)
}

// permits is a policy that keeps what a call needs.
type permits struct{ approvals.Policy }

func (permits) Rule(context.Context, approvals.Proposal) (approvals.Ruling, error) {
	return approvals.Permit{}, nil
}

// TestDocumentsOfEveryTypeCanBeRead, and long ones say what is missing.
func TestDocumentsOfEveryTypeCanBeRead(t *testing.T) {
	m := miniredis.RunT(t)
	h, err := newInspector("redis://"+m.Addr(), "app", nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.close()) })
	c := redis.NewClient(&redis.Options{Addr: m.Addr()})
	t.Cleanup(func() { require.NoError(t, c.Close()) })

	ctx := t.Context()
	due := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	require.NoError(t, c.HSet(ctx, "app:{p01}:batch:b", "v", 2, "d", `{"n":9007199254740993}`).Err())
	require.NoError(t, c.ZAdd(ctx, "app:{p01}:due:cards", redis.Z{Score: float64(due.UnixMicro()), Member: "b"}).Err())
	for range mostEntries + 3 {
		require.NoError(t, c.RPush(ctx, "app:{p01}:messages:t", `{"<":1}`).Err())
	}
	require.NoError(t, c.XAdd(ctx, &redis.XAddArgs{Stream: "app:{p02}:other", ID: "1-1", Values: []any{"e", `{"k":1}`}}).Err())
	require.NoError(t, c.Set(ctx, "app:{p01}:args:b:x", strings.Repeat("é", mostBytes), 0).Err())
	require.NoError(t, c.Set(ctx, "apple:{p01}:args:b:x", "somebody else's", 0).Err())

	page, err := h.look(ctx)
	require.NoError(t, err)
	require.Empty(t, page.Timeline)
	values := map[string]string{}
	var order []string
	for _, d := range page.Documents {
		values[d.Key] = d.Value
		order = append(order, d.Key)
	}
	require.Equal(t, []string{"app:{p01}:batch:b", "app:{p01}:messages:t", "app:{p01}:args:b:x", "app:{p01}:due:cards", "app:{p02}:other"}, order)
	require.JSONEq(t, `{"v":2,"d":{"n":9007199254740993}}`, values["app:{p01}:batch:b"])
	require.Contains(t, values["app:{p01}:batch:b"], "9007199254740993", "no digit is lost")
	require.JSONEq(t, `[{"member":"b","at":"2026-03-04T05:06:07.000Z"}]`, values["app:{p01}:due:cards"])
	require.Contains(t, values["app:{p01}:messages:t"], "3 older ones")
	require.Contains(t, values["app:{p01}:messages:t"], `"<": 1`)
	require.JSONEq(t, `[{"id":"1-1","fields":{"e":{"k":1}}}]`, values["app:{p02}:other"])
	require.Regexp(t, `… cut here$`, values["app:{p01}:args:b:x"])
	require.Less(t, len(values["app:{p01}:args:b:x"]), mostBytes+100)
}

func TestTheInspectorIsBounded(t *testing.T) {
	m := miniredis.RunT(t)
	h, err := newInspector("redis://"+m.Addr(), "", nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.close()) })
	for n := range mostDocuments + 5 {
		require.NoError(t, m.Set("countersign:{p01}:request::"+strings.Repeat("x", n+1), "1"))
	}
	page, err := h.look(t.Context())
	require.NoError(t, err)
	require.Len(t, page.Documents, mostDocuments)
	require.Equal(t, 5, page.Omitted)

	m.Close()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = h.look(gone)
	require.Error(t, err, "it does not wait for a Redis that is gone")
	_, err = newInspector("nowhere", "", nil)
	require.Error(t, err)
}
