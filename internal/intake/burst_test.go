package intake_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// counted gives the world a store whose client's round trips are kept.
func (w *world) counted() *statetest.Trips {
	w.Helper()
	of, ok := w.client.(*redis.Client)
	require.True(w, ok)
	c := redis.NewClient(of.Options())
	w.Cleanup(func() { require.NoError(w, c.Close()) })
	seen := &statetest.Trips{}
	c.AddHook(seen)
	w.open(c)
	seen.Taken()
	return seen
}

// permitted is what a coding agent asks before it makes a call that needs nobody.
func permitted(n int) intake.Ask {
	a := ask(fmt.Sprintf("toolu_%d", n), "free")
	a.Door, a.Reuse, a.Session = intake.DoorHooks, true, "s-1"
	a.Calls[0].Args = fmt.Appendf(nil, `{"n":%d}`, n)
	return a
}

func TestAPermittedCallIsAskedAboutAndClaimedInFewRoundTrips(t *testing.T) {
	w := newWorld(t)
	seen := w.counted()
	w.ask(permitted(0)) // the server knows the script from now on
	seen.Taken()
	r := w.ask(permitted(1))
	require.Equal(t, [][]string{
		{"hmget"},             // which request the fingerprint finds
		{"hmget", "hmget"},    // its record and its run: there are none
		{"evalsha"},           // the newest requests of the agent
		{"evalsha"},           // the record
		{"evalsha"},           // the run
		{"hmget"}, {"lrange"}, // as it is stored
		{"hmget", "hmget"}, {"evalsha"}, // the external id
	}, seen.Taken())
	_, err := w.Claim(t.Context(), claude, r.ID, "c0")
	require.NoError(t, err)
	require.Equal(t, [][]string{{"hmget", "hmget"}, {"lrange"}, {"evalsha"}}, seen.Taken())
}

func TestARequestThatWaitsIsReadInFewRoundTrips(t *testing.T) {
	w := newWorld(t)
	short, long := ask("short", "write"), ask("long", "write")
	long.Calls[0].Args = fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("long ", 100))
	seen := w.counted()
	for _, c := range []struct {
		id    approvals.RunID
		trips [][]string
	}{
		// its record and its run, its batch and its messages, and the arguments that these cite
		{w.ask(short).ID, [][]string{{"hmget", "hmget"}, {"hmget", "lrange"}}},
		{w.ask(long).ID, [][]string{{"hmget", "hmget"}, {"hmget", "lrange"}, {"get"}}},
	} {
		seen.Taken()
		r, err := w.Get(t.Context(), claude, c.id)
		require.NoError(t, err)
		require.Equal(t, intake.StatePending, r.State)
		require.Equal(t, c.trips, seen.Taken())
	}
}

// atOnce asks about so many calls at the same time.
func (w *world) atOnce(c intake.Client, calls int, a func(n int) intake.Ask) []error {
	w.Helper()
	var wg sync.WaitGroup
	errs := make([]error, calls)
	for n := range calls {
		wg.Go(func() { _, errs[n] = w.Ask(w.Context(), c, a(n)) })
	}
	wg.Wait()
	return errs
}

func TestRequestsAtTheSameTimeLoseNoRacesToEachOther(t *testing.T) {
	w := newWorld(t)
	seen := w.counted()
	w.ask(permitted(-1))
	seen.Taken()
	const calls = 64
	for n, err := range w.atOnce(claude, calls, permitted) {
		require.NoError(t, err, n)
	}
	require.LessOrEqual(t, len(seen.Taken()), 10*calls, "no more than one after the other")
	all, err := w.List(t.Context(), claude, intake.Filter{Limit: intake.MaxDone})
	require.NoError(t, err)
	require.Len(t, all, calls+1)
}

func TestLimitsAreExactForRequestsAtTheSameTime(t *testing.T) {
	for what, c := range map[string]intake.Client{
		"requests in a minute": {OpenLimit: 10_000, PerMinute: 7},
		"open requests":        {OpenLimit: 7, PerMinute: 10_000},
	} {
		w := newWorld(t)
		c.Name, c.Owner, c.Channel, c.Credential = claude.Name, claude.Owner, claude.Channel, claude.Credential
		counted := 0
		for _, err := range w.atOnce(c, 40, func(n int) intake.Ask { return ask(fmt.Sprint(n), "write") }) {
			if err == nil {
				counted++
				continue
			}
			var limit *intake.LimitError
			require.ErrorAs(t, err, &limit)
			require.Equal(t, what, limit.What)
		}
		require.Equal(t, 7, counted, what)
	}
}

// A leaving store ends the first change of an agent's document with its caller.
type leavingStore struct {
	*state.Store

	once sync.Once
	gone context.CancelFunc
}

func (s *leavingStore) ChangeMemo(ctx context.Context, m agentrun.MemoChange) error {
	s.once.Do(s.gone)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.Store.ChangeMemo(ctx, m)
}

func TestACallerThatLeavesTakesNoOtherRequestWithIt(t *testing.T) {
	w := newWorld(t)
	leaving, gone := context.WithCancel(t.Context())
	var err error
	w.Service, err = intake.New(intake.Config{
		Store: &leavingStore{Store: w.store, gone: gone}, Feed: state.NewFeed(w.store), Runner: w.runner, Desk: w.desk, Now: w.clock.Now,
	})
	require.NoError(t, err)
	var wg sync.WaitGroup
	errs := make([]error, 16)
	wg.Go(func() { _, err = w.Ask(leaving, claude, permitted(-1)) })
	for n := range errs {
		wg.Go(func() {
			<-leaving.Done()
			_, errs[n] = w.Ask(context.WithoutCancel(leaving), claude, permitted(n))
		})
	}
	wg.Wait()
	require.ErrorIs(t, err, context.Canceled)
	for n, err := range errs {
		require.NoError(t, err, n)
	}
}

func TestWhatNeedsNobodyIsForgottenWithoutReachingALimit(t *testing.T) {
	w := newWorld(t)
	for n := range intake.MaxDone + 60 {
		w.ask([]func(int) intake.Ask{permitted, claimed}[n%2](n))
	}
	keys, err := w.client.Keys(t.Context(), "*"+w.prefix+"*intake-agent*").Result()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	fields, err := w.client.HGetAll(t.Context(), keys[0]).Result()
	require.NoError(t, err)
	require.Less(t, len(fields["d"]), 500, "it is written with every request")
	require.LessOrEqual(t, len(fields), intake.MaxDone+35)
	elsewhere := *w
	elsewhere.open(w.client)
	for _, at := range []*world{w, &elsewhere} {
		all, err := at.List(t.Context(), claude, intake.Filter{Limit: intake.MaxDone})
		require.NoError(t, err)
		require.Len(t, all, intake.MaxDone)
		for i, r := range all {
			require.Equal(t, fmt.Sprintf("toolu_%d", intake.MaxDone+59-i), r.ExternalID, "the newest first")
		}
	}
}
