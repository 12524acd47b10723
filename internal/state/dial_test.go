package state_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// One seed of a real cluster is enough, if the target says that it is one.
func TestAClusterIsFoundByItsAddresses(t *testing.T) {
	seeds, ok := statetest.Cluster(t).(*redis.ClusterClient)
	require.True(t, ok)
	s, err := state.Open(t.Context(), state.Options{
		To: state.Target{Addresses: seeds.Options().Addrs[:1], Cluster: true}, Prefix: prefix(), Once: true,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for n := range 8 {
		open := openBatch(t, ids{n * 8}.batch("b"), ids{n * 8}.run("r"), 1, time.Time{})
		require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Request: "open", Batch: open.Batch, Events: open.Events, Args: open.Args}))
	}
}

// What kind of client it takes follows from what the target names.
func TestATargetSaysWhatKindOfRedisItIs(t *testing.T) {
	for name, c := range map[string]struct {
		target  state.Target
		cluster bool
	}{
		"one server":     {state.Target{Addresses: []string{"a:1"}}, false},
		"seeds":          {state.Target{Addresses: []string{"a:1", "b:1"}}, true},
		"one of many":    {state.Target{Addresses: []string{"a:1"}, Cluster: true}, true},
		"Sentinels":      {state.Target{Addresses: []string{"a:1", "b:1"}, Master: "m"}, false},
		"a URL":          {state.Target{URL: "redis://a:1"}, false},
		"a URL of seeds": {state.Target{URL: "redis://a:1?addr=b:1"}, true},
	} {
		client, err := state.Connect(c.target)
		require.NoError(t, err, name)
		cluster, is := client.(*redis.ClusterClient)
		require.Equal(t, c.cluster, is, name)
		if is {
			require.Equal(t, time.Second, cluster.Options().ClusterStateReloadInterval, "a dead node sends no MOVED")
		}
		require.NoError(t, client.Close())
	}
	_, err := state.Connect(state.Target{URL: "http://:hunter22@h"})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter22")
}
