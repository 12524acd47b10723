package openaisim_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	openai "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
)

func TestFaultsThatAnswerWithAnError(t *testing.T) {
	sim, client, _ := start(t, weather())
	for kind, want := range map[openaisim.FaultKind]struct {
		status int
		code   any
	}{
		openaisim.RateLimited:   {429, "rate_limit_exceeded"},
		openaisim.QuotaExceeded: {429, "insufficient_quota"},
		openaisim.Unauthorized:  {401, "invalid_api_key"},
		openaisim.ModelNotFound: {404, "model_not_found"},
		openaisim.ContextLength: {400, "context_length_exceeded"},
		openaisim.ServerError:   {500, 0}, // null, as the client reads it
		openaisim.Unavailable:   {503, 0},
	} {
		t.Run(string(kind), func(t *testing.T) {
			sim.Fail(openaisim.Fault{Kind: kind}, openaisim.Fault{Kind: kind})
			_, err := client.CreateChatCompletion(t.Context(), ask("how is the weather?"))
			require.Equal(t, want.status, apiError(t, err).HTTPStatusCode)
			require.Equal(t, want.code, apiError(t, err).Code)
			_, _, err = gather(t, client, ask("how is the weather?"))
			require.Equal(t, want.status, apiError(t, err).HTTPStatusCode)
			_, err = client.CreateChatCompletion(t.Context(), ask("how is the weather?"))
			require.NoError(t, err)
		})
	}
}

func TestAProxyAnswersWithAPage(t *testing.T) {
	sim, _, url := start(t)
	sim.Fail(openaisim.Fault{Kind: openaisim.BadGateway, RetryAfter: "2"}, openaisim.Fault{Kind: openaisim.WrongContentType})
	for _, want := range []int{http.StatusBadGateway, http.StatusOK} {
		status, header, body := post(t, url, messages(hello))
		require.Equal(t, want, status)
		require.Equal(t, "text/html; charset=utf-8", header.Get("Content-Type"))
		require.False(t, json.Valid([]byte(body)))
		require.Equal(t, status == http.StatusBadGateway, header.Get("Retry-After") == "2")
	}
}

func TestABadRequestUsesUpNoFault(t *testing.T) {
	sim, _, url := start(t)
	sim.Fail(openaisim.Fault{Kind: openaisim.RateLimited, RetryAfter: "1"})
	status, _, _ := post(t, url, messages())
	require.Equal(t, http.StatusBadRequest, status)
	status, header, _ := post(t, url, messages(hello))
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Equal(t, "1", header.Get("Retry-After"))
}

func TestFaultsOfTheConnection(t *testing.T) {
	sim, client, url := start(t, weather())
	request := ask("how is the weather?")

	t.Run("hung up", func(t *testing.T) {
		sim.Fail(openaisim.Fault{Kind: openaisim.HungUp})
		_, err := client.CreateChatCompletion(t.Context(), request)
		require.ErrorIs(t, err, io.EOF)
	})
	t.Run("dropped", func(t *testing.T) {
		sim.Fail(openaisim.Fault{Kind: openaisim.Dropped}, openaisim.Fault{Kind: openaisim.Dropped, After: 2})
		_, err := client.CreateChatCompletion(t.Context(), request)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		m, finish, err := gather(t, client, request)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Equal(t, "I will look ", m.Content)
		require.Empty(t, finish)
	})
	t.Run("stalled", func(t *testing.T) {
		sim.Fail(openaisim.Fault{Kind: openaisim.Stalled, After: 1})
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := client.CreateChatCompletionStream(ctx, request)
		require.NoError(t, err)
		defer func() { _ = stream.Close() }()
		_, err = stream.Recv()
		require.NoError(t, err)
		cancel()
		_, err = stream.Recv()
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("cut short", func(t *testing.T) {
		sim.Fail(openaisim.Fault{Kind: openaisim.CutShort})
		_, _, body := post(t, url, streamed(t, request))
		require.NotContains(t, body, "[DONE]")
		require.NotContains(t, body, `"finish_reason":"`)
		for _, data := range events(t, body) {
			require.True(t, json.Valid([]byte(data)))
		}
	})
	t.Run("malformed", func(t *testing.T) {
		sim.Fail(openaisim.Fault{Kind: openaisim.MalformedSSE}, openaisim.Fault{Kind: openaisim.MalformedSSE})
		_, _, err := gather(t, client, request)
		require.ErrorContains(t, err, "unexpected end of JSON input")
		_, _, body := post(t, url, marshal(t, request))
		require.False(t, json.Valid([]byte(body)))
	})
	t.Run("error event", func(t *testing.T) {
		sim.Fail(openaisim.Fault{Kind: openaisim.ErrorEvent})
		_, _, err := gather(t, client, request)
		require.Equal(t, "server_error", apiError(t, err).Type)
	})
}

func TestFaultsOfWhatIsSaid(t *testing.T) {
	sim, client, _ := start(t, weather())
	request := ask("how is the weather?")
	other := ask("something else")
	for _, stream := range []bool{false, true} {
		said := func(t *testing.T, kind openaisim.FaultKind, r openai.ChatCompletionRequest) (openai.ChatCompletionMessage, openai.FinishReason) {
			t.Helper()
			sim.Fail(openaisim.Fault{Kind: kind})
			if stream {
				m, finish, err := gather(t, client, r)
				require.NoError(t, err)
				return m, finish
			}
			resp, err := client.CreateChatCompletion(t.Context(), r)
			require.NoError(t, err)
			if len(resp.Choices) == 0 {
				return openai.ChatCompletionMessage{}, ""
			}
			return resp.Choices[0].Message, resp.Choices[0].FinishReason
		}
		m, finish := said(t, openaisim.ContentFiltered, request)
		require.Equal(t, openai.FinishReasonContentFilter, finish)
		require.Empty(t, m.ToolCalls)

		m, finish = said(t, openaisim.LengthReached, request)
		require.Equal(t, openai.FinishReasonLength, finish)
		require.True(t, json.Valid([]byte(m.ToolCalls[0].Function.Arguments)))
		require.False(t, json.Valid([]byte(m.ToolCalls[1].Function.Arguments)))
		m, finish = said(t, openaisim.LengthReached, other)
		require.Equal(t, openai.FinishReasonLength, finish)
		require.NotContains(t, m.Content, "how is the weather?")

		m, finish = said(t, openaisim.MalformedArgs, request)
		require.Equal(t, openai.FinishReasonToolCalls, finish)
		require.False(t, json.Valid([]byte(m.ToolCalls[1].Function.Arguments)))
		m, _ = said(t, openaisim.MalformedArgs, other)
		require.Len(t, m.ToolCalls, 1)

		m, _ = said(t, openaisim.UnknownTool, request)
		require.Len(t, m.ToolCalls, 3)
		require.NotEqual(t, "look_up", m.ToolCalls[2].Function.Name)

		m, _ = said(t, openaisim.DuplicateIDs, other)
		require.Len(t, m.ToolCalls, 2)
		require.Equal(t, m.ToolCalls[0].ID, m.ToolCalls[1].ID)

		m, finish = said(t, openaisim.Empty, request)
		require.Equal(t, openai.FinishReasonStop, finish)
		require.Empty(t, m.Content)
		require.Empty(t, m.ToolCalls)

		m, finish = said(t, openaisim.NoChoices, request)
		require.Empty(t, m.Content)
		require.Empty(t, finish)
	}
}

func TestAFaultOfAReplyComesBackAndAQueuedOneGoesFirst(t *testing.T) {
	sim, _, url := start(t, openaisim.Story{
		Prompt: "hello", Match: openaisim.Says("hello"),
		Turn: func(openaisim.Conversation) openaisim.Reply {
			return openaisim.Reply{Fault: &openaisim.Fault{Kind: openaisim.ServerError}}
		},
	})
	sim.Fail(openaisim.Fault{Kind: openaisim.RateLimited})
	for _, want := range []int{429, 500, 500} {
		status, _, _ := post(t, url, messages(hello))
		require.Equal(t, want, status)
	}
}
