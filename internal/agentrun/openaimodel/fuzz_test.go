package openaimodel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
)

// FuzzAnswer holds any stream to this: it is an error, or an answer in which
// every call can be answered and no character stands for another one, and which
// is what was told while it came.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"choices":[{"delta":{"content":"Hello."},"finish_reason":"stop"}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"y","arguments":"{}"}},{"index":0,"id":"a","function":{"name":"x"}}]}}]}` +
			"\n" + `{"choices":[{"delta":{"tool_calls":[{"id":"c","function":{"name":"z"}},{}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":-1}}`,
		`{"error":{"message":"no","code":429}}`, `{"choices":[{"finish_reason":"length"}]}`, `null`, `[]`, `{"choices":null,"error":null}`,
		"{\"choices\":[{\"delta\":{\"content\":\"\xff\"},\"finish_reason\":\"stop\"}]}",
		`{"choices":[{"delta":{"content":"\ud83d\ude00 \ud83d"},"finish_reason":"stop"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		told := map[string]string{}
		a := chatAnswer{written: func(d agentrun.Delta) { told[string(d.Kind)+string(d.Call)] += d.Text }}
		for line := range bytes.Lines(stream) {
			if err := a.add(line); err != nil {
				return
			}
		}
		r, err := a.response()
		if err != nil {
			return
		}
		require.Contains(t, []agentrun.FinishReason{agentrun.FinishStop, agentrun.FinishLength, agentrun.FinishToolCall}, r.FinishReason)
		require.GreaterOrEqual(t, r.Usage.InputTokens, 0)
		own := bytes.Contains(stream, []byte("\uFFFD")) || bytes.Contains(bytes.ToLower(stream), []byte(`\ufffd`))
		require.False(t, !own && strings.Contains(fmt.Sprintf("%s", r.Parts), "\uFFFD"), "something was replaced")
		for _, p := range r.Parts {
			if text, ok := p.(agentrun.Thinking); ok {
				require.Equal(t, text.Content, told[string(agentrun.DeltaThinking)])
			}
			if c, ok := p.(agentrun.CallPart); ok {
				require.NotEmpty(t, c.ID)
				require.NotEmpty(t, c.Name)
				require.Contains(t, told, string(agentrun.DeltaCall)+string(c.ID))
			}
		}
	})
}

// FuzzDataLines holds any body to this: what comes out are data lines, and no
// more than came in.
func FuzzDataLines(f *testing.F) {
	f.Add([]byte(": x\n\nevent: y\r\ndata:{}\r\n\r\ndata: [DONE]"), 8)
	f.Add([]byte("data\ndata:\n data: x\n\xff"), 1)
	f.Fuzz(func(t *testing.T, body []byte, size int) {
		r := newDataLines(&bounded{r: bytes.NewReader(body), left: maxBody, heard: func() {}}, maxChunk)
		var out []byte
		p := make([]byte, 1+max(0, size)%64)
		for {
			n, err := r.Read(p)
			out = append(out, p[:n]...)
			if err != nil {
				break
			}
		}
		for event := range strings.SplitSeq(strings.TrimSuffix(string(out), "\n\n"), "\n\n") {
			require.True(t, event == "" || strings.HasPrefix(event, "data: ") && !strings.Contains(event, "\n"), event)
		}
	})
}

// FuzzSent holds any call that a history may have to this: what is sent of it
// is an object and a permitted name, and an object is sent as it is.
func FuzzSent(f *testing.F) {
	permitted := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	for _, seed := range []string{"", "{}", ` {"a":1}`, "[]", "null", "{", "\xff", `"x"`, `{"a":1,"a":2}`} {
		f.Add([]byte(seed), seed)
	}
	f.Fuzz(func(t *testing.T, args []byte, name string) {
		sent := arguments(args)
		var object map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(sent), &object))
		if len(args) > 0 && json.Unmarshal(args, &object) == nil && string(bytes.TrimSpace(args)) != "null" {
			require.Equal(t, string(args), sent)
		}
		require.Regexp(t, permitted, toolName(name))
		if schema := parameters(args); json.Valid(args) && json.Unmarshal(args, &object) == nil {
			require.NoError(t, json.Unmarshal(schema, &object))
			require.Contains(t, object, "type")
			require.Contains(t, object, "properties")
		}
	})
}

// FuzzResponse holds any stream of the Responses API to the same as FuzzAnswer.
func FuzzResponse(f *testing.F) {
	for _, seed := range []string{
		`{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hello."}]}]}}`,
		`{"type":"response.completed","response":{"status":"completed","output":[{"type":"function_call","call_id":"c","name":"a","arguments":"{}"},{"type":"reasoning","id":"r"}]}}`,
		`{"type":"response.completed","response":{"status":"completed","output":[{"type":"mcp_call","id":"m","server_label":"d","name":"a","error":{"code":1}},{"type":"mcp_approval_request","id":"r","server_label":"d","name":"a","arguments":"{}"}]}}`,
		`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`,
		`{"type":"response.failed","response":null}`, `{"type":"error"}`, `{"error":{}}`, `null`, `{"type":"response.created"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		a := responsesAnswer{conceal: func(text string) string { return text }, unlisted: func(string) {}}
		for line := range bytes.Lines(stream) {
			if err := a.add(line); err != nil {
				return
			}
		}
		r, err := a.response()
		if err != nil {
			return
		}
		require.Contains(t, []agentrun.FinishReason{agentrun.FinishStop, agentrun.FinishLength, agentrun.FinishToolCall}, r.FinishReason)
		for _, p := range r.Parts {
			if c, ok := p.(agentrun.CallPart); ok {
				require.NotEmpty(t, c.ID)
				require.NotEmpty(t, c.Name)
			}
		}
	})
}
