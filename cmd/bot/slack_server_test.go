package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A load balancer that keeps connections for ten minutes, as Google's do, can use one
// again until it closes it: a click on one that the bot has closed would be lost.
func TestAnIdleConnectionOutlivesThoseOfLoadBalancers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door, s := newPort(), newSlackServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusOK, "alive")
		}), slog.New(slog.DiscardHandler))
		served := make(chan error, 1)
		go func() { served <- s.Serve(door) }()
		conn, err := door.dial(t.Context())
		require.NoError(t, err)
		answers := bufio.NewReader(conn)
		for range 3 {
			_, err = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: bot\r\n\r\n")
			require.NoError(t, err)
			resp, err := http.ReadResponse(answers, nil)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			time.Sleep(10 * time.Minute)
		}
		require.NoError(t, s.stop(t.Context()))
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
}

// Clients that send nothing, or never the rest of a request, need no secret. They
// take neither the time nor the success of a stop, and what is being answered is.
func TestAStopWaitsForAnswersAndNotForRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := make(chan struct{})
		door, s := newPort(), newSlackServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
			close(read)
			time.Sleep(2500 * time.Millisecond) // as long as an answer may take
			answer(w, http.StatusOK, "done")
		}), slog.New(slog.DiscardHandler))
		served := make(chan error, 1)
		go func() { served <- s.Serve(door) }()
		dials := func(sends string) net.Conn {
			conn, err := door.dial(t.Context())
			require.NoError(t, err)
			_, err = io.WriteString(conn, sends)
			require.NoError(t, err)
			return conn
		}
		begun := dials("POST / HTTP/1.1\r\nHost: bot\r\nContent-Length: 1\r\n\r\nx")
		<-read
		dials("")
		dials("POST /slack/ev")
		dials("POST / HTTP/1.1\r\nHost: bot\r\nContent-Length: 2\r\n\r\nx")
		synctest.Wait()

		closing, cancel := context.WithTimeout(t.Context(), shutdownRequests)
		defer cancel()
		require.NoError(t, s.stop(closing))
		require.NoError(t, closing.Err(), "there is time left for what follows")
		require.ErrorIs(t, <-served, http.ErrServerClosed)
		resp, err := http.ReadResponse(bufio.NewReader(begun), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
		time.Sleep(time.Second) // net/http closes a connection some time after its last answer
	})
}
