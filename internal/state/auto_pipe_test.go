package state_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// A gate is a hook that keeps round trips back while it is closed.
type gate struct {
	closed atomic.Bool
	begun  chan struct{} // has one for each that is kept back
	open   chan error    // lets one go on, or fail
}

func newGate() *gate { return &gate{begun: make(chan struct{}, 100), open: make(chan error, 100)} }

func (g *gate) pass(ctx context.Context, cmds []redis.Cmder, send func() error) error {
	if !g.closed.Load() {
		return send()
	}
	g.begun <- struct{}{}
	var err error
	select {
	case err = <-g.open:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return statetest.Fail(cmds, err)
	}
	return send()
}

// gated opens a store whose round trips a gate keeps back, with n batches in it.
func gated(t *testing.T, n int) (*state.Store, *gate, *statetest.Trips) {
	t.Helper()
	client, g, trips := statetest.Miniredis(t), newGate(), &statetest.Trips{}
	s := openStore(t, client, time.Now)
	openMany(t, s, n, "a", false)
	client.AddHook(statetest.Hook(g.pass))
	client.AddHook(trips)
	return s, g, trips
}

// atOnce runs f for each number. The first one's round trip is kept back until all the
// others wait for it, and then calls release.
func (g *gate) atOnce(t *testing.T, s *state.Store, n int, f func(i int) error, release func()) []error {
	t.Helper()
	s.Patient(1)
	errs := make([]error, n)
	var all sync.WaitGroup
	g.closed.Store(true)
	all.Go(func() { errs[0] = f(0) })
	wait(t, "the first round trip", g.begun)
	g.closed.Store(false)
	for i := range errs[1:] {
		all.Go(func() { errs[i+1] = f(i + 1) })
	}
	statetest.Await(t, "the others to ask", func() bool { return s.Waiting(false)+s.Waiting(true) >= n-1 })
	release()
	all.Wait()
	return errs
}

func (g *gate) release() { g.open <- nil }

// What is asked while a round trip is under way is asked together in the next one: what
// is read, what is read in advance, and what is committed.
func TestWhatIsAskedAtTheSameTimeSharesARoundTrip(t *testing.T) {
	t.Parallel()
	const all = 12
	s, g, trips := gated(t, all)
	base := t.Context()
	errs := g.atOnce(t, s, all, func(i int) error {
		ctx, id := base, ids{i}.batch("a")
		switch i % 3 {
		case 0:
			return s.CommitMemo(base, string(id), "cards", []byte("x"), 0, 0)
		case 1:
			ctx = s.Prefetch(base, approvals.Reads{Batches: []approvals.BatchID{id}, Memos: []approvals.MemoKey{{ID: string(id), Surface: "cards"}}})
		}
		b, err := s.Batch(ctx, id)
		if err == nil && b.ID != id {
			err = errors.New("this is the answer to another question")
		}
		return err
	}, g.release)
	require.Equal(t, make([]error, all), errs)
	var sizes []int
	for _, names := range trips.Taken() {
		sizes = append(sizes, len(names))
	}
	require.Equal(t, []int{1, 3 + 4*2 + 4}, sizes)
	for i := range all {
		_, version, err := s.Memo(t.Context(), string(ids{i}.batch("a")), "cards")
		require.NoError(t, err)
		require.Equal(t, i%3 == 0, version == 1)
	}
}

// Nobody waits for a connection that hangs.
func TestNobodyWaitsForARoundTripThatHangs(t *testing.T) {
	t.Parallel()
	s, g, _ := gated(t, 2)
	g.closed.Store(true)
	hung := make(chan error, state.MostUnderWay)
	for range state.MostUnderWay {
		go func() {
			_, err := s.Batch(t.Context(), ids{0}.batch("a"))
			hung <- err
		}()
		wait(t, "the round trip that hangs", g.begun)
	}
	g.closed.Store(false)
	for range 3 {
		_, err := s.Batch(t.Context(), ids{1}.batch("a"))
		require.NoError(t, err)
	}
	for range state.MostUnderWay {
		g.open <- nil
		require.NoError(t, wait(t, "its answer", hung))
	}
}

// Some round trips are under way at the same time. What is asked then waits, and the end of
// any of them sends it; afterwards as many may be under way as before.
func TestTheEndOfAnyRoundTripSendsWhatWaits(t *testing.T) {
	t.Parallel()
	const waiting = 5
	s, g, trips := gated(t, 1)
	s.Patient(state.MostUnderWay)
	trips.Taken()
	for round := range 2 {
		g.closed.Store(true)
		answered := make(chan error, state.MostUnderWay+waiting)
		read := func() {
			_, err := s.Batch(t.Context(), ids{0}.batch("a"))
			answered <- err
		}
		for range state.MostUnderWay {
			go read()
			wait(t, "a round trip", g.begun)
		}
		g.closed.Store(false)
		for range waiting {
			go read()
		}
		statetest.Await(t, "the others to ask", func() bool { return s.Waiting(false) == waiting })
		g.release()
		for range waiting + 1 {
			require.NoError(t, wait(t, "an answer while the others are kept back", answered))
		}
		for range state.MostUnderWay - 1 {
			g.release()
			require.NoError(t, wait(t, "an answer", answered))
		}
		require.Len(t, trips.Taken(), state.MostUnderWay+1, "round %d", round)
	}
}

// Who has no more time leaves, and the others have their answers.
func TestWhoLeavesARoundTripTakesNothingFromTheOthers(t *testing.T) {
	t.Parallel()
	const all, leaving = 4, 2
	s, g, _ := gated(t, all)
	base := t.Context()
	over, cancel := context.WithCancel(base)
	left := make(chan struct{}, leaving)
	errs := g.atOnce(t, s, all, func(i int) error {
		ctx, id := base, ids{i}.batch("a")
		switch i {
		case 1:
			ctx = over
		case 2:
			ctx = s.Prefetch(over, approvals.Reads{Batches: []approvals.BatchID{id}})
		}
		_, err := s.Batch(ctx, id)
		if i == 1 || i == 2 {
			left <- struct{}{}
		}
		return err
	}, func() {
		cancel()
		for range leaving {
			wait(t, "those who leave", left)
		}
		g.release()
	})
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], context.Canceled)
	require.ErrorIs(t, errs[2], context.Canceled)
	require.NoError(t, errs[3])
}

// A round trip that fails as a whole, and a script that the server does not know, are
// asked again one by one.
func TestWhatARoundTripDoesNotAnswerIsAskedAgain(t *testing.T) {
	t.Parallel()
	const all = 6
	for name, spoil := range map[string]func(t *testing.T, s *state.Store, g *gate){
		"the connection breaks": func(t *testing.T, _ *state.Store, g *gate) {
			t.Helper()
			g.closed.Store(true)
			g.release()
			wait(t, "the round trip of the others", g.begun)
			g.closed.Store(false)
			g.open <- errors.New("it broke")
		},
		"the server has lost its scripts": func(t *testing.T, s *state.Store, g *gate) {
			t.Helper()
			require.NoError(t, s.Client().ScriptFlush(t.Context()).Err())
			g.release()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, g, _ := gated(t, all)
			errs := g.atOnce(t, s, all, func(i int) error {
				return s.CommitMemo(t.Context(), string(ids{i}.batch("a")), "cards", []byte("x"), 0, 0)
			}, func() { spoil(t, s, g) })
			require.Equal(t, make([]error, all), errs)
		})
	}
}

// Commits that share a round trip share a question about the disk and the replicas, and
// each of them fails if the answer is no.
func TestCommitsThatShareARoundTripShareTheBarrier(t *testing.T) {
	t.Parallel()
	const all = 5
	w, client := statetest.NewWitness(t)
	g := newGate()
	s := openAs(t, client, state.Replicated, 2)
	client.AddHook(statetest.Hook(g.pass))
	commit := func(round int) []error {
		return g.atOnce(t, s, all, func(i int) error {
			open := openBatch(t, ids{i}.batch(approvals.NewID("x", round, "y")), ids{i}.run("a"), 1, time.Time{})
			return s.CommitBatch(t.Context(), approvals.BatchCommit{Batch: open.Batch, Events: open.Events, Args: open.Args})
		}, g.release)
	}
	w.Says(1, 1)
	for _, err := range commit(1) {
		require.ErrorIs(t, err, approvals.ErrNotDurable)
	}
	w.Says(1, 2)
	w.Asked()
	require.Equal(t, make([]error, all), commit(2))
	require.Equal(t, []string{"WAITAOF 1 0", "WAIT 2", "WAITAOF 1 0", "WAIT 2"}, w.Asked())
}
