package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Store is what the [Desk] needs. The `state` package has the one
// implementation. Its errors name the operation and the document, so callers
// return them as they are.
type Store interface {
	// Batch returns the batch as stored, or [ErrNotFound].
	Batch(ctx context.Context, id BatchID) (Batch, error)
	// Args returns the exact argument bytes with this digest, or [ErrNotFound].
	Args(ctx context.Context, id BatchID, d Digest) (json.RawMessage, error)
	// ArgsOf is Args of several calls in one round trip. What is not stored is
	// left out of the result.
	ArgsOf(ctx context.Context, of []ArgsKey) (map[ArgsKey]json.RawMessage, error)
	// CommitBatch stores the batch, its new arguments and the facts in one
	// step, if the stored version is still that of Before; otherwise
	// [ErrConflict]. A Request that was committed before changes nothing and is
	// [ErrAnswered], so that each commit without an error was made by this call.
	// If the batch keeps its version, only the Request is remembered.
	CommitBatch(ctx context.Context, c BatchCommit) error
	// Answered reports whether Request has already been committed to the batch.
	Answered(ctx context.Context, id BatchID, r RequestID) (bool, error)
	// Confirm returns once everything stored in the partition of the id is as
	// durable as a commit that was answered; otherwise [ErrNotDurable]. Call it
	// before acknowledging what was only read: the commit that stored it may have
	// been answered with [ErrNotDurable].
	Confirm(ctx context.Context, id string) error
}

// An ArgsKey is where the arguments of a call are stored.
type ArgsKey struct {
	Batch  BatchID
	Digest Digest
}

// A BatchCommit is one change of one batch. Before is the batch as it was read,
// the zero Batch for one that is new: a store derives from both what the change
// means for its indexes.
type BatchCommit struct {
	Request RequestID
	Keep    time.Duration // the least time for which Request is remembered; 0 leaves it to the store
	Before  Batch
	Batch   Batch
	Events  []Event
	Args    map[Digest]json.RawMessage // arguments that are new, see [Amend]
}

// Desk is the service at which batches are moved. It holds no state of its
// own; any number of desks may work on one store.
//
// Every command comes with a [RequestID]. The same id with the same words is
// the same request, answered as the first time; with other words it is another.
type Desk struct {
	store   Store
	commits commits
	judge   judge
	now     func() time.Time
}

// NewDesk returns a desk. The policy is the one that rules on amended
// arguments, once check has found them to fit their tool; without a check
// nobody can amend any.
func NewDesk(store Store, policy Policy, check Check, now func() time.Time) *Desk {
	return &Desk{store: store, commits: commits{store}, judge: judge{policy, check}, now: now}
}

// Batch returns the batch as it stands.
func (d *Desk) Batch(ctx context.Context, id BatchID) (Batch, error) {
	return d.store.Batch(ctx, id)
}

// Call returns a call of the batch with its current arguments, checked against
// the digest in the batch: other bytes than those are [ErrStale].
func (d *Desk) Call(ctx context.Context, b Batch, call ToolCallID) (ToolCall, error) {
	ref, ok := b.ref(call)
	if !ok {
		return ToolCall{}, fmt.Errorf("call %q: %w", string(call), ErrNotFound)
	}
	var args json.RawMessage
	if ref.Size > 0 {
		var err error
		if args, err = d.store.Args(ctx, b.ID, ref.Digest); err != nil {
			return ToolCall{}, fmt.Errorf("call %q: %w", string(call), err)
		}
	}
	return ref.with(b.ID, args)
}

// with returns the call with its stored arguments, if they have its digest.
func (c CallRef) with(id BatchID, args json.RawMessage) (ToolCall, error) {
	call := ToolCall{ID: c.ID, Name: c.Name, Args: args}
	if DigestOf(id, call) != c.Digest {
		return ToolCall{}, fmt.Errorf("call %q: stored arguments: %w", string(c.ID), ErrStale)
	}
	return call, nil
}

// A CallKey names a call with the digest of its current arguments.
type CallKey struct {
	Batch BatchID
	Call  CallRef
}

// CallsOf is [Desk.Call] of calls of any batches, read together. A call whose
// arguments are not stored, or are not those of its digest, is left out.
func (d *Desk) CallsOf(ctx context.Context, of []CallKey) (map[CallKey]ToolCall, error) {
	var keys []ArgsKey
	for _, k := range of {
		if k.Call.Size > 0 {
			keys = append(keys, ArgsKey{k.Batch, k.Call.Digest})
		}
	}
	args, err := d.store.ArgsOf(ctx, keys)
	if err != nil {
		return nil, err
	}
	calls := map[CallKey]ToolCall{}
	for _, k := range of {
		if call, err := k.Call.with(k.Batch, args[ArgsKey{k.Batch, k.Call.Digest}]); err == nil {
			calls[k] = call
		}
	}
	return calls, nil
}

// Decide commits one decision and returns the batch after it. A lost race is
// retried; a request that was already applied is answered as the first time.
func (d *Desk) Decide(ctx context.Context, id BatchID, r RequestID, cmd Decide) (Batch, error) {
	cmd.At = d.at(cmd.At)
	return d.commits.decide(ctx, id, cmd.request(r), cmd)
}

// Skipped is a decision of several that could not be made, and why.
type Skipped struct {
	Call ToolCallID
	Err  error
}

// DecideAll makes several decisions in one commit. Those that cannot be made
// are returned and not stored; if none can be, the batch is not changed. A decision that the
// same request made before, and that is there no more, is [ErrAnswered].
func (d *Desk) DecideAll(ctx context.Context, id BatchID, r RequestID, cmds []Decide) (Batch, []Skipped, error) {
	now := d.now()
	var refused map[int]error
	b, err := d.commits.move(ctx, id, requestOfAll(r, cmds), func(b Batch) (change, error) {
		next := change{batch: b, keep: bulkKept}
		refused = map[int]error{}
		for i, cmd := range cmds {
			if cmd.At.IsZero() {
				cmd.At = now
			}
			after, events, err := next.batch.Apply(cmd)
			if err != nil {
				refused[i] = err
				next.remember = next.remember || errors.Is(err, ErrDecided)
				continue
			}
			next.batch, next.events = after, append(next.events, events...)
			next.remember = next.remember || len(events) == 0
		}
		return next, nil
	})
	if err != nil {
		return Batch{}, nil, err
	}
	// Judged by what is in the batch, so that the answer to a repeated request
	// counts what it decided the first time.
	var skipped []Skipped
	for i, cmd := range cmds {
		if b.Has(cmd.Decision) {
			continue
		}
		err := refused[i]
		if err == nil {
			err = fmt.Errorf("call %q: %w", string(cmd.Call), ErrAnswered)
		}
		skipped = append(skipped, Skipped{Call: cmd.Call, Err: err})
	}
	return b, skipped, nil
}

// DecidedAll reports whether this request has made these decisions, and not another one.
func (d *Desk) DecidedAll(ctx context.Context, id BatchID, r RequestID, cmds []Decide) (bool, error) {
	return d.store.Answered(ctx, id, requestOfAll(r, cmds))
}

// Retract commits the taking back of a decision.
func (d *Desk) Retract(ctx context.Context, id BatchID, r RequestID, cmd Retract) (Batch, error) {
	cmd.At = d.at(cmd.At)
	return d.commits.apply(ctx, id, cmd.request(r), cmd)
}

// Fulfill commits the result of an external call.
func (d *Desk) Fulfill(ctx context.Context, id BatchID, r RequestID, cmd Fulfill) (Batch, error) {
	cmd.At = d.at(cmd.At)
	return d.commits.apply(ctx, id, cmd.request(r), cmd)
}

// Withdraw commits the end of everything still open in the batch.
func (d *Desk) Withdraw(ctx context.Context, id BatchID, r RequestID, cmd Withdraw) (Batch, error) {
	cmd.At = d.at(cmd.At)
	return d.commits.apply(ctx, id, cmd.request(r), cmd)
}

// Conclude commits what became of approved calls that were executed elsewhere.
func (d *Desk) Conclude(ctx context.Context, id BatchID, r RequestID, cmd Conclude) (Batch, error) {
	cmd.At = d.at(cmd.At)
	return d.commits.apply(ctx, id, cmd.request(r), cmd)
}

// Tick does what time does to a batch at this desk's clock: it takes the rungs
// that are due and settles what is overdue. It is what the due index calls: a
// batch that time does not move yet is left alone, without an error.
func (d *Desk) Tick(ctx context.Context, id BatchID) error {
	now := d.now()
	for range maxTries {
		b, err := d.commits.load(ctx, id)
		if err != nil {
			return err
		}
		next, err := b.at(now)
		if err != nil || len(next.events) == 0 {
			return err
		}
		// Any number of sweepers may try it; the version names the attempt.
		r := RequestID(fmt.Sprintf("tick-%s-%d", id, b.Version))
		err = d.commits.commit(ctx, r, b, next)
		if errors.Is(err, ErrAnswered) {
			return nil
		}
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("move batch %s on with time: %w", id, ErrConflict)
}

// at returns the batch as of the given time: overdue approvals have expired,
// and the due rungs of the others are taken.
func (b Batch) at(now time.Time) (change, error) {
	next := change{batch: b}
	for _, cmd := range []Command{Expire{At: now}, Climb{At: now}} {
		after, events, err := next.batch.Apply(cmd)
		if errors.Is(err, ErrNotYet) {
			continue
		}
		if err != nil {
			return change{}, err
		}
		next.batch, next.events = after, append(next.events, events...)
	}
	return next, nil
}

// at returns the time of a command: now, if the adapter gave none.
func (d *Desk) at(t time.Time) time.Time {
	if t.IsZero() {
		return d.now()
	}
	return t
}

// bulkKept is how long the request of several decisions at once is known: a
// worker that continues a [Sheet] after a crash must not approve again what was
// approved and then taken back.
const bulkKept = 25 * time.Hour

// Confirm returns once what the batch says is as durable as the store promises.
// A caller that reports the state of a batch without a command of its own, such
// as that the person has decided, calls it first.
func (d *Desk) Confirm(ctx context.Context, b Batch) error {
	_, err := d.commits.confirmed(ctx, b)
	return err
}
