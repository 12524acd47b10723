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
	interrupted func() (stop bool)
	end         func() error // of a private Redis
}

// Close closes the store, and ends the Redis that was started for the command.
func (s commandStore) Close() error {
	if !s.interrupted() { // it has closed the store
		return s.end()
	}
	return errors.Join(s.Store.Close(), s.end())
}

// openForCommand returns the store for a command that an operator waits for.
// If Redis does not answer, it returns an error and does not try again: the
// bot itself waits until Redis is there, but an operator wants to know. When ctx ends, the
// store is closed: go-redis waits for an answer that it has asked for, whatever its context.
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
	opening, cancel := context.WithTimeout(ctx, doctor.Timeout)
	defer cancel()
	o.Once, o.Hooks = true, append(o.Hooks, &asker{most: doctor.Timeout})
	if s.Store, err = openDurable(opening, c, o); err != nil {
		return s, errors.Join(err, s.end())
	}
	s.interrupted = context.AfterFunc(ctx, func() { _ = s.Store.Close() }) // the command reports that ctx ended
	return s, nil
}

// untilUsable calls open until Redis can be used: as long as it is away, also if that begins
// between two questions, or is in a state in which a bot that runs waits too, such as a replica
// during a failover. Any other error it returns at once.
func untilUsable(ctx context.Context, log *slog.Logger, open func() error) error {
	const longest = 5 * time.Second
	for wait := time.Second; ; wait = min(2*wait, longest) {
		err := open()
		_, passes := errors.AsType[passingError](err)
		if err == nil || ctx.Err() != nil || !passes && !state.Passes(err) {
			return err
		}
		log.WarnContext(ctx, "Redis cannot be used yet; trying again until it can", slog.Duration("wait", wait), slog.Any("err", err))
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// A passingError holds only problems that can end by themselves.
type passingError struct{ error }

// Unwrap returns the problems.
func (e passingError) Unwrap() error { return e.error }

// openStore returns the store of the bot, laid out, and its clock, which agrees with that of
// Redis. It waits for a Redis that cannot be used yet.
func openStore(ctx context.Context, c config.Config, o state.Options, lease time.Duration) (store *state.Store, clock *state.Clock, err error) {
	err = untilUsable(ctx, o.Log, func() (err error) {
		if store, err = openDurable(ctx, c, o); err != nil {
			return err
		}
		clock = store.Clock(lease)
		if err = store.LayOut(ctx); err == nil {
			err = clock.Check(ctx)
		}
		if err != nil {
			err = errors.Join(err, store.Close())
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if level := c.Redis.Level(); level != state.None {
		o.Log.InfoContext(ctx, "Redis keeps what redis.durability requires", slog.String("redis.durability", string(level)), slog.Int("replicas", c.Redis.Replicas))
		if level == state.Everysec {
			const mayLose = doctor.MayLose
			o.Log.WarnContext(ctx, mayLose)
		}
	}
	return store, clock, nil
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
	passing := true
	for _, f := range all {
		switch f.Mark {
		case doctor.IsProblem:
			passing = passing && f.Passes
			problems = append(problems, fmt.Errorf("%s; %s", f.Text, f.Advice))
		case doctor.NotChecked:
			o.Log.WarnContext(ctx, "could not check Redis", slog.String("what", f.Text), slog.String("advice", f.Advice))
		case doctor.IsFine, doctor.IsWarning: // [openStore] logs what a level may lose
		}
	}
	if err := errors.Join(problems...); err != nil {
		if passing {
			err = passingError{err}
		}
		return nil, err
	}
	o.Durability, o.Replicas = c.Redis.Level(), c.Redis.Replicas
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
