package approvals_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

// known resolves a person who is in these groups.
func known(user UserID, groups ...GroupID) Resolver {
	return func(context.Context, Asked) (Principal, error) { return Principal{User: user, Groups: groups}, nil }
}

func TestASurfaceDecidesAsAnAuthenticatedPerson(t *testing.T) {
	r := Requirement{Quorums: []Quorum{in(2, "ops")}, Separation: true}
	b := open(t, r)
	d := desk(newShelf(b), nil)
	shown := b.Approvals[0].Call.Digest
	face := func(who Resolver) Case {
		b, err := d.Batch(t.Context(), b.ID)
		require.NoError(t, err)
		c, err := d.Case(t.Context(), b, theCall, shown, who)
		require.NoError(t, err)
		return c
	}
	for _, tt := range []struct {
		who  Resolver
		want error
	}{
		{known("ann", "ops"), nil},
		{known("req", "ops"), ErrOwnRequest},
		{known("outsider"), ErrNotEligible},
		{known(""), ErrInvalid},
	} {
		c := face(tt.who)
		require.ErrorIs(t, c.MayDecide(Approve), tt.want)
		_, err := d.DecideCase(t.Context(), c, "r1", Approve, "")
		require.ErrorIs(t, err, tt.want)
	}

	again, err := d.DecideCase(t.Context(), face(known("ann", "ops")), "r2", Approve, "")
	require.NoError(t, err)
	require.True(t, again.Repeated)
	require.Len(t, again.Approval.Decisions, 1)

	first, err := d.DecideCase(t.Context(), face(known("ann", "ops")), "r1", Approve, "")
	require.NoError(t, err)
	require.False(t, first.Repeated, "the request that decided is answered as the first time")

	gone, err := d.RetractCase(t.Context(), face(known("ann", "ops")), "r3")
	require.NoError(t, err)
	require.Empty(t, gone.Approval.Decisions)
	for _, r := range []RequestID{"r1", "r2"} { // r2 had nothing to do
		gone, err = d.DecideCase(t.Context(), face(known("ann", "ops")), r, Approve, "")
		require.NoError(t, err)
		require.Empty(t, gone.Approval.Decisions, "what arrives again after it was taken back does not count")
	}
}

func TestNothingIsDecidedWhereThePersonIsNotKnown(t *testing.T) {
	b := open(t, Requirement{Quorums: []Quorum{in(1, "ops")}, Vetoes: []Quorum{of(1, "vic")}, Delegation: true})
	s := newShelf(b)
	errDown := errors.New("the directory is down")
	c, err := desk(s, nil).Case(t.Context(), b, theCall, b.Approvals[0].Call.Digest, func(_ context.Context, asked Asked) (Principal, error) {
		require.Equal(t, Asked{Users: []UserID{"vic"}, Groups: []GroupID{"ops"}, Delegation: true}, asked)
		return Principal{User: "ann", Groups: []GroupID{"ops"}}, errDown
	})
	require.ErrorIs(t, err, errDown)
	require.Equal(t, b.Approvals[0].Call, c.Approval.Call, "for the explanation")

	_, err = desk(s, nil).Case(t.Context(), b, "other", b.Approvals[0].Call.Digest, known("ann", "ops"))
	require.ErrorIs(t, err, ErrNotFound)
}

func TestACaseIsDecidedOnWhatWasShown(t *testing.T) {
	b := open(t, all(of(2, "ann", "bo", "cy")))
	s := newShelf(b)
	d := desk(s, rules(func(Proposal) (Ruling, error) { return Permit{}, nil }))
	shown := b.Approvals[0].Call.Digest
	ann, err := d.Case(t.Context(), b, theCall, shown, known("ann"))
	require.NoError(t, err)
	bo, err := d.Case(t.Context(), b, theCall, shown, known("bo"))
	require.NoError(t, err)

	s.args[shown] = theArgs
	bo, err = d.AmendCase(t.Context(), bo, "r1", []byte(`{"path":"/srv/b"}`))
	require.NoError(t, err)
	require.Equal(t, bo.Approval.Call.Digest, bo.Decision.Digest, "the editor has seen what they wrote")
	require.ErrorIs(t, bo.MayDecide(Approve), ErrOwnEdit)

	after, err := d.DecideCase(t.Context(), ann, "r2", Approve, "")
	require.ErrorIs(t, err, ErrStale)
	require.Equal(t, bo.Approval.Call, after.Approval.Call, "it was read again")
}

func ExampleDesk_Case() {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	call := ToolCall{ID: "call_1", Name: "drop_table", Args: []byte(`{"table":"orders_old"}`)}
	batch, _, _ := Open(Batch{ID: "batch-17-a", Run: "run-17-a", Requester: "bo", OpenedAt: at}, []Deferral{{
		Call: call, Ask: Ask{Requirement: Requirement{Quorums: []Quorum{{Need: 1, From: From{Groups: []GroupID{"ops"}}}}}},
	}}, nil)
	desk := NewDesk(newShelf(batch), nil, nil, func() time.Time { return at.Add(time.Minute) })
	ctx := context.Background()

	// A page has authenticated Ann and shown her the arguments of this digest.
	batch, _ = desk.Batch(ctx, batch.ID)
	c, err := desk.Case(ctx, batch, "call_1", DigestOf(batch.ID, call), func(_ context.Context, asked Asked) (Principal, error) {
		return Principal{User: "ann", Groups: asked.Groups}, nil
	})
	if err != nil {
		panic(err)
	}
	c, err = desk.DecideCase(ctx, c, "page-7f3a", Approve, "")
	fmt.Println(c.Approval.Status, err)
	// Output:
	// approved <nil>
}

// reads counts what is read of a store.
type reads struct {
	Store
	n int
}

func (r *reads) Batch(ctx context.Context, id BatchID) (Batch, error) {
	r.n++
	return r.Store.Batch(ctx, id)
}

func (r *reads) Answered(ctx context.Context, id BatchID, q RequestID) (bool, error) {
	r.n++
	return r.Store.Answered(ctx, id, q)
}

func TestAVerdictOnABatchThatNobodyMovedReadsNothingAgain(t *testing.T) {
	b := open(t, all(of(2, "ann", "bo")))
	store := &reads{Store: stored(t, b)}
	d := deskOn(store)
	face := func(who UserID) Case {
		b, err := d.Batch(t.Context(), b.ID)
		require.NoError(t, err)
		c, err := d.Case(t.Context(), b, theCall, b.Approvals[0].Call.Digest, known(who))
		require.NoError(t, err)
		return c
	}
	ann, bo := face("ann"), face("bo")
	store.n = 0
	after, err := d.DecideCase(t.Context(), ann, "r1", Approve, "")
	require.NoError(t, err)
	require.Zero(t, store.n)
	require.Equal(t, b.Version+1, after.Batch.Version)

	after, err = d.DecideCase(t.Context(), bo, "r2", Approve, "")
	require.NoError(t, err, "the batch was read again, because ann has moved it")
	require.Equal(t, Approved, after.Approval.Status)
	require.Len(t, after.Approval.Decisions, 2)
}

// faces is the case of ann, as the batch is now.
func faces(t *testing.T, d *Desk, id BatchID) Case {
	t.Helper()
	b, err := d.Batch(t.Context(), id)
	require.NoError(t, err)
	c, err := d.Case(t.Context(), b, theCall, b.Approvals[0].Call.Digest, known("ann"))
	require.NoError(t, err)
	return c
}

func TestAVerdictThatIsDeliveredAgainAfterItWasTakenBackDecidesNothing(t *testing.T) {
	b := open(t, all(of(2, "ann", "bo")))
	d := deskOn(stored(t, b))
	face := func() Case { return faces(t, d, b.ID) }
	before := face()
	_, err := d.DecideCase(t.Context(), before, "r1", Approve, "")
	require.NoError(t, err)
	_, err = d.RetractCase(t.Context(), face(), "r2")
	require.NoError(t, err)
	for name, c := range map[string]Case{"read before": before, "read after": face()} {
		after, err := d.DecideCase(t.Context(), c, "r1", Approve, "")
		require.NoError(t, err, name)
		require.Empty(t, after.Approval.Decisions, name)
		require.Equal(t, b.Version+2, after.Batch.Version, name)
	}
}

func TestAVerdictThatWasRefusedStaysRefusedWhenItIsDeliveredAgain(t *testing.T) {
	b := open(t, Requirement{Quorums: []Quorum{of(2, "ann", "bo")}, Deny: 2})
	d := deskOn(stored(t, b))
	face := func() Case { return faces(t, d, b.ID) }
	_, err := d.DecideCase(t.Context(), face(), "r1", Approve, "")
	require.NoError(t, err)
	for range 2 {
		_, err = d.DecideCase(t.Context(), face(), "r2", Deny, "")
		require.ErrorIs(t, err, ErrDecided)
		_, skipped, err := d.DecideAll(t.Context(), b.ID, "r3", []Decide{say(b, "ann", Deny)})
		require.NoError(t, err)
		require.ErrorIs(t, skipped[0].Err, ErrDecided)
	}
	_, err = d.RetractCase(t.Context(), face(), "r4")
	require.NoError(t, err)

	after, err := d.DecideCase(t.Context(), face(), "r2", Deny, "")
	require.NoError(t, err)
	require.Empty(t, after.Approval.Decisions)
	all, skipped, err := d.DecideAll(t.Context(), b.ID, "r3", []Decide{say(b, "ann", Deny)})
	require.NoError(t, err)
	require.Empty(t, all.Approvals[0].Decisions)
	require.ErrorIs(t, skipped[0].Err, ErrAnswered)

	after, err = d.DecideCase(t.Context(), face(), "r5", Deny, "")
	require.NoError(t, err)
	require.Len(t, after.Approval.Decisions, 1, "another press counts")
}
