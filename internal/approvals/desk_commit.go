package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"
)

// maxTries bounds how often a lost race is run again. Each lost race means that
// another change of the same batch was committed.
const maxTries = 64

// A change is what a command makes of a batch.
type change struct {
	batch  Batch
	events []Event
	args   map[Digest]json.RawMessage
	keep   time.Duration

	remember bool  // the request, though there are no events
	refused  error // the answer to a request that is remembered as refused
}

// commits loads batches, changes them and commits what they became: a lost race
// is run again, and a repeated request is answered like the first.
type commits struct{ store Store }

// decideOn is decide for a batch that was just read. If nobody has changed it since, it is
// not read again.
func (c commits) decideOn(ctx context.Context, b Batch, r RequestID, cmd Decide) (Batch, error) {
	if err := ctx.Err(); err != nil {
		return Batch{}, err
	}
	next, events, err := b.Apply(cmd)
	if err != nil || len(events) == 0 || r == "" {
		return c.decide(ctx, b.ID, r, cmd)
	}
	err = c.store.CommitBatch(ctx, BatchCommit{Request: r, Before: b, Batch: next, Events: events})
	switch {
	case err == nil:
		return next, nil
	case errors.Is(err, ErrConflict), errors.Is(err, ErrAnswered):
		return c.decide(ctx, b.ID, r, cmd)
	}
	return Batch{}, err
}

// decide is apply for a decision. The request of one whose person had decided before is
// remembered too, whether they had said the same or the opposite: it must not count when
// it arrives again after that decision was taken back.
func (c commits) decide(ctx context.Context, id BatchID, r RequestID, cmd Decide) (Batch, error) {
	return c.move(ctx, id, r, func(b Batch) (change, error) {
		next, events, err := b.Apply(cmd)
		if errors.Is(err, ErrDecided) {
			return change{batch: b, remember: true, refused: err}, nil
		}
		return change{batch: next, events: events, remember: true}, err
	})
}

// apply commits what the command makes of the batch.
func (c commits) apply(ctx context.Context, id BatchID, r RequestID, cmd Command) (Batch, error) {
	return c.move(ctx, id, r, func(b Batch) (change, error) {
		next, events, err := b.Apply(cmd)
		return change{batch: next, events: events}, err
	})
}

// move commits what decide makes of the batch, once for each request.
func (c commits) move(ctx context.Context, id BatchID, r RequestID, decide func(Batch) (change, error)) (Batch, error) {
	if r == "" {
		return Batch{}, fmt.Errorf("%w: a request needs an id", ErrInvalid)
	}
	for range maxTries {
		// Asked before the batch is loaded, so that what is returned has in it
		// what the request did.
		answered, err := c.store.Answered(ctx, id, r)
		if err != nil {
			return Batch{}, err
		}
		b, err := c.load(ctx, id)
		if err != nil {
			return Batch{}, err
		}
		next, err := decide(b)
		switch {
		case answered:
			b, err = c.confirmed(ctx, b)
		case err != nil:
			b, err = c.secondAnswer(ctx, id, r, err)
		case len(next.events) == 0:
			if next.remember {
				err = c.commit(ctx, r, b, next)
			}
			if err == nil {
				b, err = c.confirmed(ctx, b)
			}
		default:
			b, err = next.batch, c.commit(ctx, r, b, next)
		}
		if err == nil {
			err = next.refused
		}
		if err == nil {
			return b, nil
		}
		if !errors.Is(err, ErrConflict) && !errors.Is(err, ErrAnswered) {
			return Batch{}, err
		}
	}
	return Batch{}, fmt.Errorf("change batch %s: lost %d races: %w", id, maxTries, ErrConflict)
}

// secondAnswer is for a command that was refused: if it was refused because the
// same request went through a moment ago, that is its answer. A refusal says how
// the batch stands, so it has to be as durable as any other answer.
func (c commits) secondAnswer(ctx context.Context, id BatchID, r RequestID, refused error) (Batch, error) {
	answered, err := c.store.Answered(ctx, id, r)
	if err != nil {
		return Batch{}, err
	}
	b, err := c.load(ctx, id)
	if err == nil {
		b, err = c.confirmed(ctx, b)
	}
	if err == nil && !answered {
		return Batch{}, refused
	}
	return b, err
}

// confirmed returns the batch once what was read of it is durable. An answer
// without a commit needs that: the commit that it is about may have been
// answered with [ErrNotDurable]. If it is lost by then, because another server has
// taken the place of the one that was read, that is [ErrConflict]. That server may have
// another change under the same version.
func (c commits) confirmed(ctx context.Context, b Batch) (Batch, error) {
	if err := c.store.Confirm(ctx, string(b.ID)); err != nil {
		return Batch{}, err
	}
	now, err := c.load(ctx, b.ID)
	if err == nil && (now.Version < b.Version || now.Version == b.Version && !reflect.DeepEqual(now, b)) {
		err = fmt.Errorf("confirm batch %s: its version %d is lost: %w", b.ID, b.Version, ErrConflict)
	}
	if err != nil {
		return Batch{}, err
	}
	return b, nil
}

func (c commits) load(ctx context.Context, id BatchID) (Batch, error) {
	if err := ctx.Err(); err != nil {
		return Batch{}, err
	}
	return c.store.Batch(ctx, id)
}

func (c commits) commit(ctx context.Context, r RequestID, before Batch, next change) error {
	return c.store.CommitBatch(ctx, BatchCommit{
		Request: r, Keep: next.keep, Before: before, Batch: next.batch, Events: next.events, Args: next.args,
	})
}
