package state_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// races: a commit that comes in the last moment, when what became of an item is
// about to be written, stands. The item is due for it, with no attempt counted.
func races(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	for name, outcome := range map[string]error{
		"content": nil, "later": later(time.Hour), "failure": errors.New("no"), "last failure": errors.New("last"),
	} {
		t.Run(name, func(t *testing.T) {
			k := newClock()
			calm := openStore(t, c, k.Now)
			opens := openBatch(t, ids{21}.batch("b"), ids{21}.run("r"), 1, time.Time{})
			next := opens.Batch
			next.Version = 2
			id := string(next.ID)
			require.NoError(t, calm.CommitBatch(t.Context(), approvals.BatchCommit{Batch: opens.Batch}))

			var armed atomic.Bool
			raced := make(chan error, 1)
			s := openStoreAt(t, harmed(t, c, func(sent []byte) statetest.Fault {
				if isScript(sent) && armed.CompareAndSwap(true, false) {
					k.Advance(time.Second)
					raced <- calm.CommitBatch(t.Context(), approvals.BatchCommit{Before: opens.Batch, Batch: next})
				}
				return statetest.None
			}), k.Now, calm.Prefix())
			o := state.DueOptions{Sweep: 5 * time.Millisecond, Grace: grace}
			if name == "last failure" {
				o.Attempts = 1
			}
			d := state.NewDue(s, o)
			begun, end := make(chan string), make(chan error)
			work(t, d, state.Cards, func(ctx context.Context, id string) error { return asked(ctx, id, begun, end) })
			wait(t, "the handler", begun)
			armed.Store(true)
			end <- outcome
			require.NoError(t, wait(t, "the other commit", raced))
			require.Equal(t, id, wait(t, "the handler of the new state", begun))
			requireScore(t, calm, state.Cards, id, k.Now())
			requireParked(t, d)
			require.Empty(t, c.HGetAll(t.Context(), s.Prefix()+":{p21}:attempts").Val())
			require.NoError(t, calm.CommitMemo(t.Context(), id, string(state.Cards), nil, 0, 2))
			end <- nil
		})
	}
}
