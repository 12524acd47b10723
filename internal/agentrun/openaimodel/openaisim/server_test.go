package openaisim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
)

// weather calls a tool twice at once, then tells what came back.
func weather() openaisim.Story {
	return openaisim.Story{
		Name: "weather", Prompt: "how is the weather?", Match: openaisim.Says("how is the weather?"),
		Turn: func(c openaisim.Conversation) openaisim.Reply {
			got := c.Named("look_up")
			if len(got) == 0 {
				return openaisim.Reply{Text: "I will look it up — twice.", Calls: []openaisim.Call{
					{Name: "look_up", Args: `{"city": "Zürich", "note": "caf\u00e9"}`},
					{Name: "look_up", Args: `{"city": "Oslo"}`},
				}}
			}
			var said []string
			for _, r := range got {
				said = append(said, r.Arg("city")+": "+r.Text())
			}
			return openaisim.Reply{Text: strings.Join(said, "; ")}
		},
	}
}

func lookUp() []openai.Tool {
	return []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
		Name: "look_up", Parameters: json.RawMessage(`{"type":"object"}`),
	}}}
}

func start(t *testing.T, stories ...openaisim.Story) (*openaisim.Server, *openai.Client, string) {
	t.Helper()
	sim := openaisim.New(stories...)
	srv := httptest.NewServer(sim)
	t.Cleanup(srv.Close)
	config := openai.DefaultConfig("test-key")
	config.BaseURL = srv.URL + "/v1"
	return sim, openai.NewClientWithConfig(config), srv.URL
}

func ask(texts ...string) openai.ChatCompletionRequest {
	r := openai.ChatCompletionRequest{Model: "any", Tools: lookUp()}
	for _, text := range texts {
		r.Messages = append(r.Messages, openai.ChatCompletionMessage{Role: "user", Content: text})
	}
	return r
}

// post sends a body as it is and returns status, header and body.
func post(t *testing.T, url, body string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer test-key")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header, string(b)
}

func TestAWholeConversation(t *testing.T) {
	sim, client, _ := start(t, weather())
	request := ask("<@U123> How is the weather?")

	resp, err := client.CreateChatCompletion(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, "scripted", resp.Model)
	require.Equal(t, "scripted", resp.SystemFingerprint)
	require.Positive(t, resp.Usage.TotalTokens)
	choice := resp.Choices[0]
	require.Equal(t, openai.FinishReasonToolCalls, choice.FinishReason)
	require.Equal(t, "I will look it up — twice.", choice.Message.Content)
	calls := choice.Message.ToolCalls
	require.Len(t, calls, 2)
	require.NotEqual(t, calls[0].ID, calls[1].ID)
	require.Equal(t, weather().Turn(openaisim.Conversation{}).Calls[0].Args, calls[0].Function.Arguments) // to the byte

	request.Messages = append(
		request.Messages, choice.Message,
		openai.ChatCompletionMessage{Role: "tool", ToolCallID: calls[1].ID, Content: `{"text":"snow"}`},
		openai.ChatCompletionMessage{Role: "tool", ToolCallID: calls[0].ID, Content: "sun"},
	)
	resp, err = client.CreateChatCompletion(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, "Zürich: sun; Oslo: snow", resp.Choices[0].Message.Content)
	require.Equal(t, openai.FinishReasonStop, resp.Choices[0].FinishReason)

	require.Len(t, sim.Requests(), 2)
	require.Equal(t, "Bearer test-key", sim.Requests()[0].Header.Get("Authorization"))
	require.JSONEq(t, marshal(t, request), string(sim.Requests()[1].Body))
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func TestOtherPromptsAreToldThatThisIsAScript(t *testing.T) {
	_, client, _ := start(t, weather())
	resp, err := client.CreateChatCompletion(t.Context(), ask("compose a symphony"))
	require.NoError(t, err)
	text := resp.Choices[0].Message.Content
	require.Contains(t, text, "scripted model")
	require.Contains(t, text, "- how is the weather?")
}

func TestTheNewestMatchingMessageChoosesTheStory(t *testing.T) {
	echo := func(name string) openaisim.Story {
		return openaisim.Story{Name: name, Prompt: name, Match: openaisim.Says(name), Turn: func(c openaisim.Conversation) openaisim.Reply {
			return openaisim.Reply{Text: name + " for " + c.User}
		}}
	}
	_, client, _ := start(t, echo("red"), echo("blue"))
	user := func(s string) openai.ChatCompletionMessage {
		return openai.ChatCompletionMessage{Role: "user", Content: s}
	}
	said := func(s string) openai.ChatCompletionMessage {
		return openai.ChatCompletionMessage{Role: "assistant", Content: s}
	}
	for name, tc := range map[string]struct {
		messages []openai.ChatCompletionMessage
		want     string
	}{
		"one":                             {[]openai.ChatCompletionMessage{user("red")}, "red for red"},
		"newest":                          {[]openai.ChatCompletionMessage{user("red"), user("blue")}, "blue for blue"},
		"a later remark changes nothing":  {[]openai.ChatCompletionMessage{user("red"), user("please")}, "red for red"},
		"a final answer ends a story":     {[]openai.ChatCompletionMessage{user("red"), said("ok"), user("please")}, "This is a scripted model"},
		"asked again":                     {[]openai.ChatCompletionMessage{user("red"), said("ok"), user("RED!")}, "red for RED!"},
		"the last line of a message wins": {[]openai.ChatCompletionMessage{user("Earlier: red\n<@U1> blue, please")}, "blue for Earlier"},
		"parts": {[]openai.ChatCompletionMessage{{Role: "user", MultiContent: []openai.ChatMessagePart{
			{Type: "text", Text: "blue"}, {Type: "image_url", ImageURL: &openai.ChatMessageImageURL{URL: "data:,"}},
		}}}, "blue for blue"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, err := client.CreateChatCompletion(t.Context(), openai.ChatCompletionRequest{Model: "m", Messages: tc.messages})
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(resp.Choices[0].Message.Content, tc.want), resp.Choices[0].Message.Content)
		})
	}
}

func TestOneCallAtATimeIfAskedTo(t *testing.T) {
	_, client, _ := start(t, weather())
	request := ask("how is the weather?")
	request.ParallelToolCalls = false
	resp, err := client.CreateChatCompletion(t.Context(), request)
	require.NoError(t, err)
	require.Len(t, resp.Choices[0].Message.ToolCalls, 1)
}

func TestModels(t *testing.T) {
	_, client, _ := start(t)
	models, err := client.ListModels(t.Context())
	require.NoError(t, err)
	require.Len(t, models.Models, 1)
	require.Equal(t, openaisim.ModelName, models.Models[0].ID)
}

func TestServeStaysOnLoopback(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	sim := openaisim.New()
	ended := make(chan error, 1)
	go func() { ended <- sim.Serve(ctx, l) }()
	config := openai.DefaultConfig("test-key")
	config.BaseURL = "http://" + l.Addr().String() + "/v1"
	client := openai.NewClientWithConfig(config)
	_, err = client.CreateChatCompletion(t.Context(), ask("hello"))
	require.NoError(t, err)

	sim.Fail(openaisim.Fault{Kind: openaisim.Stalled, After: 1})
	stream, err := client.CreateChatCompletionStream(t.Context(), ask("hello"))
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	cancel() // ends a stream that stalls, too
	_, err = stream.Recv()
	require.Error(t, err)
	require.NoError(t, stream.Close())
	require.NoError(t, <-ended)

	open, err := net.Listen("tcp", "0.0.0.0:0")
	require.NoError(t, err)
	require.ErrorContains(t, openaisim.New().Serve(t.Context(), open), "not a loopback address")
	require.ErrorIs(t, open.Close(), net.ErrClosed)
}

func TestOldRequestsAreForgotten(t *testing.T) {
	sim := openaisim.New()
	for range 300 {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", bytes.NewBufferString("{}"))
		r.Header.Set("Authorization", "Bearer k")
		sim.ServeHTTP(httptest.NewRecorder(), r)
	}
	require.Len(t, sim.Requests(), 256)
}

func apiError(t *testing.T, err error) *openai.APIError {
	t.Helper()
	e, ok := errors.AsType[*openai.APIError](err)
	require.True(t, ok, "%v", err)
	return e
}
