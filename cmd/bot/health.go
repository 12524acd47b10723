package main

import (
	"context"
	"errors"
	"time"

	"github.com/countersign/countersign/internal/slackui"
)

// health is what people may ask of the bot.
func (b *bot) health() slackui.Health {
	return slackui.Health{
		Store: func(ctx context.Context) error {
			return errors.Join(b.store.Ping(ctx), b.store.Writable(ctx), b.clock.Check(ctx))
		},
		Looking: func() bool { return b.due.Healthy(time.Now()) },
		Parked: func(ctx context.Context) (int, error) {
			items, err := b.due.Parked(ctx)
			return len(items), err
		},
		Policy: func() string { return b.policy.Current().Version() },
	}
}
