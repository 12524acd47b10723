package approvals

import (
	"context"
	"encoding/json"
	"time"
)

// Store is what the [Desk] needs. The `state` package has the one
// implementation.
type Store interface {
	// Batch returns the batch as stored, or [ErrNotFound].
	Batch(ctx context.Context, id BatchID) (Batch, error)
	// Args returns the exact argument bytes with this digest, or [ErrNotFound].
	Args(ctx context.Context, id BatchID, d Digest) (json.RawMessage, error)
	// CommitBatch stores the batch, its new arguments and the facts in one
	// step, if the stored version is still From; otherwise [ErrConflict]. A
	// repeated Request is answered like the first and changes nothing.
	CommitBatch(ctx context.Context, c BatchCommit) error
	// Answered reports whether Request has already been committed to the batch.
	Answered(ctx context.Context, id BatchID, r RequestID) (bool, error)
}

// A BatchCommit is one change of one batch.
type BatchCommit struct {
	Request RequestID
	From    int64
	Batch   Batch
	Events  []Event
	Args    map[Digest]json.RawMessage // arguments that are new, see [Amend]
}

// Desk is the service at which batches are moved. It holds no state of its
// own; any number of desks may work on one store.
type Desk struct {
	store  Store
	policy Policy
	now    func() time.Time
}

// NewDesk returns a desk. The policy is the one that rules on amended
// arguments.
func NewDesk(store Store, policy Policy, now func() time.Time) *Desk {
	return &Desk{store: store, policy: policy, now: now}
}

// Batch returns the batch as it stands.
func (d *Desk) Batch(ctx context.Context, id BatchID) (Batch, error) {
	return d.store.Batch(ctx, id)
}

// Call returns a call of the batch with its current arguments, checked against
// the digest in the batch.
func (d *Desk) Call(ctx context.Context, b Batch, call ToolCallID) (ToolCall, error) {
	panic("unimplemented")
}

// Decide commits one decision and returns the batch after it. A lost race is
// retried; a request that was already applied is answered as the first time.
func (d *Desk) Decide(ctx context.Context, id BatchID, r RequestID, cmd Decide) (Batch, error) {
	panic("unimplemented")
}

// Retract commits the taking back of a decision.
func (d *Desk) Retract(ctx context.Context, id BatchID, r RequestID, cmd Retract) (Batch, error) {
	panic("unimplemented")
}

// Fulfil commits the result of an external call.
func (d *Desk) Fulfil(ctx context.Context, id BatchID, r RequestID, cmd Fulfil) (Batch, error) {
	panic("unimplemented")
}

// Amend rules on the new arguments under the current policy and commits them.
// The caller has validated them against the tool's schema.
func (d *Desk) Amend(ctx context.Context, id BatchID, r RequestID, cmd Amend) (Batch, error) {
	panic("unimplemented")
}

// Withdraw commits the end of everything still open in the batch.
func (d *Desk) Withdraw(ctx context.Context, id BatchID, r RequestID, cmd Withdraw) (Batch, error) {
	panic("unimplemented")
}

// Expire settles what is overdue at this desk's clock. It is what the due
// index calls: a batch with nothing overdue is left alone, without an error.
func (d *Desk) Expire(ctx context.Context, id BatchID) error {
	panic("unimplemented")
}
