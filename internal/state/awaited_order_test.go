package state

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// fresh are entries that this process has just committed.
func fresh(all ...entry) (out []seen) {
	for _, e := range all {
		out = append(out, seen{entry: e})
	}
	return out
}

// loopOn returns a loop that works on cards by this clock, and a client of its Redis.
func loopOn(t *testing.T, now *time.Time) (*loop, *redis.Client) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	s, err := Open(t.Context(), Options{Client: client, Prefix: "awaited", Now: func() time.Time { return *now }})
	require.NoError(t, err)
	return newLoop(NewDue(s, DueOptions{}), Task{Kind: Cards, Limit: time.Minute}, &lane{}), client
}

// makeDue makes a card due.
func makeDue(t *testing.T, client redis.Cmdable, s *Store, e entry) {
	t.Helper()
	due := s.partition(e.partition).due(Cards)
	require.NoError(t, client.ZAdd(t.Context(), string(due.key), redis.Z{Member: due.member(e.id), Score: float64(due.stored(e.at))}).Err())
}

// However much is awaited, one in four of what is begun is other work that is due.
func TestAwaitedWorkStarvesNothing(t *testing.T) {
	d := NewDue(&Store{conn: &conn{now: time.Now}}, DueOptions{})
	l := newLoop(d, Task{Kind: Cards, Limit: time.Minute}, &lane{})
	named := func(kind string, n int) (all []entry) {
		for i := range n {
			all = append(all, entry{id: kind + strconv.Itoa(i), at: 1})
		}
		return all
	}
	l.told(fresh(named("awaited", 9)...))
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
	l, client := loopOn(t, &now)
	s := l.d.store
	at := scoreOf(now)
	l.told(fresh(entry{0, "done", at}, entry{0, "moved", at}, entry{0, "there", at}))
	for id, score := range map[string]score{"moved": at + scoreSteps, "there": at} {
		makeDue(t, client, s, entry{0, id, score})
	}
	s.works.hears("another", now)
	now = now.Add(2 * awaitedKnown)
	require.True(t, l.finds(t.Context()))
	r, ok := l.next()
	require.True(t, ok)
	require.Equal(t, result{entry: entry{0, "there", at}, awaited: true}, r)
	l.inflight["there"] = at
	require.True(t, l.finds(t.Context()), "it looks where something was moved")
	r, _ = l.next()
	require.Equal(t, result{entry: entry{0, "moved", at + scoreSteps}}, r)
	require.False(t, l.finds(t.Context()))
}

// What nobody else can have done is not looked up: Redis is asked for nothing while this
// process works alone.
func TestAProcessThatWorksAloneLooksNothingUp(t *testing.T) {
	now := time.Now()
	l, client := loopOn(t, &now)
	asked := 0
	client.AddHook(counting{&asked})
	s := l.d.store
	hear := func(message string) {
		w, ok := parseWakes(message)
		require.True(t, ok)
		(&sweeper{d: l.d, schedule: newSchedule(time.Minute)}).pass(w)
	}
	begins := func(id string) (looked bool) {
		at, before := scoreOf(now), asked
		makeDue(t, client, s, entry{0, id, at})
		l.told(fresh(entry{0, id, at}))
		now = now.Add(time.Second)
		require.True(t, l.finds(t.Context()))
		r, _ := l.next()
		require.Equal(t, result{entry: entry{0, id, at}, awaited: true}, r)
		return asked > before
	}
	require.False(t, begins("first"))
	hear(probeMessage(0, s.works.id))
	hear(wakeMessage(0, []wake{{kind: Runs, entries: []entry{{0, "run", 1}}}}, true, ""))
	require.False(t, begins("second"), "its own probe, and the change of a process that does not work")
	for i, message := range []string{probeMessage(0, "another"), "0", wakeMessage(0, []wake{{kind: Runs, entries: []entry{{0, "run", 1}}}}, true, "another")} {
		now = now.Add(heardFor)
		require.False(t, begins("alone"+strconv.Itoa(i)), "nobody was heard for a while")
		hear(message)
		require.True(t, begins("with"+strconv.Itoa(i)), "%q", message)
	}
}

// counting counts pipelines.
type counting struct{ n *int }

func (counting) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (counting) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (c counting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		*c.n++
		return next(ctx, cmds)
	}
}

// Nobody waits for what is done in bulk, whoever began it.
func TestBulkWorkIsNotAwaited(t *testing.T) {
	require.True(t, Awaited(t.Context()))
	require.False(t, Awaited(Unawaited(t.Context())))
	require.True(t, Handled(Unawaited(t.Context())))
}

// A loop holds a thousand awaited entries at most, in the order in which it was told, and
// whatever is removed from among them leaves the others as they were.
func TestAwaitedEntriesKeepTheirOrder(t *testing.T) {
	var a awaited
	var want []string
	chance := rand.New(rand.NewPCG(1, 2))
	for n := range 20 * mostAwaited {
		if len(want) > 0 && chance.IntN(2*mostAwaited) < len(want) {
			i := min(chance.IntN(len(want)), chance.IntN(len(want)))
			a.remove(want[i])
			want = slices.Delete(want, i, i+1)
		}
		id := strconv.Itoa(n)
		require.Equal(t, len(want) < mostAwaited, a.put(seen{entry: entry{id: id, at: 1}}))
		if len(want) < mostAwaited {
			want = append(want, id)
		}
	}
	a.remove("nobody")
	moved := entry{id: want[3], at: 9}
	require.True(t, a.put(seen{entry: moved}))
	require.Equal(t, moved, a.find(moved.id).entry)
	require.LessOrEqual(t, len(a.entries), 2*mostAwaited)
	var got []string
	for e := range a.all {
		got = append(got, e.id)
		require.Equal(t, e, *a.find(e.id))
	}
	require.Equal(t, want, got)
}

// A pipeline to several servers says only what failed first, and that may be that there is
// no such entry. What another server did not say is looked for.
func TestAwaitedWorkOfWhichNothingIsKnownIsLookedFor(t *testing.T) {
	now := time.Now()
	l, client := loopOn(t, &now)
	s := l.d.store
	at := scoreOf(now)
	l.told(fresh(entry{0, "done", at}, entry{1, "there", at}))
	now = now.Add(time.Minute)
	s.works.hears("another", now)
	makeDue(t, client, s, entry{1, "there", at})
	client.AddHook(unanswering{l.due(1).member("there")})
	require.NoError(t, l.lookUp(t.Context(), now))
	require.Empty(t, l.awaited.entries)
	require.False(t, l.dirty[0])
	require.True(t, l.dirty[1])
}

// unanswering leaves questions about a member in a pipeline without an answer.
type unanswering struct{ member string }

func (unanswering) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (unanswering) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (u unanswering) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if slices.Contains(cmd.Args(), any(u.member)) {
				cmd.(*redis.FloatCmd).SetVal(0)
				cmd.SetErr(context.DeadlineExceeded)
			}
		}
		return err
	}
}

// What another process has committed is left to that one for a moment, and begun after
// that only if it is still there.
func TestWorkIsLeftToTheProcessThatCommittedIt(t *testing.T) {
	now := time.Now()
	l, client := loopOn(t, &now)
	s := l.d.store
	at := scoreOf(now)
	add := func(n int, id string, at score) {
		makeDue(t, client, s, entry{n, id, at})
	}
	pass := func(from string, n int, entries ...entry) {
		w, ok := parseWakes(wakeMessage(n, []wake{{kind: Cards, entries: entries}}, true, from))
		require.True(t, ok)
		(&sweeper{d: l.d, loops: []*loop{l}, schedule: newSchedule(time.Minute)}).pass(w)
		l.heed(l.hints.take())
	}
	add(1, "left", at)
	add(2, "first", at)
	add(3, "ours", at)
	pass("another", 0, entry{0, "done", at})
	pass("another", 1, entry{1, "left", at})
	pass("another", 2, entry{2, "first", at}, entry{2, "second", at})
	require.False(t, l.finds(t.Context()))
	pass(s.works.id, 3, entry{3, "ours", at})
	require.True(t, l.finds(t.Context()), "this process has committed it")
	r, _ := l.next()
	require.Equal(t, result{entry: entry{3, "ours", at}, awaited: true}, r)
	require.False(t, l.finds(t.Context()))

	now = now.Add(headStart - time.Millisecond)
	pass("another", 1, entry{1, "left", at}) // it does not begin anew
	require.False(t, l.finds(t.Context()))
	now = now.Add(2 * time.Millisecond)
	_, stop := l.timer()
	stop()
	var begun []string
	for l.finds(t.Context()) {
		r, _ := l.next()
		begun = append(begun, r.id)
		l.inflight[r.id] = r.at
	}
	require.Equal(t, []string{"left", "first"}, begun)
	pass("", 0, entry{0, "older", at})
	require.True(t, l.finds(t.Context()), "a process that does no such work, or of an older version, has named nobody")
}

// Processes that are all busy do not do the same things in the same order: each begins
// with what it has committed itself. What others do not do in a second is not left to them.
func TestAProcessBeginsWithWhatItHasCommitted(t *testing.T) {
	now := time.Now()
	d := NewDue(&Store{conn: &conn{now: func() time.Time { return now }}}, DueOptions{})
	l := newLoop(d, Task{Kind: Cards, Limit: time.Minute}, &lane{})
	from := scoreOf(now)
	for i, name := range []string{"a", "b", "c", "d"} {
		e := seen{entry: entry{0, name, 1}, last: now}
		if i%2 == 0 {
			e.from = from
		}
		require.True(t, l.awaited.put(e))
	}
	order := func() (all string) {
		var left awaited
		for e := range l.awaited.all {
			require.True(t, left.put(e))
		}
		for {
			e, ok := left.take(now, l.idle)
			if !ok {
				return all
			}
			all += e.id
		}
	}
	require.Equal(t, "bdac", order())
	now = now.Add(takeOver)
	require.Equal(t, "abcd", order())
}

// Only a process that works on what is due names itself.
func TestAStoreIsNamedWhileItsProcessWorks(t *testing.T) {
	var w works
	w.id = "me"
	require.Empty(t, w.name())
	ctx, end := context.WithCancel(t.Context())
	w.begin(ctx)
	require.Equal(t, "me", w.name())
	end()
	require.Eventually(t, func() bool { return w.name() == "" }, time.Minute, time.Millisecond)
}

// A card that is put off for an hour, because Slack is away, is drawn at once when a
// deadline changes its request, although its entry was awaited.
func TestAwaitedWorkThatWasPutOffIsDueWhenOtherWorkMovesIt(t *testing.T) {
	now := time.Now()
	l, client := loopOn(t, &now)
	s := l.d.store
	at := scoreOf(now)
	l.became(result{entry: entry{0, "card", at}, awaited: true, verdict: verdict{kept: true, asked: true, next: scoreOf(now.Add(time.Hour))}})
	require.False(t, l.finds(t.Context()))
	makeDue(t, client, s, entry{0, "card", at})
	var committed places
	committed[0] = true
	l.heed(told{committed: committed, found: committed})
	require.True(t, l.finds(t.Context()))
	r, ok := l.next()
	require.True(t, ok)
	require.Equal(t, entry{0, "card", at}, r.entry)
}

// A look may find an entry before its wake-up arrives.
func TestAwaitedWorkThatWasJustDoneIsNotBegunAgain(t *testing.T) {
	now := time.Now()
	l, client := loopOn(t, &now)
	s := l.d.store
	done := entry{0, "done", scoreOf(now)}
	l.busy, l.inflight[done.id] = 1, done.at
	l.finished([]result{{entry: done, verdict: verdict{kept: true}}})
	l.told(fresh(done))
	require.False(t, l.finds(t.Context()))

	again := entry{0, "done", done.at + scoreSteps}
	makeDue(t, client, s, again)
	now = now.Add(time.Millisecond)
	l.told(fresh(again))
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
		wakeMessage(7, wakes, true, ""):  {7, map[Kind]entry{Cards: card, Runs: run, Replies: looked}, later, ""},
		wakeMessage(7, wakes, false, ""): {7, map[Kind]entry{Cards: looked, Runs: looked, Replies: looked}, later, ""},
		"7\ncards":                       {7, map[Kind]entry{Cards: looked}, map[Kind]score{}, ""},
		"7\ncards soon\nnews x y":        {7, map[Kind]entry{Cards: looked, "news": looked}, map[Kind]score{}, ""},
		"7\n@cards soon":                 {7, map[Kind]entry{}, map[Kind]score{}, ""},
		probeMessage(7, "abc"):           {7, map[Kind]entry{}, map[Kind]score{}, "abc"},
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
	require.Equal(t, map[Kind]entry{Cards: card}, older(wakeMessage(7, []wake{{Cards, []entry{card}, 5}, {Runs, nil, 9}}, true, "abc")))
	require.Empty(t, older(probeMessage(7, "abc")))
}
