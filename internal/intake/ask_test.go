package intake_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
)

func TestARequestIsAnsweredAsFarAsThePolicyNeedsNobody(t *testing.T) {
	w := newWorld(t)
	r := w.ask(ask("x", "free", "never", "write"))
	require.Equal(t, intake.StatePending, r.State)
	require.Equal(t, []intake.Outcome{intake.OutcomeAllowed, intake.OutcomeRefused, intake.OutcomePending}, outcomes(r))
	require.Equal(t, "not on Fridays", r.Calls[1].Reason)

	w.approve(r, "c2")
	r = w.get(r.ID)
	require.Equal(t, intake.StateSettled, r.State)
	require.Equal(t, []approvals.Seat{{User: "bob"}}, r.Calls[2].By)
	require.Equal(t, "writes@1", r.Calls[2].Rule)
	require.Equal(t, w.clock.Now().Add(approvals.DefaultClaimWithin), r.Calls[2].UsableUntil)

	r = w.ask(ask("y", "free", "never"))
	require.Equal(t, intake.StateSettled, r.State)
	require.Empty(t, r.Batch)
}

func TestTheSameIDWithTheSameCallsIsTheSameRequest(t *testing.T) {
	w := newWorld(t)
	first := w.ask(ask("x", "write"))
	require.Equal(t, first, w.ask(ask("x", "write")))
	require.NotEqual(t, first.ID, w.ask(ask("y", "write")).ID)
}

func TestTheSameIDWithOtherBytesSupersedesTheRequestBefore(t *testing.T) {
	w := newWorld(t)
	first := w.ask(ask("x", "write"))
	other := ask("x", "write")
	other.Calls[0].Args = []byte(`{"n":9007199254740993}`)
	second := w.ask(other)
	require.NotEqual(t, first.ID, second.ID)
	require.Equal(t, []intake.Outcome{intake.OutcomePending}, outcomes(second))
	first = w.get(first.ID)
	require.Equal(t, []intake.Outcome{intake.OutcomeSuperseded}, outcomes(first))
	require.Equal(t, second.ID, first.SupersededBy)
	late := w.ask(ask("x", "write"))
	require.Equal(t, first.ID, late.ID, "a repetition that comes late brings nothing back")
	require.Equal(t, []intake.Outcome{intake.OutcomeSuperseded}, outcomes(late))
}

func TestAnApprovalThatIsNotUsedIsSupersededToo(t *testing.T) {
	w := newWorld(t)
	first := w.ask(ask("x", "write"))
	w.approve(first, "c0")
	w.ask(ask("x", "write", "write"))
	_, err := w.Claim(t.Context(), claude, first.ID, "c0")
	var out *intake.OutcomeError
	require.ErrorAs(t, err, &out)
	require.Equal(t, intake.OutcomeSuperseded, out.Outcome)
}

// Nobody can use such an approval any more. Its card said that the agent has not used it yet.
func TestTheCardOfAnApprovalThatItsAgentGaveUpSaysThatItDoesNotRun(t *testing.T) {
	for why, end := range map[string]func(w *world, r intake.Request){
		"the agent asked for something else in its place": func(w *world, _ intake.Request) { w.ask(ask("x", "write")) },
		"the agent withdrew its request": func(w *world, r intake.Request) {
			_, err := w.Withdraw(t.Context(), claude, r.ID, "")
			require.NoError(t, err)
		},
		"the user answered": func(w *world, r intake.Request) {
			for range 2 { // it may be repeated
				_, err := w.Withdraw(t.Context(), claude, r.ID, "the user answered")
				require.NoError(t, err)
			}
		},
	} {
		w := newWorld(t)
		r := w.ask(ask("x", "write", "write", "write"))
		w.approve(r, "c0")
		w.approve(r, "c1")
		claim, err := w.Claim(t.Context(), claude, r.ID, "c0")
		require.NoError(t, err)
		end(w, r)
		b, err := w.desk.Batch(t.Context(), r.Batch)
		require.NoError(t, err)
		require.Equal(t, approvals.Execution{State: approvals.Claimed, At: claim.ClaimedAt, By: "claude"}, b.Approvals[0].Execution, "what was used stays used")
		require.Equal(t, approvals.Execution{State: approvals.NotRun, At: w.clock.Now(), Words: why}, b.Approvals[1].Execution)
		require.Empty(t, b.Approvals[2].Execution.State, "it was withdrawn")
	}
}

func TestOfTwoThatSupersedeARequestAtOnceOneIsLeft(t *testing.T) {
	w := newWorld(t)
	w.ask(ask("x", "write"))
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			a := ask("x", "write")
			a.Calls[0].Args = fmt.Appendf(nil, `{"n": %d}`, i)
			_, err := w.Ask(t.Context(), claude, a)
			require.NoError(t, err)
		})
	}
	wg.Wait()
	open := 0
	for i := range 6 {
		a := ask("x", "write")
		a.Calls[0].Args = fmt.Appendf(nil, `{"n": %d}`, i)
		if w.ask(a).State == intake.StatePending {
			open++
		}
	}
	require.Equal(t, 1, open)
}

func TestRequestsOfOneGroupDoNotWaitForEachOther(t *testing.T) {
	w := newWorld(t)
	var wg sync.WaitGroup
	all := make([]intake.Request, 8)
	for i := range all {
		wg.Go(func() {
			a := ask(fmt.Sprintf("x%d", i), "write")
			a.Group = "session-1"
			var err error
			all[i], err = w.Ask(t.Context(), claude, a)
			require.NoError(t, err)
		})
	}
	wg.Wait()
	for _, r := range all {
		require.Equal(t, intake.StatePending, w.get(r.ID).State)
	}
	w.deny(all[3], "c0", "no")
	for i, r := range all {
		require.Equal(t, i == 3, w.get(r.ID).State == intake.StateSettled)
	}
}

func TestAnIdempotencyKeyIsForOnePayload(t *testing.T) {
	w := newWorld(t)
	a := ask("", "write")
	a.IdempotencyKey, a.Payload = "k", approvals.Digest{1}
	first := w.ask(a)
	require.Equal(t, first.ID, w.ask(a).ID)
	a.Payload = approvals.Digest{2}
	_, err := w.Ask(t.Context(), claude, a)
	require.ErrorIs(t, err, intake.ErrKeyReused)
	other := claude
	other.Name = "codex"
	_, err = w.Ask(t.Context(), other, a)
	require.NoError(t, err, "a key is its agent's own")
}

func TestAnAgentSeesItsOwnRequestsOnly(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	r := w.ask(ask("x", "free", "write"))
	other := claude
	other.Name = "codex"
	for name, try := range map[string]func() error{
		"get":      func() error { _, err := w.Get(ctx, other, r.ID); return err },
		"wait":     func() error { _, err := w.Wait(ctx, other, r.ID, ""); return err },
		"withdraw": func() error { _, err := w.Withdraw(ctx, other, r.ID, ""); return err },
		"claim":    func() error { _, err := w.Claim(ctx, other, r.ID, "c0"); return err },
		"report": func() error {
			_, err := w.Report(ctx, other, r.ID, "c0", intake.Report{State: approvals.Ran})
			return err
		},
		"made up": func() error { _, err := w.Get(ctx, claude, "run-1-x"); return err },
	} {
		require.ErrorIs(t, try(), approvals.ErrNotFound, name)
	}
}

func TestAMalformedRequestIsRefusedWithItsPlace(t *testing.T) {
	w := newWorld(t)
	for where, spoil := range map[string]func(*intake.Ask){
		"external_id":     func(a *intake.Ask) { a.ExternalID = "a\nb" },
		"group":           func(a *intake.Ask) { a.Group = string(make([]byte, 300)) },
		"state":           func(a *intake.Ask) { a.State = make([]byte, intake.MaxState+1) },
		"calls":           func(a *intake.Ask) { a.Calls = nil },
		"calls[1].id":     func(a *intake.Ask) { a.Calls[1].ID = "c0" },
		"calls[1].tool":   func(a *intake.Ask) { a.Calls[1].Tool = " " },
		"calls[0].args":   func(a *intake.Ask) { a.Calls[0].Args = []byte(`{"a":1,"a":2}`) },
		"calls[0].cwd":    func(a *intake.Ask) { a.Calls[0].Cwd = "\xff" },
		"idempotency key": func(a *intake.Ask) { a.IdempotencyKey = "k" },
		"within":          func(a *intake.Ask) { a.Within = -1 },
	} {
		a := ask("x", "write", "free")
		spoil(&a)
		_, err := w.Ask(t.Context(), claude, a)
		require.ErrorIs(t, err, approvals.ErrInvalid, where)
		require.ErrorContains(t, err, where)
	}
	keys, err := w.client.Keys(t.Context(), w.prefix+"*").Result()
	require.NoError(t, err)
	require.Empty(t, keys, "nothing was stored")
}
