package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/policy"
	"github.com/countersign/countersign/internal/state"
)

// defaultSince is how far back calls are read if nothing is said.
const defaultSince = 30 * 24 * time.Hour

// period is a flag: a time that is more than nothing.
type period time.Duration

func (p *period) String() string { return time.Duration(*p).String() }

func (p *period) Set(value string) error {
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return errors.New("it must be a duration with its unit, such as 30m or 48h; there is no unit for days")
	}
	*p = period(d)
	return nil
}

const callsWords = "The output contains the arguments of the calls. Protect it like the data they are about.\n"

// policyCalls writes the calls that the store holds, as JSON lines.
func policyCalls(ctx context.Context, in *call) (err error) {
	p := newPolicyCommand(in)
	p.flags.StringVar(&p.config, "config", "", "The bot's configuration `FILE`. Needed if it says where Redis is or how to log in there (redis.addresses, redis.tls, redis.user), or sets redis.prefix.")
	since := period(defaultSince)
	p.flags.Var(&since, "since", "How far back to look, such as 24h: threads in which people were asked something in that `DURATION`.")
	data := dataFlag(in)
	if err := p.parse(); err != nil {
		return err
	}
	e, _ := config.ReadEnvironment(p.environ) // only the Redis is needed
	e.Data = *data
	var c config.Config
	if p.config != "" {
		if c, err = config.Read(p.config); err != nil {
			return err
		}
	}
	if !c.Redis.Named(e) {
		return errors.New("REDIS_URL is not set; set it to the Redis that the bot works on, name the configuration that has redis.addresses, or give --data the folder of the bot")
	}
	c.Redis.Durability = state.None // this only reads
	store, err := openForCommand(ctx, c, e, e.NewLogger(p.stderr))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if _, err := fmt.Fprint(p.stderr, callsWords); err != nil {
		return err
	}
	out := bufio.NewWriter(p.stdout)
	lines, broken := json.NewEncoder(out), 0
	lines.SetEscapeHTML(false)
	for call, err := range store.Calls(ctx, p.now().Add(-time.Duration(since))) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			broken++
			_, _ = fmt.Fprintf(p.stderr, "skipped: %s\n", approvals.VisibleLine(err.Error())) // counted, and said at the end
			continue
		}
		if err := lines.Encode(policy.Record(call)); err != nil {
			return fmt.Errorf("write a call: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if broken > 0 {
		return fmt.Errorf("%s could not be read, and the output lacks their calls", counted(broken, "thread", "threads"))
	}
	return nil
}
