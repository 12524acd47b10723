package agentrun_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

var update = flag.Bool("update", false, "write the golden files anew")

// everything has every kind of part.
func everything() []agentrun.Message {
	at := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	call := func(id, args string) agentrun.CallPart {
		return agentrun.CallPart{ToolCall: approvals.ToolCall{ID: approvals.ToolCallID(id), Name: "delete_file", Args: json.RawMessage(args)}}
	}
	return []agentrun.Message{
		agentrun.Request{
			Parts:        []agentrun.RequestPart{agentrun.UserPrompt{Content: "clean up <b>&\u2028", At: at}},
			Instructions: "be careful", RunID: "run-1", At: at,
		},
		agentrun.Response{
			Parts: []agentrun.ResponsePart{
				agentrun.Thinking{Content: "hm"},
				agentrun.Thinking{ID: "rs_1", Signature: "c2lnbmVk"},
				agentrun.Text{Content: "I will delete three."},
				call("a", `{"path": "x",  "n": 9007199254740993}`), call("b", `{"path":`),
				agentrun.CallPart{ToolCall: approvals.ToolCall{ID: "c", Name: "list"}, Place: approvals.Place{Cwd: "/srv", Repository: "acme/app", Branch: "main", Server: "db"}, Rule: "reads@1"},
				agentrun.CallPart{ToolCall: approvals.ToolCall{ID: "g", Name: "list"}, ProviderDetails: json.RawMessage(`{"extra_content":{"google":{"thought_signature":"c2lnbmVk"}}}`)},
				agentrun.CallPart{ToolCall: approvals.ToolCall{ID: "h", Name: "docs.ask", Args: json.RawMessage(`{}`)}, ApprovalRequest: "mcpr_1"},
				agentrun.ProviderCall{ToolCall: approvals.ToolCall{ID: "mcp_2", Name: "docs.ask", Args: json.RawMessage(`{"q":1}`)}, ApprovalRequest: "mcpr_0", Output: "who?", Failed: true},
				call("d", "{\"path\":\"\xff\xfe\"}"), call("e", ""),
			},
			Usage: agentrun.Usage{InputTokens: 12, OutputTokens: 3}, ModelName: "m-1",
			FinishReason: agentrun.FinishToolCall, RunID: "run-1", At: at,
		},
		agentrun.Request{Parts: []agentrun.RequestPart{
			agentrun.ToolReturn{
				ToolName: "delete_file", CallID: "a", Content: json.RawMessage(`{"n":9007199254740993}`),
				Outcome: agentrun.OutcomeSuccess, Metadata: json.RawMessage(`{"k":1}`), At: at,
			},
			agentrun.RetryPrompt{ToolName: "delete_file", CallID: "b", Content: "not JSON", At: at},
			agentrun.ToolReturn{ToolName: "list", CallID: "c", Content: json.RawMessage(`null`), Outcome: agentrun.OutcomeDenied},
			agentrun.ToolReturn{ToolName: "delete_file", CallID: "d", Content: json.RawMessage(`"x"`), Outcome: agentrun.OutcomeFailed},
			agentrun.ToolReturn{ToolName: "delete_file", CallID: "e", Content: json.RawMessage(`"x"`), Outcome: agentrun.OutcomeInterrupted},
			agentrun.ToolReturn{ToolName: "docs.ask", CallID: "h", Content: json.RawMessage(`"42"`), Outcome: agentrun.OutcomeSuccess, ProviderCall: "mcp_1"},
			agentrun.RetryPrompt{Content: "answer again"},
		}},
	}
}

func TestMessagesKeepTheirJSONForm(t *testing.T) {
	raw, err := marshalMessages(everything())
	require.NoError(t, err)
	var pretty bytes.Buffer
	require.NoError(t, json.Indent(&pretty, raw, "", "  "))
	golden := filepath.Join("testdata", "messages.golden.json")
	if *update {
		require.NoError(t, os.WriteFile(golden, append(pretty.Bytes(), '\n'), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	// Since Go 1.27 this character is written as it is.
	require.Equal(t, string(want), strings.ReplaceAll(pretty.String(), "\ufffd", `\ufffd`)+"\n")

	var small bytes.Buffer
	require.NoError(t, json.Compact(&small, want))
	back, err := unmarshalMessages(small.Bytes())
	require.NoError(t, err)
	require.Equal(t, everything(), back)
}

// Python writes more than we need, and leaves out more than we do.
func TestMessagesFromUpstreamLoad(t *testing.T) {
	back, err := unmarshalMessages([]byte(`[
		{"kind":"request","parts":[{"content":"hi","timestamp":"2026-01-02T03:04:05.123456Z","part_kind":"user-prompt","dynamic_ref":null}],
		 "timestamp":null,"instructions":null,"run_id":"r","conversation_id":"c","metadata":null,"state":"complete"},
		{"kind":"response","parts":[
			{"tool_name":"t","args":{"x": 1 },"tool_call_id":"a","tool_kind":null,"id":null,"provider_name":null,"part_kind":"tool-call"},
			{"tool_name":"t","args":null,"tool_call_id":"b","part_kind":"tool-call"},
			{"tool_name":"t","args":"{\"x\":2}","tool_call_id":"c","part_kind":"tool-call"}],
		 "usage":{"input_tokens":7,"cost":"0.1"},"finish_reason":null},
		{"kind":"request","parts":[
			{"tool_name":"t","content":null,"tool_call_id":"a","part_kind":"tool-return","metadata":null},
			{"tool_name":"t","content":[{"type":"int_parsing"}],"tool_call_id":"b","part_kind":"retry-prompt"},
			{"tool_name":null,"content":"again","tool_call_id":"c","part_kind":"retry-prompt"}]}]`))
	require.NoError(t, err)
	require.Len(t, back, 3)
	parts := back[1].(agentrun.Response).Parts
	require.Equal(t, `{"x": 1 }`, string(parts[0].(agentrun.CallPart).Args), "an object stays as it stands")
	require.Nil(t, parts[1].(agentrun.CallPart).Args)
	require.Equal(t, `{"x":2}`, string(parts[2].(agentrun.CallPart).Args))
	results := back[2].(agentrun.Request).Parts
	require.Equal(t, agentrun.OutcomeSuccess, results[0].(agentrun.ToolReturn).Outcome)
	require.JSONEq(t, `[{"type":"int_parsing"}]`, results[1].(agentrun.RetryPrompt).Content)
}

// What is not known fails the whole list, rather than being guessed.
func TestMessagesThatAreNotUnderstood(t *testing.T) {
	for name, raw := range map[string]string{
		"not a list":        `{}`,
		"unknown kind":      `[{"kind":"note","parts":[]}]`,
		"unknown part":      `[{"kind":"request","parts":[{"part_kind":"system-prompt","content":"x"}]}]`,
		"response part":     `[{"kind":"request","parts":[{"part_kind":"text","content":"x"}]}]`,
		"request part":      `[{"kind":"response","parts":[{"part_kind":"user-prompt","content":"x"}]}]`,
		"unknown outcome":   `[{"kind":"request","parts":[{"part_kind":"tool-return","tool_name":"t","tool_call_id":"a","content":1,"outcome":"ok"}]}]`,
		"call without id":   `[{"kind":"response","parts":[{"part_kind":"tool-call","tool_name":"t","args":null}]}]`,
		"call without name": `[{"kind":"response","parts":[{"part_kind":"tool-call","tool_call_id":"t","args":null}]}]`,
		"args as a list":    `[{"kind":"response","parts":[{"part_kind":"tool-call","tool_name":"t","tool_call_id":"a","args":[1]}]}]`,
		"result without id": `[{"kind":"request","parts":[{"part_kind":"tool-return","tool_name":"t","content":1}]}]`,
		"no prompt":         `[{"kind":"request","parts":[{"part_kind":"user-prompt","content":null}]}]`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := unmarshalMessages([]byte(raw))
			require.Error(t, err)
		})
	}
}

// Whatever bytes a model writes as arguments, they come back.
func TestArgumentsSurviveByteForByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		args := rapid.SliceOf(rapid.Byte()).Draw(t, "args")
		in := agentrun.Response{Parts: []agentrun.ResponsePart{
			agentrun.CallPart{ToolCall: approvals.ToolCall{ID: "a", Name: "t", Args: args}},
		}}
		raw, err := agentrun.EncodeMessage(in)
		require.NoError(t, err)
		back, err := agentrun.DecodeMessage(raw)
		require.NoError(t, err)
		got := back.(agentrun.Response).Parts[0].(agentrun.CallPart).Args
		require.True(t, bytes.Equal(args, got), "%q became %q", args, got)
	})
}
