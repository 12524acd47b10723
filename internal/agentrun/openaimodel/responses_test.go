package openaimodel_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/approvals"
)

func TestTheResponsesAPIGivesTheSameAnswer(t *testing.T) {
	sim := openaisim.New(always(twoCalls))
	got, err := newBench(t, sim, by(openaimodel.Responses)).Request(t.Context(), ask("go", "read_file"))
	require.NoError(t, err)
	thought, ok := got.Parts[0].(agentrun.Thinking)
	require.True(t, ok)
	require.NotEmpty(t, thought.ID)
	require.Equal(t, "scripted:"+thought.ID, thought.Signature)
	require.Equal(t, []agentrun.ResponsePart{
		agentrun.Text{Content: twoCalls.Text},
		call("call_1", "read_file", twoCalls.Calls[0].Args),
		call("call_2", "read_file", twoCalls.Calls[1].Args),
	}, spoken(got))
	require.Equal(t, agentrun.FinishToolCall, got.FinishReason)
	require.Equal(t, openaisim.ModelName, got.ModelName)
	require.Equal(t, noon, got.At)
	require.Equal(t, 1, got.Usage.Requests)
	require.Positive(t, got.Usage.InputTokens)
	require.Positive(t, got.Usage.OutputTokens)
	require.Contains(t, string(sim.Requests()[0].Body), `"store":false`, "the provider keeps nothing")
}

func TestAResponseThatBreaksAnywhereIsNotUsed(t *testing.T) {
	for _, kind := range []openaisim.FaultKind{openaisim.Dropped, openaisim.CutShort, openaisim.ErrorEvent, openaisim.MalformedSSE} {
		for after := 1; after <= 15; after++ { // the last event has everything
			sim := openaisim.New(always(openaisim.Reply{Text: "Well.", Calls: []openaisim.Call{{ID: "c1", Name: "a", Args: `{"path":"one, longer"}`}}}))
			sim.Fail(openaisim.Fault{Kind: kind, After: after})
			got, err := newBench(t, sim, by(openaimodel.Responses)).Request(t.Context(), ask("go", "a"))
			require.NoError(t, err)
			require.Len(t, sim.Requests(), 2, "%s after %d", kind, after)
			require.Equal(t, []agentrun.ResponsePart{agentrun.Text{Content: "Well."}, call("c1", "a", `{"path":"one, longer"}`)}, spoken(got))
		}
	}
}

func TestAResponseThatIsCutShortSaysSo(t *testing.T) {
	sim := openaisim.New(always(openaisim.Reply{Text: "I will look."}))
	sim.Fail(openaisim.Fault{Kind: openaisim.LengthReached})
	got, err := newBench(t, sim, by(openaimodel.Responses)).Request(t.Context(), ask("go"))
	require.NoError(t, err)
	require.Equal(t, agentrun.FinishLength, got.FinishReason)
}

// end is a stream of one event, the last.
func end(kind, response string) string {
	return "event: response." + kind + "\ndata: {\"type\":\"response." + kind + "\",\"response\":" + response + "}\n\n"
}

func responsesOnce(t *testing.T, stream string) (agentrun.Response, error) {
	t.Helper()
	return newBench(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, stream)
	}), by(openaimodel.Responses), func(c *openaimodel.Config) { c.Attempts = 1 }).Request(t.Context(), ask("hi"))
}

func TestResponsesThatBreakTheProtocolFail(t *testing.T) {
	completed := func(items string) string {
		return end("completed", `{"status":"completed","model":"m-1","output":[`+items+`]}`)
	}
	const unavailable = agentrun.ModelUnavailable
	for name, tt := range map[string]struct {
		stream, says string
		code         agentrun.ModelErrorCode
	}{
		"nothing":             {"", "without a last event", unavailable},
		"another status":      {end("completed", `{"status":"failed","output":[]}`), `the status "failed"`, unavailable},
		"no response":         {"data: {\"type\":\"response.completed\"}\n\n", "cannot be read", unavailable},
		"two ends":            {completed(""), "", ""},
		"an unknown item":     {completed(`{"type":"web_search_call","id":"ws_1"}`), "was not asked for", unavailable},
		"no type":             {completed(`{"id":"x"}`), "was not asked for", unavailable},
		"a call without id":   {completed(`{"type":"function_call","id":"fc_1","name":"a","arguments":"{}"}`), "no call_id", unavailable},
		"a call without name": {completed(`{"type":"function_call","call_id":"c","arguments":"{}"}`), "no name", unavailable},
		"wrong types":         {completed(`{"type":"function_call","call_id":1}`), "cannot unmarshal", unavailable},
		"unknown content":     {completed(`{"type":"message","content":[{"type":"output_audio"}]}`), "output_audio", unavailable},
		"half a pair":         {completed(`{"type":"message","content":[{"type":"output_text","text":"\ud83d"}]}`), "half a surrogate pair", unavailable},
		"too many items":      {completed(strings.Repeat(`{"type":"reasoning"},`, 2001) + `{}`), "more than 2000 items", unavailable},
		"cut for no reason":   {end("incomplete", `{"status":"incomplete","output":[]}`), "not one of the protocol's", unavailable},
		"filtered":            {end("incomplete", `{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}`), "content_filter", agentrun.ContentFiltered},
		"failed":              {end("failed", `{"status":"failed","error":{"code":"server_error","message":"no"},"output":[]}`), "server_error", unavailable},
		"failed, rate":        {end("failed", `{"status":"failed","error":{"code":"rate_limit_exceeded","message":"no"},"output":[]}`), "rate_limit", agentrun.RateLimited},
		"failed, prompt":      {end("failed", `{"status":"failed","error":{"code":"invalid_prompt","message":"no"},"output":[]}`), "invalid_prompt", agentrun.ContentFiltered},
		"failed, no error":    {end("failed", `{"status":"failed","output":[]}`), "without an error", unavailable},
		"an error":            {"event: error\ndata: {\"type\":\"error\",\"code\":\"context_length_exceeded\",\"message\":\"no\",\"param\":null}\n\n", "context_length", agentrun.ContextTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "two ends" {
				tt.stream, tt.says, tt.code = tt.stream+tt.stream, "two ends", unavailable
			}
			_, err := responsesOnce(t, tt.stream)
			require.Equal(t, tt.code, modelError(t, err).Code, "%v", err)
			require.ErrorContains(t, err, tt.says)
		})
	}
}

func TestResponsesOfManyServersAreRead(t *testing.T) {
	hello := `{"type":"message","id":"m","role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"Hello.","annotations":[]}]}`
	want := []agentrun.ResponsePart{agentrun.Text{Content: "Hello."}}
	for name, tt := range map[string]struct {
		stream string
		parts  []agentrun.ResponsePart
	}{
		"only the end":       {end("completed", `{"status":"completed","output":[`+hello+`]}`), want},
		"a DONE after it":    {end("completed", `{"status":"completed","output":[`+hello+`]}`) + "data: [DONE]\n\n", want},
		"events of tomorrow": {"data: {\"type\":\"response.sings\",\"delta\":1}\n\n" + end("completed", `{"status":"completed","output":[`+hello+`],"more":{}}`), want},
		"a refusal":          {end("completed", `{"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"I cannot."}]}]}`), []agentrun.ResponsePart{agentrun.Text{Content: "I cannot."}}},
		"a summary":          {end("completed", `{"status":"completed","output":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":null},`+hello+`]}`), append([]agentrun.ResponsePart{agentrun.Thinking{Content: "a\n\nb", ID: "rs_1"}}, want...)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := responsesOnce(t, tt.stream)
			require.NoError(t, err)
			require.Equal(t, tt.parts, got.Parts)
			require.Equal(t, "m", got.ModelName)
		})
	}
}

// A call that the provider ran before its answer broke off may have taken effect: the
// model is not asked again, and the error says what ran.
func TestAnAnswerThatBreaksOffAfterTheProviderRanACallIsNotAskedForAgain(t *testing.T) {
	item := func(more string) string {
		return `{"type":"mcp_call","id":"mcp_1","server_label":"shop","name":"refund","arguments":"{}"` + more + `}`
	}
	sent := func(kind, more string) string {
		return "data: {\"type\":\"response.output_item." + kind + "\",\"output_index\":0,\"item\":" + item(more) + "}\n\n"
	}
	const over = `,"status":"completed","output":"ok"`
	for name, tt := range map[string]struct {
		stream string
		unsure bool
	}{
		"while it runs":   {sent("added", `,"status":"in_progress"`), true},
		"after it ran":    {sent("added", `,"status":"in_progress"`) + sent("done", over), false},
		"what was before": {sent("done", over) + sent("added", ``), false},
		"failed":          {end("failed", `{"status":"failed","error":{"code":"server_error","message":"no"},"output":[`+item("")+`]}`), true},
		"filtered":        {end("incomplete", `{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[`+item(over)+`]}`), false},
		"unknown item":    {sent("done", over) + end("completed", `{"status":"completed","output":[`+item(over)+`,{"type":"web_search_call","id":"ws_1"}]}`), false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			_, err := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, tt.stream)
			}), by(openaimodel.Responses)).Request(t.Context(), ask("hi"))
			require.Len(t, modelError(t, err).Ran, 1)
			got := modelError(t, err).Ran[0]
			require.Equal(t, approvals.ToolCall{ID: "mcp_1", Name: "shop.refund", Args: json.RawMessage(`{}`)}, got.ToolCall)
			require.Equal(t, tt.unsure, got.Unsure)
			require.Equal(t, tt.unsure, got.Output == "")
			require.Equal(t, 1, asked)
		})
	}
}

// The caller may give up while the answer comes.
func TestACanceledAnswerSaysWhatTheProviderRan(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"mcp_call\",\"id\":\"mcp_1\",\"server_label\":\"shop\",\"name\":\"refund\",\"output\":\"ok\"}}\n\n")
		_, _ = io.WriteString(w, "data: {\"type\":\"response.output_text.delta\",\"output_index\":1,\"delta\":\"So\"}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}), by(openaimodel.Responses)).Request(ctx, writing(ask("hi"), cancel))
	require.Len(t, modelError(t, err).Ran, 1)
}

// writing is the request, of which the first words that the model writes are told.
func writing(r agentrun.ModelRequest, told func()) agentrun.ModelRequest {
	r.Written = func(agentrun.Delta) { told() }
	return r
}
