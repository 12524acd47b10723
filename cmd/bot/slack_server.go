package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

const (
	// keptIdle is how long a connection without a request stays open. Load balancers
	// keep theirs for up to ten minutes, and a request on a connection that was closed
	// just then fails, which Slack doesn't repeat for clicks and commands.
	keptIdle = 11 * time.Minute
	// slackAnswers is how long a stopping bot waits for requests of Slack: longer than
	// one may take, see [inbound.HTTP]. It leaves time for what follows them.
	slackAnswers = 3 * time.Second
)

// A slackServer is the server that Slack calls.
type slackServer struct {
	*http.Server

	unused unused
	log    *slog.Logger
}

func newSlackServer(h http.Handler, log *slog.Logger) *slackServer {
	s := &slackServer{log: log}
	s.Server = &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       keptIdle,
		MaxHeaderBytes:    64 << 10,
		ConnState:         s.unused.follow,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	return s
}

// stop returns when everything is answered. A client that doesn't send the rest of
// its request is cut off.
func (s *slackServer) stop(ctx context.Context) error {
	s.unused.close()
	waiting, cancel := context.WithTimeout(ctx, slackAnswers)
	defer cancel()
	err := s.Shutdown(waiting)
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	s.log.WarnContext(ctx, "connections cut off that still had a request")
	return s.Close()
}
