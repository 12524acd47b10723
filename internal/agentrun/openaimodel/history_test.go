package openaimodel_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/approvals"
)

var update = flag.Bool("update", false, "write the golden files")

func request(parts ...agentrun.RequestPart) agentrun.Request { return agentrun.Request{Parts: parts} }

func response(parts ...agentrun.ResponsePart) agentrun.Response {
	return agentrun.Response{Parts: parts}
}

func user(text string) agentrun.UserPrompt { return agentrun.UserPrompt{Content: text} }

func result(id, content string, o agentrun.Outcome) agentrun.ToolReturn {
	return agentrun.ToolReturn{
		ToolName: "t", CallID: approvals.ToolCallID(id), Content: json.RawMessage(content), Outcome: o,
		Metadata: json.RawMessage(`{"secret":"metadata"}`),
	}
}

func retry(name, id, text string) agentrun.RetryPrompt {
	return agentrun.RetryPrompt{ToolName: name, CallID: approvals.ToolCallID(id), Content: text}
}

// everything is a history with all that can happen in one.
var everything = agentrun.ModelRequest{
	Instructions: "You tidy up <reports> & nothing else.",
	Messages: []agentrun.Message{
		request(user("clean up"), user("")),
		response(
			agentrun.Thinking{Content: "I should look first."}, agentrun.Text{Content: "First."}, agentrun.Text{}, agentrun.Text{Content: "Second."},
			call("c1", "list_files", ""), call("c2", "read_file", `{"path": "a",  "n": 9007199254740993}`),
			call("c3", "read_file", `{"path": "rep`), call("c4", "delete file.now!", `["a"]`), call("c5", "delete_file", "{}"),
			call("c6", "delete_file", "{}"), call("c7", "delete_file", "{}"), call("c8", "wait", "{}"), call("c9", "wait", "{}"),
		),
		// A deferred run: what ran at once, and what a tool added for the model.
		request(
			user("from the tool, about c1"),
			result("c1", `[ "a", "b" ]`, agentrun.OutcomeSuccess),
			result("c2", `"line one\nline \"two\" <b>"`, agentrun.OutcomeSuccess),
			retry("read_file", "c3", "The arguments are not JSON."),
			retry("delete file.now!", "c4", ""),
		),
		// Its resume run: the answers, and what a person wrote meanwhile.
		request(
			result("c5", `"Bob: audit needs it"`, agentrun.OutcomeDenied),
			result("c6", `"The tool call was denied."`, agentrun.OutcomeDenied),
			result("c7", `"disk full"`, agentrun.OutcomeFailed),
			user("and hurry"),
			result("c8", ``, agentrun.OutcomeInterrupted),
			result("c9", `""`, agentrun.OutcomeSuccess),
		),
		response(agentrun.Thinking{Content: "nothing to say"}),
		request(retry("", "", "The answer was empty.")),
		response(call("d1", "list_files", " {} "), call("d2", "list_files", "null"), call("d3", "list_files", "{}"), call("d4", "list_files", "{}")),
		request(
			result("d1", `null`, agentrun.OutcomeSuccess), result("d2", `{ "n": 9007199254740993, "t": "<>" }`, agentrun.OutcomeSuccess),
			result("d3", `not JSON`, agentrun.OutcomeSuccess), result("d4", `""`, ""),
		),
		response(agentrun.Text{Content: "Done."}),
		request(user("thanks")),
	},
	Tools: []agentrun.ToolDefinition{
		{Name: "list_files", Description: "Lists <files>."},
		{Name: "read_file", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
		{Name: "delete_file", Parameters: json.RawMessage(`{"type":"object","additionalProperties":false}`)},
		{Name: "wait", Parameters: json.RawMessage(`null`)},
	},
}

func TestAHistoryBecomesThisRequest(t *testing.T) {
	becomes(t, everything, openaimodel.Chat, "request.golden.json")
}

// Reasoning goes back with the calls that it led to: DeepSeek and others refuse the history
// without it. OpenAI refuses it, and has not written it.
func TestReasoningIsNotSentToOpenAI(t *testing.T) {
	for host, sent := range map[string]bool{"api.openai.com": false, "mine.openai.azure.com": false, "api.deepseek.com": true} {
		sim := openaisim.New(always(openaisim.Reply{Text: "You are welcome."}))
		m := newBench(t, sim, func(c *openaimodel.Config) {
			at := c.BaseURL
			c.BaseURL = "https://" + host + "/v1"
			c.HTTPClient = &http.Client{Transport: rewrites(at)}
		})
		_, err := m.Request(t.Context(), everything)
		require.NoError(t, err)
		require.Len(t, sim.Requests(), 1)
		require.Equal(t, sent, strings.Contains(string(sim.Requests()[0].Body), "reasoning_content"), host)
	}
}

// Gemini 3 signs the thoughts that led to its calls, and refuses calls that come back without
// the signature, or with that of another call.
func TestACallGoesBackWithWhatItsProviderGaveWithIt(t *testing.T) {
	const signed = `{"google":{"thought_signature":"CrICAdHtim827fQ+/=="}}`
	deltas := []string{
		`{"index":0,"id":"f1","type":"function","function":{"name":"a","arguments":"{\"n\":9007199254740993}"},"extra_content":` + signed + `}`,
		`{"index":1,"id":"f1","type":"function","function":{"name":"b","arguments":"{}"},"extra_content":null}`,
		`{"index":2,"id":"","type":"function","function":{"name":"c","arguments":"{}"}}`, `{"index":2,"id":"f2","extra_content":{"other":[1]}}`,
	}
	for host, sent := range map[string]bool{"generativelanguage.googleapis.com": true, "api.openai.com": false} {
		var bodies [][]byte
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil || int64(len(body)) != r.ContentLength {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			bodies = append(bodies, body)
			w.Header().Set("Content-Type", "text/event-stream")
			for _, d := range deltas {
				_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[%s]}}]}\n\n", d)
			}
			_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n")
		}))
		t.Cleanup(server.Close)
		m := newBench(t, http.NotFoundHandler(), func(c *openaimodel.Config) {
			c.BaseURL = "https://" + host + "/v1beta/openai"
			c.HTTPClient = &http.Client{Transport: rewrites(server.URL)}
		})
		r := ask("go", "a", "b", "c")
		// A call of a model that gave nothing with it comes before.
		r.Messages = append(r.Messages, response(call("f0", "a", "{}")), request(result("f0", `"<old>"`, agentrun.OutcomeSuccess)))
		answer, err := m.Request(t.Context(), r)
		require.NoError(t, err)
		require.Len(t, answer.Parts, 3)
		require.NotContains(t, string(bodies[0]), "extra_content")

		stored, err := agentrun.EncodeMessage(answer)
		require.NoError(t, err)
		read, err := agentrun.DecodeMessage(stored)
		require.NoError(t, err)
		r.Messages = append(r.Messages, read, request(result("f1", `1`, agentrun.OutcomeSuccess), result("f1", `2`, agentrun.OutcomeSuccess), result("f2", `3`, agentrun.OutcomeSuccess)))
		_, err = m.Request(t.Context(), r)
		require.NoError(t, err)
		var got struct {
			Model    string
			Stream   bool
			Messages []struct {
				Content string `json:"content"`
				Calls   []struct {
					ID       string          `json:"id"`
					Extra    json.RawMessage `json:"extra_content"`
					Function struct{ Arguments string }
				} `json:"tool_calls"`
			}
		}
		require.NoError(t, json.Unmarshal(bodies[1], &got))
		require.Equal(t, "m", got.Model)
		require.True(t, got.Stream)
		require.Len(t, got.Messages, 7)
		require.Equal(t, "<old>", got.Messages[2].Content)
		require.Nil(t, got.Messages[1].Calls[0].Extra)
		made := got.Messages[3].Calls
		require.Len(t, made, 3)
		require.Equal(t, `{"n":9007199254740993}`, made[0].Function.Arguments)
		if !sent {
			require.NotContains(t, string(bodies[1]), "extra_content", host)
			continue
		}
		require.JSONEq(t, signed, string(made[0].Extra))
		require.Nil(t, made[1].Extra)
		require.JSONEq(t, `{"other":[1]}`, string(made[2].Extra))
	}
}

// rewrites sends every request to the server with this base URL.
type rewrites string

func (to rewrites) RoundTrip(r *http.Request) (*http.Response, error) {
	at, err := url.Parse(string(to))
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = at.Scheme, at.Host
	return http.DefaultTransport.RoundTrip(r)
}

func TestAHistoryBecomesTheseItems(t *testing.T) {
	r := everything
	r.Messages = append(slices.Clone(r.Messages),
		response(
			agentrun.Thinking{Content: "in short", ID: "rs_1", Signature: "scripted:rs_1"}, agentrun.Text{Content: "Bye."},
			agentrun.Thinking{ID: "rs_2", Signature: "scripted:rs_2"}, // nothing follows
		),
		request(user("one more")))
	becomes(t, r, openaimodel.Responses, "items.golden.json")
}

func becomes(t *testing.T, r agentrun.ModelRequest, api openaimodel.API, file string) {
	t.Helper()
	sim := openaisim.New(always(openaisim.Reply{Text: "You are welcome."}))
	_, err := newBench(t, sim, by(api)).Request(t.Context(), r)
	require.NoError(t, err)
	require.Len(t, sim.Requests(), 1)
	require.Equal(t, "Bearer "+theKey, sim.Requests()[0].Header.Get("Authorization"))

	var got bytes.Buffer
	require.NoError(t, json.Indent(&got, sim.Requests()[0].Body, "", "  "))
	got.WriteByte('\n')
	golden := filepath.Join("testdata", file)
	if *update {
		require.NoError(t, os.WriteFile(golden, got.Bytes(), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String())
	for _, never := range []string{"secret", "nothing to say", "metadata"} {
		require.NotContains(t, got.String(), never)
	}
}

// A model that reads that a call was denied tells people so, and does not ask for it again.
func TestACallThatWasNotDecidedIsNotSaidToBeDenied(t *testing.T) {
	for _, api := range []openaimodel.API{openaimodel.Chat, openaimodel.Responses} {
		for _, message := range []string{
			approvals.ExpiredMessage, approvals.WithdrawnMessage + ` The reason that was given, quoted: "later"`,
			// as earlier versions stored them
			"Nobody denied this tool call; the time to approve it ran out. It was not executed.", "Nobody denied this tool call; it was withdrawn before it was approved. It was not executed.",
		} {
			content, err := json.Marshal(message)
			require.NoError(t, err)
			sim := openaisim.New(always(openaisim.Reply{Text: "Then not."}))
			r := ask("clean up", "t")
			r.Messages = append(r.Messages, response(call("c1", "t", "{}")), request(result("c1", string(content), agentrun.OutcomeDenied)))
			_, err = newBench(t, sim, by(api)).Request(t.Context(), r)
			require.NoError(t, err)
			body := string(sim.Requests()[0].Body)
			require.Contains(t, body, message[:30])
			require.NotContains(t, body, "was denied")
		}
	}
}

func TestARunGoesOnOverManyTurns(t *testing.T) {
	for _, api := range []openaimodel.API{openaimodel.Chat, openaimodel.Responses} {
		t.Run(string(api), func(t *testing.T) { manyTurns(t, api) })
	}
}

func manyTurns(t *testing.T, api openaimodel.API) {
	t.Helper()
	sim := openaisim.New(openaisim.DemoStories()...)
	m := newBench(t, sim, by(api))
	answers := map[string]func(path string) (string, agentrun.Outcome){
		"list_files": func(string) (string, agentrun.Outcome) {
			return `["reports/2021.txt","reports/2022.txt","reports/2025.txt"]`, agentrun.OutcomeSuccess
		},
		"read_file": func(path string) (string, agentrun.Outcome) {
			return `"the text of ` + path + `"`, agentrun.OutcomeSuccess
		},
		"delete_file": func(path string) (string, agentrun.Outcome) {
			if strings.Contains(path, "2021") {
				return `"audit needs it"`, agentrun.OutcomeDenied
			}
			return `"deleted"`, agentrun.OutcomeSuccess
		},
	}
	r := ask("clean up the old reports", "list_files", "read_file", "delete_file")
	for range 10 {
		got, err := m.Request(t.Context(), r)
		require.NoError(t, err)
		r.Messages = append(r.Messages, got)
		var next agentrun.Request
		for _, p := range got.Parts {
			c, ok := p.(agentrun.CallPart)
			if !ok {
				continue
			}
			var args struct{ Path string }
			require.NoError(t, json.Unmarshal(c.Args, &args))
			content, o := answers[c.Name](args.Path)
			next.Parts = append(next.Parts, user("noted for "+string(c.ID)), result(string(c.ID), content, o))
		}
		if len(next.Parts) == 0 {
			require.Equal(t, agentrun.FinishStop, got.FinishReason)
			text := spoken(got)[0].(agentrun.Text).Content
			require.Contains(t, text, "reports/2021.txt: not deleted")
			require.Contains(t, text, "audit needs it")
			require.Contains(t, text, "reports/2022.txt: deleted.")
			require.Empty(t, m.waited(), "every request was valid")
			return
		}
		r.Messages = append(r.Messages, next)
	}
	require.Fail(t, "the story does not end")
}
