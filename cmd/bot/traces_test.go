package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/slacksim"
)

// A collector keeps the spans that it is sent over OTLP.
type collector struct {
	*httptest.Server

	mu    sync.Mutex
	spans []*spanpb.Span
	raw   strings.Builder
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var all tracepb.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &all) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw.Write(body)
		for _, r := range all.ResourceSpans {
			for _, s := range r.ScopeSpans {
				c.spans = append(c.spans, s.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// named returns the spans with the name.
func (c *collector) named(name string) []*spanpb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*spanpb.Span
	for _, s := range c.spans {
		if s.Name == name {
			all = append(all, s)
		}
	}
	return all
}

func attributesOf(s *spanpb.Span) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes {
		all[a.Key] = a.Value.GetStringValue()
	}
	return all
}

// linksTo reports whether a is linked to b.
func linksTo(a, b *spanpb.Span) bool {
	for _, l := range a.Links {
		if string(l.TraceId) == string(b.TraceId) && string(l.SpanId) == string(b.SpanId) {
			return true
		}
	}
	return false
}

// One approval can be followed from the mention to the effect, across the pause: the
// wait is a trace of its own, linked with the runs before and after it.
func TestOneApprovalIsFollowedAcrossThePause(t *testing.T) {
	c := newCollector(t)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	var f *follower
	t.Run("a bot", func(t *testing.T) {
		i := newInstallation(t, slacksim.Config{})
		i.text, i.rules = twoAgents, oneOfSRE
		i.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = c.URL
		f = deferralOn(t, i)
		f.approves()
	}) // what has ended is sent when the bot closes

	one := func(name string) *spanpb.Span {
		t.Helper()
		all := c.named(name)
		require.Len(t, all, 1, name)
		return all[0]
	}
	runs := c.named("invoke_agent ops")
	require.Len(t, runs, 2)
	first, second := runs[0], runs[1]
	if attributesOf(first)["countersign.run.status"] != "deferred" {
		first, second = second, first
	}
	wait, call, effect := one("countersign.wait"), one("countersign.approval delete_file"), one("execute_tool delete_file")
	require.Equal(t, "deferred", attributesOf(first)["countersign.run.status"])
	require.Equal(t, "completed", attributesOf(second)["countersign.run.status"])
	require.Empty(t, wait.ParentSpanId, "a trace does not stay open for days")
	require.Equal(t, wait.SpanId, call.ParentSpanId)
	require.Equal(t, second.SpanId, effect.ParentSpanId)
	require.NotEqual(t, first.TraceId, wait.TraceId)
	require.NotEqual(t, second.TraceId, wait.TraceId)
	require.True(t, linksTo(first, wait) && linksTo(wait, first) && linksTo(second, wait) && linksTo(second, first))
	require.GreaterOrEqual(t, effect.StartTimeUnixNano, wait.EndTimeUnixNano)
	chats := c.named("chat alpha")
	require.Len(t, chats, 2)
	for _, chat := range chats {
		require.Contains(t, []string{string(first.SpanId), string(second.SpanId)}, string(chat.ParentSpanId))
	}
	mentioned := false
	for _, s := range c.named("POST /slack/events") {
		mentioned = mentioned || linksTo(s, first)
	}
	require.True(t, mentioned, "the mention")
	require.True(t, linksTo(one("POST /slack/interactivity"), wait), "the click")

	said := attributesOf(call)
	require.Equal(t, "approved", said["countersign.approval.outcome"])
	require.Equal(t, "default", said["countersign.approval.rule"])
	require.Equal(t, "delete_file", said["gen_ai.tool.name"])
	require.Equal(t, attributesOf(effect)["gen_ai.tool.call.id"], said["gen_ai.tool.call.id"])
	require.NotEmpty(t, attributesOf(first)["gen_ai.conversation.id"])
	for _, foreign := range []string{"a.txt", "clean up", "That is all.", "xoxb"} {
		require.NotContains(t, c.raw.String(), foreign)
	}
}

// Traces are off unless a collector is named, and what cannot be done fails the start.
func TestTracesAreOffUnlessACollectorIsNamed(t *testing.T) {
	t.Parallel()
	const at = "http://127.0.0.1:1"
	for name, c := range map[string]struct {
		env  map[string]string
		on   bool
		want string
	}{
		"nothing":        {nil, false, ""},
		"an endpoint":    {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": at}, true, ""},
		"one of its own": {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": at + "/t"}, true, ""},
		"no scheme":      {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4318"}, false, "OTEL_EXPORTER_OTLP_ENDPOINT: must be a URL"},
		"another scheme": {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "grpc://localhost:4317"}, false, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: must be a URL"},
		"disabled":       {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": at, "OTEL_SDK_DISABLED": "true"}, false, ""},
		"no exporter":    {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": at, "OTEL_TRACES_EXPORTER": "none"}, false, ""},
		"gRPC":           {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": at, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, false, "must be http/protobuf"},
	} {
		t.Run(name, func(t *testing.T) {
			e := config.Environment{}
			for k, v := range c.env {
				e = e.With(k, v)
			}
			traces, err := newTraces(t.Context(), e)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.on, traces != nil)
			require.NoError(t, traces.Close(t.Context()))
		})
	}
}
