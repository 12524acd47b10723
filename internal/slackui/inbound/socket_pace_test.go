package inbound

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
)

// A wire is a network of pipes with Slack at the other end of each, so that
// connections can grow old within a bubble of [synctest].
type wire struct {
	incoming chan net.Conn
	links    chan *websocket.Conn // that said hello
}

func (w *wire) Accept() (net.Conn, error) {
	c, ok := <-w.incoming
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (w *wire) Close() error { return nil }

func (w *wire) Addr() net.Addr { return &net.TCPAddr{} }

func (w *wire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case w.incoming <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// onWire runs a Socket with one connection whose Slack is at the other end of
// the wire, until the test ends.
func onWire(t *testing.T) *wire {
	t.Helper()
	w := &wire{incoming: make(chan net.Conn), links: make(chan *websocket.Conn)}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/apps.connections.open", func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(rw, `{"ok":true,"url":"ws://slack/link"}`)
	})
	var reading sync.WaitGroup
	mux.HandleFunc("/link", func(rw http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{}).Upgrade(rw, r, nil)
		if err != nil {
			return
		}
		reading.Go(func() { // pings are answered by whoever reads
			for {
				if _, _, err := conn.ReadMessage(); err != nil {
					_ = conn.Close()
					return
				}
			}
		})
		if conn.WriteMessage(websocket.TextMessage, []byte(hello)) == nil {
			w.links <- conn
		}
	})
	server := &http.Server{Handler: mux}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(w) })

	cfg := SocketConfig{
		AppToken: func() string { return "xapp-1" }, APIURL: "http://slack/api/", Sockets: 1,
		Log: slog.New(slog.DiscardHandler), Now: time.Now,
	}
	s := NewSocket(cfg, &HTTP{cfg: Config{Log: cfg.Log, Now: cfg.Now}})
	s.dialer.NetDialContext = w.dial
	s.client = slack.New("", slack.OptionAppLevelToken("xapp-1"), slack.OptionAPIURL(cfg.APIURL),
		slack.OptionHTTPClient(&http.Client{Transport: &http.Transport{DialContext: w.dial, DisableKeepAlives: true}}))
	ctx, cancel := context.WithCancel(context.Background())
	running.Go(func() { s.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		synctest.Wait()
		close(w.incoming)
		running.Wait()
		reading.Wait()
	})
	return w
}

// refresh announces the end of a connection, as Slack does every few hours, and
// returns the connection that replaces it and how long that took.
func (w *wire) refresh(t *testing.T, c *websocket.Conn) (*websocket.Conn, time.Duration) {
	t.Helper()
	at := time.Now()
	require.NoError(t, c.WriteMessage(websocket.TextMessage, []byte(`{"type":"disconnect","reason":"refresh_requested"}`)))
	next := <-w.links
	return next, time.Since(at)
}

// Slack ends every connection after a few hours. However often that has
// happened, a connection that lasted is replaced at once: what is sent between
// two connections is lost.
func TestAConnectionThatLastedIsReplacedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := onWire(t)
		c := <-w.links
		for n := range 12 {
			time.Sleep(3 * time.Hour)
			var took time.Duration
			c, took = w.refresh(t, c)
			require.Zero(t, took, "refresh %d", n+1)
		}
	})
}

// Connections that do not last are opened less and less often, until one does.
func TestConnectionsThatDoNotLastAreSpacedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := onWire(t)
		c := <-w.links
		var took time.Duration
		for n := range 6 {
			c, took = w.refresh(t, c)
			if n > 0 {
				require.GreaterOrEqual(t, took, 250*time.Millisecond<<(n-1)*3/4, "connection %d", n+1)
			}
		}
		time.Sleep(steady)
		c, took = w.refresh(t, c)
		require.Zero(t, took, "this one lasted")
		c, took = w.refresh(t, c)
		require.Zero(t, took, "the first that does not last is replaced at once")
		_, took = w.refresh(t, c)
		require.NotZero(t, took)
	})
}
