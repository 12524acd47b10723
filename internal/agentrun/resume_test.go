package agentrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// The tool hears who let it run, and runs with what was approved.
func TestAnApprovedCall(t *testing.T) {
	w := newWorld(t)
	var got agentrun.Call
	gated := w.does("gated", agentrun.KindUnapproved)
	validated := 0
	gated.validate = func(_ context.Context, c agentrun.Call) error {
		validated++
		require.Equal(t, validated == 2, c.Approved)
		return nil
	}
	var during agentrun.Run
	gated.execute = func(ctx context.Context, c agentrun.Call) (_ agentrun.Result, err error) {
		got = c
		during, err = w.store.Run(ctx, c.Run)
		return agentrun.Result{}, err
	}
	w.agent.Tools = []agentrun.Tool{gated}
	run := w.say(calls([3]string{"g", "gated", `{"x": 9007199254740993}`}))
	w.decide(run.Deferred, "g", approvals.Approve, "")
	resumed := w.resume(run.Deferred)
	require.Equal(t, agentrun.RunCompleted, resumed.Status)
	require.Equal(t, 2, validated)
	require.True(t, got.Approved)
	require.Equal(t, `{"x": 9007199254740993}`, string(got.Args), "to the byte")
	require.Equal(t, resumed.ID, got.Run)
	require.Equal(t, []string{"gated"}, during.Activity)
	require.Equal(t, approvals.UserID("alice"), got.Requester)
	require.JSONEq(t, `{"approved_by":["bob"],"at":"2026-01-02T03:04:05Z"}`, string(got.Metadata))
}

// Before an approved call runs it is looked at again.
func TestAnApprovedCallIsLookedAtAgain(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world)
		want   string
		ran    bool
	}{
		"the policy refuses now": {func(w *world) {
			w.policy.by = map[string]approvals.Ruling{"gated": approvals.Refuse{Reason: "frozen"}}
		}, `g denied: "frozen"`, false},
		"the policy asks for more now: the signature stands": {func(w *world) {
			w.policy.by = map[string]approvals.Ruling{"gated": approvals.Ask{Requirement: signedBy("x", "y")}}
		}, `g success: "gated:1"`, true},
		"the arguments are not valid any more": {func(w *world) {
			w.agent.Tools[0].(*fake).validate = func(context.Context, agentrun.Call) error { return errors.New("y: Field required") }
		}, "g retry: y: Field required", false},
		"the tool is gone": {func(w *world) { w.agent.Tools = nil }, "g retry: Unknown tool name: 'gated'. No tools available.", false},
		"the tool asks for a correction": {func(w *world) { // row 53
			w.agent.Tools[0].(*fake).execute = func(context.Context, agentrun.Call) (agentrun.Result, error) {
				return agentrun.Result{}, &agentrun.RetryError{Message: "locked"}
			}
		}, "g retry: locked", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			gated := w.does("gated", agentrun.KindUnapproved)
			gated.spec.MaxRetries = -1 // what comes of answers is not charged to the model
			w.agent.Tools = []agentrun.Tool{gated}
			run := w.say(calls([3]string{"g", "gated", `{"x":1}`}))
			w.decide(run.Deferred, "g", approvals.Approve, "")
			c.change(w)
			require.Equal(t, agentrun.RunCompleted, w.resume(run.Deferred).Status)
			require.Equal(t, c.want, w.added()[1])
			require.Equal(t, c.ran, len(w.executed()) == 1)
		})
	}
}

// A policy that cannot judge an approved call stops it for now: nothing runs, and
// nothing is lost. When it can again, the call runs once.
func TestThePolicyCannotJudgeASignedCall(t *testing.T) {
	for name, broken := range map[string]*rules{
		"error":                {err: errors.New("hunter2")},
		"error and a ruling":   {err: errors.New("hunter2"), by: map[string]approvals.Ruling{"gated": approvals.Permit{}}},
		"panic":                {panics: true},
		"nothing":              {by: map[string]approvals.Ruling{"gated": nil}},
		"what nobody knows":    {by: map[string]approvals.Ruling{"gated": (*approvals.Permit)(nil)}},
		"a refusal by pointer": {by: map[string]approvals.Ruling{"gated": &approvals.Refuse{}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			run := w.say(calls([3]string{"g", "gated", `{"x":1}`}, [3]string{"h", "gated", `{"x":2}`}))
			w.decide(run.Deferred, "g", approvals.Approve, "")
			w.decide(run.Deferred, "h", approvals.Approve, "")
			require.NoError(t, w.runner().Resume(t.Context(), run.Deferred))
			id := w.thread().Active
			good := w.policy
			w.policy = broken
			for range 3 {
				err := w.runner().Work(t.Context(), id)
				require.ErrorContains(t, err, "the policy cannot judge")
				require.NotContains(t, err.Error(), "hunter2")
				require.Empty(t, w.executed())
				require.Len(t, w.model.requests, 1)
				released := w.run(id)
				require.Equal(t, agentrun.RunQueued, released.Status)
				require.Empty(t, released.Owner)
				at, due := released.Due()
				require.True(t, due)
				require.Equal(t, epoch.Add(time.Second), at, "it is not tried again at once")
			}
			w.policy = good
			require.Equal(t, agentrun.RunCompleted, w.work(id).Status)
			require.ElementsMatch(t, []string{"gated:1", "gated:2"}, w.executed())
			requireAnswered(t, w.history())
		})
	}
}

// While replicas are replaced one by one, one that lacks the agent or the tool of an
// approved call leaves it to the others, for a while.
func TestAReplicaLeavesWhatItDoesNotKnowToTheOthers(t *testing.T) {
	for name, c := range map[string]struct {
		lose    func(*world)
		unknown string
	}{
		"the agent": {func(w *world) { w.agent.Name = "other" }, `the agent "ops"`},
		"the tool":  {func(w *world) { w.agent.Tools = nil }, `the tool of call "g"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			clock := epoch
			w.now, w.rollout = func() time.Time { return clock }, 30*time.Second
			first := w.say(calls([3]string{"g", "gated", `{"x":1}`}))
			w.decide(first.Deferred, "g", approvals.Approve, "")
			clock = clock.Add(time.Hour)
			require.NoError(t, w.runner().Resume(t.Context(), first.Deferred))
			id, whole := w.thread().Active, w.agent
			c.lose(w)
			err := w.runner().Work(t.Context(), id)
			require.ErrorContains(t, err, c.unknown+" is not in the configuration of this replica")
			require.NotContains(t, err.Error(), "gated", "a name that is not known is not logged")
			var later interface{ RetryAfter() time.Duration }
			require.ErrorAs(t, err, &later, "it is no failure, which would wait longer each time, until no time is left for the others")
			require.LessOrEqual(t, later.RetryAfter(), time.Second)
			require.Equal(t, agentrun.RunQueued, w.run(id).Status)
			w.agent = whole
			require.Equal(t, agentrun.RunCompleted, w.work(id).Status)
			require.Equal(t, []string{"gated:1"}, w.executed())

			w.model.answers = []any{calls([3]string{"h", "gated", `{"x":2}`})}
			run := w.work(w.mention("more").ID)
			w.decide(run.Deferred, "h", approvals.Approve, "")
			require.NoError(t, w.runner().Resume(t.Context(), run.Deferred))
			id = w.thread().Active
			c.lose(w)
			clock = clock.Add(30 * time.Second)
			require.NotEqual(t, agentrun.RunQueued, w.work(id).Status, "no replica has had it in this time")
			require.Equal(t, approvals.NotRun, w.executionOf(run.Deferred, "h").State)
			require.Equal(t, []string{"gated:1"}, w.executed())
		})
	}
}

// Row 52: an approved tool may ask again. What its siblings did is kept, and so
// is the prompt that came with the answers, which upstream drops.
func TestAnApprovedToolAsksAgain(t *testing.T) {
	w := newWorld(t)
	stages := 0
	w.agent.Tools = []agentrun.Tool{w.does("gated", agentrun.KindUnapproved), &fake{
		spec: agentrun.Spec{Name: "staged", Kind: agentrun.KindUnapproved, WriteOnly: []string{"/key", "/in/*"}},
		execute: func(_ context.Context, c agentrun.Call) (agentrun.Result, error) {
			if stages++; stages == 1 {
				return agentrun.Result{}, &agentrun.ApprovalRequired{Metadata: json.RawMessage(`{"stage":2}`)}
			}
			w.note("staged " + string(c.Args))
			return agentrun.Result{Value: json.RawMessage(`"ok"`)}, nil
		},
	}}
	run := w.say(calls([3]string{"s", "staged", `{"key":"a","in":["b"],"x":1}`}, [3]string{"g", "gated", `{"x":1}`}))
	w.amend(run.Deferred, "s", `{"key":"secret","in":["hidden"],"x":2}`)
	w.decide(run.Deferred, "s", approvals.Approve, "")
	w.decide(run.Deferred, "g", approvals.Approve, "")
	require.NoError(t, w.runner().Resume(t.Context(), run.Deferred))
	id, err := agentrun.ResumeRunID(run.Deferred)
	require.NoError(t, err)
	second := w.run(id)
	second.Prompt = "and hurry"
	require.NoError(t, w.store.Commit(t.Context(), agentrun.Commit{Request: "p", Runs: []agentrun.Run{second}}))

	second = w.work(id)
	people, _ := w.pending(second)
	require.Equal(t, []string{"s"}, people)
	require.Equal(t, second.ID, w.thread().Active)
	require.JSONEq(t, `{"stage":2}`, string(w.batch(second.Deferred).Approvals[0].Metadata))
	require.Len(t, w.model.requests, 1)

	w.decide(second.Deferred, "s", approvals.Approve, "")
	third := w.resume(second.Deferred)
	require.Equal(t, agentrun.RunCompleted, third.Status, third.Failure)
	require.Equal(t, 3, third.Usage.ToolCalls)
	require.Equal(t, []string{"gated:1", `staged {"key":"secret","in":["hidden"],"x":2}`}, w.executed())
	require.Equal(t, []string{
		`s success: "ok"`, `g success: "gated:1"`,
		`user: The arguments of call s (staged) were changed by a person before it was run. ` +
			`It was run with: {"in":["(6 characters)"],"key":"(6 characters)","x":2}`,
		"user: and hurry",
	}, brief(w.model.requests[1].Messages[2:]))
	requireAnswered(t, w.history())
}

// Row 38: what is in the history must be what people saw, and what is executed
// what they signed.
func TestWhatWasTamperedWithIsRefused(t *testing.T) {
	w := newWorld(t)
	run := w.say(calls([3]string{"g", "gated", `{"x":1}`}))
	w.decide(run.Deferred, "g", approvals.Approve, "")
	forged, err := agentrun.EncodeMessage(calls([3]string{"g", "gated", `{"x":666}`}))
	require.NoError(t, err)
	require.NoError(t, server.LSet(t.Context(), w.store.key(t, "messages", string(run.Thread)), 1, forged).Err())
	resumed := w.resume(run.Deferred)
	require.Equal(t, agentrun.RunFailed, resumed.Status)
	require.Contains(t, resumed.Failure, "don't match")
	require.Empty(t, w.executed())

	for _, args := range []json.RawMessage{json.RawMessage(`{"x":666}`), nil} {
		w = newWorld(t)
		run = w.say(calls([3]string{"g", "gated", `{"x":1}`}))
		w.decide(run.Deferred, "g", approvals.Approve, "")
		id := string(run.Deferred) + ":" + w.batch(run.Deferred).Approvals[0].Call.Digest.String()
		if args == nil {
			w.lose("args", id)
		} else {
			require.NoError(t, server.Set(t.Context(), w.store.key(t, "args", id), []byte(args), 0).Err())
		}
		require.Equal(t, agentrun.RunFailed, w.resume(run.Deferred).Status)
		require.Empty(t, w.executed())
		requireAnswered(t, w.history())
	}
}

func TestMatch(t *testing.T) {
	call := func(id string) approvals.ToolCall {
		return approvals.ToolCall{ID: approvals.ToolCallID(id), Name: "t", Args: json.RawMessage(`{}`)}
	}
	ref := func(id string) approvals.CallRef { return call(id).Ref("b") }
	batch := approvals.Batch{
		ID:        "b",
		Approvals: []approvals.Approval{{Call: ref("a"), Proposed: ref("a").Digest}},
		Calls:     []approvals.External{{Call: ref("c")}},
	}
	pending := []approvals.ToolCall{call("a"), call("c")}
	type people = map[approvals.ToolCallID]approvals.ApprovalResult
	type elsewhere = map[approvals.ToolCallID]approvals.CallResult
	yes, value := approvals.ToolApproved{}, approvals.ToolReturn{}
	changed := call("c")
	changed.Args = json.RawMessage(`{ }`)
	for name, c := range map[string]struct {
		pending   []approvals.ToolCall
		people    people
		elsewhere elsewhere
		want      error
	}{
		"exactly":               {pending, people{"a": yes}, elsewhere{"c": value}, nil},
		"missing, row 22":       {pending, people{"a": yes}, nil, agentrun.ErrResultsMismatch},
		"nothing, row 24":       {pending, nil, nil, agentrun.ErrResultsMismatch},
		"extra, row 23":         {pending, people{"a": yes, "z": yes}, elsewhere{"c": value}, agentrun.ErrResultsMismatch},
		"another":               {pending, people{"a": yes}, elsewhere{"z": value}, agentrun.ErrResultsMismatch},
		"has a result, row 26":  {pending[:1], people{"a": yes}, elsewhere{"c": value}, agentrun.ErrResultsMismatch},
		"in both, row 28":       {pending, people{"a": yes}, elsewhere{"a": value, "c": value}, agentrun.ErrWrongCategory},
		"crossed, row 29":       {pending, people{"c": yes}, elsewhere{"a": value}, agentrun.ErrWrongCategory},
		"no decision, row 30":   {pending, people{"a": nil}, elsewhere{"c": value}, agentrun.ErrResultsMismatch},
		"no result":             {pending, people{"a": yes}, elsewhere{"c": nil}, agentrun.ErrResultsMismatch},
		"not that call, row 38": {[]approvals.ToolCall{call("a"), changed}, people{"a": yes}, elsewhere{"c": value}, agentrun.ErrCallChanged},
	} {
		t.Run(name, func(t *testing.T) {
			err := agentrun.Match(c.pending, batch, approvals.DeferredToolResults{Approvals: c.people, Calls: c.elsewhere})
			require.ErrorIs(t, err, c.want)
		})
	}
}

// Rows 21, 25 to 27: what is pending follows from the history alone.
func TestPending(t *testing.T) {
	prompt := agentrun.Request{Parts: []agentrun.RequestPart{agentrun.UserPrompt{Content: "go"}}}
	two := calls([3]string{"a", "t", ""}, [3]string{"b", "t", ""})
	answered := agentrun.Request{Parts: []agentrun.RequestPart{
		agentrun.RetryPrompt{ToolName: "t", CallID: "a"}, agentrun.UserPrompt{Content: "x"}, agentrun.RetryPrompt{CallID: "b"},
	}}
	for name, c := range map[string]struct {
		history []agentrun.Message
		want    []approvals.ToolCallID
		err     error
	}{
		"nothing at all":     {nil, nil, agentrun.ErrNoModelResponse},
		"no response":        {[]agentrun.Message{prompt}, nil, agentrun.ErrNoModelResponse},
		"no calls":           {[]agentrun.Message{prompt, says("hi")}, nil, agentrun.ErrNoPendingCalls},
		"moved on":           {[]agentrun.Message{prompt, two, prompt, says("hi")}, nil, agentrun.ErrNoPendingCalls},
		"all":                {[]agentrun.Message{prompt, two}, []approvals.ToolCallID{"a", "b"}, nil},
		"but those answered": {[]agentrun.Message{prompt, two, answered}, []approvals.ToolCallID{"b"}, nil},
		"two of one id":      {[]agentrun.Message{prompt, calls([3]string{"a", "t", ""}, [3]string{"a", "u", ""})}, nil, agentrun.ErrDuplicateIDs},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := agentrun.Pending(c.history)
			require.ErrorIs(t, err, c.err)
			var ids []approvals.ToolCallID
			for _, p := range got {
				ids = append(ids, p.ID)
			}
			require.Equal(t, c.want, ids)
		})
	}
}

// Who watches a run where its message was written sees what comes after people have
// decided, too.
func TestAResumedRunKeepsWhereItsMessageWasWritten(t *testing.T) {
	w := newWorld(t)
	w.model.answers = []any{calls([3]string{"a", "gated", `{"x":1}`}), says("done")}
	asked, err := w.runner().Mention(t.Context(), agentrun.Mention{
		Event: "e", Origin: origin, Agent: "ops", Requester: "alice", Text: "go", Via: "web",
	})
	require.NoError(t, err)
	run := w.work(asked.ID)
	w.decide(run.Deferred, "a", approvals.Approve, "")
	resumed := w.resume(run.Deferred)
	require.Equal(t, run.ID, resumed.Parent)
	require.Equal(t, "web", resumed.Via)
}
