package inbound

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

// piped is a link whose other end the test holds.
func piped(t *testing.T) (*link, net.Conn) {
	t.Helper()
	near, far := net.Pipe()
	go func() {
		r, err := http.ReadRequest(bufio.NewReader(far))
		if err != nil {
			return
		}
		sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		_, _ = fmt.Fprintf(far, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
			base64.StdEncoding.EncodeToString(sum[:]))
	}()
	dialer := websocket.Dialer{NetDialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil }}
	conn, resp, err := dialer.DialContext(t.Context(), "ws://slack.test/", nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	t.Cleanup(func() { _ = near.Close(); _ = far.Close() })
	return newLink(&Socket{log: slog.New(slog.DiscardHandler), now: time.Now}, conn), far
}

// A connection on which messages come is alive, also when Slack never pings it,
// and one on which nothing comes is closed.
func TestAMessageIsASignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, slack := piped(t)
		defer l.alive.Stop()
		read, over := make(chan frame, 10), make(chan error, 1)
		go func() {
			for {
				f, err := l.read()
				if err != nil {
					over <- err
					return
				}
				read <- f
			}
		}()
		for range 4 {
			time.Sleep(silence * 2 / 3)
			const message = `{"type":"weather"}`
			_, err := slack.Write(append([]byte{0x81, byte(len(message))}, message...)) // one text frame
			require.NoError(t, err, "the connection was closed although messages came")
			require.Equal(t, "weather", (<-read).Type)
		}
		require.Empty(t, over)
		time.Sleep(silence + time.Second)
		synctest.Wait()
		require.Len(t, over, 1, "a connection on which nothing comes is dead")
	})
}
