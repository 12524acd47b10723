package httptool_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync"
	"testing"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/tools/httptool"
	"github.com/stretchr/testify/require"
)

// endpoint is a server that keeps what it gets.
type endpoint struct {
	*httptest.Server

	mu     sync.Mutex
	got    []string // method, URI as it was on the wire, and body
	header http.Header
}

func serve(t *testing.T, answer http.HandlerFunc) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		e.got = append(e.got, r.Method+" "+r.RequestURI+" "+string(body))
		e.header = r.Header.Clone()
		e.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(func() { e.CloseClientConnections(); e.Close() })
	return e
}

func (e *endpoint) requests() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.got...)
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status); _, _ = io.WriteString(w, body) }
}

// raw answers with these bytes, and then says nothing until the client closes the
// connection.
func raw(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, answer)
		_, _ = io.Copy(io.Discard, conn)
	}
}

// at is the configuration of a tool at the path of the endpoint.
func at(e *endpoint, method, path, schema string) httptool.Config {
	u, _ := url.Parse(e.URL)
	return httptool.Config{
		Name: "pay", Method: method, URL: e.URL + path, Schema: json.RawMessage(schema),
		Hosts: []string{u.Hostname()}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
	}
}

func tool(t *testing.T, c httptool.Config) *httptool.Tool {
	t.Helper()
	made, err := httptool.New(c)
	require.NoError(t, err)
	return made
}

func call(t *testing.T, made *httptool.Tool, args string) (string, error) {
	t.Helper()
	r, err := made.Execute(t.Context(), agentrun.Call{ToolCall: approvals.ToolCall{ID: "c", Name: "pay", Args: json.RawMessage(args)}})
	return string(r.Value), err
}

// resolver answers every question for an address with the next one.
func resolver(t *testing.T, next func() string) *net.Resolver {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		for query := make([]byte, 1500); ; {
			size, from, err := conn.ReadFrom(query)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(dnsAnswer(query[:size], next), from)
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-served })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func dnsAnswer(query []byte, next func() string) []byte {
	end := 12
	for query[end] != 0 {
		end += 1 + int(query[end])
	}
	end += 5
	isA := query[end-3] == 1
	out := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[12:end]...)
	if isA {
		out[7] = 1
		out = append(out, 0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		out = append(out, netip.MustParseAddr(next()).AsSlice()...)
	}
	return out
}
