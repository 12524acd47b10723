package format_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/httpapi/format"
	"github.com/countersign/countersign/internal/intake"
)

// read returns a document of testdata, as the framework wrote it.
func read(t *testing.T, name string) json.RawMessage {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return raw
}

// settled answers the calls of a reading with the outcomes, in their order.
func settled(r format.Reading, outcomes ...intake.Outcome) []intake.CallStatus {
	calls := make([]intake.CallStatus, len(r.Calls))
	for i, c := range r.Calls {
		calls[i] = intake.CallStatus{ID: c.ID, Tool: c.Tool, Args: c.Args, Outcome: outcomes[i]}
	}
	return calls
}

func TestPydanticRequestsAreReadLikeUpstreamOrMoreStrictly(t *testing.T) {
	var vectors struct {
		Requests []struct {
			Name      string                 `json:"name"`
			JSON      json.RawMessage        `json:"json"`
			Accepted  bool                   `json:"accepted"`
			Approvals []approvals.ToolCallID `json:"approvals"`
		} `json:"deferred_tool_requests_load"`
	}
	require.NoError(t, json.Unmarshal(read(t, "../../../approvals/testdata/deferred-tools.json"), &vectors))
	stricter := map[string]string{
		"empty":              "a request without calls asks for nothing",
		"extra keys ignored": "a misspelled key would drop a call or its arguments",
	}
	for _, c := range vectors.Requests {
		t.Run(c.Name, func(t *testing.T) {
			r, err := format.Read(format.PydanticAI, c.JSON, nil)
			if stricter[c.Name] != "" || !c.Accepted {
				require.ErrorAs(t, err, new(*format.RequestError))
				return
			}
			require.NoError(t, err)
			ids := []approvals.ToolCallID{}
			for _, call := range r.Calls {
				ids = append(ids, call.ID)
			}
			require.Equal(t, c.Approvals, ids)
		})
	}
}

// What upstream was observed to take back as an approval, a denial and changed
// arguments is what is written.
func TestPydanticAnswersAreWhatUpstreamTakes(t *testing.T) {
	r, err := format.Read(format.PydanticAI, read(t, "pydantic-ai.json"), nil)
	require.NoError(t, err)
	const sent = `{"order": "R-17",  "cents": 9007199254740993}`
	require.Equal(t, sent, string(r.Calls[1].Args), "the bytes are kept") //nolint:testifylint // every byte counts
	calls := settled(r, intake.OutcomeFulfilled, intake.OutcomeApproved, intake.OutcomeDenied, intake.OutcomeApproved)
	calls[0].Result = approvals.ToolReturn{ReturnValue: json.RawMessage(`{"rows":12}`)}
	calls[1].By = []approvals.Seat{{User: "U1"}}
	calls[2].Reason = "Finance says no"
	calls[3].Edited, calls[3].Args = true, json.RawMessage(`{"cents":1000}`)
	out, err := r.Form.Write(format.PydanticAI, calls)
	require.NoError(t, err)
	var back approvals.DeferredToolResults
	require.NoError(t, json.Unmarshal(out, &back), "our own strict reader takes it")
	require.Equal(t, map[approvals.ToolCallID]approvals.ApprovalResult{
		"call_B": approvals.ToolApproved{}, "call_C": approvals.ToolDenied{Message: "Finance says no"},
		"call_D": approvals.ToolApproved{OverrideArgs: json.RawMessage(`{"cents":1000}`)},
	}, back.Approvals)
	require.JSONEq(t, `{"rows":12}`, string(back.Calls["call_A"].(approvals.ToolReturn).ReturnValue))
	require.Contains(t, string(back.Metadata["call_B"]), `"approved_by":["U1"]`)
}

// Upstream reads a denial of an external call as its successful result.
func TestAnExternalCallWithoutAResultHasFailed(t *testing.T) {
	r, err := format.Read(format.PydanticAI, json.RawMessage(`{"calls":[{"tool_name":"x","tool_call_id":"a"},{"tool_name":"x","tool_call_id":"b"}]}`), nil)
	require.NoError(t, err)
	require.True(t, r.Calls[0].External)
	calls := settled(r, intake.OutcomeWithdrawn, intake.OutcomeFulfilled)
	calls[1].Result = approvals.ToolDenied{Message: "no"}
	out, err := r.Form.Write(format.PydanticAI, calls)
	require.NoError(t, err)
	var back approvals.DeferredToolResults
	require.NoError(t, json.Unmarshal(out, &back))
	require.IsType(t, approvals.ToolFailed{}, back.Calls["a"])
	require.Equal(t, approvals.ToolFailed{Message: "no"}, back.Calls["b"])
}

// It was neither approved nor denied, and the SDK has no other answer.
func TestAnExternalCallHasNoAnswerForOpenAI(t *testing.T) {
	r, err := format.Read(format.PydanticAI, json.RawMessage(`{"calls":[{"tool_name":"x","tool_call_id":"a"}]}`), nil)
	require.NoError(t, err)
	_, err = r.Form.Write(format.OpenAIAgents, settled(r, intake.OutcomeFulfilled))
	require.ErrorIs(t, err, format.ErrOther)
}

func TestAnswersByPositionAreInTheOrderOfTheRequest(t *testing.T) {
	for file, want := range map[string]string{
		"langchain-js.json":     `{"resume":{"decisions":[{"type":"approve"},{"message":"too much","type":"reject"},{"editedAction":{"args":{"cents":1000},"name":"refund"},"type":"edit"}]}}`,
		"langchain-python.json": `{"resume":{"decisions":[{"type":"approve"},{"message":"too much","type":"reject"},{"edited_action":{"args":{"cents":1000},"name":"refund"},"type":"edit"}]}}`,
		"agent-inbox.json":      `{"resume":[{"args":null,"type":"accept"},{"args":"too much","type":"response"},{"args":{"action":"refund","args":{"cents":1000}},"type":"edit"}]}`,
		"langchain-two.json":    `{"resume":{"i1":{"decisions":[{"type":"approve"},{"message":"too much","type":"reject"}]},"i2":{"decisions":[{"editedAction":{"args":{"cents":1000},"name":"refund"},"type":"edit"}]}}}`,
	} {
		t.Run(file, func(t *testing.T) {
			r, err := format.Read(format.LangChain, read(t, file), nil)
			require.NoError(t, err)
			require.Equal(t, intake.Carries{Edits: true, Reasons: true, Late: true}, r.Carries)
			calls := settled(r, intake.OutcomeApproved, intake.OutcomeDenied, intake.OutcomeApproved)
			require.Equal(t, []approvals.ToolCallID{"call-1", "call-2", "call-3"}, []approvals.ToolCallID{calls[0].ID, calls[1].ID, calls[2].ID})
			calls[1].Reason = "too much"
			calls[2].Edited, calls[2].Args = true, json.RawMessage(`{"cents":1000}`)
			out, err := r.Form.Write(format.LangChain, calls)
			require.NoError(t, err)
			require.Equal(t, want, string(out))

			kept, err := json.Marshal(r.Form)
			require.NoError(t, err)
			var again format.Form
			require.NoError(t, json.Unmarshal(kept, &again))
			require.Equal(t, r.Form, again, "a form is stored")
		})
	}
}

func TestNoAnswerIsPartial(t *testing.T) {
	for name, file := range map[format.Name]string{format.LangChain: "langchain-js.json", format.OpenAIAgents: "openai-agents.json", format.PydanticAI: "pydantic-ai.json"} {
		r, err := format.Read(name, read(t, file), nil)
		require.NoError(t, err)
		calls := make([]intake.CallStatus, len(r.Calls))
		for i := range calls {
			calls[i] = intake.CallStatus{ID: r.Calls[i].ID, Tool: r.Calls[i].Tool, Outcome: intake.OutcomeApproved}
		}
		calls[len(calls)-1].Outcome = intake.OutcomePending
		_, err = r.Form.Write(name, calls)
		require.ErrorIs(t, err, format.ErrOpen)
		if name == format.LangChain {
			_, err = r.Form.Write(name, calls[:len(calls)-1])
			require.ErrorIs(t, err, format.ErrOther, "a short list throws in the framework, or answers another call")
		}
	}
}

// Whatever became of the calls, an answer names no tool but the one asked for.
func TestAnEditNeverChangesTheTool(t *testing.T) {
	for _, file := range []string{"langchain-js.json", "langchain-python.json", "agent-inbox.json"} {
		r, err := format.Read(format.LangChain, read(t, file), nil)
		require.NoError(t, err)
		calls := settled(r, intake.OutcomeApproved, intake.OutcomeApproved, intake.OutcomeApproved)
		for i := range calls {
			calls[i].Edited, calls[i].Args = true, json.RawMessage(`{"name":"delete_everything","action":"delete_everything"}`)
		}
		out, err := r.Form.Write(format.LangChain, calls)
		require.NoError(t, err)
		for _, named := range []string{`"edit"`, `"refund"`} {
			require.Contains(t, string(out), named)
		}
		require.NotContains(t, strings.ReplaceAll(string(out), `{"name":"delete_everything","action":"delete_everything"}`, ""), "delete_everything")
	}
}

func TestOpenAIInterruptionsAreAnsweredByTheirCallIDs(t *testing.T) {
	r, err := format.Read(format.OpenAIAgents, read(t, "openai-agents.json"), nil)
	require.NoError(t, err)
	require.False(t, r.Carries.Edits, "the SDK takes no arguments back")
	require.Equal(t, []byte(`{"cents":4200, "id":9007199254740993}`), []byte(r.Calls[0].Args))
	calls := settled(r, intake.OutcomeApproved, intake.OutcomeExpired)
	out, err := r.Form.Write(format.OpenAIAgents, calls)
	require.NoError(t, err)
	require.JSONEq(t, `{"decisions":[{"callId":"call_1","approve":true},{"callId":"call_2","approve":false,
		"message":"Nobody decided about this tool call in time. It was not denied, and it must not run."}]}`, string(out))

	calls[0].Edited = true
	out, err = r.Form.Write(format.OpenAIAgents, calls)
	require.NoError(t, err)
	require.NotContains(t, string(out), `"approve":true`, "it would run with the arguments that nobody approved")
}

// What the newest SDKs say besides the call decides nothing: who called it, and how the
// SDK finds its tool again.
func TestOpenAIInterruptionsOfTheNewestSDKsAreRead(t *testing.T) {
	for sdk, body := range map[string]string{
		"JavaScript": `[{"type":"tool_approval_item","rawItem":{"type":"function_call","id":"fc_1","callId":"a","name":"refund","status":"completed","arguments":"{}","caller":{"type":"program","callerId":"p1"},"providerData":{}},"agent":{"name":"R"},"toolName":"refund","functionToolStateKey":"refund"}]`,
		"Python": `[{"type":"tool_approval_item","raw_item":{"type":"function_call","id":"fc_1","call_id":"a","name":"refund","status":"completed","arguments":"{}","caller":null,"async":false},"agent":{"name":"R"},"tool_name":"refund",
			"tool_namespace":"refund","tool_origin":{"type":"function"},"tool_lookup_key":{"kind":"bare","name":"refund"},"allow_bare_name_alias":true}]`,
	} {
		t.Run(sdk, func(t *testing.T) {
			r, err := format.Read(format.OpenAIAgents, json.RawMessage(body), nil)
			require.NoError(t, err)
			require.Equal(t, "refund", r.Calls[0].Tool)
		})
	}
}

// Two namespaces can have a tool of one name, and a rule about one is not about the other.
func TestAnOpenAIToolIsNamedWithItsNamespace(t *testing.T) {
	for namespace, want := range map[string]string{`"prod"`: "prod.lookup", `"lookup"`: "lookup", `""`: "lookup", `null`: "lookup"} {
		r, err := format.Read(format.OpenAIAgents, json.RawMessage(`[{"type":"tool_approval_item","rawItem":{"callId":"a","name":"lookup","namespace":`+namespace+`}}]`), nil)
		require.NoError(t, err)
		require.Equal(t, want, r.Calls[0].Tool)
	}
	_, err := format.Read(format.OpenAIAgents, json.RawMessage(`[{"type":"tool_approval_item","rawItem":{"callId":"a","name":"lookup","namespace":1}}]`), nil)
	require.ErrorContains(t, err, "/0/rawItem/namespace")
}

// The words differ by outcome: silence is not a denial.
func TestEveryOutcomeHasItsOwnWords(t *testing.T) {
	seen := map[string]intake.Outcome{}
	for _, o := range []intake.Outcome{intake.OutcomeDenied, intake.OutcomeRefused, intake.OutcomeExpired, intake.OutcomeWithdrawn, intake.OutcomeSuperseded} {
		words := format.Words(intake.CallStatus{Outcome: o})
		require.Empty(t, seen[words], words)
		seen[words] = o
	}
}

func TestWhatIsWrongIsNamedWithItsPlace(t *testing.T) {
	for _, c := range []struct {
		name     format.Name
		in, want string
	}{
		{format.LangChain, `[{"value":{"actionRequests":[{"name":"x","argz":{}}],"reviewConfigs":[]}}]`, "/0/value/actionRequests/0/argz: there is no such key; the keys here are name, args, arguments, description"},
		{format.LangChain, `{"actionRequests":[{"name":"x","args":[]}]}`, "/actionRequests/0/args: "},
		{format.LangChain, `{"actionRequests":[]}`, "the document: has no calls"},
		{format.LangChain, `{"question":"go on?"}`, "is no interrupt for approval"},
		{format.LangChain, `{"actionRequests":[{"name":"x"}],"reviewConfigs":[{"actionName":"x","allowedDecisions":["approve"]}]}`, `does not have "reject"`},
		{format.LangChain, `[{"value":{"actionRequests":[{"name":"x"}]}},{"value":{"actionRequests":[{"name":"x"}]}}]`, "so each needs an id"},
		{format.LangChain, `[{"id":"a","value":{"actionRequests":[{"name":"x"}]}},{"id":"a","value":{"actionRequests":[{"name":"x"}]}}]`, `the interrupt "a" twice`},
		{format.LangChain, `[{"id":"a","value":{"actionRequests":[{"name":"x"}]}},{"id":"b","value":{"action_requests":[{"name":"x"}]}}]`, "spelled otherwise"},
		{format.LangChain, `{"action_request":{"action":"x"},"config":{"allow_accept":true}}`, "must allow to accept"},
		{format.OpenAIAgents, `[{"type":"tool_approval_item","rawItem":{"type":"hosted_tool_call","name":"x"}}]`, "/0/rawItem/type: "},
		{format.OpenAIAgents, `[{"type":"tool_approval_item","toolName":"shell","rawItem":{"type":"shell_call","callId":"c","action":{"commands":["ls"]}}}]`, "/0/rawItem/type: "},
		{format.OpenAIAgents, `[{"type":"tool_approval_item","rawItem":{"callId":"a","call_id":"a","name":"x"}}]`, "exactly one of"},
		{format.OpenAIAgents, `[{"type":"tool_approval_item","rawItem":{"callId":"a","name":"x","arguments":"{\"a\":1,\"a\":2}"}}]`, "occurs twice"},
		{format.OpenAIAgents, `[{"type":"tool_approval_item","rawItem":{"callId":"a","name":"x","arguments":"{} run"}}]`, "nothing may follow"},
		{format.OpenAIAgents, `{"interruptions":[]}`, "has no interruptions"},
		{format.PydanticAI, `{"approvals":[{"tool_name":"x"}]}`, "tool_call_id"},
		{"crewai", `{}`, "there is no format"},
	} {
		_, err := format.Read(c.name, json.RawMessage(c.in), nil)
		require.ErrorAs(t, err, new(*format.RequestError), c.in)
		require.ErrorIs(t, err, approvals.ErrInvalid)
		require.ErrorContains(t, err, c.want, c.in)
	}
}

func TestIdsOfTheCallerNameTheCallsOfAFormatWithoutIds(t *testing.T) {
	r, err := format.Read(format.LangChain, read(t, "langchain-js.json"), []approvals.ToolCallID{"a", "b", "c"})
	require.NoError(t, err)
	require.Equal(t, approvals.ToolCallID("c"), r.Calls[2].ID)
	_, err = format.Read(format.LangChain, read(t, "langchain-js.json"), []approvals.ToolCallID{"a"})
	require.ErrorContains(t, err, "has 3 calls, but 1 ids are given")
	_, err = format.Read(format.OpenAIAgents, read(t, "openai-agents.json"), []approvals.ToolCallID{"a", "b"})
	require.ErrorContains(t, err, "ids of their own")
}

// What the framework would refuse as an answer is not offered to the approvers.
func TestACallThatTakesNoEditIsNotOfferedForOne(t *testing.T) {
	r, err := format.Read(format.LangChain, json.RawMessage(`{"actionRequests":[{"name":"x","args":{}},{"name":"y","args":{}}],
		"reviewConfigs":[{"actionName":"x","allowedDecisions":["approve","reject"]},{"actionName":"y","allowedDecisions":["approve","edit","reject"]}]}`), nil)
	require.NoError(t, err)
	require.False(t, r.Carries.Edits)
	r, err = format.Read(format.LangChain, json.RawMessage(`[{"action_request":{"action":"x","args":{}},"config":{"allow_accept":true,"allow_edit":false,"allow_respond":false,"allow_ignore":true}}]`), nil)
	require.NoError(t, err)
	require.Equal(t, intake.Carries{Late: true}, r.Carries)
	out, err := r.Form.Write(format.LangChain, settled(r, intake.OutcomeDenied))
	require.NoError(t, err)
	require.JSONEq(t, `{"resume":[{"type":"ignore","args":null}]}`, string(out))
}

// The middleware of LangChain describes a call, unless the agent does, by its tool and
// its arguments, which may be longer than a description may be.
func TestADescriptionThatRepeatsTheCallIsNoReason(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for description, want := range map[string]string{
		"Tool execution requires approval\n\nTool: write\nArgs: {\n  \"text\": \"" + long + "\"\n}": "",
		"The report is due.\n\nTool: write\nArgs: {'text': '" + long + "'}":                         "The report is due.",
		"The report is due.":                       "The report is due.",
		"It is like this:\n\nTool: read\nArgs: {}": "It is like this:\n\nTool: read\nArgs: {}",
	} {
		body, err := json.Marshal(map[string]any{"actionRequests": []any{map[string]any{"name": "write", "args": map[string]any{"text": long}, "description": description}}})
		require.NoError(t, err)
		r, err := format.Read(format.LangChain, body, nil)
		require.NoError(t, err)
		require.Equal(t, want, r.Calls[0].Reason)
	}
	_, err := format.Read(format.LangChain, json.RawMessage(`{"actionRequests":[{"name":"write","description":"`+long+`"}]}`), nil)
	require.ErrorContains(t, err, "/actionRequests/0/description: must have at most 4096 bytes")
}
