package openaimodel_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel"
)

// says answers every request with these bytes as a stream.
func says(stream string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, stream)
	}
}

// deltas is a stream with these tool call deltas, one a chunk, that ends in tool
// calls.
func deltas(all ...string) string {
	var b strings.Builder
	for _, d := range all {
		fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[%s]}}]}\n\n", d)
	}
	b.WriteString("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n")
	return b.String()
}

func requestOnce(t *testing.T, stream string) (agentrun.Response, error) {
	t.Helper()
	return newBench(t, says(stream), func(c *openaimodel.Config) { c.Attempts = 1 }).Request(t.Context(), ask("hi"))
}

func TestToolCallsOfManyServersArePutTogether(t *testing.T) {
	a, b := call("c1", "a", `{"x":1}`), call("c2", "b", `{"y":2}`)
	for name, tt := range map[string]struct {
		deltas []string
		want   []agentrun.ResponsePart
	}{
		"interleaved, the second first": {[]string{
			`{"index":1,"id":"c2","type":"function","function":{"name":"b","arguments":""}}`,
			`{"index":0,"id":"c1","type":"function","function":{"name":"a","arguments":""}}`,
			`{"index":1,"function":{"arguments":"{\"y\""}}`, `{"index":0,"function":{"arguments":"{\"x\":"}}`,
			`{"index":0,"function":{"arguments":"1}"}}`, `{"index":1,"function":{"arguments":":2}"}}`,
		}, []agentrun.ResponsePart{a, b}},
		"two in one chunk": {[]string{
			`{"index":0,"id":"c1","function":{"name":"a","arguments":"{\"x\":1}"}},{"index":1,"id":"c2","function":{"name":"b","arguments":"{\"y\":2}"}}`,
		}, []agentrun.ResponsePart{a, b}},
		"indexes with gaps": {[]string{
			`{"index":7,"id":"c2","function":{"name":"b","arguments":"{\"y\":2}"}}`, `{"index":3,"id":"c1","function":{"name":"a","arguments":"{\"x\":1}"}}`,
		}, []agentrun.ResponsePart{a, b}},
		"id and name repeated": {[]string{
			`{"index":0,"id":"c1","function":{"name":"a","arguments":"{\"x\""}}`, `{"index":0,"id":"c1","function":{"name":"a","arguments":":1}"}}`,
		}, []agentrun.ResponsePart{a}},
		"a fresh id with every continuation": {[]string{
			`{"index":0,"id":"c1","function":{"name":"a","arguments":"{\"x\""}}`, `{"index":0,"id":"zz","function":{"arguments":":1}"}}`,
		}, []agentrun.ResponsePart{a}},
		"the id comes late": {[]string{
			`{"index":0,"function":{"name":"a","arguments":"{\"x\""}}`, `{"index":0,"id":"c1","function":{"arguments":":1}"}}`,
		}, []agentrun.ResponsePart{a}},
		"complete calls with one index": {[]string{
			`{"index":0,"id":"c1","function":{"name":"a","arguments":"{\"x\":1}"}}`, `{"index":0,"id":"c2","function":{"name":"b","arguments":"{\"y\""}}`,
			`{"index":0,"function":{"arguments":":2}"}}`,
		}, []agentrun.ResponsePart{a, b}},
		"no index, whole calls": {[]string{
			`{"id":"c1","function":{"name":"a","arguments":"{\"x\":1}"}}`, `{"id":"c2","function":{"name":"b","arguments":"{\"y\":2}"}}`,
		}, []agentrun.ResponsePart{a, b}},
		"no index, pieces by id": {[]string{
			`{"id":"c1","function":{"name":"a","arguments":"{\"x\""}}`, `{"id":"c2","function":{"name":"b","arguments":"{\"y\""}}`,
			`{"id":"c1","function":{"arguments":":1}"}}`, `{"id":"c2","function":{"arguments":":2}"}}`,
		}, []agentrun.ResponsePart{a, b}},
		"no index, pieces in a row": {[]string{
			`{"id":"c1","function":{"name":"a","arguments":"{\"x\""}}`, `{"function":{"arguments":":1}"}}`,
			`{"id":"c2","function":{"name":"b","arguments":"{\"y\""}}`, `{"function":{"arguments":":2}"}}`,
		}, []agentrun.ResponsePart{a, b}},
		"one id twice, for the loop": {[]string{
			`{"index":0,"id":"c1","function":{"name":"a","arguments":"{\"x\":1}"}}`, `{"index":1,"id":"c1","function":{"name":"b","arguments":"{\"y\":2}"}}`,
		}, []agentrun.ResponsePart{a, call("c1", "b", `{"y":2}`)}},
		"no arguments": {[]string{
			`{"index":0,"id":"c1","function":{"name":"a","arguments":""}}`, `{"index":1,"id":"c2","function":{"name":"b"}}`,
		}, []agentrun.ResponsePart{call("c1", "a", ""), call("c2", "b", "")}},
		"arguments that are not json": {[]string{
			`{"index":0,"id":"c1","function":{"name":"a","arguments":"{\"x\": \\ud83d, \"x\""}}`,
		}, []agentrun.ResponsePart{call("c1", "a", `{"x": \ud83d, "x"`)}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := requestOnce(t, deltas(tt.deltas...))
			require.NoError(t, err)
			require.Equal(t, tt.want, got.Parts)
			require.Equal(t, agentrun.FinishToolCall, got.FinishReason)
		})
	}
}

func TestToolCallsThatCannotBeAnsweredFail(t *testing.T) {
	var many []string
	for i := range 1001 {
		many = append(many, fmt.Sprintf(`{"index":%d,"id":"c%d","function":{"name":"a"}}`, i, i))
	}
	for name, tt := range map[string]struct {
		deltas []string
		says   string
	}{
		"no id":            {[]string{`{"index":0,"function":{"name":"a","arguments":"{}"}}`}, "has no id"},
		"no name":          {[]string{`{"index":0,"id":"c1","function":{"arguments":"{}"}}`}, "has no name"},
		"one index twice":  {[]string{`{"index":0,"id":"c1","function":{"name":"a","arguments":"{"}}`, `{"index":0,"id":"c2","function":{"name":"a","arguments":"{"}}`}, "cannot be told apart"},
		"two names":        {[]string{`{"index":0,"id":"c1","function":{"name":"a"}}`, `{"index":0,"id":"c1","function":{"name":"b"}}`}, "changes its name"},
		"a negative index": {[]string{`{"index":-1,"id":"c1","function":{"name":"a"}}`}, "index -1"},
		"from nowhere":     {[]string{`{"function":{"arguments":"{}"}}`}, "has no id"},
		"far too many":     {many, "more than 1000 tool calls"},
		"none at all":      {nil, "there are none"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := requestOnce(t, deltas(tt.deltas...))
			require.Equal(t, agentrun.ModelUnavailable, modelError(t, err).Code)
			require.ErrorContains(t, err, tt.says)
		})
	}
}

func TestStreamsOfManyServersAreRead(t *testing.T) {
	hello := []agentrun.ResponsePart{agentrun.Text{Content: "Hello."}}
	const done = `data: {"model":"m-1","choices":[{"index":0,"delta":{"content":"Hello."},"finish_reason":"stop"}]}`
	for name, tt := range map[string]struct {
		stream string
		want   agentrun.Response
	}{
		"no DONE":            {done + "\n\n", agentrun.Response{Parts: hello, ModelName: "m-1"}},
		"no last line break": {done, agentrun.Response{Parts: hello, ModelName: "m-1"}},
		"no space, CRLF":     {strings.Replace(done, ": ", ":", 1) + "\r\n\r\ndata:[DONE]\r\n\r\n", agentrun.Response{Parts: hello, ModelName: "m-1"}},
		"many comments":      {strings.Repeat(": still here\n\nevent: x\nid: 1\ndata:\n\n", 1000) + done + "\n\n", agentrun.Response{Parts: hello, ModelName: "m-1"}},
		"no model":           {strings.Replace(done, `"model":"m-1",`, "", 1), agentrun.Response{Parts: hello, ModelName: "m"}},
		"usage all along": {
			"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n" + done + "\n\ndata: {\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n",
			agentrun.Response{Parts: hello, ModelName: "m-1", Usage: agentrun.Usage{InputTokens: 3, OutputTokens: 2}},
		},
		"usage below nothing": {
			done + "\n\ndata: {\"usage\":{\"prompt_tokens\":-3,\"completion_tokens\":-2}}\n\n", agentrun.Response{Parts: hello, ModelName: "m-1"},
		},
		"thinking": {
			"data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"Hm.\"},\"finish_reason\":\"null\"}]}\n\n" + done,
			agentrun.Response{Parts: append([]agentrun.ResponsePart{agentrun.Thinking{Content: "Hm."}}, hello...), ModelName: "m-1"},
		},
		"a refusal": {
			`data: {"model":"m-1","choices":[{"delta":{"refusal":"I cannot."},"finish_reason":"stop"}]}`,
			agentrun.Response{Parts: []agentrun.ResponsePart{agentrun.Text{Content: "I cannot."}}, ModelName: "m-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := requestOnce(t, tt.stream)
			require.NoError(t, err)
			tt.want.FinishReason, tt.want.At, tt.want.Usage.Requests = agentrun.FinishStop, noon, 1
			require.Equal(t, tt.want, got)
		})
	}
}

func TestStreamsThatBreakTheProtocolFail(t *testing.T) {
	for name, tt := range map[string]struct{ stream, says string }{
		"nothing":              {"", "without a finish reason"},
		"not a stream":         {`{"choices":[{"message":{"content":"Hello."},"finish_reason":"stop"}]}`, "without a finish reason"},
		"only DONE":            {"data: [DONE]\n\n", "without a finish reason"},
		"unknown reason":       {"data: {\"choices\":[{\"finish_reason\":\"bored\"}]}\n\n", `"bored"`},
		"another choice":       {"data: {\"choices\":[{\"index\":1,\"finish_reason\":\"stop\"}]}\n\n", "index 1"},
		"wrong types":          {"data: {\"choices\":{}}\n\n", "cannot be read"},
		"half a last document": {"data: {\"choices\":[{\"index\":0,\"finish_rea", "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := requestOnce(t, tt.stream)
			require.Equal(t, agentrun.ModelUnavailable, modelError(t, err).Code)
			require.ErrorContains(t, err, tt.says)
		})
	}
}

// encoding/json replaces what is no text by U+FFFD, in silence: people would
// sign, and a tool would be given, arguments that the model did not write.
func TestAnAnswerThatIsNoTextIsRefused(t *testing.T) {
	text := func(content string) string {
		return `data: {"choices":[{"delta":{"content":"` + content + `"},"finish_reason":"stop"}]}` + "\n\n"
	}
	args := func(pieces ...string) string {
		all := []string{`{"index":0,"id":"c1","function":{"name":"a","arguments":""}}`}
		for _, p := range pieces {
			all = append(all, `{"index":0,"function":{"arguments":"`+p+`"}}`)
		}
		return deltas(all...)
	}
	const notUTF8, half = "not valid UTF-8", "half a surrogate pair"
	for name, tt := range map[string]struct{ stream, says string }{
		"a byte in the text":         {text("a\xffb"), notUTF8},
		"a character that is cut":    {text("a\xe2\x82"), notUTF8},
		"an overlong slash":          {args(`{\"path\":\"` + "\xc0\xaf" + `\"}`), notUTF8},
		"a byte in the arguments":    {args(`{\"path\":\"`, "\xe9", `\"}`), notUTF8},
		"a byte in the name":         {deltas(`{"index":0,"id":"c1","function":{"name":"a` + "\xff" + `"}}`), notUTF8},
		"a byte in the id":           {deltas(`{"index":0,"id":"c` + "\xff" + `","function":{"name":"a"}}`), notUTF8},
		"a byte in what nobody uses": {`data: {"note":"` + "\xff" + `","choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}` + "\n\n", notUTF8},
		"a high half":                {text(`\ud83d`), half},
		"a high half, then text":     {text(`\uD83Dabc`), half},
		"a low half":                 {text(`a\udE00`), half},
		"two high halves":            {text(`\ud83d\ud83d`), half},
		"the wrong way round":        {text(`\ude00\ud83d`), half},
		"a half in the arguments":    {args(`{\"path\":\"\ud83d\"}`), half},
		"a pair in two pieces":       {args(`{\"path\":\"\ud83d`, `\ude00\"}`), half},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := requestOnce(t, tt.stream)
			require.Equal(t, agentrun.ModelUnavailable, modelError(t, err).Code)
			require.ErrorContains(t, err, tt.says)
		})
	}
	for name, tt := range map[string]struct {
		stream string
		want   agentrun.ResponsePart
	}{
		"a pair":                    {text(`\ud83d\uDE00`), agentrun.Text{Content: "\U0001F600"}},
		"a character itself":        {text("\U0001F600\uFFFD"), agentrun.Text{Content: "\U0001F600\uFFFD"}},
		"a backslash before u":      {text(`\\ud83d`), agentrun.Text{Content: `\ud83d`}},
		"an escape in the argument": {args(`{\"x\":\"\\ud8`, `3d\"}`), call("c1", "a", `{"x":"\ud83d"}`)}, // for the loop to refuse
	} {
		t.Run(name, func(t *testing.T) {
			got, err := requestOnce(t, tt.stream)
			require.NoError(t, err)
			require.Equal(t, []agentrun.ResponsePart{tt.want}, got.Parts)
		})
	}
}
