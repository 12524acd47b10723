package state_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// Facts are never removed, so one that is gone was lost with the rest of its time. What is
// stored afterwards does not bring it back.
func TestAStoreThatWentBackIsNoticed(t *testing.T) {
	ctx, c := t.Context(), statetest.Redis(t)
	s := openStore(t, c, newClock().Now)
	require.NoError(t, s.LayOut(ctx))
	facts := s.Prefix() + ":{p07}:facts"
	happens := func() string {
		id, err := c.XAdd(ctx, &redis.XAddArgs{Stream: facts, Values: []any{"e", "{}"}}).Result()
		require.NoError(t, err)
		return id
	}
	past := state.NewPast(s)
	require.NoError(t, past.Holds(ctx), "nothing has happened")
	happens()
	require.NoError(t, past.Holds(ctx))
	last := happens()
	require.NoError(t, past.Holds(ctx))
	require.NoError(t, past.Holds(ctx))

	require.NoError(t, c.XDel(ctx, facts, last).Err())
	happens()
	require.ErrorIs(t, past.Holds(ctx), state.ErrOlder)
	require.ErrorIs(t, past.Holds(ctx), state.ErrOlder, "the next fact is not the one that is gone")
	require.NoError(t, state.NewPast(s).Holds(ctx), "a process that starts takes Redis as it is")

	for _, k := range keys(t, c, s) {
		require.NoError(t, c.Del(ctx, k).Err())
	}
	require.ErrorIs(t, past.Holds(ctx), state.ErrEmptied)
	require.NoError(t, s.LayOut(ctx))
	require.NoError(t, past.Holds(ctx), "a process has started on the empty one")
}
