package intake_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/state"
)

// 50 claims on two replicas race with what takes the decision away. At most one
// claim counts, and what the caller sees afterwards agrees with it.
func TestClaimsThatRaceWithTheEndOfADecisionAgreeWithIt(t *testing.T) {
	for name, end := range map[string]func(w *world, r intake.Request) error{
		"withdrawn": func(w *world, r intake.Request) error {
			_, err := w.Withdraw(w.Context(), claude, r.ID, "")
			return err
		},
		"superseded": func(w *world, _ intake.Request) error {
			a := ask("x", "write")
			a.Calls[0].Args = []byte(`{"other":1}`)
			_, err := w.Ask(w.Context(), claude, a)
			return err
		},
		"too late": func(w *world, _ intake.Request) error {
			w.clock.Advance(24 * time.Hour)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			replica, err := intake.New(intake.Config{Store: w.store, Feed: state.NewFeed(w.store), Runner: w.runner, Desk: w.desk, Now: w.clock.Now})
			require.NoError(t, err)
			r, err := w.Ask(t.Context(), claude, ask("x", "write", "write"))
			require.NoError(t, err)
			w.approve(r, "c0")
			if name != "withdrawn" { // only what is still open in part can be
				w.approve(r, "c1")
			}
			var mu sync.Mutex
			var all sync.WaitGroup
			claimed := 0
			for n := range 50 {
				of := w.Service
				if n%2 == 0 {
					of = replica
				}
				all.Go(func() {
					_, err := of.Claim(context.WithoutCancel(t.Context()), claude, r.ID, "c0")
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						claimed++
						return
					}
					ok := errors.Is(err, intake.ErrClaimed) || errors.Is(err, intake.ErrNotUsable) || errors.Is(err, intake.ErrTooLate) || errors.Is(err, approvals.ErrConflict)
					if !ok {
						t.Errorf("a claim: %v", err)
					}
				})
			}
			all.Go(func() {
				if err := end(w, r); err != nil {
					t.Errorf("the end: %v", err)
				}
			})
			all.Wait()
			require.LessOrEqual(t, claimed, 1)
			got, err := w.Get(t.Context(), claude, r.ID)
			require.NoError(t, err)
			require.Equal(t, claimed == 1, !got.Calls[0].ClaimedAt.IsZero())
			require.Equal(t, claimed == 1 || name == "too late", got.Calls[0].Outcome == intake.OutcomeApproved, got.Calls[0].Outcome)
			_, err = replica.Claim(t.Context(), claude, r.ID, "c0")
			require.Error(t, err, "and none counts from then on")
		})
	}
}
