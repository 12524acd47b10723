package uistream_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/uistream"
)

func pending(rule agentrun.PendingRule) func(*uistream.Config, *agentrun.Agent) {
	return func(_ *uistream.Config, a *agentrun.Agent) { a.Pending = rule }
}

func TestANewMessageWhileCallsArePendingFollowsTheRuleOfTheAgent(t *testing.T) {
	t.Run("refuse", func(t *testing.T) {
		c := newWorld(t, pending(agentrun.PendingRefuse)).client(alice)
		c.ask("del:a")
		r := c.say("u2", "say next")
		require.Equal(t, http.StatusConflict, r.code)
		require.Contains(t, body(t, r), "calls of this chat wait for approval")
	})
	t.Run("keep", func(t *testing.T) {
		c := newWorld(t, pending(agentrun.PendingKeep)).client(alice)
		_, asked := c.ask("del:a")
		s := read(t, c.say("u2", "say next"))
		s.until("start")
		require.Equal(t, http.StatusOK, c.do(http.MethodPost, "/api/chat/chat1/approvals/"+asked["c0.0.0"], object{"approved": true}).code)
		require.Contains(t, short(s.all()), "text-delta next")
		require.Len(t, c.executed(), 1)
	})
	t.Run("reject", func(t *testing.T) {
		c := newWorld(t).client(alice)
		c.head.Set("Countersign-Follow", "true")
		old := read(t, c.say("u1", "del:a"))
		old.until("tool-approval-request")
		next := short(read(t, c.say("u2", "say next")).all())
		require.Contains(t, next, "c0.0.0 superseded")
		require.Contains(t, next, "text-delta next")
		require.NotContains(t, next, "tool-")
		require.Contains(t, short(old.all()), "tool-output-denied c0.0.0\nfinish other", "who still follows the old message is told")
		require.Empty(t, c.executed())
	})
}

// One stream for each row of people whose answer does not settle the call.
func TestAStreamThatEndsWhileItWaitsAsksAgain(t *testing.T) {
	w := newWorld(t, func(c *uistream.Config, _ *agentrun.Agent) { c.Hold = 200 * time.Millisecond })
	c := w.client(alice)
	message, asked := c.ask("two:a")
	got := short(read(t, c.answer(message, responded("two", "c0.0.0", asked["c0.0.0"], true, "a"))).all())
	require.Contains(t, got, "waiting 1 of 2 Your approval counts. The call needs more approvals.")
	require.Contains(t, got, "tool-approval-request c0.0.0\nfinish tool-calls", "no part is left answered: the client would send it for ever")
}

func TestAStreamThatIsCutOffByAStoppingServerCanBeContinuedByAnother(t *testing.T) {
	w := newWorld(t)
	c := w.client(alice)
	c.head.Set("Countersign-Follow", "true")
	s := read(t, c.say("u1", "del:a"))
	s.until("tool-approval-request")
	w.chats.Drain()
	require.Contains(t, short(s.all()), "finish tool-calls")
	require.Equal(t, http.StatusServiceUnavailable, c.do(http.MethodGet, "/api/chat/chat1/stream", nil).code)
	require.Equal(t, http.StatusServiceUnavailable, c.do(http.MethodPost, "/api/chat", object{"id": "chat2", "message": userMessage("u1", "free:b")}).code)
	require.Equal(t, http.StatusNotFound, c.do(http.MethodGet, "/api/chat/chat2", nil).code, "a message that is refused is not taken")

	other, err := uistream.New(w.config)
	require.NoError(t, err)
	w.http.Config.Handler = other
	s = c.replay()
	s.until("tool-approval-request")
	require.NoError(t, c.decide(t.Context(), bob, "a", approvals.Approve, ""))
	require.Contains(t, short(s.all()), "finish stop")
	require.Eventually(t, func() bool { return other.Open() == 0 }, waitTime, tick)
}

func TestAPersonHasOnlySoManyStreams(t *testing.T) {
	c := newWorld(t, func(c *uistream.Config, _ *agentrun.Agent) { c.Streams = 1 }).client(alice)
	c.head.Set("Countersign-Follow", "true")
	read(t, c.say("u1", "del:a")).until("tool-approval-request")
	require.Equal(t, http.StatusTooManyRequests, c.do(http.MethodGet, "/api/chat/chat1/stream", nil).code)
	c.chat = "chat2"
	require.Equal(t, http.StatusTooManyRequests, c.say("u1", "free:b").code)
	require.Equal(t, http.StatusNotFound, c.do(http.MethodGet, "/api/chat/chat2", nil).code, "a message that is refused is not taken")
}

func TestASilentStreamHasComments(t *testing.T) {
	c := newWorld(t, func(c *uistream.Config, _ *agentrun.Agent) { c.Heartbeat = 10 * time.Millisecond }).client(alice)
	c.head.Set("Countersign-Follow", "true")
	s := read(t, c.say("u1", "del:a"))
	require.True(t, s.r.Scan())
	require.Equal(t, ": stream-open", s.r.Text())
	for s.r.Scan() {
		if s.r.Text() == ": keep-alive" {
			return
		}
	}
	require.Fail(t, "no comment came")
}
