package openaisim_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"
)

// events returns the data of each event of a stream.
func events(t *testing.T, stream string) []string {
	t.Helper()
	require.True(t, strings.HasSuffix(stream, "\n\n"))
	var out []string
	for event := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(event, "data: ")
		require.True(t, ok, event)
		out = append(out, data)
	}
	return out
}

func streamed(t *testing.T, request openai.ChatCompletionRequest) string {
	t.Helper()
	request.Stream = true
	return marshal(t, request)
}

func TestAStreamOnTheWire(t *testing.T) {
	_, _, url := start(t, weather())
	request := ask("how is the weather?")
	request.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	status, header, body := post(t, url, streamed(t, request))
	require.Equal(t, 200, status)
	require.Equal(t, "text/event-stream; charset=utf-8", header.Get("Content-Type"))

	all := events(t, body)
	require.Equal(t, "[DONE]", all[len(all)-1])
	all = all[:len(all)-1]
	type wireChunk struct {
		ID, Object, Model string
		Fingerprint       string `json:"system_fingerprint"`
		Choices           []struct {
			Delta        map[string]json.RawMessage
			FinishReason *string `json:"finish_reason"`
		}
		Usage json.RawMessage
	}
	var chunks []wireChunk
	for _, data := range all {
		var c wireChunk
		require.NoError(t, json.Unmarshal([]byte(data), &c))
		require.Contains(t, data, `"usage":`)
		require.Equal(t, "chat.completion.chunk scripted scripted", c.Object+" "+c.Model+" "+c.Fingerprint)
		chunks = append(chunks, c)
		require.Equal(t, chunks[0].ID, c.ID)
	}

	first, last, usage := chunks[0], chunks[len(chunks)-2], chunks[len(chunks)-1]
	require.JSONEq(t, `{"role":"assistant","content":"","refusal":null}`, marshal(t, first.Choices[0].Delta))
	require.Equal(t, "tool_calls", *last.Choices[0].FinishReason)
	require.Empty(t, last.Choices[0].Delta)
	require.Empty(t, usage.Choices)
	require.Contains(t, string(usage.Usage), "total_tokens")

	var indices []int
	named := map[int]int{}
	contents := 0
	for _, c := range chunks[1 : len(chunks)-2] {
		require.Nil(t, c.Choices[0].FinishReason)
		require.Equal(t, "null", string(c.Usage))
		if _, ok := c.Choices[0].Delta["content"]; ok {
			contents++
			continue
		}
		var calls []openai.ToolCall
		require.NoError(t, json.Unmarshal(c.Choices[0].Delta["tool_calls"], &calls))
		require.Len(t, calls, 1)
		index := *calls[0].Index
		if calls[0].ID != "" {
			require.Equal(t, "look_up", calls[0].Function.Name)
			named[index]++
			continue
		}
		require.Empty(t, calls[0].Function.Name)
		require.Equal(t, 1, named[index])
		indices = append(indices, index)
	}
	require.Equal(t, map[int]int{0: 1, 1: 1}, named)
	require.Greater(t, contents, 1)
	require.Equal(t, []int{0, 1, 0, 1, 0}, indices[:5]) // interleaved
}

func TestWithoutTheOptionThereIsNoUsage(t *testing.T) {
	_, _, url := start(t, weather())
	_, _, body := post(t, url, streamed(t, ask("how is the weather?")))
	require.NotContains(t, body, `"usage"`)
}

// gather reads a stream through the client into a message.
func gather(t *testing.T, client *openai.Client, request openai.ChatCompletionRequest) (openai.ChatCompletionMessage, openai.FinishReason, error) {
	t.Helper()
	stream, err := client.CreateChatCompletionStream(t.Context(), request)
	if err != nil {
		return openai.ChatCompletionMessage{}, "", err
	}
	defer func() { _ = stream.Close() }()
	m := openai.ChatCompletionMessage{Role: "assistant"}
	var finish openai.FinishReason
	for {
		c, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return m, finish, nil
		}
		if err != nil {
			return m, finish, err
		}
		for _, choice := range c.Choices {
			m.Content += choice.Delta.Content
			finish = max(finish, choice.FinishReason)
			for _, d := range choice.Delta.ToolCalls {
				for len(m.ToolCalls) <= *d.Index {
					m.ToolCalls = append(m.ToolCalls, openai.ToolCall{})
				}
				call := &m.ToolCalls[*d.Index]
				call.ID += d.ID
				call.Type += d.Type
				call.Function.Name += d.Function.Name
				call.Function.Arguments += d.Function.Arguments
			}
		}
	}
}

func TestAStreamSaysWhatAWholeAnswerSays(t *testing.T) {
	_, client, _ := start(t, weather())
	request := ask("how is the weather?")
	whole, err := client.CreateChatCompletion(t.Context(), request)
	require.NoError(t, err)
	got, finish, err := gather(t, client, request)
	require.NoError(t, err)
	want := whole.Choices[0].Message
	require.Equal(t, whole.Choices[0].FinishReason, finish)
	for i := range want.ToolCalls {
		require.NotEqual(t, want.ToolCalls[i].ID, got.ToolCalls[i].ID)
		got.ToolCalls[i].ID = want.ToolCalls[i].ID
	}
	require.Equal(t, want, got)
}
