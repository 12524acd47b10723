package intake_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
)

// here is a question about a call that the door executes here.
func here(external, tool string) intake.Ask {
	a := again(external)
	a.Door, a.Here, a.Calls[0].Tool = intake.DoorGateway, true, tool
	return a
}

func TestWhoAsksAgainFindsWhatIsExecutedHereUntilSomebodyWasTold(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	first := w.ask(here("a", "write"))
	w.approve(first, "toolu_a")
	_, err := w.Claim(ctx, claude, first.ID, "toolu_a")
	require.NoError(t, err)
	for _, external := range []string{"a", "b"} {
		found := w.ask(here(external, "write"))
		require.Equal(t, first.ID, found.ID, "nobody was told")
		require.True(t, found.Calls[0].Here)
		require.False(t, found.Calls[0].Answered)
	}
	a, _ := mustBatch(w, first).Approval("toolu_a")
	require.Equal(t, approvals.Claimed, a.Execution.State, "until the journal says what becomes of it")
	other := claude
	other.Name = "codex"
	_, err = w.Answered(ctx, other, first.ID)
	require.ErrorIs(t, err, approvals.ErrNotFound)
	told, err := w.Answered(ctx, claude, first.ID)
	require.NoError(t, err)
	require.True(t, told)
	require.NoError(t, w.Unanswered(ctx, claude, first.ID))
	require.Equal(t, first.ID, w.ask(here("b", "write")).ID, "who was told had left")
	for _, is := range []bool{true, false} {
		told, err := w.Answered(ctx, claude, first.ID)
		require.NoError(t, err)
		require.Equal(t, is, told)
	}
	require.NotEqual(t, first.ID, w.ask(here("c", "write")).ID)
	_, err = w.Answered(ctx, claude, w.ask(ask("api", "write")).ID)
	require.ErrorIs(t, err, approvals.ErrInvalid)
}

func TestAPermissionToExecuteHereIsForOneCall(t *testing.T) {
	w := newWorld(t)
	first := w.ask(here("a", "free"))
	require.Equal(t, intake.OutcomeAllowed, first.Calls[0].Outcome)
	second := w.ask(here("b", "free"))
	require.Equal(t, intake.OutcomeAllowed, second.Calls[0].Outcome)
	require.NotEqual(t, first.ID, second.ID, "two calls that need nobody are two executions")
}

func TestAPermittedCallThatIsClaimedWithTheQuestionIsFoundOnlyIfItsResultIsOwed(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	question := func(external string) intake.Ask {
		a := here(external, "free")
		a.Claim = true
		return a
	}
	first := w.ask(question("a"))
	require.True(t, first.Claimed)
	second := w.ask(question("b"))
	require.True(t, second.Claimed)
	require.NotEqual(t, first.ID, second.ID)
	elsewhere := *w
	elsewhere.counted()
	for range 2 {
		require.NoError(t, w.Owe(ctx, claude, second.ID))
	}
	for i, of := range []*world{w, &elsewhere, w} {
		found := of.ask(question(fmt.Sprint("again", i)))
		require.Equal(t, second.ID, found.ID, "nobody was told")
		require.False(t, found.Claimed)
	}
	_, err := elsewhere.Answered(ctx, claude, second.ID)
	require.NoError(t, err)
	for i, of := range []*world{w, &elsewhere} {
		next := of.ask(question(fmt.Sprint("next", i)))
		require.NotEqual(t, second.ID, next.ID)
		require.True(t, next.Claimed)
	}
}

func TestAPermittedCallWhoseResultIsOwedIsFoundUntilItIsGiven(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	first := w.ask(here("a", "free"))
	_, err := w.Claim(ctx, claude, first.ID, "toolu_a")
	require.NoError(t, err)
	other := claude
	other.Name = "codex"
	require.ErrorIs(t, w.Owe(ctx, other, first.ID), approvals.ErrNotFound)
	for range 2 {
		require.NoError(t, w.Owe(ctx, claude, first.ID))
		require.Equal(t, first.ID, w.ask(here("b", "free")).ID, "a caller was told to ask again")
	}
	_, err = w.Answered(ctx, claude, first.ID)
	require.NoError(t, err)
	require.NotEqual(t, first.ID, w.ask(here("c", "free")).ID)
	require.ErrorIs(t, w.Owe(ctx, claude, w.ask(ask("api", "write")).ID), approvals.ErrInvalid)
}

func TestWhatIsExecutedHereCanBeFoundAgain(t *testing.T) {
	w := newWorld(t)
	a := here("a", "write")
	a.Reuse = false
	_, err := w.Ask(t.Context(), claude, a)
	require.ErrorIs(t, err, approvals.ErrInvalid)
}

func TestARequestSaysWhichOfItsCallersLeft(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	first := w.ask(here("a", "write"))
	w.ask(here("b", "write"))
	require.NoError(t, w.Leave(ctx, claude, "unknown"))
	other := claude
	other.Name = "codex"
	require.NoError(t, w.Leave(ctx, other, "a"), "it is no external id of that agent")
	require.Empty(t, w.get(first.ID).Left)
	for range 2 {
		require.NoError(t, w.Leave(ctx, claude, "b"))
	}
	require.Equal(t, []string{"b"}, w.get(first.ID).Left)
	require.Equal(t, intake.StatePending, w.get(first.ID).State, "who holds the call says what becomes of it")
}

func TestARequestSaysHowManyApprovalsItNeeds(t *testing.T) {
	w := newWorld(t)
	w.policy.set("write", approvals.Ask{Requirement: needs("bob", "dora")})
	r := w.ask(ask("a", "write"))
	require.Equal(t, 2, r.Calls[0].Needed)
	w.approve(r, "c0")
	r = w.get(r.ID)
	require.Equal(t, intake.StatePending, r.State)
	require.Equal(t, 1, r.Calls[0].Given)
}

func mustBatch(w *world, r intake.Request) approvals.Batch {
	w.Helper()
	b, err := w.store.Batch(w.Context(), r.Batch)
	require.NoError(w, err)
	return b
}

// A client that resumes a session counts its messages anew, so the id of a message names
// no place that a later call could take.
func TestAnotherCallWithTheIDOfAMessageSupersedesNothing(t *testing.T) {
	w := newWorld(t)
	call := func(args string) intake.Ask {
		a := here("message-1", "write")
		a.Calls[0].Args = json.RawMessage(args)
		return a
	}
	first := w.ask(call(`{"n":1}`))
	w.approve(first, "toolu_message-1")
	second := w.ask(call(`{"n":2}`))
	third := w.ask(call(`{"n":3}`))
	require.Equal(t, intake.StatePending, w.get(second.ID).State)
	found := w.ask(call(`{"n":1}`))
	require.Equal(t, first.ID, found.ID)
	require.Equal(t, []intake.Outcome{intake.OutcomeApproved}, outcomes(found))
	require.Equal(t, second.ID, w.ask(call(`{"n":2}`)).ID)
	require.Equal(t, third.ID, w.ask(call(`{"n":3}`)).ID)
}
