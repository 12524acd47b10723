package state_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// A process whose clock differs from the store's by more than a quarter of the
// lease is refused, in either direction, and says so once; one that differs by
// less is not.
func TestAClockThatDiffersIsRefused(t *testing.T) {
	client := statetest.Miniredis(t)
	for by, refused := range map[time.Duration]bool{0: false, 5 * time.Second: false, -5 * time.Second: false, 9 * time.Second: true, -9 * time.Second: true} {
		var log bytes.Buffer
		skew := by
		s, err := state.Open(t.Context(), state.Options{
			Client: client, Now: func() time.Time { return time.Now().Add(skew) }, Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		require.NoError(t, err)
		c := s.Clock(30 * time.Second)
		at, err := c.Now(t.Context())
		require.WithinDuration(t, time.Now(), s.Time(), time.Second, "what goes by the time of the store is not moved by a clock of a process")
		require.WithinDuration(t, time.Now(), at, 4*time.Second, "it is the time of the store")
		if refused {
			require.WithinDuration(t, time.Now().Add(min(by, 0)), c.Shown(), time.Second, "what is shown follows the earlier one")
		}
		if !refused {
			require.NoError(t, err, by)
			require.WithinDuration(t, time.Now().Add(by), c.Shown(), time.Second, "a clock that agrees is its own")
			continue
		}
		differs := new(state.SkewError)
		require.ErrorAs(t, err, &differs)
		require.Equal(t, by > 0, differs.By > 0)
		require.Error(t, c.Check(t.Context()))
		require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("takes no work")))
		require.NotContains(t, log.String(), "is wrong", "which of the two clocks is wrong is not known")
		skew = 0
		require.NoError(t, c.Check(t.Context()))
		require.WithinDuration(t, time.Now(), c.Shown(), time.Second)
		require.Contains(t, log.String(), "agree again")
	}
}

// A long lease does not make a clock good enough for the deadlines of people.
func TestALongLeaseAllowsNoLargeDifference(t *testing.T) {
	s, err := state.Open(t.Context(), state.Options{Client: statetest.Miniredis(t), Now: func() time.Time { return time.Now().Add(time.Minute) }})
	require.NoError(t, err)
	require.ErrorAs(t, s.Clock(time.Hour).Check(t.Context()), new(*state.SkewError))
}

// wrong is a server whose clock is ahead.
type wrong struct {
	by    time.Duration
	asked func() // is called before it tells the time; nil for nothing
}

func (w *wrong) pass(_ context.Context, cmds []redis.Cmder, send func() error) error {
	err := send()
	for _, cmd := range cmds {
		if at, ok := cmd.(*redis.TimeCmd); ok {
			if w.asked != nil {
				w.asked()
			}
			at.SetVal(at.Val().Add(w.by))
		}
	}
	return err
}

// What was put off while the clocks were ahead waits until they are there again. Once they
// agree, nothing else says so.
func TestAClockThatIsSetBackIsLogged(t *testing.T) {
	for moved, logged := range map[time.Duration]int{-2 * time.Hour: 1, 2 * time.Hour: 0, -5 * time.Second: 0} {
		var log bytes.Buffer
		client, clock := statetest.Miniredis(t), &wrong{}
		client.AddHook(statetest.Hook(clock.pass))
		s, err := state.Open(t.Context(), state.Options{Client: client, Log: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		c := s.Clock(30 * time.Second)
		require.NoError(t, c.Check(t.Context()))
		clock.by = moved
		for range 3 {
			_ = c.Check(t.Context()) // the clock of this process is not set here
		}
		require.Equal(t, logged, bytes.Count(log.Bytes(), []byte("the clock of Redis was set back")), moved)
	}
}

// How long an answer takes is no difference of the clocks.
func TestASlowAnswerIsNoClockThatIsSetBack(t *testing.T) {
	var log bytes.Buffer
	var passed atomic.Int64
	client, server := statetest.Miniredis(t), &wrong{}
	client.AddHook(statetest.Hook(server.pass))
	now := func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	s, err := state.Open(t.Context(), state.Options{Client: client, Now: now, Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	c := s.Clock(30 * time.Second)
	server.asked = func() { server.by = time.Duration(passed.Add(int64(15 * time.Second))) }
	require.NoError(t, c.Check(t.Context()))
	require.WithinDuration(t, now(), s.Time(), time.Second)
	server.asked = func() {}
	require.NoError(t, c.Check(t.Context()))
	require.Empty(t, log.String())
}

// In a cluster each server has a clock. Processes that went by several would take work from
// each other, and be right and wrong in turns.
func TestProcessesOnAClusterGoByOneClock(t *testing.T) {
	t.Parallel()
	nodes := statetest.NewNodes(t)
	var times []time.Time
	for range 2 {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: nodes.Addrs})
		t.Cleanup(func() { require.NoError(t, client.Close()) })
		client.OnNewNode(func(node *redis.Client) {
			_, port, err := net.SplitHostPort(node.Options().Addr)
			require.NoError(t, err)
			n, err := strconv.Atoi(port)
			require.NoError(t, err)
			node.AddHook(statetest.Hook((&wrong{by: time.Duration(n) * time.Hour}).pass))
		})
		s, err := state.Open(t.Context(), state.Options{Client: client})
		require.NoError(t, err)
		for range 20 {
			at, err := s.Clock(30 * time.Second).Now(t.Context())
			require.ErrorAs(t, err, new(*state.SkewError))
			times = append(times, at)
		}
	}
	for _, at := range times {
		require.WithinDuration(t, times[0], at, time.Minute)
	}
}

// What is due is not looked for while the clock is wrong, and is when it is right
// again.
func TestASkewedProcessLooksForNoWork(t *testing.T) {
	c := statetest.Miniredis(t)
	var behind atomic.Int64
	behind.Store(int64(time.Hour))
	now := func() time.Time { return time.Now().Add(-time.Duration(behind.Load())) }
	said := make(chan string, 10)
	s, err := state.Open(t.Context(), state.Options{Client: c, Now: now, Log: slog.New(slog.NewTextHandler(heard(said), nil))})
	require.NoError(t, err)
	d := state.NewDue(s, state.DueOptions{Sweep: 10 * time.Millisecond, Clock: s.Clock(30 * time.Second)})
	got := make(chan string, 10)
	commitRun(t, s, agentrun.Run{ID: ids{7}.run("r"), Status: agentrun.RunQueued, CreatedAt: start0})
	work(t, d, state.Runs, func(_ context.Context, id string) error { got <- id; return nil })
	for line := ""; !strings.Contains(line, "takes no work"); {
		line = wait(t, "the log", said)
	}
	require.Empty(t, got)
	behind.Store(0)
	require.Equal(t, string(ids{7}.run("r")), wait(t, "the run", got))
}

// Awaited work is begun without a look. If the clock is wrong then, the loop counts as
// stopped, until it looks again: also if nothing else of its kind becomes due.
func TestALoopLooksAgainAfterAwaitedWorkCouldNotBegin(t *testing.T) {
	t.Parallel()
	var behind atomic.Int64
	now := func() time.Time { return time.Now().Add(-time.Duration(behind.Load())) }
	said := make(chan string, 100)
	s, err := state.Open(t.Context(), state.Options{Client: statetest.Miniredis(t), Now: now, Log: slog.New(slog.NewTextHandler(heard(said), nil))})
	require.NoError(t, err)
	openMany(t, s, 1, "b", false)
	id, drawn := ids{0}.batch("b"), make(chan string, 10)
	d := state.NewDue(s, state.DueOptions{Sweep: never, Grace: grace, Clock: s.Clock(30 * time.Second)})
	work(t, d, state.Cards, func(ctx context.Context, id string) error {
		defer func() { drawn <- id }()
		return draw(ctx, s, id)
	})
	subscribed(t, s, 1)
	require.Equal(t, string(id), wait(t, "the card", drawn))
	behind.Store(int64(time.Hour))
	changes(t, s, id)
	says := func(what string) {
		for line := ""; !strings.Contains(line, what) || !strings.Contains(line, "kind=cards"); {
			line = wait(t, what, said)
		}
	}
	says("cannot look for work")
	behind.Store(0)
	require.Equal(t, string(id), wait(t, "the card", drawn))
	says("looking for work again")
}

// heard is a log that a test waits for.
type heard chan<- string

func (l heard) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}
