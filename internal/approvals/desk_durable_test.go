package approvals_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

// A click that was answered with "not durable" is made again, as the same
// request or as another. While what it did may be lost, no answer says that it
// counts.
func TestNoAnswerOfTheDeskIsGivenBeforeWhatItSaysIsDurable(t *testing.T) {
	b := open(t, all(of(2, "ann", "bo")))
	s := newShelf(b)
	d := desk(s, nil)
	s.volatile = true
	_, err := d.Decide(t.Context(), b.ID, "r1", say(b, "ann", Approve))
	require.ErrorIs(t, err, ErrNotDurable, "the commit")
	require.Len(t, s.batches[b.ID].Approvals[0].Decisions, 1, "it is stored all the same")
	_, err = d.Decide(t.Context(), b.ID, "r1", say(b, "ann", Approve))
	require.ErrorIs(t, err, ErrNotDurable, "the same request")
	_, err = d.Decide(t.Context(), b.ID, "r2", say(b, "ann", Approve))
	require.ErrorIs(t, err, ErrNotDurable, "another click for what is decided already")
	_, err = d.Decide(t.Context(), b.ID, "r3", say(b, "ann", Deny))
	require.ErrorIs(t, err, ErrNotDurable, "a refusal that says how the batch stands")
	_, _, err = d.DecideAll(t.Context(), b.ID, "r4", []Decide{say(b, "ann", Approve)})
	require.ErrorIs(t, err, ErrNotDurable, "several at once, all decided already")
	_, err = d.Retract(t.Context(), b.ID, "r5", Retract{Call: theCall, By: Principal{User: "bo"}})
	require.ErrorIs(t, err, ErrNotDurable, "nothing to take back")

	s.volatile = false
	got, err := d.Decide(t.Context(), b.ID, "r1", say(b, "ann", Approve))
	require.NoError(t, err)
	require.Len(t, got.Approvals[0].Decisions, 1)
	_, err = d.Decide(t.Context(), b.ID, "r3", say(b, "ann", Deny))
	require.ErrorIs(t, err, ErrDecided)
	require.Len(t, s.facts, 1, "once")
}

// The server from which the batch was read may die before it has confirmed anything. What
// one that takes its place confirms is not what was read, and is not acknowledged as that,
// also if somebody else's decision has the same version there.
func TestWhatWasReadIsNotConfirmedByAServerThatLacksIt(t *testing.T) {
	for _, c := range []struct {
		again   RequestID
		another bool
	}{{"r1", false}, {"r2", false}, {"r1", true}, {"r2", true}} {
		b := open(t, all(of(2, "ann", "bo")))
		s := newShelf(b)
		d := desk(s, nil)
		s.volatile = true
		_, err := d.Decide(t.Context(), b.ID, "r1", say(b, "ann", Approve))
		require.ErrorIs(t, err, ErrNotDurable)
		s.volatile = false
		there, want := b, 1
		if c.another {
			there, _, err = b.Apply(say(b, "bo", Approve))
			require.NoError(t, err)
			want = 2
		}
		s.replaced = func() { s.batches[b.ID] = there; clear(s.done) }
		got, err := d.Decide(t.Context(), b.ID, c.again, say(b, "ann", Approve))
		require.NoError(t, err)
		require.Len(t, got.Approvals[0].Decisions, want)
		require.Equal(t, got, s.batches[b.ID], "it is stored again")
		decided := slices.DeleteFunc(s.facts, func(e Event) bool { _, is := e.(Decided); return !is })
		require.Len(t, decided, 2)
	}
}

// What a commit of the same answer has confirmed is not asked for twice.
func TestACommitIsConfirmedByItsOwnAnswer(t *testing.T) {
	b := open(t, all(of(2, "ann", "bo")))
	s := newShelf(b)
	_, err := desk(s, nil).Decide(t.Context(), b.ID, "r1", say(b, "ann", Approve))
	require.NoError(t, err)
	require.Zero(t, s.confirms)
}

func TestASheetThatWasSubmittedBeforeIsConfirmed(t *testing.T) {
	o := newOffice(bulkBatches(t, 2)...)
	s, err := o.bulk("one").Show(t.Context(), listing("ann", bulkBatches(t, 2)...))
	require.NoError(t, err)
	submit := func(r RequestID) error {
		_, err := o.bulk("one").Submit(t.Context(), s.ID, r, Principal{User: "ann"}, nil, "")
		return err
	}
	require.NoError(t, submit("r1"))
	o.volatile = true
	require.ErrorIs(t, submit("r1"), ErrNotDurable, "the same request")
	require.ErrorIs(t, submit("r2"), ErrNotDurable, "refused, because it is submitted")
	o.volatile = false
	require.NoError(t, submit("r1"))
	require.ErrorIs(t, submit("r2"), ErrSettled)

	o.replaced = func() { o.sheets[s.ID] = s; clear(o.seen) }
	require.NoError(t, submit("r1"))
	require.NotEqual(t, s, o.sheets[s.ID], "it is stored again, by a server that lacked it")
}
