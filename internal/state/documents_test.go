package state_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

// documents: what is written is read back, and what is not there is said so.
func documents(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	s := openStore(t, c, newClock().Now)
	ctx, id := t.Context(), ids{17}
	thread := agentrun.Thread{
		ID: id.thread("t"), Origin: agentrun.Origin{Surface: "slack", Team: "T", Channel: "C", Root: "1.2"},
		Active: id.run("a"), Queue: []approvals.RunID{id.run("b"), id.run("c")}, Messages: 2,
	}
	run := agentrun.Run{
		ID: id.run("a"), Thread: thread.ID, Origin: thread.Origin, Agent: "ops", Requester: "bo",
		Prompt: "clean <up> & \"quote\" \u202e \x00 {p03}", Status: agentrun.RunRunning, Owner: "fence",
		LeaseEnds: start0.Add(time.Minute), CreatedAt: start0, From: 0, To: 2, Activity: []string{"list_files"},
		Usage: agentrun.Usage{Requests: 1, InputTokens: 1 << 40},
	}
	messages := []agentrun.Message{
		agentrun.Request{Parts: []agentrun.RequestPart{agentrun.UserPrompt{Content: "hi", At: start0}}, RunID: run.ID, At: start0},
		agentrun.Response{Parts: []agentrun.ResponsePart{agentrun.CallPart{ToolCall: approvals.ToolCall{
			ID: "c1", Name: "list_files", Args: json.RawMessage(`{"n": 9007199254740993 }`),
		}}}, RunID: run.ID, At: start0, FinishReason: agentrun.FinishToolCall},
	}
	entries := []agentrun.Entry{
		{Run: run.ID, Call: "c1", Tool: "list_files", State: agentrun.EntryFinished, Fence: "x", At: start0, Finish: agentrun.Finish{
			Part: agentrun.ToolReturn{
				ToolName: "list_files", CallID: "c1", Content: json.RawMessage(`{"n":9007199254740993}`),
				Outcome: agentrun.OutcomeSuccess, At: start0,
			},
			Prompt: "and then",
		}},
		{Run: run.ID, Call: "v:d:c2", Tool: "ask", State: agentrun.EntryClaimed, Fence: "y", At: start0, Finish: agentrun.Finish{
			Aside: agentrun.AsideApproval, Metadata: json.RawMessage(`{"a":1}`), Reason: approvals.Quote{Text: "why", Left: 1},
		}},
	}
	opens := openBatch(t, id.batch("b"), run.ID, 3, start0.Add(time.Hour))
	require.NoError(t, s.Commit(ctx, agentrun.Commit{
		Request: "r", Thread: &thread, Runs: []agentrun.Run{run}, Entries: entries, Opens: &opens,
		Append: &agentrun.Append{Thread: thread.ID, Messages: messages},
	}))

	gotThread, err := s.Thread(ctx, thread.ID)
	require.NoError(t, err)
	thread.Version = 1
	require.Equal(t, thread, gotThread)
	gotRun, err := s.Run(ctx, run.ID)
	require.NoError(t, err)
	run.Version = 1
	require.Equal(t, run, gotRun)
	gotMessages, err := s.Messages(ctx, thread.ID, 0, 2)
	require.NoError(t, err)
	require.Equal(t, messages, gotMessages)
	gotMessages, err = s.Messages(ctx, thread.ID, 1, 2)
	require.NoError(t, err)
	require.Equal(t, messages[1:], gotMessages)
	journal, err := s.Journal(ctx, run.ID)
	require.NoError(t, err)
	for i := range entries {
		entries[i].Version = 1
	}
	require.ElementsMatch(t, entries, journal)
	batch, err := s.Batch(ctx, opens.Batch.ID)
	require.NoError(t, err)
	require.Equal(t, opens.Batch, batch)
	for d, raw := range opens.Args {
		got, err := s.Args(ctx, batch.ID, d)
		require.NoError(t, err)
		require.Equal(t, raw, got, "the bytes of arguments are the ones that were given")
	}
	facts, err := state.NewFeed(s).Facts(ctx, 17, "", 10)
	require.NoError(t, err)
	require.Len(t, facts, 1)
	require.Equal(t, opens.Events[0], facts[0].Event)
	facts, err = state.NewFeed(s).Facts(ctx, 17, facts[0].ID, 10)
	require.NoError(t, err)
	require.Empty(t, facts)

	for what, err := range map[string]error{
		"thread":     second(s.Thread(ctx, id.thread("none"))),
		"run":        second(s.Run(ctx, id.run("none"))),
		"messages":   second(s.Messages(ctx, thread.ID, 1, 3)),
		"batch":      second(s.Batch(ctx, id.batch("none"))),
		"args":       second(s.Args(ctx, batch.ID, approvals.Digest{1})),
		"forged id":  second(s.Batch(ctx, "batch-99-x")),
		"garbage id": second(s.Run(ctx, "}{")),
		"no id":      second(s.Thread(ctx, "")),
	} {
		require.ErrorIs(t, err, approvals.ErrNotFound, what)
	}
	empty, err := s.Journal(ctx, id.run("none"))
	require.NoError(t, err)
	require.Empty(t, empty)
}

// batches: a large one in one step, and the list of those that are open.
func batches(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	k := newClock()
	s := openStore(t, c, k.Now)
	ctx := t.Context()

	id := ids{5}
	big := openBatch(t, id.batch("big"), id.run("r"), 500, time.Time{})
	require.NoError(t, s.Commit(ctx, agentrun.Commit{Request: "big", Opens: &big}))
	got, err := s.Batch(ctx, big.Batch.ID)
	require.NoError(t, err)
	require.Equal(t, big.Batch, got)
	for _, a := range got.Approvals {
		_, err := s.Args(ctx, got.ID, a.Call.Digest)
		require.NoError(t, err)
	}

	first := got.Approvals[0].Call.Digest
	before := got
	got.Version = 2
	require.NoError(t, s.CommitBatch(ctx, approvals.BatchCommit{
		Before: before, Batch: got, Args: map[approvals.Digest]json.RawMessage{first: json.RawMessage(`"forged"`)},
	}))
	raw, err := s.Args(ctx, got.ID, first)
	require.NoError(t, err)
	require.Equal(t, big.Args[first], raw, "arguments are written once")
}

// parkedRuns: what people must look at is listed until it ends.
func parkedRuns(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	k := newClock()
	s := openStore(t, c, k.Now)
	ctx := t.Context()
	list := func(limit int) (found []approvals.RunID) {
		t.Helper()
		runs, unreadable, err := s.ParkedRuns(ctx, limit)
		require.NoError(t, err)
		require.Empty(t, unreadable)
		for _, r := range runs {
			require.Equal(t, agentrun.RunParked, r.Status)
			stored, err := s.Run(ctx, r.ID)
			require.NoError(t, err)
			require.Equal(t, stored, r)
			found = append(found, r.ID)
		}
		return found
	}
	require.Empty(t, list(10))
	var parked []agentrun.Run
	var want []approvals.RunID
	for n := range 5 {
		k.Advance(time.Second)
		r := commitRun(t, s, agentrun.Run{ID: ids{40 - n}.run("r"), Status: agentrun.RunRunning, LeaseEnds: start0, Failure: "x"})
		r.Status = agentrun.RunParked
		parked, want = append(parked, commitRun(t, s, r)), append(want, r.ID)
	}
	commitRun(t, s, agentrun.Run{ID: ids{1}.run("other"), Status: agentrun.RunQueued})
	require.Equal(t, want, list(10), "the longest first")
	require.Equal(t, want[:2], list(2))
	require.Empty(t, list(0))
	for i, after := range [][]agentrun.Status{{agentrun.RunFailed}, {agentrun.RunQueued}, {agentrun.RunQueued, agentrun.RunRunning, agentrun.RunCompleted}} {
		for _, status := range after {
			parked[i].Status = status
			parked[i] = commitRun(t, s, parked[i])
		}
		require.Equal(t, want[i+1:], list(10), after)
		require.Equal(t, want[i+1:i+2], list(1), "one that ended takes no place of another")
	}
}

func second[T any](_ T, err error) error { return err }
