package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/doctor"
	"github.com/countersign/countersign/internal/redisserver"
	"github.com/countersign/countersign/internal/state"
)

// storeOptions say where the store of the configuration is. Commands that only
// read open it with these.
func storeOptions(c config.Config, e config.Environment, log *slog.Logger) (state.Options, error) {
	to, err := c.Redis.Target(e)
	return state.Options{URL: to.URL, To: to, Prefix: c.Redis.Prefix, Now: time.Now, Log: log}, err
}

// A commandStore is the store for a command that an operator waits for.
type commandStore struct {
	*state.Store
	end func() error // of a private Redis
}

// Close closes the store, and ends the Redis that was started for the command.
func (s commandStore) Close() error { return errors.Join(s.Store.Close(), s.end()) }

// openForCommand returns the store for a command that an operator waits for.
// If Redis does not answer, it returns an error and does not try again: the
// bot itself waits until Redis is there, but an operator wants to know.
func openForCommand(ctx context.Context, c config.Config, e config.Environment, log *slog.Logger) (s commandStore, err error) {
	o, err := storeOptions(c, e, log)
	if err != nil {
		return s, err
	}
	s.end = func() error { return nil }
	if e.Data != "" {
		if s.end, err = redisserver.Reach(ctx, e.Data, log); err != nil {
			return s, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, doctor.Timeout)
	defer cancel()
	o.Once = true
	if s.Store, err = openDurable(ctx, c, o); err != nil {
		err = errors.Join(err, s.end())
	}
	return s, err
}

// betweenOpenings is how long the bot waits before it asks a Redis again that was gone in the
// middle of its questions.
const betweenOpenings = time.Second

// openStore returns the store of the bot, laid out, and its clock: a process with another time
// than Redis does not start. It waits for a Redis that is away, also if that begins between
// two of its questions.
func openStore(ctx context.Context, c config.Config, o state.Options, lease time.Duration) (*state.Store, *state.Clock, error) {
	for {
		store, err := openDurable(ctx, c, o)
		if err == nil {
			clock := store.Clock(lease)
			if err = store.LayOut(ctx); err == nil {
				err = clock.Check(ctx)
			}
			if err == nil {
				return store, clock, nil
			}
			err = errors.Join(err, store.Close())
		}
		if !state.IsAway(err) || ctx.Err() != nil {
			return nil, nil, err
		}
		o.Log.WarnContext(ctx, "Redis was gone before it had answered everything; trying again", slog.Any("err", err))
		select {
		case <-ctx.Done():
		case <-time.After(betweenOpenings):
		}
	}
}

// openDurable returns the store with the durability of the configuration. It
// refuses a Redis that is weaker than that, and says of one that does not tell
// its settings that they could not be checked.
func openDurable(ctx context.Context, c config.Config, o state.Options) (*state.Store, error) {
	if c.Redis.Durability == state.None {
		return state.Open(ctx, o)
	}
	all, err := lookAtRedis(ctx, c, o)
	if err != nil {
		return nil, err
	}
	var problems []error
	for _, f := range all {
		switch f.Mark {
		case doctor.IsProblem:
			problems = append(problems, fmt.Errorf("%s; %s", f.Text, f.Advice))
		case doctor.NotChecked:
			o.Log.WarnContext(ctx, "could not check Redis", slog.String("what", f.Text), slog.String("advice", f.Advice))
		case doctor.IsFine, doctor.IsWarning: // what a level may lose is logged below
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	o.Durability, o.Replicas = c.Redis.Level(), c.Redis.Replicas
	if o.Once { // a command has said what it found wrong, and an operator reads its answer
		return state.Open(ctx, o)
	}
	o.Log.InfoContext(ctx, "Redis keeps what redis.durability requires", slog.String("redis.durability", string(o.Durability)), slog.Int("replicas", o.Replicas))
	if o.Durability == state.Everysec {
		const mayLose = doctor.MayLose
		o.Log.WarnContext(ctx, mayLose)
	}
	return state.Open(ctx, o)
}

// lookAtRedis opens Redis and compares the settings of its servers with the
// configuration.
func lookAtRedis(ctx context.Context, c config.Config, o state.Options) ([]doctor.Finding, error) {
	store, err := state.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, doctor.Timeout)
	defer cancel()
	servers, err := store.Servers(ctx)
	if err := errors.Join(err, store.Close()); err != nil {
		return nil, fmt.Errorf("compare Redis with redis.durability: %w", err)
	}
	return doctor.JudgeRedis(c.Redis, servers), nil
}
