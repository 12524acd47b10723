package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/tools/mcpreview"
	"github.com/countersign/countersign/internal/tools/mcptool"
)

// openServers returns the configuration with its MCP servers, which [serve]
// connects, and the version of their accepted tools in Redis, for which it waits.
func openServers(ctx context.Context, c config.Config, e config.Environment, log *slog.Logger) (config.Config, *mcptool.Set, int64, error) {
	if !c.HasMCP() {
		return c, nil, 0, nil
	}
	servers, err := c.Servers(e)
	if err != nil {
		return c, nil, 0, err
	}
	var pins mcptool.Pins
	var version int64
	err = untilUsable(ctx, log, func() (err error) {
		pins, version, err = readPins(ctx, c, e, log)
		return err
	})
	if err != nil {
		return c, nil, 0, err
	}
	set := mcptool.Open(servers, pins, log)
	return c.WithServers(set), set, version, nil
}

// withAccepted returns the configuration with the accepted tools of its MCP
// servers, and those tools, for commands that judge calls and make none.
func withAccepted(ctx context.Context, c config.Config, e config.Environment) (config.Config, mcptool.Pins, error) {
	if !c.HasMCP() {
		return c, mcptool.Pins{}, nil
	}
	pins, _, err := readPins(ctx, c, e, slog.New(slog.DiscardHandler))
	if err != nil {
		return c, pins, err
	}
	return c.WithServers(c.Accepted(pins)), pins, nil
}

// readPins returns the pins of the lock file, or those in Redis with their
// version there.
func readPins(ctx context.Context, c config.Config, e config.Environment, log *slog.Logger) (pins mcptool.Pins, version int64, err error) {
	if c.MCPLock != "" {
		pins, err = c.Pins()
		return pins, 0, err
	}
	if !c.Redis.Named(e) {
		return pins, 0, config.ErrNoPins
	}
	store, err := openPins(ctx, c, e, log)
	if err != nil {
		return pins, 0, err
	}
	pins, version, err = mcpreview.ReadPins(ctx, store)
	return pins, version, errors.Join(err, store.Close())
}

// openPins opens the store for the pins alone: nothing there is acknowledged to
// a person.
func openPins(ctx context.Context, c config.Config, e config.Environment, log *slog.Logger) (commandStore, error) {
	c.Redis.Durability = state.None
	store, err := openForCommand(ctx, c, e, log)
	if err != nil {
		return store, fmt.Errorf("read which tools of MCP servers are accepted: %w", err)
	}
	return store, nil
}
