package intake_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
)

// again is a question that may find an earlier one of the same call.
func again(external string) intake.Ask {
	a := ask(external, "write")
	a.Reuse = true
	a.Calls[0].ID = approvals.ToolCallID("toolu_" + external)
	return a
}

func TestACallThatIsAskedAgainFindsItsRequest(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	first := w.ask(again("a"))
	require.False(t, first.Joined)
	joined := w.ask(again("b"))
	require.Equal(t, first.ID, joined.ID)
	require.True(t, joined.Joined)
	require.False(t, w.ask(again("a")).Joined)

	w.approve(first, "toolu_a")
	found := w.ask(again("c"))
	require.Equal(t, intake.OutcomeApproved, found.Calls[0].Outcome, "the decision waited for its caller")
	_, err := w.Claim(ctx, claude, found.ID, "toolu_a")
	require.NoError(t, err)
	_, err = w.Claim(ctx, claude, joined.ID, "toolu_a")
	require.ErrorIs(t, err, intake.ErrClaimed)
	next := w.ask(again("b"))
	require.NotEqual(t, first.ID, next.ID, "one decision is for one use")
	require.Equal(t, intake.OutcomePending, next.Calls[0].Outcome)
}

func TestADenialStandsForAWhile(t *testing.T) {
	w := newWorld(t)
	first := w.ask(again("a"))
	w.deny(first, "toolu_a", "not today")
	for i := range 5 {
		r := w.ask(again(fmt.Sprint(i)))
		require.Equal(t, first.ID, r.ID, "an agent in a loop asks nobody again")
		require.Contains(t, r.Calls[0].Reason, "not today")
	}
	w.clock.Advance(approvals.DefaultClaimWithin)
	require.NotEqual(t, first.ID, w.ask(again("z")).ID)
}

func TestWhatIsOverIsAskedAnew(t *testing.T) {
	for name, end := range map[string]func(*world, intake.Request){
		"withdrawn": func(w *world, r intake.Request) {
			_, err := w.Withdraw(w.Context(), claude, r.ID, "")
			require.NoError(w, err)
		},
		"approved too long ago": func(w *world, r intake.Request) {
			w.approve(r, "toolu_a")
			w.clock.Advance(approvals.DefaultClaimWithin)
		},
		"superseded": func(w *world, _ intake.Request) { w.ask(ask("a", "write")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first := w.ask(again("a"))
			end(w, first)
			r := w.ask(again("b"))
			require.NotEqual(t, first.ID, r.ID)
			require.Equal(t, intake.OutcomePending, r.Calls[0].Outcome)
		})
	}
}

func TestARefusalIsAskedAnewAndAnswersWhoeverAsked(t *testing.T) {
	w := newWorld(t)
	a := again("a")
	a.Calls[0].Tool = "never"
	require.Equal(t, intake.OutcomeRefused, w.ask(a).Calls[0].Outcome)
	w.policy.set("never", approvals.Permit{})
	require.Equal(t, intake.OutcomeAllowed, w.ask(a).Calls[0].Outcome)
}

// Whoever is told to ask again, because the policy asks people about the call by now, does
// not find the permission of before.
func TestAPermissionThatThePolicyTookBackIsNotFoundAgain(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	free := again("a")
	free.Calls[0].Tool = "free"
	first := w.ask(free)
	require.Equal(t, intake.OutcomeAllowed, first.Calls[0].Outcome)
	require.Equal(t, first.ID, w.ask(free).ID)
	w.policy.set("free", approvals.Ask{Requirement: needs("bob")})
	for range 2 {
		_, err := w.Claim(ctx, claude, first.ID, "toolu_a")
		require.ErrorIs(t, err, intake.ErrNowAsks)
	}
	next := w.ask(free)
	require.NotEqual(t, first.ID, next.ID)
	require.Equal(t, intake.OutcomePending, next.Calls[0].Outcome)
	require.Equal(t, next.ID, w.ask(free).ID)
}

func TestAFingerprintIsOfEverythingThatIsApproved(t *testing.T) {
	w := newWorld(t)
	w.ask(again("a"))
	for name, differ := range map[string]func(*intake.Ask, *intake.Client){
		"arguments in another order": func(a *intake.Ask, _ *intake.Client) { a.Calls[0].Args = []byte(`{"n":  9007199254740993}`) },
		"tool":                       func(a *intake.Ask, _ *intake.Client) { a.Calls[0].Tool = "other" },
		"server":                     func(a *intake.Ask, _ *intake.Client) { a.Calls[0].Server = "github" },
		"definition":                 func(a *intake.Ask, _ *intake.Client) { a.Calls[0].Definition = "pin" },
		"directory":                  func(a *intake.Ask, _ *intake.Client) { a.Calls[0].Cwd = "/" },
		"repository":                 func(a *intake.Ask, _ *intake.Client) { a.Calls[0].Repository = "acme/app" },
		"branch":                     func(a *intake.Ask, _ *intake.Client) { a.Calls[0].Branch = "main" },
		"session":                    func(a *intake.Ask, _ *intake.Client) { a.Session = "s" },
		"credential":                 func(_ *intake.Ask, c *intake.Client) { c.Credential = "cred-2" },
		"agent":                      func(_ *intake.Ask, c *intake.Client) { c.Name = "codex" },
	} {
		a, c := again(name), claude
		differ(&a, &c)
		r, err := w.Ask(t.Context(), c, a)
		require.NoError(t, err)
		require.False(t, r.Joined, name)
		require.Equal(t, name, r.ExternalID)
	}
}

func TestCallersThatAskForOneCallAtOnceMeetInOneRequest(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	all := make([]intake.Request, 8)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() {
			var err error
			all[i], err = w.Ask(ctx, claude, again(fmt.Sprint(i)))
			require.NoError(t, err)
		})
	}
	wg.Wait()
	for _, r := range all {
		require.Equal(t, all[0].ID, r.ID)
	}
	call := all[0].Calls[0].ID
	w.approve(all[0], call)
	won := 0
	for _, r := range all {
		if _, err := w.Claim(ctx, claude, r.ID, call); err == nil {
			won++
		}
	}
	require.Equal(t, 1, won)
}

func TestARequestThatOthersHaveFoundIsNotSuperseded(t *testing.T) {
	w := newWorld(t)
	first := w.ask(again("a"))
	w.ask(again("b"))
	w.ask(ask("a", "write", "write"))
	require.Equal(t, intake.StatePending, w.get(first.ID).State)
}

func TestTheAnswerOfAKeyIsTheFirstOne(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	a := again("a")
	a.IdempotencyKey, a.Payload = "k", approvals.Digest{1}
	first := w.ask(a)
	w.approve(first, "toolu_a")
	_, err := w.Claim(ctx, claude, first.ID, "toolu_a")
	require.NoError(t, err)
	w.clock.Advance(time.Hour)
	require.Equal(t, first.ID, w.ask(a).ID)
}
