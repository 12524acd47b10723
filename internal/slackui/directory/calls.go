package directory

import (
	"context"
	"errors"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// CallAs loads a call with the arguments of a digest, which need not be the
// current ones. Other bytes than those are [approvals.ErrStale].
func CallAs(ctx context.Context, d Calls, b approvals.Batch, id approvals.ToolCallID, digest approvals.Digest) (approvals.ToolCall, error) {
	for _, a := range b.Approvals {
		if a.Call.ID != id {
			continue
		}
		for _, size := range []int{0, 1} { // of no arguments nothing is stored
			a.Call.Digest, a.Call.Size = digest, size
			as := approvals.Batch{ID: b.ID, Approvals: []approvals.Approval{a}}
			call, err := d.Call(ctx, as, id)
			if size == 1 && errors.Is(err, approvals.ErrNotFound) {
				return call, approvals.ErrStale
			}
			if err == nil || size == 1 {
				return call, err
			}
		}
	}
	return approvals.ToolCall{}, approvals.ErrNotFound
}

// SpecOf is what the tool of a call declares. t may be nil: then nothing is known.
func SpecOf(t Tools, b approvals.Batch, a approvals.Approval) (agentrun.Spec, bool) {
	if t == nil {
		return agentrun.Spec{}, false
	}
	return t.ToolSpec(b.Agent, a.Call.Name)
}
