package directory

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
)

// ErrMayNotRead is the answer to a person who has nothing to do with a batch,
// and to a [Reader] that is used for another batch than its own.
var ErrMayNotRead = errors.New("may not read it")

// A Reader is the right to read the arguments of one batch, and the only way to
// load them for drawing. It is made by [Directory.MayRead] for a person and by
// [Directory.Audience] for everybody who reads a channel. The zero Reader reads
// nothing. A Reader is for one answer and is never kept: who may read is asked
// again the next time.
type Reader struct {
	batch approvals.BatchID
	calls Calls
}

// Calls loads the whole arguments of calls, and what their previews show. Only a
// [Reader], and the summaries that Readers allow, use it.
type Calls interface {
	Call(ctx context.Context, b approvals.Batch, id approvals.ToolCallID) (approvals.ToolCall, error)
	// CallsOf loads several in one round trip, and leaves out what cannot be loaded.
	CallsOf(ctx context.Context, of []approvals.CallKey) (map[approvals.CallKey]approvals.ToolCall, error)
	PreviewContent(ctx context.Context, b approvals.Batch, id approvals.ToolCallID) (now, before string, err error)
}

// Reads reports whether the Reader may be shown the arguments of this batch.
func (r Reader) Reads(b approvals.Batch) bool {
	return r.calls != nil && r.batch != "" && r.batch == b.ID
}

// Call loads a call with its current arguments.
func (r Reader) Call(ctx context.Context, b approvals.Batch, id approvals.ToolCallID) (approvals.ToolCall, error) {
	if !r.Reads(b) {
		return approvals.ToolCall{}, fmt.Errorf("load call %s of batch %s: %w", id, b.ID, ErrMayNotRead)
	}
	return r.calls.Call(ctx, b, id)
}

// Preview loads what a call would change as its tool saw it, and as people had
// seen it before if they are asked again. Both are empty if there is no such
// content.
func (r Reader) Preview(ctx context.Context, b approvals.Batch, id approvals.ToolCallID) (now, before string, err error) {
	if !r.Reads(b) {
		return "", "", fmt.Errorf("load the preview of call %s of batch %s: %w", id, b.ID, ErrMayNotRead)
	}
	return r.calls.PreviewContent(ctx, b, id)
}

// CallAs loads a call with the arguments of a digest, which need not be the
// current ones. If there are none of that digest, it is [approvals.ErrStale].
func (r Reader) CallAs(ctx context.Context, b approvals.Batch, id approvals.ToolCallID, digest approvals.Digest) (approvals.ToolCall, error) {
	i := slices.IndexFunc(b.Approvals, func(a approvals.Approval) bool { return a.Call.ID == id })
	if i < 0 {
		return approvals.ToolCall{}, fmt.Errorf("load call %s of batch %s: %w", id, b.ID, approvals.ErrNotFound)
	}
	a := b.Approvals[i]
	as := approvals.Batch{ID: b.ID}
	for _, size := range []int{0, 1} { // empty arguments are not stored
		a.Call.Digest, a.Call.Size = digest, size
		as.Approvals = []approvals.Approval{a}
		call, err := r.Call(ctx, as, id)
		if err == nil || errors.Is(err, ErrMayNotRead) {
			return call, err
		}
		if size == 1 && !errors.Is(err, approvals.ErrNotFound) {
			return call, err
		}
	}
	return approvals.ToolCall{}, fmt.Errorf("load call %s of batch %s as it was: %w", id, b.ID, approvals.ErrStale)
}
