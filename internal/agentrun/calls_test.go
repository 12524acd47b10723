package agentrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// What is wrong with a call goes back to the model. Nothing of it runs, and no
// person is asked.
func TestCallsThatGoBackToTheModel(t *testing.T) {
	for name, c := range map[string]struct{ tool, args, want string }{
		"unknown tool":          {"gone", `{"x":1}`, "a retry: Unknown tool name: 'gone'. Available tools: 'cond', 'gated', 'plain', 'slow'"},
		"not JSON":              {"plain", `{"x":`, "a retry: The call was not run: "},
		"not JSON, gated":       {"gated", `{"x":`, "a retry: The call was not run: "},
		"not an object":         {"gated", `[1]`, "a retry: The call was not run: "},
		"a key twice":           {"gated", `{"x":1,"x":2}`, "a retry: The call was not run: "},
		"not UTF-8":             {"gated", "{\"x\":\"\xff\"}", "a retry: The call was not run: "},
		"half a surrogate pair": {"gated", `{"x":"\ud800"}`, "a retry: The call was not run: "},
		"refused by validator":  {"gated", `{"x":"abc"}`, "a retry: x: Input should be a valid integer"}, // row 10
		"without arguments":     {"plain", ``, "a retry: x: "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			run := w.say(calls([3]string{"a", c.tool, c.args}))
			require.Equal(t, agentrun.RunCompleted, run.Status)
			require.Contains(t, w.added()[1], c.want)
			require.Empty(t, w.executed())
			require.Len(t, w.model.requests, 2)
			requireAnswered(t, w.history())
		})
	}
}

// Calls that cannot be told from each other never run: the response is not
// kept, and the model is asked for another, once. Then people read why. Upstream raises for two
// pending calls of one id and runs the others (rows 16, 17, 25, 37).
func TestResponsesThatAreNotUsed(t *testing.T) {
	for name, bad := range map[string]struct {
		response agentrun.Response
		why      string
	}{
		"empty":                   {says("  "), "was empty"},
		"only line breaks":        {says("\r\n\t\u0085"), "was empty"},
		"nothing to be seen":      {says(" \u200b\u2060\u00ad\u3164\u2800\ufe0f\U000e0041\n"), "was empty"},
		"two pending with one id": {calls([3]string{"d", "gated", `{"x":1}`}, [3]string{"d", "gated", `{"x":2}`}), "had two tool calls with the same id"},
		"one pending, one plain":  {calls([3]string{"d", "plain", `{"x":1}`}, [3]string{"d", "gated", `{"x":2}`}), "had two tool calls with the same id"},
		"no id":                   {calls([3]string{"", "plain", `{"x":1}`}), "had a tool call without a usable id"},
		"an id that is too long":  {calls([3]string{strings.Repeat("i", agentrun.MaxCallID+1), "plain", `{"x":1}`}), "had a tool call without a usable id"},
		"no name":                 {calls([3]string{"a", "", `{"x":1}`}), "had a tool call that named no tool"},
		"an id that is not text":  {calls([3]string{"\xff", "plain", `{"x":1}`}), "had a tool call without a usable id"},
		"too many calls":          {calls(manyCalls(agentrun.MaxCalls + 1)...), "had 65 tool calls, and at most 64 can be made at once"},
		"two with an earlier id":  {calls([3]string{"p0", "plain", `{"x":1}`}, [3]string{"p0", "plain", `{"x":2}`}), "had two tool calls with the same id"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first := calls([3]string{"p0", "plain", `{"x":0}`})
			run := w.say(first, bad.response, says("better"))
			require.Equal(t, agentrun.RunCompleted, run.Status)
			require.Equal(t, []string{"plain:0"}, w.executed())
			require.Contains(t, w.added()[2], " retry: ")
			require.Equal(t, "text: better", w.added()[3])
			require.Equal(t, 3, run.Usage.Requests, "it was paid for")

			w = newWorld(t)
			run = w.say(first, bad.response, bad.response)
			require.Equal(t, agentrun.RunFailed, run.Status)
			require.Equal(t, "The model's answers could not be used, even after it was asked again: "+
				"the last one "+bad.why+". Nothing of them was run.", run.Failure)
			require.Equal(t, []string{"plain:0"}, w.executed())
			require.Len(t, w.added(), 3, "neither response is kept")
		})
	}
}

// manyCalls are n calls of a tool that needs nobody.
func manyCalls(n int) [][3]string {
	var specs [][3]string
	for i := range n {
		specs = append(specs, [3]string{fmt.Sprintf("m%d", i), "plain", fmt.Sprintf(`{"x":%d}`, i)})
	}
	return specs
}

// As many calls as a response may have are run, and the model that made more is
// told how many.
func TestTheMostCallsOfAResponse(t *testing.T) {
	w := newWorld(t)
	run := w.say(calls(manyCalls(agentrun.MaxCalls+1)...), calls(manyCalls(agentrun.MaxCalls)...))
	require.Equal(t, agentrun.RunCompleted, run.Status)
	require.Contains(t, w.added()[0], "65 tool calls, so none of them was run. Make at most 64 ")
	require.Len(t, w.executed(), agentrun.MaxCalls)
}

// An answer is kept for people up to a length, and whole in the history.
func TestAnAnswerThatIsTooLong(t *testing.T) {
	w := newWorld(t)
	most := strings.Repeat("é", agentrun.MaxOutput)
	require.Equal(t, most, w.say(says(most)).Output)
	w = newWorld(t)
	run := w.say(says(most + "xy"))
	require.Equal(t, most+"\n[cut: the first 100000 of 100002 characters]", run.Output)
	require.Equal(t, "text: "+most+"xy", w.added()[0])
}

// Rows 10, 13, 15, 67: what may run runs at once, whatever else is pending, and
// what goes back to the model waits with the results.
func TestAMixedResponse(t *testing.T) {
	w := newWorld(t)
	barrier := w.does("barrier", agentrun.KindUnapproved)
	barrier.spec.Sequential = true
	w.agent.Tools = append(w.agent.Tools, barrier)
	run := w.say(calls(
		[3]string{"b", "barrier", `{"x":1}`}, [3]string{"bad", "gated", `{"x":"?"}`},
		[3]string{"p", "plain", `{"x":2}`}, [3]string{"u", "gone", `{}`}))
	people, elsewhere := w.pending(run)
	require.Equal(t, []string{"b"}, people)
	require.Empty(t, elsewhere)
	require.Equal(t, []string{"plain:2"}, w.executed())
	require.Len(t, w.model.requests, 1)
	require.Equal(t, []string{
		"bad retry: x: Input should be a valid integer", `p success: "plain:2"`,
		"u retry: Unknown tool name: 'gone'. Available tools: 'barrier', 'cond', 'gated', 'plain', 'slow'",
	}, w.added()[4:])

	w.decide(run.Deferred, "b", approvals.Approve, "")
	require.Equal(t, agentrun.RunCompleted, w.resume(run.Deferred).Status)
	request := w.model.requests[1].Messages
	require.Len(t, request, 3, "the model reads one request")
	require.Equal(t, []string{
		`b success: "barrier:1"`, "bad retry: x: Input should be a valid integer", `p success: "plain:2"`,
		"u retry: Unknown tool name: 'gone'. Available tools: 'barrier', 'cond', 'gated', 'plain', 'slow'",
	}, brief(request[2:]), "in emission order")
}

// Row 14: what a tool itself set aside comes first.
func TestTheOrderOfRequests(t *testing.T) {
	w := newWorld(t)
	w.agent.Tools = append(w.agent.Tools, w.does("ext", agentrun.KindExternal))
	run := w.say(calls(
		[3]string{"g1", "gated", `{"x":1}`}, [3]string{"e1", "ext", `{"x":1}`}, [3]string{"c1", "cond", `{"x":1}`},
		[3]string{"s1", "slow", `{"x":1}`}, [3]string{"g2", "gated", `{"x":2}`}, [3]string{"c2", "cond", `{"x":2}`}))
	people, elsewhere := w.pending(run)
	require.Equal(t, []string{"c1", "c2", "g1", "g2"}, people)
	require.Equal(t, []string{"s1", "e1"}, elsewhere)
	b := w.batch(run.Deferred)
	require.JSONEq(t, `{"why":1}`, string(b.Approvals[0].Metadata))
	require.Nil(t, b.Approvals[2].Metadata)
	require.JSONEq(t, `{"job":1}`, string(b.Calls[0].Metadata))
	require.Equal(t, "alice", string(b.Requester))
	args, err := w.store.Args(t.Context(), b.ID, b.Approvals[0].Call.Digest)
	require.NoError(t, err)
	require.Equal(t, `{"x":1}`, string(args))
}

// Tools run side by side, except those that run alone.
func TestParallelBetweenSequential(t *testing.T) {
	w := newWorld(t)
	met := make(chan struct{})
	meet := func(_ context.Context, c agentrun.Call) (agentrun.Result, error) {
		if c.Name == "left" {
			met <- struct{}{}
		} else {
			<-met
		}
		w.note(string(c.ID))
		return agentrun.Result{}, nil
	}
	alone := w.does("alone", agentrun.KindFunction)
	alone.spec.Sequential = true
	w.agent.Tools = []agentrun.Tool{
		&fake{spec: agentrun.Spec{Name: "left"}, execute: meet}, &fake{spec: agentrun.Spec{Name: "right"}, execute: meet}, alone,
	}
	run := w.say(calls([3]string{"l1", "left", ""}, [3]string{"r1", "right", ""},
		[3]string{"a1", "alone", `{"x":1}`}, [3]string{"l2", "left", ""}, [3]string{"r2", "right", ""}))
	require.Equal(t, agentrun.RunCompleted, run.Status)
	ran := w.executed()
	require.ElementsMatch(t, []string{"l1", "r1"}, ran[:2])
	require.Equal(t, "alone:1", ran[2])
	require.ElementsMatch(t, []string{"l2", "r2"}, ran[3:])
	require.Equal(t, []string{"l1 success: null", "r1 success: null", `a1 success: "alone:1"`, "l2 success: null", "r2 success: null"},
		w.added()[5:10])
}

// selective is a store that does not take the entries of one call.
type selective struct {
	*hooked
	not approvals.ToolCallID
}

var errUnstored = errors.New("the store does not answer")

func (s selective) Commit(ctx context.Context, c agentrun.Commit) error {
	if slices.ContainsFunc(c.Entries, func(e agentrun.Entry) bool { return e.Call == s.not }) {
		return errUnstored
	}
	return s.hooked.Commit(ctx, c)
}

// A worker that cannot store what it does begins nothing more of the step.
func TestNothingMoreBeginsAfterTheStoreFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.model.answers = []any{calls([3]string{"p1", "plain", `{"x":1}`}, [3]string{"p2", "plain", `{"x":2}`}, [3]string{"p3", "plain", `{"x":3}`})}
		run := w.mention("go")
		runner := agentrun.NewRunner(agentrun.Config{
			Store: selective{hooked: w.store, not: "p2"}, Policy: w.policy, Now: w.now, Parallel: 1,
			Agents: func(name string) (agentrun.Agent, bool) { return w.agent, name == w.agent.Name },
		})
		require.ErrorIs(t, runner.Work(t.Context(), run.ID), errUnstored)
		require.Equal(t, []string{"plain:1"}, w.executed())
	})
}

// What a tool adds comes after all results, in the order of the calls.
func TestContentComesAfterTheResults(t *testing.T) {
	w := newWorld(t)
	w.agent.Tools = []agentrun.Tool{w.does("gated", agentrun.KindUnapproved), &fake{
		spec: agentrun.Spec{Name: "look"},
		execute: func(_ context.Context, c agentrun.Call) (agentrun.Result, error) {
			return agentrun.Result{Value: json.RawMessage(`1`), Content: "seen by " + string(c.ID), Metadata: json.RawMessage(`{"k":1}`)}, nil
		},
	}}
	run := w.say(calls([3]string{"l1", "look", ""}, [3]string{"g1", "gated", `{"x":1}`}, [3]string{"l2", "look", ""}))
	w.decide(run.Deferred, "g1", approvals.Approve, "")
	w.resume(run.Deferred)
	require.Equal(t, []string{
		"l1 success: 1", `g1 success: "gated:1"`, "l2 success: 1", "user: seen by l1", "user: seen by l2",
	}, brief(w.model.requests[1].Messages[2:]), "every call is answered before someone speaks")
}

// A tool may ask its model for a correction so often, and then the run fails in
// words for people. No sibling runs in the step in which that is known before.
func TestRetryLimits(t *testing.T) {
	bad := func(id string) agentrun.Response { return calls([3]string{id, "plain", `{"x":"?"}`}) }
	ok := calls([3]string{"ok", "plain", `{"x":1}`})
	for name, c := range map[string]struct {
		max     int
		answers []any
		status  agentrun.Status
	}{
		"one by default":            {0, []any{bad("1")}, agentrun.RunCompleted},
		"not two":                   {0, []any{bad("1"), bad("2")}, agentrun.RunFailed},
		"two":                       {2, []any{bad("1"), bad("2")}, agentrun.RunCompleted},
		"not three":                 {2, []any{bad("1"), bad("2"), bad("3")}, agentrun.RunFailed},
		"none":                      {-1, []any{bad("1")}, agentrun.RunFailed},
		"a result begins it anew":   {0, []any{bad("1"), ok, bad("2")}, agentrun.RunCompleted},
		"two in one step count one": {0, []any{calls([3]string{"1", "plain", `{}`}, [3]string{"2", "plain", `{}`})}, agentrun.RunCompleted},
		"unknown tools too":         {0, []any{calls([3]string{"1", "no", ""}), calls([3]string{"2", "no", ""})}, agentrun.RunFailed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			plain := w.does("plain", agentrun.KindFunction)
			plain.spec.MaxRetries = c.max
			w.agent.Tools = []agentrun.Tool{plain}
			run := w.say(c.answers...)
			require.Equal(t, c.status, run.Status, run.Failure)
			requireAnswered(t, w.history())
		})
	}
	w := newWorld(t)
	run := w.say(bad("1"), calls([3]string{"2", "plain", `{"x":"?"}`}, [3]string{"3", "plain", `{"x":3}`}, [3]string{"4", "gated", `{"x":4}`}))
	require.Equal(t, agentrun.RunFailed, run.Status)
	require.Contains(t, run.Failure, "plain")
	require.Empty(t, w.executed(), "row 11")
	require.Equal(t, []string{
		"2 retry: x: Input should be a valid integer",
		`3 interrupted: "The run ended before this call was completed. It has no result."`,
		`4 interrupted: "The run ended before this call was completed. It has no result."`,
	}, w.added()[5:])
}

// A tool that asks for a correction while it runs is charged as well.
func TestRetryWhileRunning(t *testing.T) {
	w := newWorld(t)
	var ran []approvals.ToolCallID
	w.agent.Tools = []agentrun.Tool{&fake{
		spec: agentrun.Spec{Name: "picky", MaxRetries: 2},
		execute: func(_ context.Context, c agentrun.Call) (agentrun.Result, error) {
			ran = append(ran, c.ID)
			return agentrun.Result{}, fmt.Errorf("wrapped: %w", &agentrun.RetryError{Message: "another one"})
		},
	}}
	run := w.say(calls([3]string{"1", "picky", ""}), calls([3]string{"2", "picky", ""}), calls([3]string{"3", "picky", ""}))
	require.Equal(t, agentrun.RunFailed, run.Status)
	require.Equal(t, []approvals.ToolCallID{"1", "2", "3"}, ran)
	require.Equal(t, 3, run.Usage.ToolCalls)
	require.Equal(t, "3 retry: another one", w.added()[5])
}

// What goes wrong inside a tool is a result, which says no more than is known
// and nothing of what is in the log.
func TestToolsThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		execute func(context.Context, agentrun.Call) (agentrun.Result, error)
		want    string // empty: people are asked what became of it
	}{
		"an error": {func(context.Context, agentrun.Call) (agentrun.Result, error) {
			return agentrun.Result{}, errors.New("password=hunter2")
		}, `a failed: "The tool failed without a reason that can be shown."`},
		"words": {func(context.Context, agentrun.Call) (agentrun.Result, error) {
			return agentrun.Result{}, &agentrun.FailedError{Message: "disk full"}
		}, `a failed: "disk full"`},
		"a panic": {func(context.Context, agentrun.Call) (agentrun.Result, error) {
			panic("hunter2")
		}, ""},
		"leaving its goroutine": {func(context.Context, agentrun.Call) (agentrun.Result, error) {
			runtime.Goexit()
			return agentrun.Result{}, nil
		}, ""},
		"not JSON": {func(context.Context, agentrun.Call) (agentrun.Result, error) {
			return agentrun.Result{Value: json.RawMessage("plain text")}, nil
		}, `a success: "plain text"`},
		"too long": {func(context.Context, agentrun.Call) (agentrun.Result, error) {
			return agentrun.Result{Value: json.RawMessage(`"` + strings.Repeat("é", agentrun.MaxResult) + `"`)}, nil
		}, `[cut: the first 131071 of 262146 bytes]"`},
		"metadata that is no object": {func(context.Context, agentrun.Call) (agentrun.Result, error) {
			return agentrun.Result{Value: json.RawMessage("1"), Metadata: json.RawMessage(`[`)}, nil
		}, "a success: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.agent.Tools = []agentrun.Tool{&fake{spec: agentrun.Spec{Name: "t"}, execute: c.execute}}
			run := w.say(calls([3]string{"a", "t", `{}`}))
			if c.want == "" {
				asked, _ := w.batch(run.Deferred).Approval("a")
				require.Equal(t, approvals.Quote{Text: "The tool crashed."}, asked.Doubt.Said)
				return
			}
			require.Equal(t, agentrun.RunCompleted, run.Status)
			require.Contains(t, w.added()[1], c.want)
			require.NotContains(t, w.added()[1], "hunter2")
		})
	}
}
