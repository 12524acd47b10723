package slacksim_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

func TestOnlyAnAppTokenOpensConnections(t *testing.T) {
	w := socketWorkspace(t, slacksim.Config{AppToken: "xapp-1-right"})
	for token, want := range map[string]string{
		"":                  "not_authed",
		"xapp-1-wrong":      "invalid_auth",
		"nonsense":          "invalid_auth",
		w.BotToken():        "not_allowed_token_type",
		" xapp-1-right-too": "invalid_auth",
	} {
		auth := ""
		if token != "" {
			auth = "Bearer " + token
		}
		answer := w.raw(t, "apps.connections.open", "", auth, "")
		require.Equal(t, want, answer["error"], token)
		require.NotContains(t, answer, "url")
	}
	require.Regexp(t, `^ws://127\.0\.0\.1:\d+/link/\?app_id=[0-9a-f]+&ticket=[0-9a-f]+$`, w.ticket(t))
	for _, e := range w.Log() {
		require.NotContains(t, e.Response, "ticket=0", "a ticket is a secret")
		require.NotRegexp(t, "ticket=[0-9a-f]{8}", e.Response)
	}
	w.SetPublicURL("https://slack.example")
	require.True(t, strings.HasPrefix(w.ticket(t), "wss://slack.example/link/?"))
	require.Equal(t, "not_allowed_token_type", w.raw(t, "users.list", "", "Bearer xapp-1-right", "")["error"])
	require.Equal(t, map[string]any{"ok": true, "app_id": "A0COUNTERSIGN", "app_name": "Countersign"}, w.raw(t, "auth.test", "", "Bearer xapp-1-right", ""))
	require.Equal(t, "invalid_auth", w.raw(t, "auth.test", "", "Bearer xapp-1-wrong", "")["error"])
}

func TestAnAppTokenNeedsItsScope(t *testing.T) {
	bare := socketWorkspace(t, slacksim.Config{AppScopes: []string{"authorizations:read"}})
	answer := bare.raw(t, "apps.connections.open", "", "Bearer "+bare.AppToken(), "")
	require.Equal(t, "missing_scope", answer["error"])
	require.Equal(t, "connections:write", answer["needed"])
	require.Equal(t, "authorizations:read", answer["provided"])
}

func TestATicketIsForOneConnection(t *testing.T) {
	w := socketWorkspace(t, slacksim.Config{})
	refused := func(url string) {
		t.Helper()
		_, resp, err := websocket.DefaultDialer.DialContext(soon(t), url, nil)
		require.ErrorIs(t, err, websocket.ErrBadHandshake)
		require.Equal(t, http.StatusForbidden, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
	}
	url := w.ticket(t)
	dial(t, url)
	refused(url)
	refused(strings.Replace(w.ticket(t), "ticket=", "ticket=0", 1))
	old := w.ticket(t)
	w.Advance(31 * time.Second)
	refused(old)
}

func TestHelloCountsTheConnections(t *testing.T) {
	w := socketWorkspace(t, slacksim.Config{SocketLife: time.Hour})
	first := dial(t, w.ticket(t)).next(t)
	require.Equal(t, "hello", first["type"])
	require.EqualValues(t, 1, first["num_connections"])
	require.Equal(t, "A0COUNTERSIGN", dig(t, first, "connection_info", "app_id"))
	require.NotEmpty(t, dig(t, first, "debug_info", "host"))
	require.EqualValues(t, 3600, dig(t, first, "debug_info", "approximate_connection_time"))
	second := dial(t, w.ticket(t))
	require.EqualValues(t, 2, second.next(t)["num_connections"])

	require.NoError(t, second.conn.Close())
	w.await(t, func() bool { return len(w.Sockets()) == 1 })
	require.EqualValues(t, 2, dial(t, w.ticket(t)).next(t)["num_connections"])
}

func TestTheEleventhConnectionIsSentAway(t *testing.T) {
	w := socketWorkspace(t, slacksim.Config{})
	links := make([]*link, 10)
	for i := range links {
		links[i] = w.connect(t)
	}
	late := dial(t, w.ticket(t))
	require.Equal(t, map[string]any{
		"type": "disconnect", "reason": "too_many_websockets", "debug_info": map[string]any{"host": "applink-slacksim"},
	}, late.next(t))
	require.True(t, websocket.IsCloseError(late.ends(t), websocket.CloseNormalClosure))
	require.Len(t, w.Sockets(), 10)

	require.NoError(t, links[3].conn.Close())
	w.await(t, func() bool { return len(w.Sockets()) == 9 })
	require.EqualValues(t, 10, dial(t, w.ticket(t)).next(t)["num_connections"], "a place that is free is taken")
}

func TestAConnectionIsWarnedThenRefreshed(t *testing.T) {
	w := socketWorkspace(t, slacksim.Config{SocketLife: time.Hour, AckTimeout: time.Minute})
	l := w.connect(t)
	w.Advance(time.Hour - 11*time.Second)
	w.says(t)
	e := l.next(t)
	require.Equal(t, "events_api", e["type"], "not yet")
	w.Advance(time.Second)
	require.Equal(t, "warning", l.next(t)["reason"])
	require.True(t, w.Sockets()[0].Warned)
	w.says(t)
	late := l.next(t)
	require.Equal(t, "events_api", late["type"], "it is still good for ten seconds")
	l.ack(t, e, "")
	l.ack(t, late, "")
	w.idle(t)
	require.Equal(t, []string{"", ""}, w.problems("app_mention"))
	w.Advance(10 * time.Second)
	require.Equal(t, "refresh_requested", l.next(t)["reason"])
	require.True(t, websocket.IsCloseError(l.ends(t), websocket.CloseNormalClosure))
	w.await(t, func() bool { return len(w.Sockets()) == 0 })
}

func TestDebugReconnectsShortensTheLife(t *testing.T) {
	w := socketWorkspace(t, slacksim.Config{})
	l := dial(t, w.ticket(t)+"&debug_reconnects=true")
	require.EqualValues(t, 360, dig(t, l.next(t), "debug_info", "approximate_connection_time"))
	w.Advance(350 * time.Second)
	require.Equal(t, "warning", l.next(t)["reason"])
}

// An app that does not answer pings is given up; one that does stays.
func TestASilentAppIsGivenUp(t *testing.T) {
	w := socketWorkspace(t, slacksim.Config{SocketPing: 30 * time.Millisecond})
	l := w.connect(t)
	for range 6 { // twice as long as silence may last
		select {
		case <-l.pings:
		case <-soon(t).Done():
			require.Fail(t, "no ping came")
		}
	}
	require.Len(t, w.Sockets(), 1)

	deaf, resp, err := websocket.DefaultDialer.DialContext(soon(t), w.ticket(t), nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	t.Cleanup(func() { _ = deaf.Close() })
	w.await(t, func() bool { return len(w.problems("closed")) == 1 })
	require.Equal(t, []string{"pong_timeout"}, w.problems("closed"))
	require.Len(t, w.Sockets(), 1)
}

// Switching it on ends HTTP, and switching it off ends the connections.
func TestSocketModeIsSwitchedOnAndOff(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	sentAway := dial(t, w.ticket(t))
	require.Equal(t, "link_disabled", sentAway.next(t)["reason"])
	require.Error(t, sentAway.ends(t))
	w.mention(t)
	require.Len(t, w.app.requests("/events"), 1)
	require.NoError(t, w.verifies())
	before := len(w.app.requests("/events"))

	status, _ := w.sim(t, "socketmode", map[string]any{"enabled": true})
	require.Equal(t, http.StatusOK, status)
	require.ErrorIs(t, w.VerifyEventsURL(), slacksim.ErrBadInput, "there is no URL to verify")
	l := w.connect(t)
	w.says(t)
	l.ack(t, l.next(t), "")
	w.idle(t)
	require.Len(t, w.app.requests("/events"), before, "nothing goes over HTTP any more")
	_, list := w.sim(t, "sockets", nil)
	require.Equal(t, true, list["enabled"])
	require.EqualValues(t, 1, dig(t, list, "sockets", 0, "delivered"))
	require.EqualValues(t, 0, dig(t, list, "sockets", 0, "waiting"))

	w.SetSocketMode(false)
	require.Equal(t, "link_disabled", l.next(t)["reason"])
	require.Error(t, l.ends(t))
	w.mention(t)
	require.Len(t, w.app.requests("/events"), before+1)
}

func (w *workspace) verifies() error {
	w.answers(func(rw http.ResponseWriter, d delivered) {
		var in struct{ Challenge string }
		_ = json.Unmarshal(d.body, &in)
		_, _ = rw.Write([]byte(in.Challenge))
	})
	return w.VerifyEventsURL()
}

// Connections can be made to go, one or all.
func TestConnectionsAreDisconnectedOnDemand(t *testing.T) {
	w := socketWorkspace(t, slacksim.Config{})
	first, second := w.connect(t), w.connect(t)
	_, list := w.sim(t, "sockets", nil)
	id := dig(t, list, "sockets", 0, "id").(string)
	disconnect := func(in map[string]any) (int, map[string]any) { return w.sim(t, "disconnect", in) }

	_, answer := disconnect(map[string]any{"socket": id, "reason": "cut"})
	require.EqualValues(t, 1, answer["disconnected"])
	require.False(t, websocket.IsCloseError(first.ends(t), websocket.CloseNormalClosure), "gone without a word")
	status, _ := disconnect(map[string]any{"socket": id, "reason": "cut"})
	require.Equal(t, http.StatusNotFound, status)
	status, _ = disconnect(map[string]any{"reason": "boredom"})
	require.Equal(t, http.StatusBadRequest, status)

	_, answer = disconnect(map[string]any{"reason": "warning"})
	require.EqualValues(t, 1, answer["disconnected"])
	require.Equal(t, "warning", second.next(t)["reason"])
	w.Advance(10 * time.Second)
	require.Equal(t, "refresh_requested", second.next(t)["reason"])
	require.Error(t, second.ends(t))
	_, answer = disconnect(map[string]any{"reason": "refresh_requested"})
	require.EqualValues(t, 0, answer["disconnected"])
}
