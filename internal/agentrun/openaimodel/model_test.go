package openaimodel_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/approvals"
)

const theKey = "sk-test/secret+0123456789"

var noon = time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)

// A bench is a model against a server, with a clock that stands and waits that
// take no time.
type bench struct {
	*openaimodel.Model
	mu    sync.Mutex
	waits []time.Duration
}

func (b *bench) waited() []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waits
}

func newBench(t *testing.T, h http.Handler, change ...func(*openaimodel.Config)) *bench {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	b := &bench{}
	c := openaimodel.Config{
		APIKey: func() string { return theKey }, BaseURL: srv.URL + "/v1", Model: "m", HTTPClient: srv.Client(),
		Now: func() time.Time { return noon },
		Wait: func(ctx context.Context, d time.Duration) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.waits = append(b.waits, d)
			return ctx.Err()
		},
	}
	for _, f := range change {
		f(&c)
	}
	m, err := openaimodel.New(c)
	require.NoError(t, err)
	b.Model = m
	return b
}

func ask(text string, tools ...string) agentrun.ModelRequest {
	r := agentrun.ModelRequest{Messages: []agentrun.Message{
		agentrun.Request{Parts: []agentrun.RequestPart{agentrun.UserPrompt{Content: text}}},
	}}
	for _, name := range tools {
		r.Tools = append(r.Tools, agentrun.ToolDefinition{Name: name})
	}
	return r
}

func call(id, name, args string) agentrun.CallPart {
	return agentrun.CallPart{ToolCall: approvals.ToolCall{ID: approvals.ToolCallID(id), Name: name, Args: json.RawMessage(args)}}
}

// always is a story that answers everything with the same reply.
func always(r openaisim.Reply) openaisim.Story {
	return openaisim.Story{
		Name: "always", Prompt: "anything", Match: func(string) bool { return true },
		Turn: func(openaisim.Conversation) openaisim.Reply { return r },
	}
}

// twoCalls is a reply whose calls come interleaved.
var twoCalls = openaisim.Reply{Text: "I will look at both.", Calls: []openaisim.Call{
	{ID: "call_1", Name: "read_file", Args: `{"path": "a \u00fc \ud83d\ude00.txt",  "n": 9007199254740993}`},
	{ID: "call_2", Name: "read_file", Args: `{"path":"b"}`},
}}

func TestAnAnswerIsPutTogetherByIndexAndByteForByte(t *testing.T) {
	m := newBench(t, openaisim.New(always(twoCalls)))
	got, err := m.Request(t.Context(), ask("go", "read_file"))
	require.NoError(t, err)
	require.Equal(t, []agentrun.ResponsePart{
		agentrun.Text{Content: twoCalls.Text},
		call("call_1", "read_file", twoCalls.Calls[0].Args),
		call("call_2", "read_file", twoCalls.Calls[1].Args),
	}, got.Parts)
	require.Equal(t, agentrun.FinishToolCall, got.FinishReason)
	require.Equal(t, openaisim.ModelName, got.ModelName)
	require.Equal(t, noon, got.At)
	require.Equal(t, 1, got.Usage.Requests)
	require.Positive(t, got.Usage.InputTokens)
	require.Positive(t, got.Usage.OutputTokens)
	require.Zero(t, got.Usage.ToolCalls)
}

// Each attempt continues the trace of the request, and carries nothing else of it: the
// server is often another company's.
func TestARequestNamesItsTraceAndNothingElse(t *testing.T) {
	const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	bag, err := baggage.Parse("user=bo")
	require.NoError(t, err)
	traced := propagation.TraceContext{}.Extract(baggage.ContextWithBaggage(t.Context(), bag), propagation.MapCarrier{"traceparent": caller, "tracestate": "a=b"})
	for _, api := range []openaimodel.API{openaimodel.Chat, openaimodel.Responses} {
		for want, ctx := range map[string]context.Context{caller: traced, "": t.Context()} {
			var sent []http.Header
			sim := openaisim.New(always(twoCalls))
			sim.Fail(openaisim.Fault{Kind: openaisim.Unavailable})
			m := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				sent = append(sent, r.Header.Clone())
				sim.ServeHTTP(w, r)
			}), by(api))
			_, err := m.Request(ctx, ask("go", "read_file"))
			require.NoError(t, err)
			require.Len(t, sent, 2)
			for _, h := range sent {
				require.Equal(t, want, h.Get("Traceparent"))
				require.Empty(t, h.Get("Tracestate")+h.Get("Baggage"))
			}
		}
	}
}

func TestTheModelNamesEverythingThatIsWrongWithItsConfig(t *testing.T) {
	_, err := openaimodel.New(openaimodel.Config{BaseURL: "ftp://bo:hunter2@/v1?key=1", Attempts: -1, Idle: -1})
	require.ErrorContains(t, err, "APIKey is missing")
	require.ErrorContains(t, err, "Model is missing")
	require.ErrorContains(t, err, "Now is missing")
	require.ErrorContains(t, err, "must begin with http")
	require.ErrorContains(t, err, "neither ? nor #")
	require.ErrorContains(t, err, "Idle must not be negative")
	require.ErrorContains(t, err, "Attempts must not be negative")
	require.NotContains(t, err.Error(), "hunter2")

	_, err = openaimodel.New(openaimodel.Config{BaseURL: "https://bo:hunter2@%zz/v1"})
	require.ErrorContains(t, err, "not a URL")
	require.ErrorContains(t, err, "Model is missing")
	require.NotContains(t, err.Error(), "hunter2")
}
