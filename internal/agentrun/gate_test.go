package agentrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// The ways in which a tool needs approval, and what the policy hears of it.
func TestWaysToNeedASignature(t *testing.T) {
	yes := func(context.Context, agentrun.Call) (bool, error) { return true, nil }
	broken := func(context.Context, agentrun.Call) (bool, error) { return false, errors.New("no") }
	panics := func(context.Context, agentrun.Call) (bool, error) { panic("no") }
	leaves := func(context.Context, agentrun.Call) (bool, error) {
		runtime.Goexit()
		return false, nil
	}
	raise := func(context.Context, agentrun.Call) error {
		return &agentrun.ApprovalRequired{Metadata: json.RawMessage(`{"m":1}`)}
	}
	for name, c := range map[string]struct {
		spec     agentrun.Spec
		validate func(context.Context, agentrun.Call) error
		gate     approvals.Gate
		metadata string
	}{
		"declared":              {agentrun.Spec{Kind: agentrun.KindUnapproved}, nil, approvals.GateDeclared, ""},
		"a kind nobody knows":   {agentrun.Spec{Kind: "other"}, nil, approvals.GateDeclared, ""},
		"predicate":             {agentrun.Spec{NeedsApproval: yes}, nil, approvals.GatePredicate, ""},
		"predicate that breaks": {agentrun.Spec{NeedsApproval: broken}, nil, approvals.GatePredicate, ""},
		"predicate that panics": {agentrun.Spec{NeedsApproval: panics}, nil, approvals.GatePredicate, ""},
		"predicate that leaves": {agentrun.Spec{NeedsApproval: leaves}, nil, approvals.GatePredicate, ""},
		"raised by validator":   {agentrun.Spec{}, raise, approvals.GateRaised, `{"m":1}`},                         // row 7
		"declared and raised":   {agentrun.Spec{Kind: agentrun.KindUnapproved}, raise, approvals.GateDeclared, ""}, // row 9
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tool := w.does("t", "")
			c.spec.Name = "t"
			tool.spec, tool.validate = c.spec, c.validate
			w.agent.Tools = []agentrun.Tool{tool}
			run := w.say(calls([3]string{"a", "t", `{"x":1}`}))
			people, _ := w.pending(run)
			require.Equal(t, []string{"a"}, people)
			require.Empty(t, w.executed())
			require.Len(t, w.policy.seen, 1)
			require.Equal(t, approvals.Proposal{
				Call: approvals.ToolCall{ID: "a", Name: "t", Args: json.RawMessage(`{"x":1}`)},
				Gate: c.gate, Agent: "ops", Requester: "alice", Channel: "C1", At: epoch,
				SoFar: approvals.SoFar{Steps: 1},
			}, w.policy.seen[0])
			require.Equal(t, c.metadata, string(w.batch(run.Deferred).Approvals[0].Metadata))
			require.Equal(t, "rules say so", w.batch(run.Deferred).Approvals[0].Why)
		})
	}
}

// A gate fails closed: whatever the policy does, a call that its tool gates is
// asked about, and a policy that cannot say asks for the strictest signature.
func TestThePolicyCannotLiftAGate(t *testing.T) {
	strict := signedBy("bob", "carol")
	for name, c := range map[string]struct {
		tool   string
		policy *rules
		want   approvals.Requirement
		why    string
	}{
		"permit":             {"gated", &rules{by: map[string]approvals.Ruling{"gated": approvals.Permit{}}}, strict, "names no approvers"},
		"permit, raised":     {"cond", &rules{by: map[string]approvals.Ruling{"cond": approvals.Permit{}}}, strict, "names no approvers"},
		"error":              {"gated", &rules{err: errors.New("no file")}, strict, "could not judge"},
		"error, not gated":   {"plain", &rules{err: errors.New("no file")}, strict, "could not judge"},
		"nothing":            {"gated", &rules{by: map[string]approvals.Ruling{"gated": nil}}, strict, "could not judge"},
		"nothing, not gated": {"plain", &rules{by: map[string]approvals.Ruling{"plain": nil}}, strict, "could not judge"},
		"panic":              {"plain", &rules{panics: true}, strict, "could not judge"},
		"asks, not gated":    {"plain", &rules{by: map[string]approvals.Ruling{"plain": approvals.Ask{Requirement: signedBy("bob"), Why: "w"}}}, signedBy("bob"), "w"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.policy = c.policy
			run := w.say(calls([3]string{"a", c.tool, `{"x":1}`}))
			people, _ := w.pending(run)
			require.Equal(t, []string{"a"}, people)
			require.Empty(t, w.executed())
			a := w.batch(run.Deferred).Approvals[0]
			require.Equal(t, c.want, a.Requirement)
			require.Contains(t, a.Why, c.why)
		})
	}
}

// Of two tools with one name the model means neither, and nobody can say which
// of them needs approval.
func TestTwoToolsOfOneName(t *testing.T) {
	for _, kinds := range [][]agentrun.Kind{
		{agentrun.KindUnapproved, agentrun.KindFunction}, {agentrun.KindFunction, agentrun.KindUnapproved},
	} {
		w := newWorld(t)
		w.agent.Tools = []agentrun.Tool{w.does("rm", kinds[0]), w.does("plain", ""), w.does("rm", kinds[1])}
		run := w.say(calls([3]string{"a", "rm", `{"x":1}`}))
		require.Equal(t, agentrun.RunFailed, run.Status)
		require.Contains(t, run.Failure, "Two tools of this agent are called rm")
		require.Empty(t, w.model.requests)
		require.Empty(t, w.executed())
		require.Empty(t, w.thread().Active)
	}
	// The second tool came while people decided.
	w := newWorld(t)
	run := w.say(calls([3]string{"g", "gated", `{"x":1}`}))
	w.decide(run.Deferred, "g", approvals.Approve, "")
	w.agent.Tools = append(w.agent.Tools, w.does("gated", agentrun.KindFunction))
	require.Contains(t, w.resume(run.Deferred).Failure, "called gated")
	require.Empty(t, w.executed())
	requireAnswered(t, w.history())
}

// A refusal is a result at once: nobody is asked, and no signature would help.
func TestThePolicyRefuses(t *testing.T) {
	for _, tool := range []string{"plain", "gated", "cond", "ext"} {
		w := newWorld(t)
		w.agent.Tools = append(w.agent.Tools, w.does("ext", agentrun.KindExternal))
		w.policy.by = map[string]approvals.Ruling{tool: approvals.Refuse{Reason: "never on Fridays"}}
		run := w.say(calls([3]string{"a", tool, `{"x":1}`}))
		require.Equal(t, agentrun.RunCompleted, run.Status)
		require.Equal(t, `a denied: "never on Fridays"`, w.added()[1])
		require.Empty(t, w.executed())
	}
}

// Rows 3 to 5: calls that run elsewhere. Their arguments must be JSON, and
// nothing else is known of them.
func TestCallsThatRunElsewhere(t *testing.T) {
	w := newWorld(t)
	ext := w.does("ext", agentrun.KindExternal)
	early := w.does("early", agentrun.KindFunction)
	early.validate = func(context.Context, agentrun.Call) error {
		return &agentrun.CallDeferred{Metadata: json.RawMessage(`[1]`)}
	}
	w.agent.Tools = append(w.agent.Tools, ext, early)
	run := w.say(calls([3]string{"e", "ext", `{"x":"not a number"}`}, [3]string{"bad", "ext", `{`},
		[3]string{"v", "early", `{}`}, [3]string{"s", "slow", `{"x":1}`}))
	people, elsewhere := w.pending(run)
	require.Empty(t, people)
	require.Equal(t, []string{"v", "s", "e"}, elsewhere)
	require.Nil(t, w.batch(run.Deferred).Calls[0].Metadata, "what is no object is not kept")
	w.fulfill(run.Deferred, "e", approvals.ModelRetry{Message: "use the other one"})
	w.fulfill(run.Deferred, "v", approvals.ToolDenied{Message: ""}) // rows 43, 48
	w.fulfill(run.Deferred, "s", approvals.ToolReturn{ReturnValue: json.RawMessage(`{"rows":3}`)})
	require.Equal(t, agentrun.RunCompleted, w.resume(run.Deferred).Status)
	got := brief(w.model.requests[1].Messages[2:])
	require.Equal(t, "e retry: use the other one", got[0])
	require.Contains(t, got[1], "bad retry: ")
	require.Equal(t, []string{`v denied: ""`, `s success: {"rows":3}`}, got[2:])
}

// A call that runs elsewhere, and for which a rule asks for approval, needs
// both, one after the other. Upstream knows no such rule.
func TestElsewhereAfterASignature(t *testing.T) {
	w := newWorld(t)
	w.agent.Tools = []agentrun.Tool{w.does("ext", agentrun.KindExternal)}
	w.policy.by = map[string]approvals.Ruling{"ext": approvals.Ask{Requirement: signedBy("bob")}}
	run := w.say(calls([3]string{"e", "ext", `{"x":1}`}))
	people, elsewhere := w.pending(run)
	require.Equal(t, []string{"e"}, people)
	require.Empty(t, elsewhere)
	w.amend(run.Deferred, "e", `{"x":2}`)
	w.decide(run.Deferred, "e", approvals.Approve, "")
	second := w.resume(run.Deferred)
	people, elsewhere = w.pending(second)
	require.Empty(t, people)
	require.Equal(t, []string{"e"}, elsewhere)
	w.fulfill(second.Deferred, "e", approvals.ToolReturn{ReturnValue: json.RawMessage(`"sent"`)})
	require.Equal(t, agentrun.RunCompleted, w.resume(second.Deferred).Status)
	require.Equal(t, []string{
		`call e ext{"x":1}`, `e success: "sent"`,
		`user: The arguments of call e (ext) were changed by a person before it was run. It was run with: {"x":2}`,
		"text: done",
	}, w.added())
	require.Empty(t, w.executed())
}

// Without anyone who asked there can be no separation: nothing is opened.
func TestABatchThatCannotBeOpened(t *testing.T) {
	w := newWorld(t)
	w.policy.by = map[string]approvals.Ruling{"gated": approvals.Ask{Requirement: approvals.Requirement{Separation: true}}}
	id := w.mention("go").ID
	run := w.run(id)
	run.Requester = ""
	require.NoError(t, w.store.Commit(t.Context(), agentrun.Commit{Request: "x", Runs: []agentrun.Run{run}}))
	w.model.answers = []any{calls([3]string{"a", "gated", `{"x":1}`})}
	got := w.work(id)
	require.Equal(t, agentrun.RunFailed, got.Status)
	require.Contains(t, got.Failure, "Nobody could be asked to approve the calls")
	requireAnswered(t, w.history())
}

// Whoever asked, and the operator, read why nobody was asked.
func TestABatchThatAsksTooManyPeopleSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		calls  [][3]string
		named  int // by each call, others each time
		advice string
	}{
		"one call":      {[][3]string{{"a", "one", `{}`}}, 501, "Your Countersign admin can name groups of people in the policy instead."},
		"several calls": {[][3]string{{"a", "one", `{}`}, {"b", "two", `{}`}}, 300, "Ask for fewer calls at once, or ask your Countersign admin to name groups of people in the policy."},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.agent.Tools, w.policy.by = nil, map[string]approvals.Ruling{}
			for _, call := range c.calls {
				var users []approvals.UserID
				for n := range c.named {
					users = append(users, approvals.UserID(fmt.Sprint(call[1], n)))
				}
				w.agent.Tools = append(w.agent.Tools, w.does(call[1], agentrun.KindExternal))
				w.policy.by[call[1]] = approvals.Ask{Requirement: signedBy(users...)}
			}
			run := w.say(calls(c.calls...))
			require.Equal(t, agentrun.RunFailed, run.Status)
			require.Equal(t, fmt.Sprintf("Nobody could be asked to approve the calls, so they were not run: the policy asks %d people and groups about them, "+
				"and at most 500 can be asked at once. ", c.named*len(c.calls))+c.advice, run.Failure)
			require.Empty(t, w.executed())
			requireAnswered(t, w.history())
		})
	}
}

// An approval is for the definition of the tool by which people were asked. If that has
// changed by the time the call is to run, they are asked again, whatever asked for the
// approval.
func TestPeopleAreAskedAgainAboutACallWhoseToolIsDefinedOtherwiseByNow(t *testing.T) {
	for name, kind := range map[string]agentrun.Kind{"the tool asks": agentrun.KindUnapproved, "the policy asks": agentrun.KindFunction} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tool := w.does("t", kind)
			tool.spec.Definition = "first"
			w.agent.Tools = []agentrun.Tool{tool}
			w.policy = &rules{by: map[string]approvals.Ruling{"t": approvals.Ask{Requirement: signedBy("bob"), Why: "w"}}}
			first := w.say(calls([3]string{"a", "t", `{"x":1}`}))
			require.Equal(t, "first", w.batch(first.Deferred).Approvals[0].Definition)
			tool.spec.Definition = "second"
			w.decide(first.Deferred, "a", approvals.Approve, "")
			second := w.resume(first.Deferred)
			require.Equal(t, agentrun.RunDeferred, second.Status)
			require.Empty(t, w.executed())
			asked := w.batch(second.Deferred).Approvals[0]
			require.Equal(t, "second", asked.Definition)
			require.Equal(t, signedBy("bob"), asked.Requirement)
			require.Equal(t, "The definition of this tool has changed since the call was approved.", asked.GateReason.Text)
			require.Equal(t, approvals.AskedAgain, w.batch(first.Deferred).Approvals[0].Execution.State)

			w.decide(second.Deferred, "a", approvals.Approve, "")
			require.Equal(t, agentrun.RunCompleted, w.resume(second.Deferred).Status)
			require.Equal(t, []string{"t:1"}, w.executed())
		})
	}
}
