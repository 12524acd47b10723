package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// everyStep is set by make soak.
var everyStep = flag.Bool("every-step", false, "crash after each step of the removal of a long thread, not after every other")

const day = 24 * time.Hour

// A past is a store with threads that ended.
type past struct {
	t *testing.T
	c redis.UniversalClient
	k *statetest.Clock
	s *state.Store

	age     time.Duration
	remains func(agentrun.Run) agentrun.Remains
}

func newPast(t *testing.T, c redis.UniversalClient) *past {
	t.Helper()
	k := newClock()
	return &past{t: t, c: c, k: k, s: openStore(t, c, k.Now), age: 30 * day}
}

// commit stores documents and returns nothing that a caller could forget.
func (w *past) commit(c agentrun.Commit) {
	w.t.Helper()
	require.NoError(w.t, w.s.Commit(w.t.Context(), c))
}

// converse stores a thread with so many runs, each of which asked about so many
// calls, and ends it.
func (w *past) converse(name string, runs, calls int) agentrun.Thread {
	w.t.Helper()
	in := ids{5}
	t := agentrun.Thread{ID: in.thread(name)}
	for i := range runs {
		id := in.run(fmt.Sprintf("%s-%d", name, i))
		run := agentrun.Run{ID: id, Thread: t.ID, Status: agentrun.RunDeferred, From: t.Messages, To: t.Messages + 1, CreatedAt: w.k.Now()}
		c := agentrun.Commit{Append: &agentrun.Append{Thread: t.ID, At: t.Messages, Messages: []agentrun.Message{
			agentrun.Response{RunID: id, At: w.k.Now(), Parts: []agentrun.ResponsePart{agentrun.Text{Content: "hello"}}},
		}}}
		if calls > 0 {
			o := openBatch(w.t, in.batch(fmt.Sprintf("%s-%d", name, i)), id, calls, time.Time{})
			c.Opens, run.Deferred = &o, o.Batch.ID
		}
		t.Active, t.Messages = id, t.Messages+1
		c.Thread, c.Runs = &t, []agentrun.Run{run}
		c.Entries = []agentrun.Entry{{Run: id, Call: "call-0", Tool: "x", State: agentrun.EntryClaimed, At: w.k.Now()}}
		w.commit(c)
		t.Version++
		if calls > 0 {
			w.withdraw(run.Deferred)
		}
	}
	t.Active = ""
	w.commit(agentrun.Commit{Thread: &t})
	t.Version++
	return t
}

// withdraw ends a batch.
func (w *past) withdraw(id approvals.BatchID) {
	w.t.Helper()
	ctx := w.t.Context()
	b, err := w.s.Batch(ctx, id)
	require.NoError(w.t, err)
	next, events, err := b.Apply(approvals.Withdraw{By: "bo", Reason: "over", At: w.k.Now()})
	require.NoError(w.t, err)
	require.NoError(w.t, w.s.CommitBatch(ctx, approvals.BatchCommit{Before: b, Batch: next, Events: events}))
}

// draw does everything that is due but retention, as surfaces do, and leaves a memo
// of each.
func (w *past) draw() {
	w.t.Helper()
	ctx := w.t.Context()
	for _, k := range state.Kinds() {
		for n := range approvals.Partitions {
			if k == state.Removals {
				continue
			}
			ids, err := w.s.AllDue(ctx, n, k)
			require.NoError(w.t, err)
			for _, id := range ids {
				if k != state.Webhooks {
					_, version, err := w.s.Memo(ctx, id, string(k))
					require.NoError(w.t, err)
					require.NoError(w.t, w.s.CommitMemo(ctx, id, string(k), []byte("{}"), version, 0))
				}
				require.NoError(w.t, w.s.MakeUndue(ctx, n, k, id))
			}
		}
	}
	// Only surfaces that keep something do.
	for _, k := range []state.Kind{state.Runs, state.Resumes, state.Deliveries, state.Deadlines, state.Announcements} {
		for _, key := range w.keys("memo:" + string(k) + ":") {
			require.NoError(w.t, w.c.Del(ctx, key).Err())
		}
	}
}

// keys lists the keys of the store with this word in them.
func (w *past) keys(word string) []string {
	w.t.Helper()
	places, err := state.NewBrowser(w.s).Places(w.t.Context(), 1_000_000)
	require.NoError(w.t, err)
	var all []string
	for _, p := range places {
		if strings.Contains(p.Key, word) && p.Kind != "request" {
			all = append(all, p.Key)
		}
	}
	return all
}

// forget makes the threads those of a version that removed none.
func (w *past) forget() {
	w.t.Helper()
	ctx := w.t.Context()
	for _, key := range w.keys(":thread:") {
		fields, err := w.c.HKeys(ctx, key).Result()
		require.NoError(w.t, err)
		for _, f := range fields {
			if strings.HasPrefix(f, "r:") {
				require.NoError(w.t, w.c.HDel(ctx, key, f).Err())
			}
		}
	}
	for _, key := range w.keys(":idle") {
		require.NoError(w.t, w.c.Del(ctx, key).Err())
	}
	for n := range approvals.Partitions {
		ids, err := w.s.AllDue(ctx, n, state.Removals)
		require.NoError(w.t, err)
		for _, id := range ids {
			require.NoError(w.t, w.s.MakeUndue(ctx, n, state.Removals, id))
		}
	}
}

// search has the whole store searched for old threads, each step by another process.
func (w *past) search() {
	w.t.Helper()
	require.NoError(w.t, w.retention().Begin(w.t.Context()))
	for range 1000 {
		err := w.retention().Reconcile(w.t.Context(), approvals.NewID("idle", 0, "search"))
		w.k.Advance(time.Second)
		var later interface{ RetryAfter() time.Duration }
		if errors.As(err, &later) {
			require.Greater(w.t, later.RetryAfter(), 29*day)
			return
		}
		require.NoError(w.t, err)
	}
	require.Fail(w.t, "the search does not come to an end")
}

func (w *past) retention() *state.Retention {
	return state.NewRetention(w.s, state.RetentionOptions{
		Age: func() time.Duration { return w.age },
		Remains: func(_ context.Context, run agentrun.Run) (agentrun.Remains, error) {
			if w.remains == nil {
				return agentrun.Remains{}, nil
			}
			return w.remains(run), nil
		},
	})
}

// sweep has the retention look at the partition of all threads here as often as it wants to look soon.
func (w *past) sweep() {
	w.t.Helper()
	r := w.retention()
	for range 100 {
		err := r.Reconcile(w.t.Context(), approvals.NewID("idle", 5, "threads"))
		var later interface{ RetryAfter() time.Duration }
		require.ErrorAs(w.t, err, &later)
		if later.RetryAfter() > 10*time.Second {
			return
		}
		w.k.Advance(later.RetryAfter())
	}
	require.Fail(w.t, "the retention does not come to an end")
}

// removals: what has ended goes as a whole once it is old enough, and nothing else.
func removals(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	t.Run("everything of a thread but its facts", func(t *testing.T) {
		w := newPast(t, c)
		w.converse("old", 3, 2)
		w.draw()
		facts := w.keys(":facts")
		require.Len(t, facts, 1)
		before, err := c.XLen(t.Context(), facts[0]).Result()
		require.NoError(t, err)
		w.sweep()
		require.NotEmpty(t, w.keys(":thread:"), "it is not old enough")
		w.k.Advance(w.age)
		w.sweep()
		for _, key := range w.keys("") {
			require.Regexp(t, `:(facts|due|due:removals|layout)$`, key)
		}
		after, err := c.XLen(t.Context(), facts[0]).Result()
		require.NoError(t, err)
		require.Equal(t, before, after)
	})
	t.Run("not what is used again", func(t *testing.T) {
		w := newPast(t, c)
		thread := w.converse("busy", 1, 1)
		w.draw()
		w.k.Advance(w.age)
		run := agentrun.Run{ID: ids{5}.run("new"), Thread: thread.ID, Status: agentrun.RunQueued, CreatedAt: w.k.Now()}
		thread.Active = run.ID
		w.commit(agentrun.Commit{Thread: &thread, Runs: []agentrun.Run{run}})
		thread.Version++
		w.sweep()
		require.Len(t, w.keys(":run:"), 2)

		run.Version, run.Status, run.EndedAt, thread.Active = 1, agentrun.RunCompleted, w.k.Now(), ""
		w.commit(agentrun.Commit{Thread: &thread, Runs: []agentrun.Run{run}})
		w.draw()
		w.k.Advance(w.age - time.Hour)
		w.sweep()
		require.Len(t, w.keys(":run:"), 2, "its time begins again")
		w.k.Advance(2 * time.Hour)
		w.sweep()
		require.Empty(t, w.keys(":run:"))
	})
	t.Run("not what is open, due or parked", func(t *testing.T) {
		for name, hinder := range map[string]func(w *past, in ids) (undo func()){
			"an open batch": func(w *past, in ids) func() {
				id := in.batch("t-0")
				settled, err := w.s.Batch(t.Context(), id)
				require.NoError(t, err)
				open := openBatch(t, id, settled.Run, 1, time.Time{})
				open.Batch.Version = settled.Version + 1
				require.NoError(t, w.s.CommitBatch(t.Context(), approvals.BatchCommit{Before: settled, Batch: open.Batch, Args: open.Args}))
				w.draw()
				return func() { w.withdraw(id); w.draw() }
			},
			"a run that is parked": func(w *past, in ids) func() {
				run, err := w.s.Run(t.Context(), in.run("t-0"))
				require.NoError(t, err)
				was := run.Status
				run.Status = agentrun.RunParked
				w.commit(agentrun.Commit{Runs: []agentrun.Run{run}})
				w.draw()
				return func() {
					run.Version++
					run.Status = was
					w.commit(agentrun.Commit{Runs: []agentrun.Run{run}})
					w.draw()
				}
			},
			"a webhook message": func(w *past, in ids) func() {
				id := string(in.run("t-0"))
				require.NoError(t, w.s.CommitTimed(t.Context(), id, string(state.Webhooks), []byte("{}"), 0, w.k.Now().Add(90*day)))
				return func() {
					require.NoError(t, w.s.CommitTimed(t.Context(), id, string(state.Webhooks), []byte("{}"), 1, time.Time{}))
				}
			},
			"a card that was given up": func(w *past, in ids) func() {
				parked := fmt.Sprintf("%s:{p05}:parked", w.s.Prefix())
				field := "cards|" + string(in.batch("t-0"))
				require.NoError(t, w.c.HSet(t.Context(), parked, field, `{"v":1}`).Err())
				return func() { require.NoError(t, w.c.HDel(t.Context(), parked, field).Err()) }
			},
			"a remote request of use": func(w *past, _ ids) func() {
				until := w.k.Now().Add(w.age + 90*day)
				w.remains = func(agentrun.Run) agentrun.Remains { return agentrun.Remains{Until: until} }
				run, err := w.s.Run(t.Context(), ids{5}.run("t-0"))
				require.NoError(t, err)
				run.Executor = "client"
				w.commit(agentrun.Commit{Runs: []agentrun.Run{run}})
				w.draw()
				return func() { w.k.Advance(91 * day) }
			},
		} {
			t.Run(name, func(t *testing.T) {
				w := newPast(t, c)
				w.converse("t", 1, 1)
				w.converse("other", 1, 1)
				w.draw()
				undo := hinder(w, ids{5})
				w.k.Advance(w.age + time.Hour)
				w.sweep()
				require.Len(t, w.keys(":thread:"), 1)
				require.Len(t, w.keys(":run:"), 1)
				require.Len(t, w.keys(":batch:"), 1)
				require.Len(t, w.keys(":args:"), 1)
				undo()
				w.k.Advance(day + time.Hour)
				w.sweep()
				require.Empty(t, w.keys(":thread:"))
				require.Empty(t, w.keys(":run:"))
			})
		}
	})
	t.Run("a long thread in several steps, of which each may be the last", func(t *testing.T) {
		step := 2
		if *everyStep {
			step = 1
		}
		for crash := 0; crash < 5; crash += step {
			w := newPast(t, c)
			w.converse("long", 70, 3)
			w.draw()
			w.k.Advance(w.age)
			w.dying(crash)
			w.sweep()
			require.Empty(t, w.keys(":memo:"))
			for _, key := range w.keys("") {
				require.Regexp(t, `:(facts|due|due:removals|layout)$`, key)
			}
		}
	})
	t.Run("threads of older versions, a month after they were found", func(t *testing.T) {
		w := newPast(t, c)
		w.converse("a", 2, 1)
		w.converse("b", 1, 0)
		busy := w.converse("c", 1, 1)
		busy.Active = ids{5}.run("c-0")
		w.commit(agentrun.Commit{Thread: &busy})
		lone := w.converse("d", 1, 1)
		require.NoError(t, c.Del(t.Context(), w.keys(":thread:"+string(lone.ID))...).Err())
		require.NoError(t, c.Del(t.Context(), w.keys(":messages:"+string(lone.ID))...).Err())
		w.draw()
		w.forget()
		w.k.Advance(100 * day)
		w.sweep()
		require.Len(t, w.keys(":run:"), 5)

		w.search()
		require.Len(t, w.keys(":run:"), 4, "one that has no thread goes at once")
		w.sweep()
		require.Len(t, w.keys(":run:"), 4)
		w.k.Advance(w.age)
		w.sweep()
		require.Len(t, w.keys(":run:"), 1, "one is in use")
		busy.Active, busy.Version = "", busy.Version+1
		w.commit(agentrun.Commit{Thread: &busy})
		w.k.Advance(w.age)
		w.sweep()
		for _, key := range w.keys("") {
			require.Regexp(t, `:(facts|due|due:removals|layout|memo:removals:idle.*)$`, key)
		}
		w.search() // again, and there is nothing to find
	})
	t.Run("for as long as the configuration says now", func(t *testing.T) {
		w := newPast(t, c)
		w.converse("a", 1, 1)
		w.draw()
		w.k.Advance(10 * day)
		w.sweep()
		require.Len(t, w.keys(":thread:"), 1)
		w.age = 0
		w.k.Advance(1000 * day)
		w.sweep()
		require.Len(t, w.keys(":thread:"), 1, "for ever")
		w.age = 7 * day
		w.sweep()
		require.Empty(t, w.keys(":thread:"))
	})
	t.Run("a marker and names stay of a remote run", func(t *testing.T) {
		w := newPast(t, c)
		in := ids{5}
		id := string(in.run("t-0"))
		w.converse("t", 1, 0)
		run, err := w.s.Run(t.Context(), in.run("t-0"))
		require.NoError(t, err)
		run.Executor = "client"
		w.commit(agentrun.Commit{Runs: []agentrun.Run{run}})
		name := agentrun.MemoRef{ID: approvals.NewID("name", 5, "x"), Surface: "intake-external"}
		require.NoError(t, w.s.CommitMemo(t.Context(), id, "intake", []byte("record"), 0, 0))
		require.NoError(t, w.s.CommitMemo(t.Context(), id, "intake-state", []byte("state"), 0, 0))
		require.NoError(t, w.s.CommitMemo(t.Context(), name.ID, name.Surface, []byte("name"), 0, 0))
		w.draw()
		version := int64(7) // it has just changed
		w.remains = func(agentrun.Run) agentrun.Remains {
			return agentrun.Remains{Names: []agentrun.MemoRef{name}, Marker: agentrun.MemoChange{
				MemoRef: agentrun.MemoRef{ID: id, Surface: "intake"}, Version: version, Data: json.RawMessage("gone"),
			}}
		}
		w.k.Advance(w.age)
		w.sweep()
		require.Len(t, w.keys(":run:"), 1)
		version = 1
		w.k.Advance(2 * time.Hour)
		w.sweep()
		require.Empty(t, w.keys(":run:"))
		data, at, err := w.s.Memo(t.Context(), id, "intake")
		require.NoError(t, err)
		require.Equal(t, "gone", string(data))
		require.Equal(t, int64(2), at)
		for _, key := range w.keys(":memo:") {
			ttl, err := c.PTTL(t.Context(), key).Result()
			require.NoError(t, err)
			require.Positive(t, ttl, key)
			require.LessOrEqual(t, ttl, agentrun.NamesKept)
		}
		require.Len(t, w.keys(":memo:"), 2)
	})
}

// dying has a process look that ends after so many commits of a removal.
func (w *past) dying(commits int) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	dying, err := state.Open(ctx, state.Options{Client: &mortal{UniversalClient: w.c, left: commits, end: cancel}, Prefix: w.s.Prefix(), Now: w.k.Now})
	require.NoError(w.t, err)
	r := state.NewRetention(dying, state.RetentionOptions{Age: func() time.Duration { return w.age }})
	_ = r.Reconcile(ctx, approvals.NewID("idle", 5, "threads"))
}

// A mortal client dies after so many commits.
type mortal struct {
	redis.UniversalClient

	left int
	end  context.CancelFunc
}

func (m *mortal) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if m.left == 0 {
		m.end()
	}
	m.left--
	return m.UniversalClient.EvalSha(ctx, sha, keys, args...)
}
