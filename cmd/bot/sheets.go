package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui"
)

// workSheet decides what was chosen on a sheet.
func (b *bot) workSheet(ctx context.Context, id string) error {
	return b.bulk.Work(ctx, approvals.SheetID(id))
}

// sheetParked tells the person whose sheet was given up.
func (b *bot) sheetParked(ctx context.Context, id string) {
	if err := b.ui.Answers.Parked(ctx, id); err != nil {
		b.log.ErrorContext(ctx, "cannot tell a person that their sheet is parked", slog.String("sheet", id), slog.Any("err", err))
	}
}

// health is what people may ask of the bot.
func (b *bot) health() slackui.Health {
	return slackui.Health{
		Store:   b.store.Ping,
		Looking: func() bool { return b.due.Healthy(time.Now()) },
		Parked: func(ctx context.Context) (int, error) {
			items, err := b.due.Parked(ctx)
			return len(items), err
		},
		Policy: func() string { return b.policy.Current().Version() },
	}
}
