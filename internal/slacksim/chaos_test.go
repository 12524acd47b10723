package slacksim_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// While Slack is away nothing is performed. Events come when the outage is over.
func TestAnOutageEndsOnTheWorkspacesClock(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	w.SetFaults(slacksim.Faults{OutageMS: int(time.Hour / time.Millisecond)})
	post := url.Values{"token": {w.BotToken()}, "channel": {"C0OPS"}, "text": {"x"}}
	status := func() int {
		t.Helper()
		resp, err := http.PostForm(w.url+"/api/chat.postMessage", post)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	w.mention(t)
	require.Equal(t, http.StatusServiceUnavailable, status())
	w.Advance(59 * time.Minute)
	require.Equal(t, http.StatusServiceUnavailable, status())
	w.idle(t)
	require.Empty(t, w.app.requests("/events"))
	w.Advance(time.Minute)
	require.Equal(t, http.StatusOK, status())
	w.idle(t)
	require.Len(t, w.app.requests("/events"), 1)
}

func TestChaosIsDealtByItsShares(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{Now: still})
	post := func() (status int, after string, err error) {
		resp, err := http.PostForm(w.url+"/api/chat.postMessage", url.Values{"token": {w.BotToken()}, "channel": {"C0OPS"}, "text": {"x"}})
		if err != nil {
			return 0, "", err
		}
		return resp.StatusCode, resp.Header.Get("Retry-After"), resp.Body.Close()
	}
	w.SetFaults(slacksim.Faults{Chaos: &slacksim.Chaos{Limited: 1}})
	status, after, err := post()
	require.NoError(t, err)
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Contains(t, []string{"1", "2", "3"}, after)
	w.SetFaults(slacksim.Faults{Chaos: &slacksim.Chaos{Failed: 1}})
	status, _, err = post()
	require.NoError(t, err)
	require.GreaterOrEqual(t, status, 500)
	seen, err := w.Messages("alice", "C0OPS", "")
	require.NoError(t, err)
	require.Empty(t, seen, "neither was performed")

	w.SetFaults(slacksim.Faults{Chaos: &slacksim.Chaos{LostReply: 1}})
	_, _, err = post()
	require.Error(t, err, "the reply is lost")
	seen, err = w.Messages("alice", "C0OPS", "")
	require.NoError(t, err)
	require.Len(t, seen, 1, "and the message is there")
}

// Events are delivered again with the same id, and late, so that a later one may come
// first.
func TestChaosDeliversEventsAgainAndInAnotherOrder(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	w.SetFaults(slacksim.Faults{Chaos: &slacksim.Chaos{Duplicated: 1, EventDelay: 60_000}})
	var sent []string
	for range 8 {
		ts, err := w.PostAs(slacksim.Post{User: "alice", Channel: "ops", Text: "@countersign hi"})
		require.NoError(t, err)
		sent = append(sent, ts)
	}
	var came []string
	times := map[string]int{}
	for range 60 {
		w.Advance(time.Second)
		w.idle(t)
	}
	for _, d := range w.app.requests("/events") {
		event := decode(t, d.body)
		id, ok := event["event_id"].(string)
		require.True(t, ok)
		if times[id]++; times[id] == 1 {
			came = append(came, dig(t, event, "event", "ts").(string))
		}
	}
	require.ElementsMatch(t, sent, came)
	require.NotEqual(t, sent, came)
	for id, n := range times {
		require.Greater(t, n, 1, id)
	}
}
