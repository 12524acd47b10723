package outbox

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/webhook"
)

const (
	// deliveredWithin is how exactly it is known when an endpoint took a message, so
	// that not every delivery is a change of the endpoint too.
	deliveredWithin = time.Minute
	// maxGivenUp is how many requests are remembered whose message was given up.
	maxGivenUp = 50
	// maxSlow is the longest pause that a receiver gets.
	maxSlow = webhook.MaxRetryAfter
)

// learn records what an attempt says about the endpoint, and reports whether the
// endpoint is disabled now.
func (o *Outbox) learn(ctx context.Context, id string, m stored, outcome webhook.Outcome, next webhook.Attempts) (disabled bool, err error) {
	now := o.c.Now().UTC()
	before := false
	err = o.changeEndpoint(ctx, id, m.Agent, m.Endpoint, func(e *endpoint) bool {
		before = !e.DisabledAt.IsZero()
		disabled = before
		switch {
		case disabled:
			return false
		case outcome.Kind == webhook.Delivered:
			if now.Sub(e.Delivered) < deliveredWithin && e.SlowUntil.IsZero() {
				return false
			}
			e.Delivered, e.SlowUntil = now, time.Time{}
			return true
		case next.State == webhook.Undelivered && e.Delivered.After(next.First):
			return false // it works, but not for this message
		case next.State.DisablesEndpoint():
			disabled = true
			e.DisabledAt, e.Reason, e.SlowUntil = now, outcome.Reason, time.Time{}
			return true
		case outcome.Slow:
			e.SlowUntil = now.Add(min(outcome.After, maxSlow))
			return true
		}
		return false
	})
	if err == nil && disabled && !before {
		o.c.Log.LogAttrs(ctx, slog.LevelError, "a webhook is disabled; bot admin enable sends what waits for it",
			slog.String("agent", m.Agent), slog.String("webhook", m.Endpoint), slog.String("reason", outcome.Reason))
	}
	return disabled, err
}

// giveUp remembers a request whose message is not tried any more.
func (o *Outbox) giveUp(ctx context.Context, id string, m stored) error {
	return o.changeEndpoint(ctx, id, m.Agent, m.Endpoint, func(e *endpoint) bool {
		if slices.Contains(e.GivenUp, id) {
			return false
		}
		e.GivenUp = append(e.GivenUp, id)
		e.GivenUp = e.GivenUp[max(0, len(e.GivenUp)-maxGivenUp):]
		return true
	})
}

// changeEndpoint changes what is known of an endpoint, in the partition of the id.
func (o *Outbox) changeEndpoint(ctx context.Context, id, agent, name string, change func(*endpoint) bool) error {
	n, err := approvals.Partition(id)
	if err != nil {
		return err
	}
	return update(ctx, o, endpointsID(n), func(all *endpoints) (time.Time, bool, error) {
		e := all.of(agent, name)
		if !change(&e) {
			return time.Time{}, false, nil
		}
		all.Schema = schema
		if i := all.index(agent, name); i >= 0 {
			all.All[i] = e
		} else {
			all.All = append(all.All, e)
		}
		return all.due(o.c.Now()), true, nil
	})
}

// telling is how long a process has to tell people of an endpoint.
const telling = 30 * time.Second

// tell tells people of the endpoints of a partition that are disabled.
func (o *Outbox) tell(ctx context.Context, id string) error {
	for ctx.Err() == nil {
		var claimed endpoint
		err := update(ctx, o, id, func(all *endpoints) (time.Time, bool, error) {
			now := o.c.Now().UTC()
			claimed = endpoint{}
			at := all.due(now)
			if at.After(now) {
				return time.Time{}, false, &waitError{at.Sub(now)}
			}
			for i, e := range all.All {
				if !e.DisabledAt.IsZero() && !e.Told && !e.Telling.After(now) {
					all.All[i].Telling = now.Add(telling)
					claimed = all.All[i]
					break
				}
			}
			return all.due(now), len(all.All) > 0, nil
		})
		if err != nil || claimed.Name == "" {
			return err
		}
		if home := endpointsID(homeOf(claimed.Agent, claimed.Name)); home != id {
			err = o.tellFor(ctx, home, claimed)
		} else {
			err = o.c.Tell(ctx, claimed.disabled())
		}
		if err != nil {
			return err // the claim is the pause before the next attempt
		}
		if err = o.told(ctx, id, claimed); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// tellFor tells people of an endpoint that is disabled in another partition than its home,
// in whose memo it claims and records that: it can be disabled in every partition, and
// people are told once until it is enabled. If the process dies after they were told and
// before that is recorded, they are told again.
func (o *Outbox) tellFor(ctx context.Context, home string, e endpoint) error {
	var told bool
	var busy time.Duration
	err := o.changeEndpoint(ctx, home, e.Agent, e.Name, func(at *endpoint) bool {
		now := o.c.Now().UTC()
		told, busy = at.Told, at.Telling.Sub(now)
		if told || busy > 0 {
			return false
		}
		at.Telling = now.Add(telling)
		e.Telling = at.Telling
		return true
	})
	switch {
	case err != nil || told:
		return err
	case busy > 0:
		return &waitError{busy}
	}
	if err := o.c.Tell(ctx, e.disabled()); err != nil {
		return err
	}
	return o.told(ctx, home, e)
}

// told records that people were told of an endpoint, unless it was enabled meanwhile or
// another process has taken that over.
func (o *Outbox) told(ctx context.Context, id string, claimed endpoint) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return o.changeEndpoint(ctx, id, claimed.Agent, claimed.Name, func(e *endpoint) bool {
		if !e.Telling.Equal(claimed.Telling) {
			return false
		}
		e.Told, e.Telling = true, time.Time{}
		return true
	})
}

// homeOf is the partition whose memo says whether people were told of the endpoint.
func homeOf(agent, name string) int { return approvals.PartitionOf(Surface, agent, name) }

func (e endpoint) disabled() Disabled {
	return Disabled{Agent: e.Agent, Endpoint: e.Name, Reason: e.Reason}
}
