package intake_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
)

// damages stores a batch as no program of ours does.
func (w *world) damages(r intake.Request, change func(b *approvals.Batch)) {
	w.Helper()
	before, err := w.store.Batch(w.Context(), r.Batch)
	require.NoError(w, err)
	b := before
	b.Version++
	b.Approvals = slices.Clone(before.Approvals)
	change(&b)
	require.NoError(w, w.store.CommitBatch(w.Context(), approvals.BatchCommit{Before: before, Batch: b}))
}

// What people are asked about is only in the batch: a call that a damaged batch has lost
// was neither permitted nor approved.
func TestADamagedBatchLetsNoCallRun(t *testing.T) {
	for name, c := range map[string]struct {
		decide func(w *world, r intake.Request)
		damage func(b *approvals.Batch)
	}{
		"a pending call is lost":          {nil, func(b *approvals.Batch) { b.Approvals = nil }},
		"a pending call has another id":   {nil, func(b *approvals.Batch) { b.Approvals[0].Call.ID = "other" }},
		"a pending call has another tool": {nil, func(b *approvals.Batch) { b.Approvals[0].Call.Name = "other" }},
		"a pending call is stored as approved": {nil, func(b *approvals.Batch) {
			b.Approvals[0].Status = approvals.Approved
		}},
		"a denied call is lost": {
			func(w *world, r intake.Request) { w.deny(r, "c0", "no") }, func(b *approvals.Batch) { b.Approvals = nil },
		},
		"a denied call has no id": {
			func(w *world, r intake.Request) { w.deny(r, "c0", "no") }, func(b *approvals.Batch) { b.Approvals[0].Call.ID = "" },
		},
		"the decisions about an approved call are lost": {
			func(w *world, r intake.Request) { w.approve(r, "c0") }, func(b *approvals.Batch) { b.Approvals[0].Decisions = nil },
		},
		"the digest that was approved is another one": {
			func(w *world, r intake.Request) { w.approve(r, "c0") }, func(b *approvals.Batch) {
				other := approvals.DigestOf(b.ID, approvals.ToolCall{ID: "c0", Name: "write", Args: []byte(`{"n": 1}`)})
				b.Approvals[0].Decisions = slices.Clone(b.Approvals[0].Decisions)
				b.Approvals[0].Proposed, b.Approvals[0].Call.Digest, b.Approvals[0].Decisions[0].Digest = other, other, other
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, ctx := newWorld(t), t.Context()
			r := w.ask(ask("x", "write"))
			if c.decide != nil {
				c.decide(w, r)
			}
			w.damages(r, c.damage)
			for range 2 {
				_, err := w.Get(ctx, claude, r.ID)
				require.ErrorIs(t, err, approvals.ErrUnreadable)
				w.policy.set("write", approvals.Permit{}) // nor does a policy that permits it by now make it one that it permitted
				_, err = w.Claim(ctx, claude, r.ID, "c0")
				require.ErrorIs(t, err, approvals.ErrUnreadable)
			}
			other := w.ask(ask("y", "free"))
			require.NotEmpty(t, other.Calls, "other requests are answered")
			all, err := w.List(ctx, claude, intake.Filter{})
			require.NoError(t, err, "and listed")
			require.Len(t, all, 1)
			require.Equal(t, other.ID, all[0].ID)
		})
	}
}

// One of several calls that a damaged batch has lost is not taken for a permitted one either,
// not even if another is there twice.
func TestADamagedBatchThatLostOneOfSeveralCallsLetsNoneRun(t *testing.T) {
	for name, damage := range map[string]func(b *approvals.Batch){
		"lost":                   func(b *approvals.Batch) { b.Approvals = b.Approvals[:1] },
		"lost, the other twice":  func(b *approvals.Batch) { b.Approvals[1] = b.Approvals[0] },
		"lost, with its request": func(b *approvals.Batch) { b.Approvals = b.Approvals[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			w, ctx := newWorld(t), t.Context()
			r := w.ask(ask("x", "write", "write", "free"))
			w.deny(r, "c1", "no")
			w.damages(r, damage)
			_, err := w.Get(ctx, claude, r.ID)
			require.ErrorIs(t, err, approvals.ErrUnreadable)
			w.policy.set("write", approvals.Permit{})
			for _, call := range []approvals.ToolCallID{"c0", "c1", "c2"} {
				_, err = w.Claim(ctx, claude, r.ID, call)
				require.ErrorIs(t, err, approvals.ErrUnreadable)
			}
		})
	}
}

// A claim that lost its time was made all the same.
func TestAClaimThatLostItsTimeIsNotMadeAgain(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	r := w.ask(ask("x", "write"))
	w.approve(r, "c0")
	_, err := w.Claim(ctx, claude, r.ID, "c0")
	require.NoError(t, err)
	data, version, err := w.store.Memo(ctx, string(r.ID), "intake")
	require.NoError(t, err)
	from := strings.Index(string(data), `"claimed_at":`)
	require.Positive(t, from)
	to := from + strings.Index(string(data)[from:], ",") + 1
	require.NoError(t, w.store.CommitMemo(ctx, string(r.ID), "intake", append(data[:from:from], data[to:]...), version, 0))
	_, err = w.Claim(ctx, claude, r.ID, "c0")
	require.ErrorIs(t, err, approvals.ErrUnreadable)
}
