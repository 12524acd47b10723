package httpapi_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
)

// framed is a request in the format of a framework, with its document from the
// vectors.
func framed(t *testing.T, format, file string, more string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("format", "testdata", file))
	require.NoError(t, err)
	return `{"format":"` + format + `","body":` + string(body) + more + `}`
}

// denied is what the model reads of a denial: whoever denied is quoted.
func denied(reason string) string {
	return "The tool call was denied. The reason that was given, quoted: " + strconv.Quote(reason)
}

func (w *world) results(id approvals.RunID, query string) exchange {
	w.Helper()
	return w.get(id, "/results"+query)
}

// What a tool says when it defers a call, such as the name of its job, is for who runs it.
func TestTheMetadataOfAnExternalCallReachesItsFulfiller(t *testing.T) {
	w := fulfillers(t)
	const body = `{"format":"pydantic-ai","body":{"calls":[{"tool_name":"render","args":"{}","tool_call_id":"e"}],"approvals":[{"tool_name":"refund","args":"{}","tool_call_id":"a"}],"metadata":{"e":{"job": 9007199254740993},"a":{"x":1}}}}`
	w.post(body)
	got := w.do(http.MethodGet, "/v1/waiting-calls", otherToken, "")
	require.Contains(t, string(got.body), `"metadata":{"job":9007199254740993}`)

	got = w.do(http.MethodPost, "/v1/approvals", claudeToken, strings.Replace(body, "9007199254740993", `"`+strings.Repeat("x", 16<<10)+`"`, 1))
	require.Equal(t, http.StatusUnprocessableEntity, got.status)
	require.Contains(t, string(got.body), `"at":"/body/metadata/e"`)
}

func TestPydanticAIGetsItsDeferredToolResults(t *testing.T) {
	w := newWorld(t)
	w.policy.Set("export_csv", approvals.Permit{}) // and so it only waits for its result
	q := w.post(framed(t, "pydantic-ai", "pydantic-ai.json", `,"state":{"message_history":[]}`))
	require.Equal(t, "pydantic-ai", q.Format)
	require.Equal(t, sent, q.Calls[1].ArgsText) //nolint:testifylint // every byte counts
	w.decide(q.ID, "call_B", approvals.Approve, "")
	w.decide(q.ID, "call_C", approvals.Deny, "Finance says no")
	early := w.results(q.ID, "")
	require.Equal(t, http.StatusConflict, early.status)
	require.Equal(t, "pending", early.kind(t))
	w.edit(q.ID, "call_D", `{"cents":1000}`)
	w.decide(q.ID, "call_D", approvals.Approve, "")
	require.Equal(t, "pending", w.results(q.ID, "").kind(t), "one call waits for its result")
	agents := *w.agents.Load()
	agents[1].Client.Fulfills[0].Tool = "export_csv"
	w.agents.Store(&agents)
	require.Equal(t, http.StatusOK, w.do(http.MethodPost, w.callPath(q.ID, "call_A")+"/result", otherToken, `{"result":{"rows":12}}`).status)

	got := w.results(q.ID, "")
	require.Equal(t, http.StatusOK, got.status, string(got.body))
	var back approvals.DeferredToolResults
	got.json(t, &back)
	require.Equal(t, map[approvals.ToolCallID]approvals.ApprovalResult{
		"call_B": approvals.ToolApproved{}, "call_C": approvals.ToolDenied{Message: denied("Finance says no")},
		"call_D": approvals.ToolApproved{OverrideArgs: json.RawMessage(`{"cents":1000}`)},
	}, back.Approvals)
	require.JSONEq(t, `{"rows":12}`, string(back.Calls["call_A"].(approvals.ToolReturn).ReturnValue))
	require.JSONEq(t, `{"message_history":[]}`, string(w.read(w.get(q.ID, "")).State))
}

func TestLangChainGetsItsDecisionsAllAtOnceAndInItsOrder(t *testing.T) {
	w := newWorld(t)
	q := w.post(framed(t, "langchain", "langchain-js.json", `,"ids":["toolu_1","toolu_2","toolu_3"]`))
	w.decide(q.ID, "toolu_3", approvals.Approve, "")
	w.decide(q.ID, "toolu_2", approvals.Deny, "too much")
	require.Equal(t, "pending", w.results(q.ID, "?format=langchain").kind(t))
	w.decide(q.ID, "toolu_1", approvals.Approve, "")
	got := w.results(q.ID, "?format=langchain")
	require.JSONEq(t, `{"resume":{"decisions":[{"type":"approve"},{"type":"reject","message":`+strconv.Quote(denied("too much"))+`},{"type":"approve"}]}}`, string(got.body))
	require.Equal(t, http.StatusOK, w.results(q.ID, "?format=openai-agents").status, "a format with ids is always possible")
	require.Equal(t, http.StatusUnprocessableEntity, w.results(q.ID, "?format=crewai").status)
}

func TestAnswersByPositionNeedARequestByPosition(t *testing.T) {
	w := newWorld(t)
	q := w.post(`{"calls":[{"id":"a","tool":"free"}]}`)
	require.Equal(t, "other-format", w.results(q.ID, "?format=langchain").kind(t))
	require.Equal(t, http.StatusUnprocessableEntity, w.results(q.ID, "").status)
}

func TestOpenAIAgentsGetsADecisionForEachInterruption(t *testing.T) {
	w := newWorld(t)
	q := w.post(framed(t, "openai-agents", "openai-agents.json", `,"state":"{\"$schemaVersion\":\"1.22\"}"`))
	w.decide(q.ID, "call_2", approvals.Deny, "not today")
	w.decide(q.ID, "call_1", approvals.Approve, "")
	require.JSONEq(t, `{"decisions":[{"callId":"call_1","approve":true},{"callId":"call_2","approve":false,"message":`+strconv.Quote(denied("not today"))+`}]}`, string(w.results(q.ID, "").body))
}

// The cases in which a peer failed open.

// A consistently edited state ran with cents 9999: the state came from the client
// and nobody had signed it. Here it is kept, and what is approved are the bytes
// that were handed in with the request.
func TestAnEditedStateChangesNothingThatRuns(t *testing.T) {
	w := newWorld(t)
	body := framed(t, "openai-agents", "openai-agents.json", `,"external_id":"run-1","state":{"cents":4200}`)
	q := w.post(body, "Idempotency-Key", `"run-1"`)
	w.decide(q.ID, "call_1", approvals.Approve, "")
	w.decide(q.ID, "call_2", approvals.Approve, "")

	edited := strings.ReplaceAll(body, "4200", "9999")
	require.Equal(t, "idempotency-key-reused", w.do(http.MethodPost, "/v1/approvals", claudeToken, edited, "Idempotency-Key", `"run-1"`).kind(t))
	require.JSONEq(t, `{"cents":4200}`, string(w.read(w.get(q.ID, "")).State))
	require.Contains(t, string(w.claim(q.ID, "call_1").body), "4200")

	again := w.post(edited)
	require.NotEqual(t, q.ID, again.ID)
	require.Equal(t, "pending", w.claim(again.ID, "call_1").kind(t), "other arguments are asked about anew")
}

// The same state resumed twice ran twice.
func TestTheSameStateResumedTwiceRunsOnce(t *testing.T) {
	w := newWorld(t)
	body := framed(t, "openai-agents", "openai-agents.json", `,"external_id":"run-1"`)
	q := w.post(body)
	w.decide(q.ID, "call_1", approvals.Approve, "")
	w.decide(q.ID, "call_2", approvals.Approve, "")
	ran := 0
	for range 2 { // two processes with the same state
		resumed := w.post(body)
		require.Equal(t, q.ID, resumed.ID)
		if w.claim(resumed.ID, "call_1").status == http.StatusOK {
			ran++
		}
	}
	require.Equal(t, 1, ran)
}

// A short list of answers by position throws, or answers the wrong call.
func TestAShortListOfAnswersIsNeverWritten(t *testing.T) {
	w := newWorld(t)
	q := w.post(framed(t, "langchain", "langchain-js.json", ""))
	for _, call := range []string{"call-1", "call-3"} {
		w.decide(q.ID, call, approvals.Approve, "")
		got := w.results(q.ID, "?wait=1ms")
		require.Equal(t, http.StatusConflict, got.status)
		require.NotContains(t, string(got.body), "decisions")
	}
}

// An edit may change the name of the tool in the framework, which runs it.
func TestAnEditThatNamesAnotherToolIsArgumentsAndNothingElse(t *testing.T) {
	w := newWorld(t)
	q := w.post(`{"format":"langchain","body":{"actionRequests":[{"name":"refund","args":{"cents":1}}]}}`)
	w.edit(q.ID, "call-1", `{"name":"delete_everything","editedAction":{"name":"delete_everything"}}`)
	w.decide(q.ID, "call-1", approvals.Approve, "")
	got := w.results(q.ID, "")
	var doc struct {
		Resume struct {
			Decisions []struct {
				EditedAction struct{ Name string } `json:"editedAction"`
			}
		}
	}
	got.json(t, &doc)
	require.Equal(t, "refund", doc.Resume.Decisions[0].EditedAction.Name)
	require.Contains(t, string(w.claim(q.ID, "call-1").body), `"tool":"refund"`)
}

// The SDK takes no arguments back, so a changed call is not approved there.
func TestACallThatWasEditedIsNotApprovedWhereTheEditIsLost(t *testing.T) {
	w := newWorld(t)
	q := w.post(`{"calls":[{"id":"c1","tool":"refund","args":{"cents":1}}]}`)
	w.edit(q.ID, "c1", `{"cents":2}`)
	w.decide(q.ID, "c1", approvals.Approve, "")
	require.NotContains(t, string(w.results(q.ID, "?format=openai-agents").body), `"approve":true`)
}

// A caller that says so runs the arguments that its claim returns: people can edit
// its calls, though its framework takes no arguments back.
func TestACallerThatRunsWhatItClaimsMayBeGivenEdits(t *testing.T) {
	w := newWorld(t)
	q := w.post(framed(t, "openai-agents", "openai-agents.json", `,"carries":{"edits":true}`))
	w.edit(q.ID, "call_1", `{"cents":1000}`)
	w.decide(q.ID, "call_1", approvals.Approve, "")
	w.decide(q.ID, "call_2", approvals.Approve, "")
	require.JSONEq(t, `{"decisions":[{"callId":"call_1","approve":true},{"callId":"call_2","approve":true}]}`, string(w.results(q.ID, "").body))
	require.Contains(t, string(w.claim(q.ID, "call_1").body), `"args_text":"{\"cents\":1000}"`)

	for _, carries := range []string{"", `,"carries":{}`, `,"carries":{"edits":false}`} {
		q := w.post(framed(t, "openai-agents", "openai-agents.json", carries))
		a, err := w.intake.Get(t.Context(), intake.Client{Name: "claude", Credential: "x", Owner: "alice"}, q.ID)
		require.NoError(t, err)
		b, err := w.store.Batch(t.Context(), a.Batch)
		require.NoError(t, err)
		require.True(t, b.Limits.NoEdits, carries)
	}
}
