package state_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// limits: every handler works under a deadline, and one that does not come to an
// end within it has failed, also if it asks to come again.
func limits(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	t.Run("every kind has one", func(t *testing.T) {
		s := openStore(t, c, newClock().Now)
		d := state.NewDue(s, state.DueOptions{Sweep: never})
		for _, k := range state.Kinds() {
			got := make(chan bool, 10)
			require.NoError(t, s.MakeDue(t.Context(), 7, k, "any-07-id", time.Time{}))
			work(t, d, k, func(ctx context.Context, _ string) error {
				_, has := ctx.Deadline()
				got <- has
				return later(time.Hour)
			})
			require.True(t, wait(t, "the handler of "+string(k), got), k)
		}
	})
	t.Run("it ends the work", func(t *testing.T) {
		k := newClock()
		s := openStore(t, c, k.Now)
		d := state.NewDue(s, state.DueOptions{
			Sweep: never, Attempts: 2, Backoff: func(int) time.Duration { return time.Minute },
		})
		opens := openBatch(t, ids{1}.batch("b"), ids{1}.run("r"), 1, time.Time{})
		id := string(opens.Batch.ID)
		require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &opens}))
		ended := make(chan error, 10)
		workOn(t, d, state.Task{Kind: state.Cards, Limit: time.Millisecond, Reconcile: func(ctx context.Context, _ string) error {
			<-ctx.Done()
			ended <- ctx.Err()
			return fmt.Errorf("%w, because %w", later(0), ctx.Err())
		}})
		require.ErrorIs(t, wait(t, "the end of the first", ended), context.DeadlineExceeded)
		statetest.Await(t, "what became of it", func() bool { return score(t, s, state.Cards, id).After(k.Now().Add(time.Second)) })
		requireScore(t, s, state.Cards, id, k.Now().Add(time.Minute))
		require.Equal(t, state.Counts{Failed: 1}, d.Counts()[state.Cards])
		k.Advance(time.Minute + time.Second)                      // it is stored to the microsecond
		statetest.Await(t, "the end of the second", func() bool { // a wake-up may be lost
			require.NoError(t, c.Publish(t.Context(), s.WakeChannel(), "1\ncards").Err())
			select {
			case err := <-ended:
				return errors.Is(err, context.DeadlineExceeded)
			default:
				return false
			}
		})
		statetest.Await(t, "it to be parked", func() bool { return score(t, s, state.Cards, id).IsZero() })
		requireParked(t, d, state.ParkedItem{Kind: state.Cards, ID: id, Reason: "timeout", Attempts: 2, Since: k.Now()})
	})
}
