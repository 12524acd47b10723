package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// A program that counts other partitions would leave work in some of them for ever.
func TestAStoreWithOtherPartitionsIsRefused(t *testing.T) {
	c := statetest.Redis(t)
	s := openStore(t, c, newClock().Now)
	require.Empty(t, keys(t, c, s), "opening a store writes nothing")
	require.NoError(t, s.LayOut(t.Context()))
	require.NoError(t, s.LayOut(t.Context()))
	open := func() error {
		again, err := state.Open(t.Context(), state.Options{Client: c, Prefix: s.Prefix(), Once: true})
		if err == nil {
			require.NoError(t, again.Close())
		}
		return err
	}
	require.NoError(t, open())
	require.NoError(t, c.Set(t.Context(), s.Prefix()+":{p00}:layout", "128", 0).Err())
	require.ErrorIs(t, open(), state.ErrLayout)
	require.ErrorContains(t, open(), `"128", not 64`)
	require.ErrorIs(t, s.LayOut(t.Context()), state.ErrLayout)
}
