package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// How long a stopping bot waits: for requests and commits in flight, then for
// calls that have started.
const (
	shutdownRequests = 5 * time.Second
	shutdownWork     = 20 * time.Second
)

func runServe(ctx context.Context, args, environ []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("config", "", "the configuration `FILE`")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	if *path == "" || flags.NArg() > 0 {
		return errors.New("serve takes --config FILE and nothing else")
	}
	c, err := readConfig(*path)
	e, envErr := readEnvironment(environ)
	if err == nil {
		err = c.check()
	}
	if err := errors.Join(err, envErr); err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", e.Addr)
	if err != nil {
		return fmt.Errorf("listen on COUNTERSIGN_ADDR: %w", err)
	}
	return serve(ctx, l, c, e, nil, newLogger(stderr, e.LogLevel))
}

// serve runs the bot on the listener until ctx ends, then hands over: requests
// in flight are answered, runs are left at their next commit for another
// process. It closes the listener. extra are tools that agents have besides
// those of their configuration.
func serve(ctx context.Context, l net.Listener, c config, e environment, extra toolsFor, log *slog.Logger) error {
	b, err := newBot(ctx, c, e, extra, log)
	if ctx.Err() != nil {
		err = nil // stopped before it began
	}
	if b == nil {
		return errors.Join(err, l.Close())
	}
	server := &http.Server{
		Handler:           b.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	var reconcilers sync.WaitGroup
	reconcilers.Go(func() { b.reconcile(work) })

	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	log.InfoContext(ctx, "listening", slog.String("addr", l.Addr().String()))

	select {
	case err = <-failed:
		err = fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
		log.InfoContext(ctx, "stopping")
	}
	b.stopping.Store(true)
	b.runner.Drain()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownRequests)
	defer cancel()
	err = errors.Join(err, server.Shutdown(closing))
	stopWork()
	reconcilers.Wait()
	err = errors.Join(err, b.close(closing))
	log.InfoContext(ctx, "stopped")
	return err
}
