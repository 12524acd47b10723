package state_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

// commits: all of it or nothing, whichever condition fails.
func commits(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	s := openStore(t, c, newClock().Now)
	ctx, id := t.Context(), ids{63}
	thread := agentrun.Thread{ID: id.thread("t")}
	run := agentrun.Run{ID: id.run("r"), Thread: thread.ID, Status: agentrun.RunRunning, Owner: "mine", LeaseEnds: start0}
	opens := openBatch(t, id.batch("b"), run.ID, 1, time.Time{})
	message := agentrun.Request{Parts: []agentrun.RequestPart{agentrun.UserPrompt{Content: "hi"}}}
	entry := agentrun.Entry{Run: run.ID, Call: "c", State: agentrun.EntryClaimed}
	all := func() agentrun.Commit {
		thread, opens := thread, opens
		return agentrun.Commit{
			Thread: &thread, Runs: []agentrun.Run{run}, Opens: &opens, Entries: []agentrun.Entry{entry},
			Append: &agentrun.Append{Thread: thread.ID, Messages: []agentrun.Message{message}},
		}
	}
	require.NoError(t, s.Commit(ctx, all()))
	before := dump(t, c, s)

	// The commit that would follow, with one condition wrong at a time.
	next := func() agentrun.Commit {
		c := all()
		c.Thread.Version, c.Runs[0].Version, c.Append.At, c.Entries[0].Version = 1, 1, 1, 1
		c.Owner = &agentrun.Ownership{Run: run.ID, Fence: "mine"}
		c.Opens = nil
		c.Resumes = &opens.Batch
		return c
	}
	for name, spoil := range map[string]func(c *agentrun.Commit){
		"an old thread":               func(c *agentrun.Commit) { c.Thread.Version = 0 },
		"a thread that is not there":  func(c *agentrun.Commit) { c.Thread.ID = id.thread("none") },
		"a later run":                 func(c *agentrun.Commit) { c.Runs[0].Version = 2 },
		"a new run that exists":       func(c *agentrun.Commit) { c.Runs[0].Version = 0 },
		"another owner":               func(c *agentrun.Commit) { c.Owner.Fence = "theirs" },
		"an owner of no run":          func(c *agentrun.Commit) { c.Owner.Run = id.run("none") },
		"messages in between":         func(c *agentrun.Commit) { c.Append.At = 0 },
		"messages that are not there": func(c *agentrun.Commit) { c.Append.At = 2 },
		"an old entry":                func(c *agentrun.Commit) { c.Entries[0].Version = 0 },
		"a batch that exists":         func(c *agentrun.Commit) { c.Opens = &opens },
		"a batch that moved on":       func(c *agentrun.Commit) { b := opens.Batch; b.Version = 2; c.Resumes = &b },
		"a batch that moved before": func(c *agentrun.Commit) {
			moved := decide(t, opens.Batch, approvals.Approve, "")
			moved.Before.Version, moved.Batch.Version = 2, 3
			c.Resumes, c.Moves = nil, &agentrun.BatchMove{Before: moved.Before, Batch: moved.Batch, Events: moved.Events}
		},
	} {
		c2 := next()
		spoil(&c2)
		require.ErrorIs(t, s.Commit(ctx, c2), approvals.ErrConflict, name)
		require.Equal(t, before, dump(t, c, s), name)
	}
	for name, spoil := range map[string]func(c *agentrun.Commit){
		"two partitions":   func(c *agentrun.Commit) { c.Runs[0].ID = ids{62}.run("r") },
		"the same twice":   func(c *agentrun.Commit) { c.Runs = append(c.Runs, c.Runs[0]) },
		"no owner":         func(c *agentrun.Commit) { c.Owner.Fence = "" },
		"nothing":          func(c *agentrun.Commit) { *c = agentrun.Commit{} },
		"negative version": func(c *agentrun.Commit) { c.Runs[0].Version = -1 },
	} {
		c2 := next()
		spoil(&c2)
		require.ErrorIs(t, s.Commit(ctx, c2), approvals.ErrInvalid, name)
		require.Equal(t, before, dump(t, c, s), name)
	}
	require.NoError(t, s.Commit(ctx, next()))
	require.NotEqual(t, before, dump(t, c, s))

	// A batch that moves with a run is what CommitBatch would have made of it.
	moved := decide(t, opens.Batch, approvals.Approve, "")
	require.NoError(t, s.Commit(ctx, agentrun.Commit{
		Request: "moves", Moves: &agentrun.BatchMove{Before: moved.Before, Batch: moved.Batch, Events: moved.Events},
	}))
	b, err := s.Batch(ctx, opens.Batch.ID)
	require.NoError(t, err)
	require.Equal(t, moved.Batch, b)
	require.Contains(t, due(t, s, state.Resumes), string(b.ID))
	require.Contains(t, due(t, s, state.Cards), string(b.ID))
}

// requests: the same request again changes nothing and is answered alike.
func requests(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	s := openStore(t, c, newClock().Now)
	ctx, id := t.Context(), ids{8}
	run := agentrun.Run{ID: id.run("r"), Status: agentrun.RunQueued, CreatedAt: start0}
	commit := agentrun.Commit{Request: "event", Keep: 25 * time.Hour, Runs: []agentrun.Run{run}}
	require.NoError(t, s.Commit(ctx, commit))
	after := dump(t, c, s)
	require.NoError(t, s.Commit(ctx, commit))
	require.Equal(t, after, dump(t, c, s))
	commit.Request = "another"
	require.ErrorIs(t, s.Commit(ctx, commit), approvals.ErrConflict)

	one, two := openBatch(t, id.batch("1"), run.ID, 1, time.Time{}), openBatch(t, id.batch("2"), run.ID, 1, time.Time{})
	require.NoError(t, s.Commit(ctx, agentrun.Commit{Opens: &one}))
	require.NoError(t, s.Commit(ctx, agentrun.Commit{Opens: &two}))
	click := decide(t, one.Batch, approvals.Approve, "click")
	require.NoError(t, s.CommitBatch(ctx, click))
	for range 2 {
		answered, err := s.Answered(ctx, one.Batch.ID, "click")
		require.NoError(t, err)
		require.True(t, answered)
		require.ErrorIs(t, s.CommitBatch(ctx, click), approvals.ErrAnswered, "it was not the first")
	}
	answered, err := s.Answered(ctx, two.Batch.ID, "click")
	require.NoError(t, err)
	require.False(t, answered, "a request is known for its batch only")
	require.NoError(t, s.CommitBatch(ctx, decide(t, two.Batch, approvals.Deny, "click")))
	b, err := s.Batch(ctx, two.Batch.ID)
	require.NoError(t, err)
	require.Equal(t, approvals.Denied, b.Approvals[0].Status)

	late := decide(t, one.Batch, approvals.Deny, "late")
	require.ErrorIs(t, s.CommitBatch(ctx, late), approvals.ErrConflict)
	answered, err = s.Answered(ctx, one.Batch.ID, "late")
	require.NoError(t, err)
	require.False(t, answered, "what was refused is not remembered as done")
}

// requested: a batch itself remembers its first requests, and further ones have keys.
func requested(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	const inside = 16
	clock := newClock()
	s := openStore(t, c, clock.Now)
	ctx, id := t.Context(), ids{8}
	opens := openBatch(t, id.batch("1"), id.run("r"), 1, time.Time{})
	b := opens.Batch
	require.NoError(t, s.Commit(ctx, agentrun.Commit{Opens: &opens}))
	commit := func(r string, keep time.Duration) error {
		next := b
		next.Version++
		err := s.CommitBatch(ctx, approvals.BatchCommit{Request: approvals.RequestID(r), Keep: keep, Before: b, Batch: next})
		if err == nil {
			b = next
		}
		return err
	}
	alone := func() (n int) {
		for _, key := range keys(t, c, s) {
			if strings.Contains(key, ":request:"+string(b.ID)+":") {
				n++
			}
		}
		return n
	}
	made := map[string]time.Duration{}
	request := func(r string, keep time.Duration, withKeys int) {
		t.Helper()
		require.NoError(t, commit(r, keep))
		made[r] = keep
		require.Equal(t, withKeys, alone(), r)
		for r, keep := range made {
			require.ErrorIs(t, commit(r, keep), approvals.ErrAnswered, "%s was made before", r)
			answered, err := s.Answered(ctx, b.ID, approvals.RequestID(r))
			require.NoError(t, err)
			require.True(t, answered, r)
		}
		answered, err := s.Answered(ctx, b.ID, "none")
		require.NoError(t, err)
		require.False(t, answered)
	}
	request("first", 0, 0)
	request("of many", 25*time.Hour, 1)
	for n := range inside - 1 {
		request(fmt.Sprint("click ", n), 0, 1)
	}
	require.Negative(t, c.PTTL(ctx, s.Prefix()+":{p08}:batch:"+string(b.ID)).Val(), "a repeated request does not end the batch")
	request("one too many", 0, 2)
	request("another", 0, 3)
	left := func(r string) time.Duration {
		all, err := c.Keys(ctx, s.Prefix()+":*").Result()
		require.NoError(t, err)
		i := slices.IndexFunc(all, func(key string) bool { return strings.HasSuffix(key, ":request:"+string(b.ID)+":"+r) })
		require.NotEqual(t, -1, i, r)
		return c.PTTL(ctx, all[i]).Val()
	}
	require.Greater(t, left("another"), 80*24*time.Hour, "for as long as people may answer")
	for _, x := range []struct {
		change func(a *approvals.Approval)
		want   time.Duration
	}{
		{func(a *approvals.Approval) { a.Requirement.Deadline = clock.Now().Add(8 * time.Hour) }, 8 * time.Hour},
		{func(a *approvals.Approval) { a.Requirement.Deadline = clock.Now().Add(time.Minute) }, 10 * time.Minute},
		{func(a *approvals.Approval) { a.Status = approvals.Denied }, 10 * time.Minute},
	} {
		x.change(&b.Approvals[0])
		r := "until " + x.want.String() + string(b.Approvals[0].Status)
		require.NoError(t, commit(r, 0))
		require.InDelta(t, x.want.Seconds(), left(r).Seconds(), 60, r)
	}

	// Of a decision that was made before, only the request is remembered.
	before := dump(t, c, s)
	same := approvals.BatchCommit{Request: "no change", Before: b, Batch: b}
	require.NoError(t, s.CommitBatch(ctx, same))
	require.ErrorIs(t, s.CommitBatch(ctx, same), approvals.ErrAnswered)
	answered, err := s.Answered(ctx, b.ID, "no change")
	require.NoError(t, err)
	require.True(t, answered)
	require.Equal(t, before, dump(t, c, s))
	old := b
	require.NoError(t, commit("a change", 0))
	same.Request, same.Before, same.Batch = "late", old, old
	require.ErrorIs(t, s.CommitBatch(ctx, same), approvals.ErrConflict)
	same.Events = []approvals.Event{approvals.Resolved{Batch: b.ID}}
	require.ErrorIs(t, s.CommitBatch(ctx, same), approvals.ErrInvalid)

	require.ErrorIs(t, s.CommitBatch(ctx, approvals.BatchCommit{Request: "none", Batch: approvals.Batch{ID: id.batch("0")}}), approvals.ErrInvalid)

	// A program that remembers all requests in keys changes another batch meanwhile.
	opens = openBatch(t, id.batch("2"), id.run("r"), 1, time.Time{})
	b, made = opens.Batch, map[string]time.Duration{}
	require.NoError(t, s.Commit(ctx, agentrun.Commit{Opens: &opens}))
	request("before", 0, 0)
	older := s.Prefix() + ":{p08}:"
	require.NoError(t, c.Set(ctx, older+"request:"+string(b.ID)+":older", "ABCDEFGH", time.Minute).Err())
	require.NoError(t, c.HIncrBy(ctx, older+"batch:"+string(b.ID), "v", 1).Err())
	b.Version++
	made["older"] = 0
	require.ErrorIs(t, commit("older", 0), approvals.ErrAnswered)
	request("after", 0, 2)
	request("at the end", 0, 3)
}

// memos: stored by version, and what is drawn is no longer due.
func memos(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	s := openStore(t, c, newClock().Now)
	ctx, id := t.Context(), ids{30}
	group := approvals.NewID("group", 30, "S-1-{x}")
	data, version, err := s.Memo(ctx, group, "people")
	require.NoError(t, err)
	require.Nil(t, data)
	require.Zero(t, version)
	version, err = s.MemoVersion(ctx, group, "people")
	require.NoError(t, err)
	require.Zero(t, version)
	require.NoError(t, s.CommitMemo(ctx, group, "people", []byte("\x00\xff"), 0, 0))
	require.ErrorIs(t, s.CommitMemo(ctx, group, "people", []byte("late"), 0, 0), approvals.ErrConflict)
	require.NoError(t, s.CommitMemo(ctx, group, "people", []byte("two"), 1, 0))
	data, version, err = s.Memo(ctx, group, "people")
	require.NoError(t, err)
	require.Equal(t, "two", string(data))
	require.EqualValues(t, 2, version)
	version, err = s.MemoVersion(ctx, group, "people")
	require.NoError(t, err)
	require.EqualValues(t, 2, version)
	for _, key := range keys(t, c, s) {
		require.NotContains(t, key, ":request:people:", "a memo remembers its own last change")
	}

	// What belongs to no run is not kept for ever.
	list := approvals.NewID("digest", 30, "C1-1")
	for version := range 2 {
		require.NoError(t, s.CommitMemo(ctx, list, "digest", []byte("requests"), int64(version), 0))
		kept := c.PTTL(ctx, s.Prefix()+":{p30}:memo:digest:"+list).Val()
		require.InDelta(t, 90*24*time.Hour, kept, float64(time.Hour))
	}
	require.Negative(t, c.PTTL(ctx, s.Prefix()+":{p30}:memo:people:"+group).Val())

	opens := openBatch(t, id.batch("b"), id.run("r"), 1, time.Time{})
	require.NoError(t, s.Commit(ctx, agentrun.Commit{Opens: &opens}))
	batch := string(opens.Batch.ID)
	require.Contains(t, due(t, s, state.Cards), batch)
	require.NoError(t, s.CommitBatch(ctx, decide(t, opens.Batch, approvals.Approve, "")))
	require.NoError(t, s.CommitMemo(ctx, batch, "cards", []byte("v1"), 0, 1))
	require.Contains(t, due(t, s, state.Cards), batch, "the batch moved on while its card was drawn")
	require.ErrorIs(t, s.CommitMemo(ctx, batch, "cards", []byte("v1"), 0, 2), approvals.ErrConflict)
	require.Contains(t, due(t, s, state.Cards), batch)
	require.NoError(t, s.CommitMemo(ctx, batch, "cards", []byte("v2"), 1, 2))
	require.Empty(t, due(t, s, state.Cards))
	require.Contains(t, due(t, s, state.Resumes), batch)

	// What was drawn is drawn again, if the memo is still as it was.
	require.ErrorIs(t, s.Redraw(ctx, batch, "cards", "cards", []byte("v3"), 1), approvals.ErrConflict)
	require.Empty(t, due(t, s, state.Cards))
	require.NoError(t, s.Redraw(ctx, batch, "cards", "cards", []byte("v3"), 2))
	require.Contains(t, due(t, s, state.Cards), batch)
	require.Error(t, s.Redraw(ctx, batch, "cards", "poster", nil, 3), "no kind of work")
	require.NoError(t, s.CommitMemo(ctx, batch, "cards", []byte("v4"), 3, 2))
	require.Empty(t, due(t, s, state.Cards))

	// Work that needs no memo leaves none.
	require.NoError(t, s.CommitMemo(ctx, batch, "homes", nil, 0, 1))
	require.Contains(t, due(t, s, state.Homes), batch, "the batch has moved on")
	require.NoError(t, s.CommitMemo(ctx, batch, "homes", nil, 0, 2))
	require.Empty(t, due(t, s, state.Homes))
	_, version, err = s.Memo(ctx, batch, "homes")
	require.NoError(t, err)
	require.Zero(t, version)
	require.NoError(t, s.CommitMemo(ctx, batch, "homes", []byte("x"), 0, 0))
	require.ErrorIs(t, s.CommitMemo(ctx, batch, "homes", nil, 0, 2), approvals.ErrConflict, "there is one now")
	require.ErrorIs(t, s.CommitMemo(ctx, batch, "a:b", nil, 0, 0), approvals.ErrInvalid)
	require.Error(t, s.CommitMemo(ctx, batch, "poster", nil, 0, 1), "no kind of work")
}

// parts: commits that are made together are made all or none, and a conflict says which
// of them it is about.
func parts(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	s := openStore(t, c, newClock().Now)
	ctx, id := t.Context(), ids{63}
	counter := agentrun.MemoChange{MemoRef: agentrun.MemoRef{ID: approvals.NewID("agent", 63, "a"), Surface: "counter"}, Data: []byte("1")}
	part := func(name string) agentrun.Commit {
		thread := agentrun.Thread{ID: id.thread(name)}
		return agentrun.Commit{
			Thread: &thread, Runs: []agentrun.Run{{ID: id.run(name), Thread: thread.ID, Status: agentrun.RunCompleted}},
			Memos: []agentrun.MemoChange{{MemoRef: agentrun.MemoRef{ID: string(id.run(name)), Surface: "record"}, Data: []byte("r")}},
		}
	}
	require.NoError(t, s.Commit(ctx, agentrun.Commit{Memos: []agentrun.MemoChange{counter}, With: []agentrun.Commit{part("a"), part("b")}}))
	for _, name := range []string{"a", "b"} {
		run, err := s.Run(ctx, id.run(name))
		require.NoError(t, err)
		require.EqualValues(t, 1, run.Version)
		data, version, err := s.Memo(ctx, string(run.ID), "record")
		require.NoError(t, err)
		require.EqualValues(t, 1, version)
		require.Equal(t, "r", string(data))
	}
	before := dump(t, c, s)
	old := counter
	counter.Version, counter.Data = 1, []byte("2")
	for n := range 3 { // the one that is there already is the first, the second, the last
		with := []agentrun.Commit{part("c"), part("d")}
		err := s.Commit(ctx, agentrun.Commit{Memos: []agentrun.MemoChange{counter}, With: slices.Insert(with, n, part("b"))})
		require.ErrorIs(t, err, approvals.ErrConflict)
		var of *agentrun.PartError
		require.ErrorAs(t, err, &of)
		require.Equal(t, n, of.Part)
		require.Equal(t, before, dump(t, c, s))
	}
	err := s.Commit(ctx, agentrun.Commit{Memos: []agentrun.MemoChange{old}, With: []agentrun.Commit{part("c")}})
	require.ErrorIs(t, err, approvals.ErrConflict)
	require.NotErrorAs(t, err, new(*agentrun.PartError), "it is about what they have in common")
	require.Equal(t, before, dump(t, c, s))
	require.Error(t, s.Commit(ctx, agentrun.Commit{Memos: []agentrun.MemoChange{counter}, With: []agentrun.Commit{part("c"), part("c")}}), "both would be judged alike, and one be lost")
	require.NoError(t, s.Commit(ctx, agentrun.Commit{Memos: []agentrun.MemoChange{counter}, With: []agentrun.Commit{part("c")}}))
}

// memoParts: the parts of a memo change with it, and those that are not named stay.
func memoParts(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	s := openStore(t, c, newClock().Now)
	ctx, ref := t.Context(), agentrun.MemoRef{ID: approvals.NewID("agent", 5, "a"), Surface: "counter"}
	stands := func(data string, version int64, parts map[string][]byte) {
		t.Helper()
		gotData, gotParts, gotVersion, err := s.MemoParts(ctx, ref.ID, ref.Surface)
		require.NoError(t, err)
		require.Equal(t, data, string(gotData))
		require.Equal(t, version, gotVersion)
		require.Equal(t, parts, gotParts)
	}
	stands("", 0, nil)
	many := map[string]json.RawMessage{}
	var names []string
	for n := range 250 {
		names = append(names, fmt.Sprint("old", n))
		many[names[n]] = []byte("x")
	}
	require.NoError(t, s.ChangeMemo(ctx, agentrun.MemoChange{MemoRef: ref, Data: []byte("1"), Set: many}))
	next := agentrun.MemoChange{MemoRef: ref, Version: 1, Data: []byte("2"), Set: map[string]json.RawMessage{"b": []byte("B")}, Drop: names}
	require.NoError(t, s.Commit(ctx, agentrun.Commit{Memos: []agentrun.MemoChange{next}}))
	stands("2", 2, map[string][]byte{"b": []byte("B")})
	require.ErrorIs(t, s.ChangeMemo(ctx, next), approvals.ErrConflict)
	require.NoError(t, s.CommitMemo(ctx, ref.ID, ref.Surface, []byte("3"), 2, 0))
	stands("3", 3, map[string][]byte{"b": []byte("B")})
}
