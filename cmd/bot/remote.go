package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/gateway"
	"github.com/countersign/countersign/internal/hookserver"
	"github.com/countersign/countersign/internal/httpapi"
	"github.com/countersign/countersign/internal/uistream"
)

// credentials lists the remote agents with their credentials as they are now.
func (b *bot) credentials(ctx context.Context) []bearer.Agent {
	now := make([]bearer.Agent, len(b.remote))
	for i, r := range b.remote {
		now[i] = bearer.Agent{Client: r.client, Doors: r.doors, JWT: r.jwt}
		for _, h := range r.tokens.Now(ctx) {
			now[i].Tokens = append(now[i].Tokens, bearer.Sum(h))
		}
	}
	return now
}

// published returns the keys of receipts, if there are any.
func (b *bot) published() func() []byte {
	if b.keys.Empty() {
		return nil
	}
	return b.keys.JWKS
}

// A remoteServer listens for agents that run elsewhere.
type remoteServer struct {
	*http.Server

	api     *httpapi.API
	hooks   *hookserver.Server
	chats   *uistream.Server // nil: there are none
	gateway *gateway.Server  // nil: there is none
	unused  unused
	served  chan error
}

// serveRemote serves at the listener, or at http.listen if that is nil. Without that
// setting nothing is served, and it returns nil.
func (b *bot) serveRemote(ctx context.Context, l net.Listener, c config.Config) (*remoteServer, error) {
	if c.HTTP.Listen == "" {
		return nil, nil
	}
	agents := func() []bearer.Agent { return b.credentials(ctx) }
	s := &remoteServer{served: make(chan error, 1)}
	proxies, err := c.HTTP.TrustedProxies()
	if err != nil {
		return nil, err
	}
	guard := bearer.New(bearer.Config{Agents: agents, Now: time.Now, Log: b.log, Proxies: proxies})
	s.api, err = httpapi.New(httpapi.Config{
		Intake: b.intake, Guard: guard,
		Keys: b.published(), Origins: c.HTTP.Origins, Hosts: c.HTTP.Hosts, Now: time.Now, Log: b.log,
	})
	if err != nil {
		return nil, err
	}
	s.hooks, err = hookserver.New(hookserver.Config{Intake: b.intake, Guard: guard, Refuses: s.api.Refuses, Now: time.Now, Log: b.log})
	if err != nil {
		return nil, err
	}
	if s.gateway, err = b.newGateway(c, guard, s.api); err != nil {
		return nil, err
	}
	// Pages may call the chats, whose origins are settings of their own.
	if s.chats, err = b.newWeb(ctx, c, s.api.OtherHost); err != nil {
		return nil, err
	}
	routes := http.NewServeMux()
	if s.chats != nil {
		routes.Handle(uistream.Path, s.chats)
		routes.Handle(uistream.Path+"/", s.chats)
	}
	if s.gateway != nil {
		routes.Handle(gateway.Path, s.gateway.Handler())
	}
	routes.Handle(hookserver.PromptPath, s.hooks.Prompt())
	routes.Handle("/", s.api)
	if l == nil {
		if l, err = new(net.ListenConfig).Listen(ctx, "tcp", c.HTTP.Listen); err != nil {
			return nil, fmt.Errorf("listen on http.listen: %w", err)
		}
	}
	s.Server = &http.Server{
		Handler:           readRest(b.metrics.HTTP("agents", b.traces.HTTP(true, answered(routes, s.hooks.Hooks())))),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second, // the API sets its own for requests that wait
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       keptIdle,
		MaxHeaderBytes:    32 << 10,
		ConnState:         s.unused.follow,
		ErrorLog:          slog.NewLogLogger(b.log.Handler(), slog.LevelWarn),
	}
	go func() { s.served <- s.Serve(l) }()
	b.log.InfoContext(ctx, "listening for remote agents", slog.String("addr", l.Addr().String()))
	return s, nil
}

// answered passes every request under the paths of the hooks to them. The mux would
// redirect a path that is not clean, and agents do not take a redirect for a denial.
func answered(others, hooks http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hookserver.Answers(r.URL.Path) {
			hooks.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

// failed tells why the server ended by itself. Without a server it never does.
func (s *remoteServer) failed() <-chan error {
	if s == nil {
		return nil
	}
	return s.served
}

// stop answers the requests that wait with their current state, and returns when all are
// answered.
func (s *remoteServer) stop(ctx context.Context) error {
	if s == nil {
		return nil
	}
	s.api.Drain()
	s.hooks.Drain()
	if s.chats != nil {
		s.chats.Drain()
	}
	if s.gateway != nil {
		s.gateway.Drain()
	}
	s.unused.close()
	return s.Shutdown(ctx)
}

// finish returns when no call of a gateway runs here any more. A call that is cut
// off is in doubt.
func (s *remoteServer) finish(ctx context.Context) error {
	if s == nil || s.gateway == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownWork)
	defer cancel()
	return s.gateway.Finish(ctx)
}
