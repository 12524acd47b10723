package agentrun_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// hosting is a world whose agent has a tool of ours, gated, and one that the provider
// runs, docs.ask, about which bob is asked.
func hosting(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.agent.Tools = []agentrun.Tool{w.does("gated", agentrun.KindUnapproved), w.does("plain", agentrun.KindFunction), w.does("docs.ask", agentrun.KindHosted)}
	w.policy.by = map[string]approvals.Ruling{"docs.ask": approvals.Ask{Requirement: signedBy("bob")}}
	return w
}

// requests is a response in which the provider asks for approval of h, a call of
// docs.ask, beside other parts. local is f, a call of ours.
func requests(more ...agentrun.ResponsePart) agentrun.Response {
	return agentrun.Response{FinishReason: agentrun.FinishToolCall, Parts: append([]agentrun.ResponsePart{agentrun.CallPart{
		ToolCall: approvals.ToolCall{ID: "h", Name: "docs.ask", Args: json.RawMessage(`{"x":1}`)}, ApprovalRequest: "mcpr_h",
	}}, more...)}
}

func local(tool string) agentrun.CallPart {
	return agentrun.CallPart{ToolCall: approvals.ToolCall{ID: "f", Name: tool, Args: json.RawMessage(`{"x":2}`)}}
}

// ran is what the provider says of a call that it made for a request.
func ran(request, args, output string) agentrun.ProviderCall {
	return agentrun.ProviderCall{
		ToolCall:        approvals.ToolCall{ID: "mcp_1", Name: "docs.ask", Args: json.RawMessage(args)},
		ApprovalRequest: request, Output: output,
	}
}

func saysAfter(text string, parts ...agentrun.ResponsePart) agentrun.Response {
	r := says(text)
	r.Parts = append(parts, r.Parts...)
	return r
}

// approvedIn lists what each request to the model approved.
func (w *world) approvedIn() [][]approvals.ToolCallID {
	var all [][]approvals.ToolCallID
	for _, r := range w.model.requests {
		all = append(all, r.Approved)
	}
	return all
}

func ids(all ...approvals.ToolCallID) []approvals.ToolCallID { return all }

func TestAHostedCallRunsAtTheProviderOnceItIsApproved(t *testing.T) {
	w := hosting(t)
	run := w.say(requests(), saysAfter("It is 42.", ran("mcpr_h", `{ "x": 1 }`, "42")))
	asked, ok := w.batch(run.Deferred).Approval("h")
	require.True(t, ok)
	require.True(t, asked.Hosted)
	require.ErrorIs(t, w.store.move(run.Deferred, json.RawMessage(`{"x":2}`), approvals.Amend{
		Call: "h", From: asked.Call.Digest, Args: json.RawMessage(`{"x":2}`), Ruling: approvals.Permit{}, By: approvals.Principal{User: "alice"}, At: epoch,
	}), approvals.ErrNoEdits, "the provider runs it as the model made it")
	w.decide(run.Deferred, "h", approvals.Approve, "")
	resumed := w.resume(run.Deferred)

	require.Equal(t, agentrun.RunCompleted, resumed.Status)
	require.Equal(t, "It is 42.", resumed.Output)
	require.Equal(t, []string{`call h docs.ask{"x":1}`, `h success: "42"`, "text: It is 42."}, w.added())
	require.Equal(t, "mcp_1", w.history()[2].(agentrun.Request).Parts[0].(agentrun.ToolReturn).ProviderCall)
	require.Equal(t, [][]approvals.ToolCallID{nil, ids("h")}, w.approvedIn())
	require.Empty(t, w.executed(), "it does not run here")
	require.Empty(t, w.model.requests[0].Tools[2:], "the provider defines its tools itself")
	require.Equal(t, 2, resumed.Usage.Requests)
	require.Equal(t, 1, resumed.Usage.ToolCalls)
	after, _ := w.batch(run.Deferred).Approval("h")
	require.Equal(t, approvals.Ran, after.Execution.State)
	entries, err := w.store.Journal(t.Context(), resumed.ID)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, agentrun.EntryFinished, entries[0].State)
}

func TestWhatIsNotApprovedIsNeverToldToRun(t *testing.T) {
	w := hosting(t)
	run := w.say(requests())
	w.decide(run.Deferred, "h", approvals.Deny, "not on a Friday")
	require.Equal(t, agentrun.RunCompleted, w.resume(run.Deferred).Status)
	require.Equal(t, [][]approvals.ToolCallID{nil, nil}, w.approvedIn())
	require.Contains(t, w.added()[1], "h denied")
	require.Contains(t, w.added()[1], "not on a Friday", "the model and the provider read why")

	w = hosting(t)
	w.policy.by["docs.ask"] = approvals.Refuse{Reason: "never"}
	require.Equal(t, agentrun.RunCompleted, w.say(requests()).Status)
	require.Equal(t, [][]approvals.ToolCallID{nil, nil}, w.approvedIn())
	require.Equal(t, `h denied: "never"`, w.added()[1])
}

func TestAHostedCallThatThePolicyPermitsRunsWithoutPeople(t *testing.T) {
	w := hosting(t)
	w.policy.by["docs.ask"] = approvals.Permit{}
	run := w.say(requests(), saysAfter("It is 42.", ran("mcpr_h", `{"x":1}`, "42")))
	require.Equal(t, agentrun.RunCompleted, run.Status)
	require.Equal(t, [][]approvals.ToolCallID{nil, ids("h")}, w.approvedIn())
	entries, err := w.store.Journal(t.Context(), run.ID)
	require.NoError(t, err)
	require.Len(t, entries, 1, "what ran is recorded")
}

// Calls of ours and of the provider are in one batch. Ours run first: the model
// cannot be asked before all of them have a result.
func TestHostedCallsShareABatchWithOthers(t *testing.T) {
	w := hosting(t)
	second := agentrun.CallPart{ToolCall: approvals.ToolCall{ID: "i", Name: "docs.ask", Args: json.RawMessage(`{"x":3}`)}, ApprovalRequest: "mcpr_i"}
	run := w.say(requests(local("gated"), second), func(context.Context) (agentrun.Response, error) {
		require.Equal(t, []string{"gated:2"}, w.executed())
		return saysAfter("Done.", ran("mcpr_h", `{"x":1}`, "42")), nil
	})
	require.Len(t, w.batch(run.Deferred).Approvals, 3)
	w.decide(run.Deferred, "h", approvals.Approve, "")
	w.decide(run.Deferred, "i", approvals.Deny, "no")
	w.decide(run.Deferred, "f", approvals.Approve, "")
	require.Equal(t, agentrun.RunCompleted, w.resume(run.Deferred).Status)
	require.Equal(t, [][]approvals.ToolCallID{nil, ids("h")}, w.approvedIn())
	require.Equal(t, `h success: "42"`, w.added()[3])
	require.Equal(t, `f success: "gated:2"`, w.added()[4])
	require.Contains(t, w.added()[5], "i denied")
}

func TestAPermittedHostedCallWaitsForTheOthersOfItsResponse(t *testing.T) {
	w := hosting(t)
	w.policy.by["docs.ask"] = approvals.Permit{}
	run := w.say(requests(local("gated")), saysAfter("Done.", ran("mcpr_h", `{"x":1}`, "42")))
	people, _ := w.pending(run)
	require.Equal(t, []string{"f"}, people)
	require.Len(t, w.approvedIn(), 1)
	w.decide(run.Deferred, "f", approvals.Approve, "")
	require.Equal(t, agentrun.RunCompleted, w.resume(run.Deferred).Status)
	require.Equal(t, [][]approvals.ToolCallID{nil, ids("h")}, w.approvedIn())

	w = hosting(t) // and the policy has its word again
	w.policy.by["docs.ask"] = approvals.Permit{}
	run = w.say(requests(local("gated")))
	w.decide(run.Deferred, "f", approvals.Approve, "")
	w.policy.by["docs.ask"] = approvals.Refuse{Reason: "not any more"}
	require.Equal(t, agentrun.RunCompleted, w.resume(run.Deferred).Status)
	require.Equal(t, [][]approvals.ToolCallID{nil, nil}, w.approvedIn())
}

// An approval is for the step that takes it up. If another call of the step waits
// for people again, so does this one, and nothing was sent.
func TestAnApprovedHostedCallThatCannotRunYetIsAskedAboutAgain(t *testing.T) {
	w := hosting(t)
	stages := 0
	tool := w.does("cond", agentrun.KindUnapproved)
	once := tool.execute
	tool.execute = func(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
		if stages++; stages == 1 {
			return agentrun.Result{}, &agentrun.CallDeferred{}
		}
		return once(ctx, c)
	}
	w.agent.Tools = append(w.agent.Tools, tool)
	run := w.say(requests(local("cond")), saysAfter("Done.", ran("mcpr_h", `{"x":1}`, "42")))
	w.decide(run.Deferred, "h", approvals.Approve, "")
	w.decide(run.Deferred, "f", approvals.Approve, "")
	again := w.resume(run.Deferred)
	people, elsewhere := w.pending(again)
	require.Equal(t, []string{"h"}, people)
	require.Equal(t, []string{"f"}, elsewhere)
	require.Len(t, w.approvedIn(), 1)
	first, _ := w.batch(run.Deferred).Approval("h")
	require.Equal(t, approvals.AskedAgain, first.Execution.State)

	w.decide(again.Deferred, "h", approvals.Approve, "")
	w.fulfill(again.Deferred, "f", approvals.ToolReturn{ReturnValue: json.RawMessage(`1`)})
	require.Equal(t, agentrun.RunCompleted, w.resume(again.Deferred).Status)
	require.Equal(t, [][]approvals.ToolCallID{nil, ids("h")}, w.approvedIn())
}

var errLost = &agentrun.ModelError{Code: agentrun.ModelUnavailable, Words: "The model gave no usable answer.", Err: errors.New("dropped")}

// lost is a world in which bob approved docs.ask and the answer of the provider got
// lost, with the batch that asks what became of it.
func lost(t *testing.T, effect agentrun.Effect, answers ...any) (*world, agentrun.Run) {
	t.Helper()
	w := hosting(t)
	w.agent.Effects = map[string]agentrun.Effect{"docs.ask": effect}
	run := w.say(append([]any{requests(), errLost}, answers...)...)
	w.decide(run.Deferred, "h", approvals.Approve, "")
	return w, w.resume(run.Deferred)
}

func TestAHostedCallWhoseAnswerIsLostIsInDoubt(t *testing.T) {
	w, run := lost(t, agentrun.EffectNone)
	asked, _ := w.batch(run.Deferred).Approval("h")
	require.True(t, asked.InDoubt())
	require.True(t, asked.Hosted)
	require.Equal(t, 1, w.answerDoubts(run.Deferred))
	require.Equal(t, agentrun.RunCompleted, w.resume(run.Deferred).Status)
	require.Equal(t, [][]approvals.ToolCallID{nil, ids("h"), nil}, w.approvedIn(), "it is not sent again")
	require.Contains(t, w.added()[1], "h interrupted")

	w, run = lost(t, agentrun.EffectNone, saysAfter("Now.", ran("mcpr_h", `{"x":1}`, "42")))
	w.doubt = approvals.RunAgain
	w.answerDoubts(run.Deferred)
	require.Equal(t, agentrun.RunCompleted, w.resume(run.Deferred).Status)
	require.Equal(t, [][]approvals.ToolCallID{nil, ids("h"), ids("h")}, w.approvedIn(), "people let it run again")

	w, run = lost(t, agentrun.EffectNone)
	w.doubt = approvals.Happened
	w.answerDoubts(run.Deferred)
	require.Equal(t, agentrun.RunCompleted, w.resume(run.Deferred).Status)
	require.Equal(t, [][]approvals.ToolCallID{nil, ids("h"), nil}, w.approvedIn())
	require.Contains(t, w.added()[1], "h success")
}

func TestAHostedCallThatMayBeRepeatedIsNotInDoubt(t *testing.T) {
	w, run := lost(t, agentrun.EffectIdempotent, saysAfter("Now.", ran("mcpr_h", `{"x":1}`, "42")))
	require.Equal(t, agentrun.RunCompleted, run.Status)
	require.Equal(t, [][]approvals.ToolCallID{nil, ids("h"), ids("h")}, w.approvedIn())

	w, run = lost(t, agentrun.EffectIdempotent, errLost)
	people, _ := w.pending(run)
	require.Equal(t, []string{"h"}, people, "once")

	w, run = lost(t, agentrun.EffectPure)
	require.Equal(t, agentrun.RunCompleted, run.Status)
	require.Equal(t, [][]approvals.ToolCallID{nil, ids("h"), nil}, w.approvedIn())
	require.Contains(t, w.added()[1], "h failed")
}

// An answer that leaves an approved call open is followed by another request. What it
// cost counts, whatever comes of that request.
func TestEveryAnswerOfTheProviderIsCharged(t *testing.T) {
	refused := *errLost
	refused.NotRun = true
	for name, tt := range map[string]struct {
		second any
		status agentrun.Status
	}{
		"the second is lost":    {errLost, agentrun.RunDeferred},
		"the second is refused": {&refused, agentrun.RunFailed},
	} {
		t.Run(name, func(t *testing.T) {
			w := hosting(t)
			w.agent.Effects = map[string]agentrun.Effect{"docs.ask": agentrun.EffectIdempotent}
			open := says("Done.")
			open.Usage = agentrun.Usage{InputTokens: 100, OutputTokens: 20}
			run := w.say(requests(), open, tt.second)
			before := run.Usage
			w.decide(run.Deferred, "h", approvals.Approve, "")
			run = w.resume(run.Deferred)
			require.Equal(t, tt.status, run.Status)
			require.Len(t, w.approvedIn(), 3)
			require.Equal(t, before.Requests+1, run.Usage.Requests)
			require.Equal(t, before.InputTokens+100, run.Usage.InputTokens)
			require.Equal(t, before.OutputTokens+20, run.Usage.OutputTokens)
		})
	}
}

func TestARequestThatTheProviderRefusedRanNothing(t *testing.T) {
	w := hosting(t)
	refused := *errLost
	refused.NotRun, refused.Words = true, "The model provider is limiting requests."
	run := w.say(requests(), &refused)
	w.decide(run.Deferred, "h", approvals.Approve, "")
	resumed := w.resume(run.Deferred)
	require.Equal(t, agentrun.RunFailed, resumed.Status)
	require.Equal(t, refused.Words, resumed.Failure)
	after, _ := w.batch(run.Deferred).Approval("h")
	require.Equal(t, approvals.NotRun, after.Execution.State)
	require.Contains(t, w.added()[1], "h interrupted")
	require.NotContains(t, w.added()[1], "not known")
}

func TestACallThatTheProviderLeavesOutIsInDoubt(t *testing.T) {
	w := hosting(t)
	run := w.say(requests(), says("Done."))
	w.decide(run.Deferred, "h", approvals.Approve, "")
	run = w.resume(run.Deferred)
	asked, _ := w.batch(run.Deferred).Approval("h")
	require.True(t, asked.InDoubt())
	require.NotContains(t, w.added(), "text: Done.", "what the model says after it is not used")
}

// The provider may say of a call that it does not know how it ended.
func TestACallThatTheProviderIsUnsureOfIsInDoubt(t *testing.T) {
	w := hosting(t)
	unsure := ran("mcpr_h", `{"x":1}`, "half of it")
	unsure.Failed, unsure.Unsure = true, true
	run := w.say(requests(), saysAfter("Done.", unsure))
	w.decide(run.Deferred, "h", approvals.Approve, "")
	again := w.resume(run.Deferred)
	require.Equal(t, agentrun.RunDeferred, again.Status)
	require.Equal(t, approvals.InDoubt, w.executionOf(run.Deferred, "h").State)
	asked, _ := w.batch(again.Deferred).Approval("h")
	require.True(t, asked.InDoubt())
	require.True(t, asked.Doubt.Unsure)
	require.Equal(t, "The model provider did not finish this call, or cannot say how it ended.", asked.Doubt.Said.Text)
	require.NotContains(t, w.added(), "text: Done.", "what the model says after it is not used")
	require.Equal(t, 1, w.answerDoubts(again.Deferred))
	require.Equal(t, agentrun.RunCompleted, w.resume(again.Deferred).Status)
	require.Equal(t, [][]approvals.ToolCallID{nil, ids("h"), nil}, w.approvedIn(), "it is not sent again")
}

// A worker that takes over finds in the journal how far the call came.
func TestAHostedCallIsNotSentAgainByTheNextWorker(t *testing.T) {
	w := hosting(t)
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	first := w.say(requests(), func(ctx context.Context) (agentrun.Response, error) {
		kill()
		<-ctx.Done()
		return agentrun.Response{}, ctx.Err()
	})
	w.decide(first.Deferred, "h", approvals.Approve, "")
	require.NoError(t, w.runner().Resume(t.Context(), first.Deferred))
	id, err := agentrun.ResumeRunID(first.Deferred)
	require.NoError(t, err)
	require.Error(t, w.runner().Work(ctx, id))
	w.now = func() time.Time { return epoch.Add(time.Hour) } // its lease is over
	run := w.work(id)
	asked, _ := w.batch(run.Deferred).Approval("h")
	require.True(t, asked.InDoubt())
	require.Equal(t, [][]approvals.ToolCallID{nil, ids("h")}, w.approvedIn())
}

func TestACallThatTheProviderRanWithoutApprovalEndsTheRun(t *testing.T) {
	other := ran("mcpr_other", `{"x":9}`, "gone")
	other.ID = "mcp_9"
	for name, tt := range map[string]struct {
		answers []any
		approve bool
		history []string
		doubt   bool
	}{
		"at once": {
			answers: []any{saysAfter("Done.", other, local("plain"))},
			history: []string{`ran mcp_9 docs.ask{"x":9}: gone`},
		},
		"beside one that was": {
			answers: []any{requests(), saysAfter("Done.", other, ran("mcpr_h", `{"x":1}`, "42"))}, approve: true,
			history: []string{`call h docs.ask{"x":1}`, `h success: "42"`, `ran mcp_9 docs.ask{"x":9}: gone`},
		},
		"with other arguments": {
			answers: []any{requests(), saysAfter("Done.", ran("mcpr_h", `{"x":7}`, "42"))}, approve: true,
			history: []string{
				`call h docs.ask{"x":1}`,
				`h failed: "The model provider did not say what became of this call. It is not known whether the call took effect, so it is not repeated."`,
				`ran mcp_1 docs.ask{"x":7}: 42`,
			},
		},
		"twice": {
			answers: []any{requests(), saysAfter("Done.", ran("mcpr_h", `{"x":1}`, "42"), ran("mcpr_h", `{"x":1}`, "43"))}, approve: true,
			history: []string{`call h docs.ask{"x":1}`, `h success: "42"`, `ran mcp_1 docs.ask{"x":1}: 43`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			w := hosting(t)
			w.log = slog.New(slog.NewTextHandler(&log, nil))
			run := w.say(tt.answers...)
			if tt.approve {
				w.decide(run.Deferred, "h", approvals.Approve, "")
				run = w.resume(run.Deferred)
			}
			require.Equal(t, agentrun.RunFailed, run.Status)
			require.Contains(t, run.Failure, "ran docs.ask without approval")
			require.Equal(t, tt.history, w.added())
			require.Empty(t, w.executed())
			require.Contains(t, log.String(), "level=ERROR msg=\"the model provider ran a call without approval\"")
			require.NotContains(t, log.String(), "gone")
			entries, err := w.store.Journal(t.Context(), run.ID)
			require.NoError(t, err)
			require.Contains(t, string(entries[len(entries)-1].Call)+string(entries[0].Call), "unapproved:mcp_")
			next := w.work(w.mention("go on").ID)
			require.Equal(t, agentrun.RunCompleted, next.Status, "the thread can go on")
		})
	}
}

// The first event of a call need not have its arguments yet.
func TestAnApprovedCallThatBreaksOffBeforeItsArgumentsIsInDoubt(t *testing.T) {
	for args, inDoubt := range map[string]bool{``: true, `{"x"`: true, `{"x":1}`: true, `{"x":7}`: false} {
		w := hosting(t)
		begun := ran("mcpr_h", args, "")
		begun.Failed, begun.Unsure = true, true
		lost := *errLost
		lost.Ran = []agentrun.ProviderCall{begun}
		run := w.say(requests(), &lost)
		w.decide(run.Deferred, "h", approvals.Approve, "")
		run = w.resume(run.Deferred)
		if !inDoubt {
			require.Contains(t, run.Failure, "ran docs.ask without approval")
			continue
		}
		require.Equal(t, agentrun.RunDeferred, run.Status, "%s: %s", args, run.Failure)
		asked, _ := w.batch(run.Deferred).Approval("h")
		require.True(t, asked.InDoubt())
	}
}

// An approval names the id of the request only. Under one id there must not be two calls.
func TestAProviderThatAsksAgainUnderAnOldIDIsAskedToAnswerAgain(t *testing.T) {
	other := requests()
	c := other.Parts[0].(agentrun.CallPart)
	c.Args = json.RawMessage(`{"x":2}`)
	other.Parts[0] = c
	w := hosting(t)
	run := w.say(requests(), other, says("Fine."))
	w.decide(run.Deferred, "h", approvals.Deny, "no")
	run = w.resume(run.Deferred)
	require.Equal(t, agentrun.RunCompleted, run.Status)
	require.Equal(t, "Fine.", run.Output)
	require.Contains(t, w.added()[2], "had the id of an earlier one")
	require.Equal(t, [][]approvals.ToolCallID{nil, nil, nil}, w.approvedIn())
}

// By its name alone a call is neither hosted nor ours.
func TestACallOfTheOtherKindIsOfAnUnknownTool(t *testing.T) {
	w := hosting(t)
	hosted := requests()
	c := hosted.Parts[0].(agentrun.CallPart)
	c.Name = "plain"
	hosted.Parts[0] = c
	run := w.say(hosted)
	require.Equal(t, agentrun.RunCompleted, run.Status)
	require.Contains(t, w.added()[1], "h retry: Unknown tool name: 'plain'")

	w = hosting(t)
	require.Equal(t, agentrun.RunCompleted, w.say(calls([3]string{"a", "docs_ask", `{"x":1}`})).Status)
	require.Contains(t, w.added()[1], "a retry: Unknown tool name")
	require.Equal(t, [][]approvals.ToolCallID{nil, nil}, w.approvedIn())
	require.Empty(t, w.executed())
}
