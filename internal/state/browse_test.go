package state_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// The browser lists what is stored, and which of it are runs, without knowing
// how a key is written.
func TestBrowseListsWhatIsStored(t *testing.T) {
	m := miniredis.RunT(t)
	c := redis.NewClient(&redis.Options{Addr: m.Addr()})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	store, err := state.Open(t.Context(), state.Options{Client: c, Prefix: "app"})
	require.NoError(t, err)
	for _, key := range []string{"app:{p01}:run:run-01-a", "app:{p02}:batch:b", "app:{p01}:batch:a"} {
		require.NoError(t, c.HSet(t.Context(), key, "v", 1, "d", `{"n":9007199254740993}`).Err())
	}
	require.NoError(t, c.Set(t.Context(), "app:{p01}:new", "word", 0).Err())
	require.NoError(t, c.Set(t.Context(), "apple:{p01}:new", "somebody else's", 0).Err())

	places, err := state.NewBrowser(store).Places(t.Context(), 100)
	require.NoError(t, err)
	require.Equal(t, []state.Place{
		{Key: "app:{p01}:batch:a", Kind: "batch"},
		{Key: "app:{p02}:batch:b", Kind: "batch"},
		{Key: "app:{p01}:run:run-01-a", Kind: "run", Run: approvals.RunID("run-01-a")},
		{Key: "app:{p01}:new", Kind: "new"},
	}, places)

	m.Del("app:{p01}:batch:a")
	found, err := state.NewBrowser(store).Contents(t.Context(), places, state.ContentLimits{Entries: 10, Bytes: 2})
	require.NoError(t, err)
	require.Len(t, found, 3, "one went meanwhile")
	batch, err := json.Marshal(found[0].Value)
	require.NoError(t, err)
	require.Contains(t, string(batch), "9007199254740993", "no digit is lost")
	require.Equal(t, "wor", found[2].Value, "one byte more than the limit says that there is more")
	require.Equal(t, 4, found[2].Bytes)
}

// Installations share a Redis by their prefixes, whatever these are.
func TestBrowseListsNothingOfAnotherInstallation(t *testing.T) {
	m := miniredis.RunT(t)
	c := redis.NewClient(&redis.Options{Addr: m.Addr()})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	prefixes := []string{"app", "app:test", "a*", "a?p", "[a]", "a", `a\p`, `\a`}
	for _, prefix := range prefixes {
		require.NoError(t, c.Set(t.Context(), prefix+":{p01}:new", "word", 0).Err())
	}
	for _, prefix := range prefixes {
		store, err := state.Open(t.Context(), state.Options{Client: c, Prefix: prefix})
		require.NoError(t, err)
		places, err := state.NewBrowser(store).Places(t.Context(), 100)
		require.NoError(t, err)
		require.Equal(t, []state.Place{{Key: prefix + ":{p01}:new", Kind: "new"}}, places, prefix)
	}
}

// What sorted sets hold in few bytes is shown in words.
func TestBrowseShowsWhatIsDueListedAndDecided(t *testing.T) {
	c, k := statetest.Miniredis(t), newClock()
	s := openStoreAt(t, c, k.Now, "app")
	const unique = "0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1f0"
	open := openBatch(t, ids{7}.batch(unique), ids{7}.run(unique), 2, time.Time{})
	require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Batch: open.Batch, Events: open.Events, Args: open.Args}))
	require.NoError(t, s.CommitBatch(t.Context(), decide(t, open.Batch, approvals.Approve, "click")))
	found, err := state.NewBrowser(s).Contents(t.Context(), []state.Place{
		{Key: "app:{p07}:due"}, {Key: "app:{p07}:list"}, {Key: "app:{p07}:decided:ann"},
	}, state.ContentLimits{Entries: 10, Bytes: 100})
	require.NoError(t, err)
	shown := make([]string, len(found))
	for i, f := range found {
		text, err := json.Marshal(f.Value)
		require.NoError(t, err)
		shown[i] = string(text)
	}
	batch, opened := "batch-07-"+unique, fmt.Sprint(start0.UnixMicro()|1)
	require.JSONEq(t, `[{"member":"cards `+batch+`","at":"2026-03-01T09:00:00.000Z"},{"member":"homes `+batch+`","at":"2026-03-01T09:00:00.000Z"}]`, shown[0])
	require.JSONEq(t, `[{"member":"all `+opened+`|`+batch+`"},{"member":"requester:bo `+opened+`|`+batch+`"},{"member":"user:ann `+opened+`|`+batch+`"}]`, shown[1])
	require.JSONEq(t, `[{"member":"`+batch+`","at":"2026-03-01T09:00:00.000Z"}]`, shown[2])
}
