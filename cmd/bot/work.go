package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

const (
	// runLimit is how long one worker may work on a run. It is far more than a run
	// takes: each answer of the model and each call of a tool has a limit of its
	// own, and ending the context of a tool that runs leaves its call in doubt.
	runLimit = 24 * time.Hour

	// itemLimit is how long one item of any other kind may take: a few commits
	// and calls to Slack.
	itemLimit = 2 * time.Minute

	// atOnce is how many deadlines are settled in the same round trips to Redis.
	atOnce = 16
)

// The ranks of the kinds that share workers, the first to be served first: people wait
// for some of them, and the cards of expired requests come after the deadlines. What a
// decision starts is urgent besides: it makes those that draw do it one at a time.
const (
	resuming = iota + 1
	answering
	settling
	delivering
	drawing
	telling
	removing
)

// work is what this process does about each kind of due work. A kind that is
// missing here is an error of [newBot].
func (b *bot) work() []state.Task {
	return []state.Task{
		{Kind: state.Runs, Urgent: true, Limit: runLimit, Parked: b.runParked, Reconcile: func(ctx context.Context, id string) error {
			return b.runner.Work(ctx, approvals.RunID(id))
		}},
		{Kind: state.Resumes, Urgent: true, Rank: resuming, Limit: itemLimit, Reconcile: func(ctx context.Context, id string) error {
			return b.runner.Resume(ctx, approvals.BatchID(id))
		}},
		{Kind: state.Deliveries, Rank: delivering, Limit: itemLimit, Reconcile: func(ctx context.Context, id string) error {
			return b.runner.Deliver(ctx, approvals.BatchID(id))
		}},
		{Kind: state.Deadlines, Rank: settling, Together: atOnce, Limit: itemLimit, Reconcile: func(ctx context.Context, id string) error {
			return b.desk.Tick(ctx, approvals.BatchID(id))
		}},
		{Kind: state.Sheets, Rank: resuming, Limit: itemLimit, Parked: b.sheetParked, Reconcile: func(ctx context.Context, id string) error {
			return b.bulk.Work(ctx, approvals.SheetID(id))
		}},
		{Kind: state.Cards, Rank: drawing, Slow: true, Limit: itemLimit, Reconcile: b.ui.Cards.Reconcile},
		{Kind: state.Replies, Rank: answering, Slow: true, Limit: itemLimit, Reconcile: b.ui.Replies.Reconcile},
		{Kind: state.Notices, Rank: drawing, Slow: true, Limit: itemLimit, Reconcile: b.ui.Notices.Reconcile},
		{Kind: state.Homes, Rank: telling, Slow: true, Limit: itemLimit, Reconcile: b.ui.Homes.Reconcile},
		{Kind: state.Answers, Rank: answering, Slow: true, Limit: itemLimit, Reconcile: b.ui.Answers.Reconcile},
		{Kind: state.Announcements, Rank: telling, Limit: itemLimit, Reconcile: func(ctx context.Context, id string) error {
			return b.intake.Announce(ctx, approvals.BatchID(id))
		}},
		{Kind: state.Webhooks, Limit: itemLimit, Reconcile: b.outbox.Reconcile},
		{Kind: state.ToolChanges, Rank: telling, Slow: true, Limit: itemLimit, Reconcile: b.drawToolCard},
		{Kind: state.Removals, Rank: removing, Limit: itemLimit, Reconcile: b.retention.Reconcile},
	}
}

// reconcile makes the world agree with the state until ctx ends.
func (b *bot) reconcile(ctx context.Context) {
	if err := b.retention.Begin(ctx); err != nil && ctx.Err() == nil {
		b.log.ErrorContext(ctx, "cannot begin to look for old conversations; the next start tries again", slog.Any("err", err))
	}
	if err := b.due.Run(ctx, b.tasks); err != nil {
		b.log.ErrorContext(ctx, "reconcilers ended", slog.Any("err", err))
	}
}

// runStuck is what a thread says of a run that was given up.
const runStuck = "This run kept failing, so the bot stopped trying. " +
	"Calls that already ran are not repeated. The reason is in the bot's log."

// runParked posts in the thread that its run is parked: otherwise the thread
// would still say that the agent is at work.
func (b *bot) runParked(ctx context.Context, id string) {
	err := b.runner.Park(ctx, approvals.RunID(id), runStuck)
	if errors.Is(err, agentrun.ErrRunHeld) || errors.Is(err, agentrun.ErrRunEnded) {
		return // another process continues it, or did
	}
	if err != nil {
		b.log.ErrorContext(ctx, "cannot tell a thread that its run is parked", slog.String("run", id), slog.Any("err", err))
	}
}

// sheetParked sends a message to the person whose sheet is parked.
func (b *bot) sheetParked(ctx context.Context, id string) {
	if err := b.ui.Answers.Parked(ctx, id); err != nil {
		b.log.ErrorContext(ctx, "cannot tell a person that their sheet is parked", slog.String("sheet", id), slog.Any("err", err))
	}
}
