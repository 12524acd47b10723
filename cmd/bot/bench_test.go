package main

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/bench"
	"github.com/countersign/countersign/internal/state/statetest"
)

// measured runs `bot bench` as short as it can be, and returns its tables.
func measured(t *testing.T, args ...string) []bench.Table {
	t.Helper()
	stdout, stderr, code := said(t, append([]string{"bench", "--json", "--rounds", "1", "--duration", "10ms"}, args...)...)
	require.Zero(t, code, stderr)
	var out struct{ Tables []bench.Table }
	require.NoError(t, json.Unmarshal([]byte(stdout), &out), stdout)
	for _, table := range out.Tables {
		require.NotEmpty(t, table.Rows)
		for _, r := range table.Rows {
			require.Len(t, r.Values, len(table.Columns), "%s of %s", r.Name, table.Name)
		}
	}
	return out.Tables
}

// value is what a table has in a row and a column.
func value(t *testing.T, table bench.Table, row, column string) float64 {
	t.Helper()
	r := slices.IndexFunc(table.Rows, func(r bench.Row) bool { return r.Name == row })
	c := slices.Index(table.Columns, column)
	require.GreaterOrEqual(t, r, 0, row)
	require.GreaterOrEqual(t, c, 0, column)
	return table.Rows[r].Values[c]
}

// What is measured is what is claimed: every click is decided, the floors and the
// programs of others do what their names say, and the counts are those of Redis. A
// bot may refuse some clicks on a machine that is busy; if it refuses most of them,
// the bench fails.
func TestTheBenchMeasuresClicksThatDecide(t *testing.T) {
	t.Parallel()
	require.DirExists(t, "../../internal/slacksim/bolt/node_modules/ioredis", "run .ci/deps, which installs the packages")
	tables := measured(t, "--only", "click", "--peer", "Bolt=node ../../internal/slacksim/bolt/peer.js", "--peer", "another=is-not-installed")
	require.Len(t, tables, 2, "with appendfsync always and everysec")
	require.Equal(t, "fsync", tables[0].Redis)
	require.Equal(t, "everysec", tables[1].Redis)
	for _, table := range tables {
		for _, floor := range []string{"answers 200", "reads, checks the HMAC", "and reads form and JSON", "and runs one script", "slack-go, one HSET"} {
			require.Zero(t, value(t, table, floor, "failed"), floor)
		}
		require.GreaterOrEqual(t, value(t, table, "Bolt", "commands"), 4.0, "the same script")
		require.Contains(t, table.About, "Not measured is another")
		script, deciding := value(t, table, "and runs one script", "commands"), value(t, table, "bot, deciding", "commands")
		require.GreaterOrEqual(t, script, 4.0, "the script and its three")
		require.Greater(t, deciding, script, "it decides at least what the floor does")
		require.Greater(t, value(t, table, "bot, with its drawing", "commands"), deciding)
	}
}

func TestTheBenchMeasuresBotsWithoutWork(t *testing.T) {
	t.Parallel()
	table := measured(t, "--only", "idle")[0]
	require.Positive(t, value(t, table, "1 replica", "commands/s"))
	require.Positive(t, value(t, table, "2 replicas", "round trips/s"))
}

// Each call of the hook is permitted by the policy: an answer that denied it would
// count as failed. The floors get the same calls.
func TestTheBenchMeasuresPermittedCallsAtTheHook(t *testing.T) {
	t.Parallel()
	table := measured(t, "--only", "hook")[0]
	require.Zero(t, value(t, table, "hook, 64 at a time", "failed"))
	require.Positive(t, value(t, table, "hook, one at a time", "round trips"))
	for _, floor := range []string{"answers 200", "reads JSON", "and runs one script"} {
		require.Zero(t, value(t, table, floor, "failed"), floor)
	}
	require.GreaterOrEqual(t, value(t, table, "and runs one script", "commands"), 4.0, "the script and its three")
}

// Each call comes back with what the MCP server said, whoever passes it on.
func TestTheBenchMeasuresPermittedCallsThroughTheGateway(t *testing.T) {
	t.Parallel()
	table := measured(t, "--only", "gateway")[0]
	for _, floor := range []string{"the MCP server itself", "a reverse proxy", "and one script"} {
		require.Zero(t, value(t, table, floor, "failed"), floor)
	}
	require.Positive(t, value(t, table, "gateway", "round trips"))
	require.Positive(t, value(t, table, "gateway, pure", "round trips"))
	require.Zero(t, value(t, table, "the MCP server itself", "CPU ms"), "it is subtracted")
}

// A step is one call of the tool. What it costs Redis is compared with loops that keep
// nothing: ours and that of the AI SDK, which does every step that it is asked for.
func TestTheBenchMeasuresAStepOfTheLoop(t *testing.T) {
	t.Parallel()
	require.DirExists(t, "../../internal/bench/aisdk/node_modules/ai", "run .ci/deps, which installs the packages")
	table := measured(t, "--only", "loop", "--agent", "AI SDK=node ../../internal/bench/aisdk/peer.js", "--agent", "another=is-not-installed")[0]
	require.Contains(t, table.About, "Not measured is another")
	for _, at := range []string{"1 at once", "16 at once"} {
		for _, name := range []string{"loop", "loop, pure", "no store", "AI SDK"} {
			require.Positive(t, value(t, table, name+", "+at, "a step, ms"), name)
		}
		require.Greater(t, value(t, table, "loop, "+at, "AOF bytes"), value(t, table, "no store, "+at, "AOF bytes"), "the messages of a step are stored")
	}
}

// Every click leads to the call that it approves, and that is measured.
func TestTheBenchMeasuresFromTheClickToTheCall(t *testing.T) {
	t.Parallel()
	table := measured(t, "--only", "steady")[0]
	require.Len(t, table.Rows, 2)
	for _, r := range table.Rows {
		require.Zero(t, value(t, table, r.Name, "failed"), r.Name)
		require.GreaterOrEqual(t, value(t, table, r.Name, "to tool p99 ms"), value(t, table, r.Name, "to tool p50 ms"))
		require.Positive(t, value(t, table, r.Name, "to tool p50 ms"))
	}
}

// The storm is over when every deadline is settled and drawn, and people have
// clicked meanwhile.
func TestTheBenchMeasuresClicksInAStorm(t *testing.T) {
	t.Parallel()
	table := measured(t, "--only", "storm", "--deadlines", "100")[0]
	require.Positive(t, value(t, table, "deadlines", "clicks"))
	require.Positive(t, value(t, table, "deadlines", "settled s"))
	require.GreaterOrEqual(t, value(t, table, "deadlines", "drawn s"), value(t, table, "deadlines", "settled s"))
}

// What a person opens shows the requests that wait, few or many.
func TestTheBenchMeasuresWhatPeopleOpen(t *testing.T) {
	t.Parallel()
	table := measured(t, "--only", "pending", "--pending", "500")[0]
	require.Positive(t, value(t, table, "500 pending", "bytes each"), "far more than the tables of Redis grow or shrink")
	for _, row := range []string{"100 pending", "500 pending"} {
		for _, view := range []string{"status", "list", "Home"} {
			require.Positive(t, value(t, table, row, view+" ms"), view)
			require.GreaterOrEqual(t, value(t, table, row, view+" round trips"), 1.0, view)
		}
		require.Positive(t, value(t, table, row, "start ms"))
		require.Positive(t, value(t, table, row, "click ms"))
	}
}

func TestTheBenchComparesReplicas(t *testing.T) {
	t.Parallel()
	table := measured(t, "--only", "replicas", "--replicas", "2", "--deadlines", "20")[0]
	require.Len(t, table.Rows, 2)
	for _, r := range table.Rows {
		require.Positive(t, value(t, table, r.Name, "clicks/s"))
		require.Positive(t, value(t, table, r.Name, "idle commands/s"))
		require.Positive(t, value(t, table, r.Name, "storm: settled s"))
	}
}

func TestTheBenchComparesShards(t *testing.T) {
	t.Parallel()
	table := measured(t, "--only", "shards", "--shards", "2")[0]
	// A click and its drawing take 55. What the replica looks for meanwhile comes on top, and
	// in so short a time that may be twice as much.
	const least = 40.0
	for _, row := range []string{"no cluster", "1 shard", "2 shards"} {
		require.Positive(t, value(t, table, row, "req/s"))
		require.Greater(t, value(t, table, row, "commands"), least, "those of all shards count")
		require.Positive(t, value(t, table, row, "AOF bytes"))
	}
}

// What is written to a cluster is in many slots.
func TestTheBenchLeavesNothingInACluster(t *testing.T) {
	t.Parallel()
	cluster := statetest.Cluster(t).(*redis.ClusterClient)
	addr := cluster.Options().Addrs[0]
	tables := measured(t, "--only", "hook,shards", "--redis", "redis://"+addr+"?addr="+addr)
	require.Len(t, tables, 1, "shards are compared in clusters of their own only")
	require.Positive(t, value(t, tables[0], "hook, one at a time", "commands"))
	keys, err := cluster.DBSize(t.Context()).Result()
	require.NoError(t, err)
	require.Zero(t, keys)
}

// A Redis that holds data is never measured with, unless that is wanted. What it
// holds stays, and what was measured with does not.
func TestTheBenchLeavesDataOfOthersAlone(t *testing.T) {
	t.Parallel()
	server := statetest.NewInstance(t)
	require.NoError(t, server.Client.Set(t.Context(), "theirs", "1", 0).Err())
	_, stderr, code := said(t, "bench", "--only", "idle", "--redis", "redis://"+server.Addr)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "holds 1 keys")

	tables := measured(t, "--only", "hook", "--busy", "--redis", "redis://"+server.Addr)
	require.Equal(t, "fsync", tables[0].Redis, "as that server is set")
	keys, err := server.Client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Equal(t, []string{"theirs"}, keys)
}

func TestTheBenchSaysWhatItNeeds(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, stderr, code := said(t, "bench")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "apt-get install redis-server")
	_, stderr, _ = said(t, "bench", "--only", "clikc")
	require.Contains(t, stderr, `nothing called "clikc"`)
	_, stderr, _ = said(t, "bench", "--peer", "node app.js")
	require.Contains(t, stderr, "a peer is NAME=COMMAND")
	_, stderr, _ = said(t, "bench", "--pending", "0")
	require.Contains(t, stderr, "must be more than 0")
}
