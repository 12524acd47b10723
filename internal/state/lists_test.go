package state_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// The world of the lists is small, so that batches share them.
var (
	listUsers    = []approvals.UserID{"ann", "bo", "cy", "}{p03}:x"}
	listGroups   = []approvals.GroupID{"sre", "C-war", ""}
	listChannels = []string{"C-ops", "C-war", ""}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func randomRequirement(r *rand.Rand) approvals.Requirement {
	quorum := func(need int) approvals.Quorum {
		return approvals.Quorum{Name: "q", Need: need, From: approvals.From{
			Users: []approvals.UserID{pick(r, listUsers), pick(r, listUsers)}, Groups: []approvals.GroupID{pick(r, listGroups)},
		}}
	}
	out := approvals.Requirement{
		Quorums: []approvals.Quorum{quorum(1 + r.IntN(2))}, Deny: 1 + r.IntN(2), Deadline: start0.Add(time.Hour),
		EditorMaySign: true,
	}
	if r.IntN(2) == 0 {
		out.Vetoes = []approvals.Quorum{quorum(1)}
	}
	return out
}

// randomBatch is a batch of up to three calls that nobody has stored.
func randomBatch(t *testing.T, r *rand.Rand, n int) agentrun.OpenBatch {
	t.Helper()
	id := ids{n % approvals.Partitions}
	var deferrals []approvals.Deferral
	for i := range 1 + r.IntN(3) {
		deferrals = append(deferrals, approvals.Deferral{
			Call: approvals.ToolCall{ID: approvals.ToolCallID(fmt.Sprint("c", i)), Name: "delete_file"},
			Ask:  approvals.Ask{Requirement: randomRequirement(r)},
		})
	}
	b, events, err := approvals.Open(approvals.Batch{
		ID: id.batch(fmt.Sprintf("b%04d", n)), Run: id.run("r"), Channel: pick(r, listChannels), Requester: pick(r, listUsers),
		OpenedAt: start0.Add(time.Duration(r.IntN(5)) * time.Minute),
	}, deferrals, nil)
	require.NoError(t, err)
	return agentrun.OpenBatch{Batch: b, Events: events}
}

// randomCommand is one that may well be refused.
func randomCommand(r *rand.Rand, b approvals.Batch, at time.Time) approvals.Command {
	a := pick(r, b.Approvals)
	by := approvals.Principal{User: pick(r, listUsers), Groups: []approvals.GroupID{"sre"}, GroupsAt: at}
	switch r.IntN(20) {
	case 0:
		return approvals.Withdraw{By: "bo", At: at}
	case 1:
		return approvals.Expire{At: at}
	case 2, 3, 4:
		return approvals.Retract{Call: a.Call.ID, By: by, At: at}
	case 5, 6:
		return approvals.Amend{
			Call: a.Call.ID, From: a.Call.Digest, Args: fmt.Appendf(nil, `{"n":%d}`, r.IntN(1000)), By: by, At: at,
			Ruling: approvals.Ask{Requirement: randomRequirement(r)},
		}
	default:
		return approvals.Decide{Decision: approvals.Decision{
			Call: a.Call.ID, By: by, Verdict: pick(r, []approvals.Verdict{approvals.Approve, approvals.Deny}), Digest: a.Call.Digest, At: at,
		}}
	}
}

// lists: after random commands the lists are what a look at all batches gives,
// member by member, and nothing else is in the store.
func lists(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	s := openStore(t, c, newClock().Now)
	all := make(map[approvals.BatchID]approvals.Batch)
	moved := 0
	for step := range 400 {
		if len(all) < 30 && r.IntN(4) == 0 {
			opens := randomBatch(t, r, len(all))
			require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &opens}))
			all[opens.Batch.ID] = opens.Batch
			continue
		}
		if len(all) == 0 {
			continue
		}
		b := all[pick(r, slices.Sorted(maps.Keys(all)))]
		at := start0.Add(time.Duration(step) * 10 * time.Second)
		next, events, err := b.Apply(randomCommand(r, b, at))
		if err != nil || len(events) == 0 {
			continue
		}
		moved++
		require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Before: b, Batch: next, Events: events}))
		all[b.ID] = next
		if moved%10 == 0 {
			requireLists(t, c, s, all)
		}
	}
	require.Greater(t, moved, 30)
	requireLists(t, c, s, all)
	for id, b := range all { // all of them end
		next, events, err := b.Apply(approvals.Withdraw{By: "bo", At: start0.Add(2 * time.Hour)})
		if err != nil || len(events) == 0 {
			continue
		}
		require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Before: b, Batch: next, Events: events}))
		all[id] = next
	}
	requireLists(t, c, s, all)
	for _, k := range keys(t, c, s) {
		require.NotContains(t, k, "}:list", "a settled batch is on no list")
	}
}

func requireLists(t *testing.T, c redis.UniversalClient, s *state.Store, all map[approvals.BatchID]approvals.Batch) {
	t.Helper()
	want, got := make(map[string][]string), make(map[string][]string)
	type listed struct {
		partition int
		list      approvals.ListKey
	}
	lists := make(map[string]listed)
	for id, b := range all {
		n, err := approvals.Partition(string(id))
		require.NoError(t, err)
		base := fmt.Sprintf("%s:{p%02d}:", s.Prefix(), n)
		for _, k := range b.Concerns() {
			list := fmt.Sprintf("%02d %s", n, k)
			want[list] = append(want[list], string(id))
			lists[list] = listed{n, k}
		}
		for u, at := range b.Deciders() {
			want[base+"decided:"+string(u)] = append(want[base+"decided:"+string(u)], fmt.Sprint(id, at.UnixMicro()+1))
		}
	}
	members := 0
	for _, k := range keys(t, c, s) {
		if _, is := cutKey(k, "list"); is {
			members += int(c.ZCard(t.Context(), k).Val())
		}
		if _, is := cutKey(k, "decided:"); !is {
			continue
		}
		for _, z := range c.ZRangeWithScores(t.Context(), k, 0, -1).Val() {
			member, _ := z.Member.(string)
			got[k] = append(got[k], fmt.Sprint(strings.TrimPrefix(member, "="), int64(z.Score)))
		}
	}
	for name, l := range lists {
		ids, err := s.Listed(t.Context(), l.partition, l.list)
		require.NoError(t, err)
		got[name] = ids
		members -= len(ids)
	}
	require.Zero(t, members, "nothing else is listed")
	for _, lists := range []map[string][]string{want, got} {
		for _, l := range lists {
			slices.Sort(l)
		}
	}
	require.Equal(t, want, got)
	// And as the reader gives it, a page at a time.
	for _, keys := range [][]approvals.ListKey{
		{approvals.Everything},
		{approvals.WaitsForUser("ann"), approvals.WaitsForGroup("sre")},
		{approvals.AskedBy("bo")},
		{approvals.ShownIn("C-war"), approvals.WaitsForGroup("C-war"), approvals.ShownIn("C-war")},
	} {
		var on []approvals.Batch
		for _, b := range all {
			if slices.ContainsFunc(b.Concerns(), func(k approvals.ListKey) bool { return slices.Contains(keys, k) }) {
				on = append(on, b)
			}
		}
		slices.SortFunc(on, func(a, b approvals.Batch) int {
			if d := a.OpenedAt.Compare(b.OpenedAt); d != 0 {
				return d
			}
			return strings.Compare(string(a.ID), string(b.ID))
		})
		require.Equal(t, idsOf(on), readAll(t, s, keys, 4))
		lengths, err := s.Lengths(t.Context(), keys)
		require.NoError(t, err)
		for i, k := range keys {
			n := 0
			for _, b := range all {
				if slices.Contains(b.Concerns(), k) {
					n++
				}
			}
			require.Equal(t, n, lengths[i], k)
		}
	}
}

func cutKey(k, kind string) (string, bool) {
	_, rest, _ := strings.Cut(k, "}:")
	return strings.CutPrefix(rest, kind)
}

func idsOf(batches []approvals.Batch) []approvals.BatchID {
	var out []approvals.BatchID
	for _, b := range batches {
		out = append(out, b.ID)
	}
	return out
}

// readAll reads the lists to their end.
func readAll(t *testing.T, s *state.Store, keys []approvals.ListKey, limit int) []approvals.BatchID {
	t.Helper()
	var out []approvals.BatchID
	var at approvals.Cursor
	for {
		page, next, err := s.Inbox(t.Context(), keys, at, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), limit)
		out = append(out, idsOf(page)...)
		if next == "" {
			return out
		}
		at = next
	}
}

// pages: what a page costs does not depend on how many batches are open, and
// none is met twice or missed, though many were opened at the same time.
func pages(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	trips := &statetest.Trips{Of: func(cmd redis.Cmder) bool {
		return slices.Contains([]string{"hmget", "zrange", "zrevrange", "zrangebylex"}, cmd.Name())
	}}
	hooked := harmed(t, c, func([]byte) statetest.Fault { return statetest.None })
	hooked.AddHook(trips)
	quiet := openStore(t, c, newClock().Now)
	s := openStoreAt(t, hooked, newClock().Now, quiet.Prefix())
	mine := []approvals.ListKey{approvals.WaitsForUser("ann"), approvals.WaitsForGroup("sre")}
	costs := make(map[int]int)
	n := 0
	for _, size := range []int{0, 10, 300} {
		for ; n < size; n++ {
			id := ids{n % 7}
			opens := openBatch(t, id.batch(fmt.Sprintf("b%04d", n)), id.run("r"), 1, time.Time{})
			require.NoError(t, quiet.Commit(t.Context(), agentrun.Commit{Opens: &opens}))
		}
		trips.Taken()
		page, next, err := s.Inbox(t.Context(), mine, "", 5)
		require.NoError(t, err)
		costs[size] = len(slices.Concat(trips.Taken()...))
		require.Len(t, page, min(size, 5))
		require.Equal(t, size > 5, next != "")
		all := readAll(t, s, mine, 7)
		require.Len(t, all, size)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(all))), size)
		require.Equal(t, all, readAll(t, s, mine, 200), "a partition may have more of a page than it is asked for at first")
	}
	atOnce := openStore(t, c, newClock().Now) // in several partitions at the same time
	var same []approvals.BatchID
	for n := range 12 {
		for range 3 {
			id := ids{n}
			opens := openBatch(t, id.batch(uuid.NewString()), id.run("r"), 1, time.Time{})
			same = append(same, opens.Batch.ID)
			require.NoError(t, atOnce.Commit(t.Context(), agentrun.Commit{Opens: &opens}))
		}
	}
	slices.Sort(same)
	for _, limit := range []int{1, 2, 3, 5, 7, 50} {
		require.Equal(t, same, readAll(t, atOnce, mine, limit), "by time, and then by id, in pages of %d", limit)
	}
	require.Equal(t, map[int]int{0: 128, 10: 133, 300: 133}, costs, "64 partitions, two lists, and the batches of the page")

	page, next, err := s.Inbox(t.Context(), mine, "", 0)
	require.NoError(t, err)
	require.Empty(t, page)
	require.Empty(t, next)
	page, _, err = s.Inbox(t.Context(), nil, "", 5)
	require.NoError(t, err)
	require.Empty(t, page, "no list is not every list")
	for _, madeUp := range []approvals.Cursor{"zzz", "17", "0000000000000017|", "17|batch-1"} {
		_, _, err = s.Inbox(t.Context(), mine, madeUp, 5)
		require.ErrorIs(t, err, approvals.ErrInvalid, "an empty page would look like the last one")
	}

	// One that nobody can read hides nothing else.
	first, cursor, err := s.Inbox(t.Context(), mine, "", 1)
	require.NoError(t, err)
	p, err := approvals.Partition(string(first[0].ID))
	require.NoError(t, err)
	key := fmt.Sprintf("%s:{p%02d}:batch:%s", s.Prefix(), p, first[0].ID)
	require.NoError(t, c.HSet(t.Context(), key, "d", `{"v":99}`).Err())
	page, again, err := s.Inbox(t.Context(), mine, "", 1)
	require.NoError(t, err)
	require.Empty(t, page)
	require.Equal(t, cursor, again)
	require.Len(t, readAll(t, s, mine, 50), 299)
}

// decided: the last first, trimmed in each partition.
func decided(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	s := openStore(t, c, newClock().Now)
	const each, kept, more = 75, 50, 10
	var want []approvals.BatchID
	for n := range 2 * each {
		id := ids{n / each}
		opens := openBatch(t, id.batch(fmt.Sprintf("b%04d", n)), id.run("r"), 2, time.Time{})
		require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &opens}))
		call := opens.Batch.Approvals[0].Call
		next, events, err := opens.Batch.Apply(approvals.Decide{Decision: approvals.Decision{
			Call: call.ID, By: approvals.Principal{User: "ann"}, Verdict: approvals.Approve, Digest: call.Digest,
			At: start0.Add(time.Duration(n) * time.Second),
		}})
		require.NoError(t, err)
		require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Before: opens.Batch, Batch: next, Events: events}))
		want = append(want, next.ID)
	}
	slices.Reverse(want)
	got, err := s.Decided(t.Context(), "ann", 5)
	require.NoError(t, err)
	require.Equal(t, want[:5], idsOf(got))
	got, err = s.Decided(t.Context(), "ann", 1000)
	require.NoError(t, err)
	ofOne := slices.IndexFunc(got, func(b approvals.Batch) bool { return slices.Index(want, b.ID) >= each })
	for n, got := range [][]approvals.Batch{got[:ofOne], got[ofOne:]} {
		require.GreaterOrEqual(t, len(got), kept)
		require.LessOrEqual(t, len(got), kept+more, "the oldest are forgotten")
		require.Equal(t, want[n*each:][:len(got)], idsOf(got))
	}
	got, err = s.Decided(t.Context(), "bo", 5)
	require.NoError(t, err)
	require.Empty(t, got)
	got, err = s.Decided(t.Context(), "ann", 0)
	require.NoError(t, err)
	require.Empty(t, got)
}

// What cannot be read is left out of a list, or listed by its name: what else is on it
// is read.
func TestWhatCannotBeReadIsInTheWayOfNothingElse(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), statetest.Miniredis(t)
	s := openStore(t, c, time.Now)
	damage := func(key, field string) { require.NoError(t, c.HSet(ctx, s.Prefix()+key, field, "x").Err()) }

	openMany(t, s, 3, "a", false)
	damage(":{p00}:batch:"+string(ids{0}.batch("a")), "v")
	damage(":{p01}:batch:"+string(ids{1}.batch("a")), "d")
	page, _, err := s.Inbox(ctx, []approvals.ListKey{approvals.Everything}, "", 10)
	require.NoError(t, err)
	require.Len(t, page, 1)
	require.Equal(t, ids{2}.batch("a"), page[0].ID)

	for n := range 4 {
		commitRun(t, s, agentrun.Run{ID: ids{n}.run("r"), Status: agentrun.RunParked})
	}
	damage(":{p00}:run:"+string(ids{0}.run("r")), "d")
	damage(":{p01}:run:"+string(ids{1}.run("r")), "v")
	require.NoError(t, c.Del(ctx, s.Prefix()+":{p02}:run:"+string(ids{2}.run("r"))).Err())
	runs, unreadable, err := s.ParkedRuns(ctx, 10)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.Equal(t, ids{3}.run("r"), runs[0].ID)
	require.Len(t, unreadable, 2)
	for n, is := range unreadable {
		require.Equal(t, string(ids{n}.run("r")), is.ID)
		require.Equal(t, state.Unreadable, is.Reason)
		require.WithinDuration(t, time.Now(), is.Since, time.Hour)
	}

	d, card := state.NewDue(s, state.DueOptions{}), string(ids{2}.batch("a"))
	damage(":{p02}:parked", "cards|"+card)
	requireParked(t, d, state.ParkedItem{Kind: state.Cards, ID: card, Reason: "unreadable"})
	require.NoError(t, d.Unpark(ctx, state.Cards, card))
	requireParked(t, d)
}
