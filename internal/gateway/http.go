package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign/countersign/internal/door"
	"github.com/countersign/countersign/internal/intake"
)

const (
	// longest is how long a call is held whose caller takes progress.
	longest = 23 * time.Hour
	// maxBody is how many bytes a message of a client may have.
	maxBody = 1 << 20
)

// Handler is the handler of [Path].
func (s *Server) Handler() http.Handler {
	handler := mcp.NewStreamableHTTPHandler(s.serverOf, &mcp.StreamableHTTPOptions{Stateless: true, Logger: slog.New(slog.DiscardHandler)})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(s.c.Now().Add(s.c.Handling)) // a refusal too waits for the body
		c, status, why := s.door.Agent(r, intake.DoorGateway)
		if why != "" {
			door.Refuse(w, status, why)
			return
		}
		hold, err := readHold(r.URL.RawQuery)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body, ok := c.Body(w, r, maxBody)
		if !ok {
			return
		}
		_ = control.SetReadDeadline(time.Time{}) // the server reads on to learn whether the client is still there
		_ = control.SetWriteDeadline(s.c.Now().Add(hold + 2*s.c.Handling))
		if len(body) > 0 {
			if err := door.CheckJSON("the message", body); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		}
		if err := door.CheckMessage(body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		who := asker{Caller: c, hold: hold, message: door.ReadMessage(w, r, body)}
		s.canceled(r.Context(), who)
		r = r.WithContext(context.WithValue(r.Context(), askerKey{}, who))
		r.Body = io.NopCloser(bytes.NewReader(body))
		if s.listed(r.Host) {
			r.Host = "localhost" // the SDK refuses any other name on loopback
		}
		handler.ServeHTTP(w, r)
	})
}

// listed reports whether the configuration lets a proxy on this machine pass on
// requests under this name.
func (s *Server) listed(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return slices.ContainsFunc(s.c.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

type askerKey struct{}

// An asker is who made a request, and with which message.
type asker struct {
	door.Caller

	hold    time.Duration
	message door.Message
}

// readHold returns for how long the client waits at most, which stands beside its
// own limit in its settings.
func readHold(query string) (time.Duration, error) {
	q, err := url.ParseQuery(query)
	if err != nil {
		return 0, errors.New("the URL of the gateway cannot be read")
	}
	hold := longest
	for key, values := range q {
		d, err := time.ParseDuration(values[len(values)-1])
		if key != "hold" || err != nil || d < time.Second || d > longest {
			return 0, errors.New("the URL of the gateway may have hold=9m, between 1s and 23h, and nothing else")
		}
		hold = d
	}
	return hold, nil
}

// serverOf is the server of one request: with the tools that its agent has now.
func (s *Server) serverOf(r *http.Request) *mcp.Server {
	who, ok := r.Context().Value(askerKey{}).(asker)
	if !ok {
		return nil
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "countersign", Version: "1"}, &mcp.ServerOptions{
		Instructions: instructions, PageSize: 1000, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" }, // it is for one credential
	})
	version := r.Header.Get("Mcp-Protocol-Version")
	for _, t := range s.c.Tools(who.Name) {
		listed, ok := listing(t, version)
		if !ok {
			continue
		}
		add(server, listed, func(ctx context.Context, q *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(r.Context(), cancel)() //nolint:contextcheck // its end is that of the connection
			return readable(s.answer(ctx, who, t, q), version), nil
		})
	}
	return server
}
