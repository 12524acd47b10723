package state_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// A thread that waits for an approval needs no more of Redis' memory than this, with
// what surfaces remember of it and without requests that expire.
func TestAPendingApprovalIsSmall(t *testing.T) {
	t.Parallel()
	for longest, most := range map[string]int64{
		"64":  4420, // as Redis is set by itself
		"512": 3450, // as it is in manifests
	} {
		t.Run(longest, func(t *testing.T) {
			t.Parallel()
			c := statetest.Redis(t)
			require.NoError(t, c.ConfigSet(t.Context(), "hash-max-ziplist-value", longest).Err()) // its name in every version
			require.LessOrEqual(t, pendingBytes(t, c), most)
		})
	}
}

// pendingBytes is how many bytes each of many threads needs.
func pendingBytes(t *testing.T, c redis.UniversalClient) (all int64) {
	t.Helper()
	s, err := state.Open(t.Context(), state.Options{Client: c, Prefix: prefix(), Now: newClock().Now})
	require.NoError(t, err)
	const n = 400 // in one partition, so that its indexes are as large as with 25,000
	for i := range n {
		w := waiting(t, i)
		require.NoError(t, s.Commit(t.Context(), w))
		for _, m := range []struct {
			id   string
			kind state.Kind
			memo []byte
		}{
			{string(w.Opens.Batch.ID), state.Cards, fmt.Appendf(nil, `{"body":{"anchors":[{"part":0,"channel":"C0OPS","ts":"1795368215.%06d",`+
				`"thread":"1795368214.%06d","version":1,"sum":"cf0ab3668a0b59ff73%06x"}],"rooms":[{"channel":"C0OPS","parts":[0],"asked":[0]}]}}`, i, i, i)},
			{string(w.Opens.Batch.ID), state.Homes, nil},
			{string(w.Runs[0].ID), state.Replies, fmt.Appendf(nil, `{"body":{"replies":[{"channel":"C0OPS","ts":"1795368215.%06d","sum":"cf0ab3668a0b59ff73%06x",`+
				`"at":"2026-11-22T17:39:01.28436126Z"}]}}`, i, i)},
		} {
			require.NoError(t, s.CommitMemo(t.Context(), m.id, string(m.kind), m.memo, 0, 1))
		}
	}
	sizes, err := state.NewBrowser(s).Sizes(t.Context())
	require.NoError(t, err)
	for _, of := range sizes {
		if of.Kind == "request" {
			continue
		}
		t.Logf("%-10s %5d", of.Kind, of.Bytes/n)
		all += of.Bytes / n
	}
	t.Logf("%-10s %5d", "all", all)
	return all
}

// waiting is what is stored of a thread whose agent waits for an approval, with ids
// and texts like those of production.
func waiting(t *testing.T, i int) agentrun.Commit {
	t.Helper()
	id := func(kind string) string {
		return approvals.NewID(kind, 17, uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%s %d", kind, i)).String())
	}
	at := start0.Add(time.Duration(i) * 7919 * time.Microsecond)
	opens := openBatch(t, approvals.BatchID(id("batch")), approvals.RunID(id("run")), 1, at.Add(24*time.Hour))
	thread := agentrun.Thread{
		ID: agentrun.ThreadID(id("thread")), Active: opens.Batch.Run, Messages: 2,
		Origin: agentrun.Origin{Surface: "slack", Team: "T0COUNTER", Channel: "C0OPS", Root: fmt.Sprintf("1795368214.%06d", i)},
	}
	opens.Batch.Thread, opens.Batch.Channel, opens.Batch.Requester, opens.Batch.OpenedAt = string(thread.ID), "C0OPS", "U0ALICE", at
	opens.Batch.Prompt = approvals.Quote{Text: "Please delete the old reports: nobody reads them any more."}
	a := &opens.Batch.Approvals[0]
	a.Rule, a.Summary, a.Gate = "files@1f2e3d4c", "Delete {args.path}", approvals.GateDeclared
	a.Requirement.Quorums[0].From = approvals.From{Groups: []approvals.GroupID{"S0SRE"}}
	run := agentrun.Run{
		ID: opens.Batch.Run, Thread: thread.ID, Origin: thread.Origin, Deferred: opens.Batch.ID, Agent: "ops", Requester: "U0ALICE",
		Prompt: opens.Batch.Prompt.Text, Status: agentrun.RunDeferred, Activity: []string{a.Call.Name}, Steps: 1, To: 2,
		Usage: agentrun.Usage{Requests: 1, InputTokens: 890, OutputTokens: 39}, CreatedAt: at, EndedAt: at.Add(time.Second),
	}
	messages := []agentrun.Message{
		agentrun.Request{Parts: []agentrun.RequestPart{agentrun.UserPrompt{Content: run.Prompt, At: at}}, RunID: run.ID, At: at},
		agentrun.Response{Parts: []agentrun.ResponsePart{agentrun.CallPart{ToolCall: approvals.ToolCall{
			ID: a.Call.ID, Name: a.Call.Name, Args: opens.Args[a.Call.Digest],
		}}}, RunID: run.ID, At: at.Add(time.Second), FinishReason: agentrun.FinishToolCall},
	}
	return agentrun.Commit{
		Thread: &thread, Runs: []agentrun.Run{run}, Opens: &opens, Append: &agentrun.Append{Thread: thread.ID, Messages: messages},
	}
}
