package state

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// However much is awaited, one in four of what is begun is other work that is due.
func TestAwaitedWorkStarvesNothing(t *testing.T) {
	d := &Due{store: &Store{conn: &conn{now: time.Now}}, o: DueOptions{Workers: 16}}
	l := newLoop(d, Task{Kind: Cards, Limit: time.Minute}, &lane{})
	named := func(kind string, n int) (all []entry) {
		for i := range n {
			all = append(all, entry{id: kind + strconv.Itoa(i), at: 1})
		}
		return all
	}
	l.told(named("awaited", 9))
	l.queue = named("other", 4)
	var order []string
	for l.finds(t.Context()) {
		for _, r := range l.group() {
			order = append(order, strings.TrimRight(r.id, "0123456789"))
		}
	}
	row := []string{"awaited", "awaited", "awaited", "other"}
	require.Equal(t, slices.Concat(row, row, row, []string{"other"}), order)
}

// Another process may have done what this one was told of and had no worker for.
func TestAwaitedWorkThatIsNotInTheIndexIsNotBegun(t *testing.T) {
	now := time.Now()
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	s, err := Open(t.Context(), Options{Client: client, Prefix: "awaited", Now: func() time.Time { return now }})
	require.NoError(t, err)
	l := newLoop(NewDue(s, DueOptions{}), Task{Kind: Cards, Limit: time.Minute}, &lane{})
	due, at := string(s.partition(0).due(Cards)), scoreOf(now)
	l.told([]entry{{0, "done", at}, {0, "moved", at}, {0, "there", at}})
	for id, score := range map[string]score{"moved": at + 1, "there": at} {
		require.NoError(t, client.ZAdd(t.Context(), due, redis.Z{Member: id, Score: float64(score)}).Err())
	}
	now = now.Add(2 * awaitedKnown)
	require.True(t, l.finds(t.Context()))
	r, ok := l.next()
	require.True(t, ok)
	require.Equal(t, result{entry: entry{0, "there", at}, awaited: true}, r)
	l.inflight["there"] = at
	require.True(t, l.finds(t.Context()), "it looks where something was moved")
	r, _ = l.next()
	require.Equal(t, result{entry: entry{0, "moved", at + 1}}, r)
	require.False(t, l.finds(t.Context()))
}

// A card that is put off for an hour, because Slack is away, is drawn at once when a
// deadline changes its request, although its entry was awaited.
func TestAwaitedWorkThatWasPutOffIsDueWhenOtherWorkMovesIt(t *testing.T) {
	now := time.Now()
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	s, err := Open(t.Context(), Options{Client: client, Prefix: "awaited", Now: func() time.Time { return now }})
	require.NoError(t, err)
	l := newLoop(NewDue(s, DueOptions{}), Task{Kind: Cards, Limit: time.Minute}, &lane{})
	due, at := string(s.partition(0).due(Cards)), scoreOf(now)
	l.became(result{entry: entry{0, "card", at}, awaited: true, verdict: verdict{kept: true, asked: true, next: scoreOf(now.Add(time.Hour))}})
	require.False(t, l.finds(t.Context()))
	require.NoError(t, client.ZAdd(t.Context(), due, redis.Z{Member: "card", Score: float64(at)}).Err())
	var committed places
	committed[0] = true
	l.heed(told{committed: committed})
	require.True(t, l.finds(t.Context()))
	r, ok := l.next()
	require.True(t, ok)
	require.Equal(t, entry{0, "card", at}, r.entry)
}

// A look may find an entry before its wake-up arrives.
func TestAwaitedWorkThatWasJustDoneIsNotBegunAgain(t *testing.T) {
	now := time.Now()
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	s, err := Open(t.Context(), Options{Client: client, Prefix: "awaited", Now: func() time.Time { return now }})
	require.NoError(t, err)
	l := newLoop(NewDue(s, DueOptions{}), Task{Kind: Cards, Limit: time.Minute}, &lane{})
	done := entry{0, "done", scoreOf(now)}
	l.busy, l.inflight[done.id] = 1, done.at
	l.finished([]result{{entry: done, verdict: verdict{kept: true}}})
	l.told([]entry{done})
	require.False(t, l.finds(t.Context()))

	again := entry{0, "done", done.at + 2}
	require.NoError(t, client.ZAdd(t.Context(), string(s.partition(0).due(Cards)), redis.Z{Member: again.id, Score: float64(again.at)}).Err())
	now = now.Add(time.Millisecond)
	l.told([]entry{again})
	require.True(t, l.finds(t.Context()), "it has more to do")
	r, ok := l.next()
	require.True(t, ok)
	require.Equal(t, result{entry: again, awaited: true}, r)
}

// A wake-up of a version that does not know of entries, or of one that says more about
// them, has its partition looked at.
func TestAWakeUpNamesAPartitionAtLeast(t *testing.T) {
	card, run, other := entry{7, "batch_7_a", 1234567}, entry{7, "run_7_a", 7654321}, entry{7, "run_7_b", 1}
	wakes := []wake{{Cards, []entry{card}, 0}, {Deadlines, nil, 99}, {Runs, []entry{run}, 77}, {Replies, []entry{run, other}, 0}}
	looked := entry{partition: 7}
	later := map[Kind]score{Deadlines: 99, Runs: 77}
	for message, want := range map[string]news{
		wakeMessage(7, wakes, true):  {7, map[Kind]entry{Cards: card, Runs: run, Replies: looked}, later},
		wakeMessage(7, wakes, false): {7, map[Kind]entry{Cards: looked, Runs: looked, Replies: looked}, later},
		"7\ncards":                   {7, map[Kind]entry{Cards: looked}, map[Kind]score{}},
		"7\ncards soon\nnews x y":    {7, map[Kind]entry{Cards: looked, "news": looked}, map[Kind]score{}},
		"7\n@cards soon":             {7, map[Kind]entry{}, map[Kind]score{}},
		probeMessage(7):              {7, map[Kind]entry{}, map[Kind]score{}},
	} {
		w, ok := parseWakes(message)
		require.True(t, ok, message)
		require.Equal(t, want, w, message)
	}
	for _, message := range []string{"", "x", "64", "-1\ncards 1 a"} {
		_, ok := parseWakes(message)
		require.False(t, ok, message)
	}
}

// A replica of an older version hears of a kind what it did before, and nothing of what
// it does not know.
func TestAWakeUpIsReadByOlderVersions(t *testing.T) {
	older := func(message string) map[Kind]entry { // as they did
		number, lines, _ := strings.Cut(message, "\n")
		n, err := strconv.Atoi(number)
		require.NoError(t, err)
		entries := map[Kind]entry{}
		for line := range strings.SplitSeq(lines, "\n") {
			kind, named, _ := strings.Cut(line, " ")
			e := entry{partition: n}
			at, id, _ := strings.Cut(named, " ")
			if when, err := strconv.ParseInt(at, 10, 64); err == nil && id != "" {
				e.id, e.at = id, score(when)
			}
			if slices.Contains(Kinds(), Kind(kind)) {
				entries[Kind(kind)] = e
			}
		}
		return entries
	}
	card := entry{7, "batch_7_a", 1234567}
	require.Equal(t, map[Kind]entry{Cards: card}, older(wakeMessage(7, []wake{{Cards, []entry{card}, 5}, {Runs, nil, 9}}, true)))
	require.Empty(t, older(probeMessage(7)))
}
