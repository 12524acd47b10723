package mcptool_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/tools/mcptool"
)

// hears is a log that says which messages there are.
type hears chan<- string

func (hears) Enabled(context.Context, slog.Level) bool { return true }

func (h hears) Handle(_ context.Context, r slog.Record) error { h <- r.Message; return nil }

func (h hears) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h hears) WithGroup(string) slog.Handler { return h }

// A server over HTTP that is started again while a call is made did nothing with the call,
// and no stream of the client ended at which it would have connected anew.
func TestACallIsMadeOnANewConnectionIfItDidNotReachTheServer(t *testing.T) {
	f := &forgetful{}
	at, stop := f.serve(t, "127.0.0.1:0")
	server := mcptool.Server{Agent: "ops", Name: "srv", URL: "http://" + at}
	heard := make(chan string, 100)
	r := startLogged(t, server, acceptAll(t, server), slog.New(hears(heard)))
	require.Equal(t, "connected to an MCP server", <-heard)

	stop()
	made := make(chan error, 1)
	go func() {
		_, err := r.call("srv.pay", `{}`)
		made <- err
	}()
	require.Equal(t, "a call did not reach its MCP server", <-heard)
	f.serve(t, at)
	require.NoError(t, <-made)
	require.EqualValues(t, 1, f.calls.Load())
}

// The longer a server over HTTP is away, the longer it is left alone, but not while a call
// waits for it.
func TestAServerIsTriedWhileACallWaits(t *testing.T) {
	f := &forgetful{}
	at, stop := f.serve(t, "127.0.0.1:0")
	server := mcptool.Server{Agent: "ops", Name: "srv", URL: "http://" + at}
	heard := make(chan string, 100)
	accepted := acceptAll(t, server)
	stop() // before anything connects: what is lost in the middle of that is noticed later
	r := startLogged(t, server, accepted, slog.New(hears(heard)))
	made := make(chan error, 1)
	go func() {
		_, err := r.call("srv.pay", `{}`)
		made <- err
	}()
	for tries := 0; tries < 5; {
		if <-heard == "no connection to an MCP server" {
			tries++
		}
	}
	f.serve(t, at)
	require.NoError(t, <-made)
}

// serve listens at the address until the test ends, or stop is called.
func (f *forgetful) serve(t *testing.T, address string) (at string, stop func()) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	require.NoError(t, err)
	s := &http.Server{Handler: f}
	s.SetKeepAlivesEnabled(false) // a request on a connection that ends may have reached it
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String(), func() { _ = s.Close() }
}
