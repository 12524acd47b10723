package inbound

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
)

// switchboard is Slack's side of one connection, by hand.
type switchboard struct {
	t     *testing.T
	links chan *websocket.Conn
	sock  *Socket
	slept atomic.Int64 // for how long the machine of the bot was suspended
	told  chan string  // what was measured of each envelope
}

// newSwitchboard runs a Socket whose events are answered by handle, until the
// test ends.
func newSwitchboard(t *testing.T, greeting string, commands func(body string) (Reply, error)) *switchboard {
	t.Helper()
	b := &switchboard{t: t, links: make(chan *websocket.Conn, 16), told: make(chan string, 2*maxEnvelopes)}
	var upgrader websocket.Upgrader
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	mux.HandleFunc("/api/apps.connections.open", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"ok":true,"url":"ws%s/link"}`, strings.TrimPrefix(srv.URL, "http"))
	})
	mux.HandleFunc("/link", func(w http.ResponseWriter, r *http.Request) {
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		_ = conn.WriteMessage(websocket.TextMessage, []byte(greeting))
		b.links <- conn
	})
	cfg := SocketConfig{
		AppToken: func() string { return "xapp-1" }, APIURL: srv.URL + "/api/", Sockets: 1,
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Now().Add(time.Duration(b.slept.Load())) },
		Answered: func(path string, code int, _ time.Duration) { b.told <- fmt.Sprintf("%s %d", path, code) },
	}
	server := &HTTP{cfg: Config{Log: cfg.Log, Now: cfg.Now}}
	b.sock = NewSocket(cfg, server)
	if commands != nil {
		b.sock.handle = func(_ context.Context, f frame) (Reply, error) { return commands(string(f.Payload)) }
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { b.sock.Run(ctx) })
	t.Cleanup(func() {
		srv.CloseClientConnections()
		cancel()
		for len(b.links) > 0 {
			_ = (<-b.links).Close()
		}
		running.Wait()
		srv.Close()
	})
	return b
}

func (b *switchboard) link() *websocket.Conn {
	b.t.Helper()
	select {
	case c := <-b.links:
		b.t.Cleanup(func() { _ = c.Close() })
		return c
	case <-time.After(time.Minute):
		require.Fail(b.t, "nobody connected")
	}
	return nil
}

func (b *switchboard) sends(c *websocket.Conn, message string) {
	b.t.Helper()
	require.NoError(b.t, c.WriteMessage(websocket.TextMessage, []byte(message)))
}

func (b *switchboard) hears(c *websocket.Conn) string {
	b.t.Helper()
	require.NoError(b.t, c.SetReadDeadline(time.Now().Add(20*time.Second)))
	_, m, err := c.ReadMessage()
	require.NoError(b.t, err)
	return string(m)
}

const hello = `{"type":"hello","num_connections":1}`

// Envelopes of a kind that we do not know are acknowledged, or Slack would
// send them again and again; what is no envelope is passed over.
func TestUnknownEnvelopesAreAcknowledged(t *testing.T) {
	b := newSwitchboard(t, hello, nil)
	c := b.link()
	b.sends(c, `not JSON`)
	b.sends(c, `{"type":"weather","temperature":7}`)
	b.sends(c, `{"type":"new_thing","envelope_id":"e1","payload":{"a":1},"accepts_response_payload":true}`)
	require.JSONEq(t, `{"envelope_id":"e1"}`, b.hears(c))
}

// An answer goes along only where Slack takes one; one that Slack would drop
// is not sent, and neither is one that went wrong, in whatever way.
func TestOnlyWhatWentWellIsAcknowledged(t *testing.T) {
	b := newSwitchboard(t, hello, func(body string) (Reply, error) {
		switch body {
		case `"error"`:
			return Reply{}, errBody
		case `"panic"`:
			panic("a bug")
		case `"large"`:
			return Reply{strings.Repeat("x", maxAck)}, nil
		}
		return Reply{map[string]string{"text": "hi"}}, nil
	})
	c := b.link()
	for i, body := range []string{"error", "panic", "large"} {
		b.sends(c, fmt.Sprintf(`{"type":"slash_commands","envelope_id":"e%d","payload":%q,"accepts_response_payload":true}`, i, body))
	}
	b.sends(c, `{"type":"interactive","envelope_id":"plain","payload":"x"}`)
	require.JSONEq(t, `{"envelope_id":"plain"}`, b.hears(c), "it takes no answer")
	b.sends(c, `{"type":"slash_commands","envelope_id":"answer","payload":"x","accepts_response_payload":true}`)
	require.JSONEq(t, `{"envelope_id":"answer","payload":{"text":"hi"}}`, b.hears(c))
}

// What arrives on a connection is measured like the request that it would be, so that
// an alert on clicks that fail does not depend on how they arrive.
func TestEnvelopesAreMeasuredAsRequests(t *testing.T) {
	b := newSwitchboard(t, hello, func(body string) (Reply, error) {
		switch body {
		case `"error"`:
			return Reply{}, context.DeadlineExceeded
		case `"panic"`:
			panic("a bug")
		case `"malformed"`:
			return Reply{}, errBody
		case `"large"`:
			return Reply{strings.Repeat("x", maxAck)}, nil
		}
		return Reply{}, nil
	})
	c := b.link()
	for i, s := range []struct{ kind, body, want string }{
		{"interactive", "error", "/slack/interactivity 500"},
		{"interactive", "panic", "/slack/interactivity 500"},
		{"slash_commands", "malformed", "/slack/commands 400"},
		{"slash_commands", "large", "/slack/commands 500"},
		{"events_api", "fine", "/slack/events 200"},
	} {
		b.sends(c, fmt.Sprintf(`{"type":%q,"envelope_id":"e%d","payload":%q,"accepts_response_payload":true}`, s.kind, i, s.body))
		require.Equal(t, s.want, <-b.told)
	}
	b.sends(c, `{"type":"new_thing","envelope_id":"e9","payload":{}}`)
	b.hears(c) // the answer to the event
	b.hears(c)
	require.Empty(t, b.told, "Slack waits for no answer to what is not known")
}

// No more is answered at the same time than there are places.
func TestEnvelopesWaitForAPlace(t *testing.T) {
	begun, open := make(chan string, 2*maxEnvelopes), make(chan struct{})
	b := newSwitchboard(t, hello, func(body string) (Reply, error) {
		begun <- body
		<-open
		return Reply{}, nil
	})
	c := b.link()
	for i := range maxEnvelopes + 1 {
		b.sends(c, fmt.Sprintf(`{"type":"events_api","envelope_id":"e%d","payload":%d}`, i, i))
	}
	for range maxEnvelopes {
		<-begun
	}
	require.Empty(t, begun)
	close(open)
	for range maxEnvelopes + 1 {
		b.hears(c)
	}
}

// Slack's ways to say no are told apart, and none of them is a connection.
func TestConnectionsThatAreRefused(t *testing.T) {
	for greeting, want := range map[string]error{
		`{"type":"disconnect","reason":"link_disabled"}`:       errLinkDisabled,
		`{"type":"disconnect","reason":"too_many_websockets"}`: errTooManySockets,
		`{"type":"disconnect","reason":"new"}`:                 errNoHello,
		`{"type":"events_api","envelope_id":"e"}`:              errNoHello,
	} {
		b := newSwitchboard(t, greeting, nil)
		_, err := b.sock.open(t.Context())
		require.ErrorIs(t, err, want)
		require.Error(t, b.sock.Ready())
	}
}

// The answer of a Slack that is reached over HTTPS may not lead to a
// connection that anybody can read.
func TestConnectionsAreEncryptedLikeTheAPI(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"ok":true,"url":"ws://slack.example/link?ticket=1"}`)
	}))
	t.Cleanup(srv.Close)
	s := NewSocket(SocketConfig{AppToken: func() string { return "xapp-1" }, APIURL: srv.URL}, nil)
	require.NoError(t, s.Check(t.Context()))
	s.secure = true
	require.ErrorIs(t, s.Check(t.Context()), errPlainSocket)
	require.NotContains(t, s.Check(t.Context()).Error(), "ticket")
	require.True(t, NewSocket(SocketConfig{AppToken: func() string { return "" }, APIURL: "https://slack.com/api/"}, nil).secure)
}

func TestTriesThatDoNotLastAreFurtherAndFurtherApart(t *testing.T) {
	require.Zero(t, wait(0, nil))
	require.Zero(t, wait(1, nil), "a connection that ends is replaced at once")
	for n := 2; n < 40; n++ {
		d := min(longestWait, 250*time.Millisecond<<min(n-2, 16))
		got := wait(n, nil)
		require.LessOrEqual(t, got, d)
		require.GreaterOrEqual(t, got, d*3/4)
	}
	require.Equal(t, 7*time.Second, wait(1, fmt.Errorf("open: %w", &slack.RateLimitedError{RetryAfter: 7 * time.Second})))
}

// Whatever time the answer names, connections are neither asked for in a loop nor given
// up for a day.
func TestALimitOfConnectionsIsHeededWithinReason(t *testing.T) {
	for _, named := range []time.Duration{0, -time.Second, time.Second} {
		limited := &slack.RateLimitedError{RetryAfter: named}
		require.Equal(t, time.Second, wait(1, limited))
		require.GreaterOrEqual(t, wait(20, limited), longestWait*3/4, "each attempt that fails is later")
	}
	require.Equal(t, 5*time.Minute, wait(1, &slack.RateLimitedError{RetryAfter: 24 * time.Hour}))
}

// A slash command's payload is the form that it is over HTTP.
func TestCommandsAreForms(t *testing.T) {
	form, err := commandForm(json.RawMessage(`{"command":"/x","text":"a&b=c","is_enterprise_install":false,"odd":{"a":1},"none":null}`))
	require.NoError(t, err)
	require.Equal(t, "command=%2Fx&is_enterprise_install=false&text=a%26b%3Dc", form.Encode())
	_, err = commandForm(json.RawMessage(`[]`))
	require.ErrorIs(t, err, errBody)
}
