package main

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// How often something is killed in the storm, and where.
var (
	kills    = flag.Int("kills", 6, "strikes in which replicas or Redis are killed")
	killSeed = flag.Uint64("kill-seed", 1, "draws what is killed and when")
)

// A storm kills bots and Redis, in the middle of what bots and the rest of the world
// say to each other.
type storm struct {
	*fleet

	struck chan strike   // to whoever kills
	done   chan struct{} // closed when nobody kills any more

	mu     sync.Mutex
	dice   *rand.Rand
	left   int // strikes
	passed int // exchanges until the next one
	killed map[string]int
}

// A strike is what is killed. When it happened, over is closed.
type strike struct {
	bots  []*unit
	redis bool
	after int64 // commands of Redis
	over  chan struct{}
}

// mayStrike counts an exchange, and reports whether it was held until something was
// killed.
func (s *storm) mayStrike() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	s.passed--
	if s.passed > 0 || s.left == 0 {
		s.mu.Unlock()
		return false
	}
	s.left--
	s.passed = 1 + s.dice.IntN(30)
	next := strike{over: make(chan struct{})}
	held := s.dice.IntN(2) == 0
	if !held {
		next.after = s.dice.Int64N(16)
	}
	switch n := s.dice.IntN(6); {
	case n < len(s.bots):
		next.bots = s.bots[n : n+1]
		s.killed["a replica"]++
	case n == len(s.bots):
		next.redis = true
		s.killed["Redis"]++
	case n == len(s.bots)+1:
		next.bots = s.bots
		s.killed["all replicas"]++
	default:
		next.bots, next.redis = s.bots, true
		s.killed["all replicas and Redis"]++
	}
	s.mu.Unlock()
	select {
	case s.struck <- next:
	case <-s.done:
		return false
	}
	if held {
		select {
		case <-next.over:
		case <-s.done:
		}
	}
	return held
}

// kills kills what it is told to, until the test ends.
func (s *storm) kills(ctx context.Context) {
	defer close(s.done)
	for {
		select {
		case next := <-s.struck:
			s.strike(ctx, next)
			close(next.over)
		case <-ctx.Done():
			return
		}
	}
}

// strike kills bots, which start again at once, and Redis, which starts again when all
// are dead. What is killed while others work dies after a few more commands of theirs.
func (s *storm) strike(ctx context.Context, next strike) {
	s.commands(ctx, next.after)
	var all sync.WaitGroup
	for _, u := range next.bots {
		all.Go(func() { u.ends(os.Kill) })
	}
	if next.redis {
		s.server.Kill()
	}
	all.Wait()
	if next.redis {
		s.server.Start() //nolint:contextcheck // it lives as long as the test
	}
}

// commands waits until Redis has done so many more of others.
func (s *storm) commands(ctx context.Context, more int64) {
	count := func() (n int64) {
		for line := range strings.Lines(s.redis.Info(ctx, "stats").Val()) {
			if v, ok := strings.CutPrefix(line, "total_commands_processed:"); ok {
				n, _ = strconv.ParseInt(strings.TrimSpace(v), 10, 64)
			}
		}
		return n
	}
	for end := count() + more; count() < end && ctx.Err() == nil; {
		end++ // ours
	}
}

func (s *storm) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left == 0
}

// Replicas and Redis are killed at any moment, and Slack delivers everything three
// times: what was acknowledged counts, once, no call runs twice or without approval,
// and each request comes to its end.
func TestKillsOfReplicasAndRedisLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	path, err := binary()
	require.NoError(t, err)
	f := newFleet(t, path)
	s := &storm{
		fleet: f, struck: make(chan strike), done: make(chan struct{}), left: *kills, killed: map[string]int{},
		dice: rand.New(rand.NewPCG(*killSeed, 0)),
	}
	ctx, stop := context.WithCancel(t.Context())
	go s.kills(ctx)
	t.Cleanup(func() { stop(); <-s.done })
	f.starts()
	f.storm.Store(s)
	records, client := f.records()
	all := f.works(records, client, func() bool { return !s.over() })
	sum := f.holds(fault{doubts: true}, all, records)
	sum.points = *kills
	t.Logf("seed %d: killed were %v, in %d requests%s", *killSeed, s.killed, len(all), tollHead+sum.row("processes are killed", setting(t, f.config)))
}
