package state_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state/statetest"
)

// calls: what was proposed in threads where people were asked, with what was
// known then.
func calls(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	s := openStore(t, c, newClock().Now)
	ctx, id := t.Context(), ids{22}
	asked := thread{t: t, commit: func(c agentrun.Commit) { require.NoError(t, s.Commit(ctx, c)) }, id: id.thread("t")}

	// A request that ran one call, had one refused, one sent back and one asked
	// about, which then expired; a second one in the same thread.
	first := agentrun.Run{
		ID: id.run("first"), Thread: asked.id, Agent: "ops", Requester: "bo", Status: agentrun.RunDeferred,
		Deferred: id.batch("b"), Origin: agentrun.Origin{Channel: "C1"},
	}
	opens := openBatch(t, first.Deferred, first.ID, 1, start0.Add(time.Hour))
	asked.add(first, &opens,
		says(first, "p", "n", "w", "call-0"),
		gets(first, map[string]agentrun.Outcome{"p": agentrun.OutcomeSuccess, "n": agentrun.OutcomeDenied, "w": ""}))
	settled, events, err := opens.Batch.Apply(approvals.Expire{At: start0.Add(time.Hour)})
	require.NoError(t, err)
	require.NoError(t, s.CommitBatch(ctx, approvals.BatchCommit{Before: opens.Batch, Batch: settled, Events: events}))
	resumed := first
	resumed.ID, resumed.Parent, resumed.Batch, resumed.Deferred = id.run("resumed"), first.ID, first.Deferred, ""
	resumed.Status = agentrun.RunCompleted
	asked.add(resumed, nil,
		gets(resumed, map[string]agentrun.Outcome{"call-0": agentrun.OutcomeDenied}),
		says(resumed, "q"), gets(resumed, map[string]agentrun.Outcome{"q": agentrun.OutcomeFailed}))
	second := resumed
	second.ID, second.Parent, second.Requester = id.run("second"), "", "cy"
	asked.add(second, nil, says(second, "z", "not JSON"), gets(second, map[string]agentrun.Outcome{"z": agentrun.OutcomeSuccess}))

	// Threads in which nobody was asked, or only long ago.
	quiet := thread{t: t, commit: asked.commit, id: ids{23}.thread("t")}
	alone := agentrun.Run{ID: ids{23}.run("r"), Thread: quiet.id, Status: agentrun.RunCompleted}
	quiet.add(alone, nil, says(alone, "x"))
	old := thread{t: t, commit: asked.commit, id: ids{24}.thread("t")}
	past := agentrun.Run{ID: ids{24}.run("r"), Thread: old.id, Status: agentrun.RunDeferred, Deferred: ids{24}.batch("b")}
	before := openBatch(t, past.Deferred, past.ID, 1, time.Time{})
	opened, ok := before.Events[0].(approvals.Opened)
	require.True(t, ok)
	opened.At = start0.Add(-time.Hour)
	before.Events[0] = opened
	old.add(past, &before, says(past, "y"))

	type counts = map[string]int
	ran := approvals.SoFar{
		Steps: 2, Executed: counts{"tool-p": 1}, Denied: counts{"tool-n": 1},
	}
	want := []string{
		fmt.Sprint("p bo ", approvals.SoFar{Steps: 1}),
		fmt.Sprint("n bo ", approvals.SoFar{Steps: 1}),
		fmt.Sprint("w bo ", approvals.SoFar{Steps: 1}),
		fmt.Sprint("call-0 bo ", approvals.SoFar{Steps: 1}),
		fmt.Sprint("q bo ", ran),
		fmt.Sprint("z cy ", approvals.SoFar{Steps: 1}),
	}
	walk := func(since time.Time) (got []string) {
		for c, err := range s.Calls(ctx, since) {
			require.NoError(t, err)
			if c.Agent != "ops" {
				got = append(got, string(c.Call.ID)+" of long ago")
				continue
			}
			require.Equal(t, "ops in C1", c.Agent+" in "+c.Channel)
			require.Equal(t, `{"n": 9007199254740993 }`, string(c.Call.Args), "the exact bytes")
			require.Equal(t, "tool-"+string(c.Call.ID), c.Call.Name)
			got = append(got, fmt.Sprint(c.Call.ID, " ", c.Requester, " ", c.SoFar))
		}
		return got
	}
	require.Equal(t, want, walk(start0))
	require.Equal(t, append(want, "y of long ago"), walk(time.Time{}))
	require.Empty(t, walk(start0.Add(time.Minute)))
	for c, err := range s.Calls(ctx, start0) {
		require.NoError(t, err)
		require.EqualValues(t, "p", c.Call.ID)
		break // the walk ends with the loop
	}

	t.Run("a thread that cannot be read does not end the walk", func(t *testing.T) {
		require.NoError(t, c.Del(ctx, s.Prefix()+":{p22}:messages:"+string(asked.id)).Err())
		var failures []error
		var rest []approvals.ToolCallID
		for c, err := range s.Calls(ctx, time.Time{}) {
			if err != nil {
				failures = append(failures, err)
				continue
			}
			rest = append(rest, c.Call.ID)
		}
		require.Len(t, failures, 1)
		require.ErrorIs(t, failures[0], approvals.ErrNotFound)
		require.Equal(t, []approvals.ToolCallID{"y"}, rest)
	})
}

// callsGone: a thread that is removed while it is read is no thread that cannot be
// read.
func callsGone(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	s := openStore(t, c, newClock().Now)
	ctx, id := t.Context(), ids{22}
	th := thread{t: t, commit: func(c agentrun.Commit) { require.NoError(t, s.Commit(ctx, c)) }, id: id.thread("t")}
	run := agentrun.Run{ID: id.run("r"), Thread: th.id, Status: agentrun.RunDeferred, Deferred: id.batch("b")}
	opens := openBatch(t, run.Deferred, run.ID, 1, start0.Add(time.Hour))
	th.add(run, &opens, says(run, "x"))

	messages := s.Prefix() + ":{p22}:messages:" + string(th.id)
	removed := false
	reader := openStoreAt(t, harmed(t, c, func(sent []byte) statetest.Fault {
		if bytes.Contains(sent, []byte(messages)) {
			removed = true
			require.NoError(t, c.Del(ctx, messages, s.Prefix()+":{p22}:thread:"+string(th.id), s.Prefix()+":{p22}:run:"+string(run.ID)).Err())
		}
		return statetest.None
	}), newClock().Now, s.Prefix())
	for _, err := range reader.Calls(ctx, time.Time{}) {
		require.NoError(t, err)
	}
	require.True(t, removed)
}

// A thread grows by runs.
type thread struct {
	t      *testing.T
	commit func(agentrun.Commit)
	id     agentrun.ThreadID
	doc    agentrun.Thread
}

func (th *thread) add(r agentrun.Run, opens *agentrun.OpenBatch, messages ...agentrun.Message) {
	th.t.Helper()
	r.From = th.doc.Messages
	at := th.doc.Messages
	th.doc.ID, th.doc.Messages = th.id, at+len(messages)
	r.To = th.doc.Messages
	doc := th.doc
	th.commit(agentrun.Commit{
		Thread: &doc, Runs: []agentrun.Run{r}, Opens: opens,
		Append: &agentrun.Append{Thread: th.id, At: at, Messages: messages},
	})
	th.doc.Version++
}

// says is a response with these calls.
func says(r agentrun.Run, calls ...string) agentrun.Message {
	m := agentrun.Response{RunID: r.ID, At: start0}
	for _, id := range calls {
		args := `{"n": 9007199254740993 }`
		if id == "not JSON" {
			args = `{"n":`
		}
		m.Parts = append(m.Parts, agentrun.CallPart{ToolCall: approvals.ToolCall{
			ID: approvals.ToolCallID(id), Name: "tool-" + id, Args: json.RawMessage(args),
		}})
	}
	return m
}

// gets is a request with the outcomes of calls; none is a prompt to correct it.
func gets(r agentrun.Run, outcomes map[string]agentrun.Outcome) agentrun.Message {
	m := agentrun.Request{RunID: r.ID, At: start0}
	for id, o := range outcomes {
		if o == "" {
			m.Parts = append(m.Parts, agentrun.RetryPrompt{ToolName: "tool-" + id, CallID: approvals.ToolCallID(id), Content: "again"})
			continue
		}
		m.Parts = append(m.Parts, agentrun.ToolReturn{
			ToolName: "tool-" + id, CallID: approvals.ToolCallID(id), Content: json.RawMessage(`""`), Outcome: o,
		})
	}
	return m
}
