package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/doctor"
	"github.com/countersign/countersign/internal/state"
)

// openStore returns the store for somebody who only reads.
func openStore(ctx context.Context, c config.Config, e config.Environment, log *slog.Logger) (*state.Store, error) {
	return state.Open(ctx, state.Options{URL: e.RedisURL.Open(), Prefix: c.Redis.Prefix, Now: time.Now, Log: log})
}

// openDurable returns the store with the durability of the configuration. It
// refuses a Redis that is weaker than that, and says of one that does not tell
// its settings that they could not be checked.
func openDurable(ctx context.Context, c config.Config, e config.Environment, log *slog.Logger) (*state.Store, error) {
	if c.Redis.Durability == state.None {
		return openStore(ctx, c, e, log)
	}
	all, err := lookAtRedis(ctx, c, e, log)
	if err != nil {
		return nil, err
	}
	var problems []error
	for _, f := range all {
		switch f.Mark {
		case doctor.IsProblem:
			problems = append(problems, fmt.Errorf("%s; %s", f.Text, f.Advice))
		case doctor.NotChecked:
			log.WarnContext(ctx, "could not check Redis", slog.String("what", f.Text), slog.String("advice", f.Advice))
		case doctor.IsFine, doctor.IsWarning: // what a level may lose is logged below
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	o := state.Options{
		URL: e.RedisURL.Open(), Prefix: c.Redis.Prefix, Now: time.Now, Log: log,
		Durability: c.Redis.Level(), Replicas: c.Redis.Replicas,
	}
	log.InfoContext(ctx, "what is acknowledged is durable", slog.String("redis.durability", string(o.Durability)), slog.Int("replicas", o.Replicas))
	if o.Durability == state.Everysec {
		const mayLose = doctor.MayLose
		log.WarnContext(ctx, mayLose)
	}
	return state.Open(ctx, o)
}

// lookAtRedis waits for Redis and judges its servers.
func lookAtRedis(ctx context.Context, c config.Config, e config.Environment, log *slog.Logger) ([]doctor.Finding, error) {
	store, err := openStore(ctx, c, e, log)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, doctor.Patience)
	defer cancel()
	servers, err := store.Servers(ctx)
	if err := errors.Join(err, store.Close()); err != nil {
		return nil, fmt.Errorf("compare Redis with redis.durability: %w", err)
	}
	return doctor.JudgeRedis(c.Redis, servers), nil
}
