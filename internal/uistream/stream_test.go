package uistream_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/uistream"
)

func TestAStreamHasTheHeadersOfTheProtocol(t *testing.T) {
	r := newWorld(t).client(alice).say("u1", "say hi")
	require.Equal(t, "text/event-stream", r.header.Get("Content-Type"))
	require.Equal(t, "no-cache", r.header.Get("Cache-Control"))
	require.Equal(t, "v1", r.header.Get("x-vercel-ai-ui-message-stream"))
	require.Equal(t, "no", r.header.Get("x-accel-buffering"))
}

func TestATurnIsToldAsItHappens(t *testing.T) {
	c := newWorld(t).client(alice)
	got := read(t, c.say("u1", "look free:a del:b never:c breaks:d | say bye")).all()
	require.Equal(t, strings.TrimSpace(`
start
start-step
text-start
text-delta look 
text-end
tool-input-start c0.0.1
tool-input-delta c0.0.1 {"path":"a"}
tool-input-start c0.0.2
tool-input-delta c0.0.2 {"path":"b"}
tool-input-start c0.0.3
tool-input-delta c0.0.3 {"path":"c"}
tool-input-start c0.0.4
tool-input-delta c0.0.4 {"path":"d"}
tool-input-available c0.0.1
tool-input-available c0.0.2
tool-approval-request c0.0.2
data-approval c0.0.2 waiting 0 of 1
tool-input-available c0.0.3
data-approval c0.0.3 refused <nil>
tool-input-available c0.0.4
tool-output-denied c0.0.3
tool-output-error c0.0.4 it broke
tool-output-available c0.0.1
finish-step
finish tool-calls`), short(got))
}

// replay is the whole of the message that is being made.
func (c *client) replay() *sse {
	c.Helper()
	return read(c.T, c.do(http.MethodGet, uistream.Path+"/"+c.chat+"/stream", nil))
}

func TestAStreamThatFollowsTellsADecisionFromSlack(t *testing.T) {
	for name, row := range map[string]struct {
		dialect, tail string
	}{
		"common": {"", "tool-output-available c0.0.0\nstart-step"},
		"v7":     {"v7", "tool-approval-response true fine\ntool-output-available c0.0.0\nstart-step"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newWorld(t).client(alice)
			c.head.Set("Countersign-Follow", "true")
			c.head.Set("Countersign-SDK", row.dialect)
			s := read(t, c.say("u1", "del:a"))
			s.until("tool-approval-request")
			require.NoError(t, c.decide(t.Context(), bob, "a", approvals.Approve, "fine"))
			all := s.all()
			var told []object
			for _, x := range all {
				if x["type"] != "data-approval" {
					told = append(told, x)
				}
			}
			require.Contains(t, short(told), row.tail)
			require.True(t, strings.HasSuffix(short(told), "finish stop"), short(told))
			require.Equal(t, []string{`del{"path":"a"}`}, c.executed())
		})
	}
}

func TestAnApproverReadsOnTheWebWhatACheckSays(t *testing.T) {
	for _, x := range read(t, newWorld(t).client(alice).say("u1", "checked:a")).all() {
		if x["type"] == "data-approval" {
			require.Equal(t, object{"name": "fraud", "answer": "ask", "says": "A new customer."}, x["data"].(object)["check"])
			return
		}
	}
	require.Fail(t, "there is no data-approval")
}

func TestAResumedStreamIsTheWholeMessageUnderItsID(t *testing.T) {
	c := newWorld(t).client(alice)
	require.Equal(t, http.StatusNoContent, c.do(http.MethodGet, "/api/chat/none/stream", nil).code)
	first := read(t, c.say("u1", "look free:z | del:a")).all()
	again := c.replay().all()
	require.Equal(t, short(first), short(again))
	require.Equal(t, first[0]["messageId"], again[0]["messageId"])
	require.Equal(t, http.StatusNoContent, c.client(bob).do(http.MethodGet, "/api/chat/chat1/stream", nil).code, "the chat of another person")

	require.NoError(t, c.decide(t.Context(), bob, "a", approvals.Deny, "no"))
	c.head.Set("Countersign-Follow", "true")
	require.Eventually(t, func() bool {
		return c.do(http.MethodGet, "/api/chat/chat1/stream", nil).code == http.StatusNoContent
	}, waitTime, tick)
	require.Empty(t, c.do(http.MethodGet, "/api/chat/chat1", nil).header.Get("x-vercel-ai-ui-message-stream"))
}

func TestNoAnswerIsOlderThanItsMessage(t *testing.T) {
	c := newWorld(t).client(alice)
	read(t, c.say("u1", "say hello")).all()
	var h struct {
		Messages []struct {
			Role     string
			Metadata struct{ Timestamp time.Time }
		}
	}
	require.NoError(t, json.NewDecoder(c.do(http.MethodGet, "/api/chat/chat1", nil).body).Decode(&h))
	require.Len(t, h.Messages, 2)
	require.Equal(t, "user", h.Messages[0].Role)
	require.False(t, h.Messages[1].Metadata.Timestamp.Before(h.Messages[0].Metadata.Timestamp))
}

func TestADisconnectDoesNotCancelTheRun(t *testing.T) {
	w := newWorld(t)
	w.gate = make(chan struct{})
	c := w.client(alice)
	r := c.say("u1", "free:a | say bye")
	read(t, r).until("tool-input-start")
	require.NoError(t, r.body.Close())
	s := c.replay()
	close(w.gate)
	require.Contains(t, short(s.all()), "text-delta bye")
}

func TestTheOlderDialectHasNoApprovalsAndWaits(t *testing.T) {
	c := newWorld(t).client(alice)
	c.head.Set("Countersign-SDK", "v5")
	s := read(t, c.say("u1", "del:a"))
	s.until("data-approval")
	require.NoError(t, c.decide(t.Context(), bob, "a", approvals.Deny, "too risky"))
	var out object
	for _, x := range s.all() {
		require.NotContains(t, []string{"tool-approval-request", "tool-output-denied"}, x["type"])
		if x["type"] == "tool-output-available" {
			out = x
		}
	}
	require.Contains(t, out["output"], "too risky")
}

func TestArgumentsThatFailValidationAreAnInputError(t *testing.T) {
	got := short(read(t, newWorld(t).client(alice).say("u1", "del:BAD | say bye")).all())
	require.Contains(t, got, "tool-input-error c0.0.0")
	require.NotContains(t, got, "tool-input-available")
}

func TestARunThatFailsEndsInAnError(t *testing.T) {
	got := short(read(t, newWorld(t).client(alice).say("u1", "fail")).all())
	require.Equal(t, "start\nerror The model is away.\nfinish error", got)
}

func TestNoToolWritesAChunkAndWhatIsHostileIsLeftOut(t *testing.T) {
	c := newWorld(t).client(alice)
	all := read(t, c.say("u1", "links:a | say bye")).all()
	var told []string
	for _, x := range all {
		if x["url"] != nil || x["mediaType"] != nil {
			told = append(told, fmt.Sprint(x["type"], " ", x["url"], " ", x["mediaType"], " ", x["title"]))
		}
	}
	require.Equal(t, []string{
		"source-url https://docs.example/a <nil> a", "file data:image/png;base64,eA== image/png <nil>", "source-document <nil> text/plain file:///etc/passwd",
	}, told)
	require.Equal(t, 1, strings.Count(short(all), "finish stop"))
	shown := body(t, c.do(http.MethodGet, "/api/chat/chat1", nil))
	require.Contains(t, shown, "https://docs.example/a")
	require.NotContains(t, shown, "javascript:")
}

func TestTheValueOfAWriteOnlyArgumentIsNotTold(t *testing.T) {
	w := newWorld(t)
	for _, x := range read(t, w.client(alice).say("u1", "secret:hunter2")).all() {
		require.NotContains(t, toJSON(t, x), "hunter2")
	}
	r := w.client(alice).do(http.MethodGet, "/api/chat/chat1", nil)
	require.NotContains(t, body(t, r), "hunter2\"}") // the person's own words are told
}
