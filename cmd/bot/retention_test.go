package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

// idle reports whether nothing is due any more but retention.
func (f *follower) idle() bool { return len(f.left()) == 0 }

// left is the work that is due, now or later.
func (f *follower) left() map[state.Kind]int {
	f.t.Helper()
	c := redis.NewClient(&redis.Options{Addr: f.redis.Addr()})
	defer func() { require.NoError(f.t, c.Close()) }()
	return dueWork(f.t, c)
}

// Most changes are remembered in what they change: the whole life of a thread, with a
// decision, leaves few keys for that.
func TestAThreadLeavesFewRequestKeys(t *testing.T) {
	t.Parallel()
	f := deferral(t)
	f.approves()
	require.Eventually(t, f.idle, time.Minute, 10*time.Millisecond)
	n := 0
	for _, key := range f.redis.Keys() {
		if strings.Contains(key, "}:request:") {
			n++
		}
	}
	require.LessOrEqual(t, n, 24)
}

// Of a thread that nobody has used for long nothing stays but what people decided in
// it: no key of any surface is forgotten. The next mention in its place is a new
// conversation.
func TestOfAnOldThreadOnlyFactsStay(t *testing.T) {
	t.Parallel()
	f := deferral(t)
	f.approves()
	require.Eventually(t, f.idle, time.Minute, 10*time.Millisecond)
	require.Regexp(t, `\nnothing is open in 1 conversation, in the oldest since \S+; that one is removed on \S+ \(retention.threads is 720h0m0s\)\n`, f.admin("size"))
	for _, row := range adminJSON[sizeRow](f, "size") {
		require.Equal(t, row.Kind == "idle", !row.RemovedAt.IsZero())
		require.Equal(t, row.Kind == "idle", !row.Oldest.IsZero())
	}
	moments := adminJSON[moment](f, "run", runIn(f))
	first, last := moments[0].Run, moments[len(moments)-1].Run

	client := redis.NewClient(&redis.Options{Addr: f.redis.Addr()})
	defer client.Close() //nolint:errcheck // the test is over
	late := time.Now().Add(31 * 24 * time.Hour)
	store, err := state.Open(t.Context(), state.Options{Client: client, Prefix: f.b.store.Prefix(), Now: func() time.Time { return late }})
	require.NoError(t, err)
	retention := state.NewRetention(store, state.RetentionOptions{Age: f.b.agents.threadAge, Remains: f.b.intake.Remains})
	require.NoError(t, retention.Begin(t.Context()))
	for n := range approvals.Partitions {
		err := retention.Reconcile(t.Context(), approvals.NewID("idle", n, "threads"))
		require.ErrorContains(t, err, "nothing is to be removed yet")
	}
	ids := regexp.MustCompile(`\b(run|batch|thread)[-_]p?\d`)
	for _, key := range f.redis.Keys() {
		if !strings.Contains(key, "}:request:") {
			require.NotRegexp(t, ids, key)
		}
	}
	require.Contains(t, strings.Join(f.redis.Keys(), "\n"), "}:facts")

	// Whoever asks a year later reads what is left, whichever of the runs they know.
	require.NotEqual(t, first, last)
	told := f.admin("run", string(first))
	at := 0
	for _, want := range []string{
		"agent ops for U0ALICE: people are asked about delete_file\t", "U0BOB decided: approve (delete_file of agent ops)\t", "the call is approved (delete_file of agent ops); the rule default@",
		"everything is decided\t", "what became of the call: failed (delete_file of agent ops)\t", string(first) + " was removed after retention.threads",
	} {
		found := strings.Index(told[at:], want)
		require.GreaterOrEqual(t, found, 0, "%q is next in\n%s", want, told)
		at += found
	}
	requireNothingForeign(t, told)
	left := adminJSON[moment](f, "run", string(last))
	require.Equal(t, adminJSON[moment](f, "run", string(first)), left)
	require.Equal(t, left, adminJSON[moment](f, "run", string(f.id)))
	require.Len(t, left, strings.Count(told, "\n")-1)
	require.Equal(t, factOpened, left[0].Kind)
	require.Equal(t, approvals.UserID("U0ALICE"), left[0].By)

	var out, logged bytes.Buffer
	err = run(context.Background(), []string{"admin", "run", string(first) + "0", "--config", f.o.Path}, f.o.Environ, &out, &logged)
	require.ErrorContains(t, err, "not found: compare the id", "nobody asked about it")
}

// runIn returns a run of the store.
func runIn(f *follower) string {
	f.t.Helper()
	for _, key := range f.redis.Keys() {
		if _, id, ok := strings.Cut(key, "}:run:"); ok {
			return id
		}
	}
	require.Fail(f.t, "there is no run")
	return ""
}
