package state

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

// ForgetRequests makes the store commit with a script that does not look
// whether the request was applied before: the mutation that the suite must
// notice.
func (s *conn) ForgetRequests() {
	s.mutate("if applied then return", "if false then return")
}

// RepeatInSilence makes the answer "applied before" write nothing: the
// mutation with which a repeated commit asks a barrier about nothing.
func (s *conn) RepeatInSilence() {
	s.mutate("    redis.call('PEXPIRE', KEYS[1], '1000000000000')\n    redis.call('PERSIST', KEYS[1])\n", "",
		"if applied then redis.call('PEXPIRE', own, keep) end", "")
}

func (s *conn) mutate(fromTo ...string) {
	source := commitSource
	for i := 0; i < len(fromTo); i += 2 {
		if !strings.Contains(source, fromTo[i]) {
			panic("commit.lua has changed: adapt the mutation")
		}
		source = strings.Replace(source, fromTo[i], fromTo[i+1], 1)
	}
	s.script = redis.NewScript(source)
}

// OnlyWhenWoken makes followers look only when a commit wakes them.
func OnlyWhenWoken(t interface{ Cleanup(f func()) }) {
	was := followSweep
	followSweep = 24 * time.Hour
	t.Cleanup(func() { followSweep = was })
}

// Work works on one kind alone.
func (d *Due) Work(ctx context.Context, k Kind, f func(ctx context.Context, id string) error) error {
	return d.run(ctx, []Task{{Kind: k, Reconcile: f, Limit: 2 * time.Minute}})
}

// SweepHash is the name of the script of sweeps.
var SweepHash = sweepScript.Hash()

// LongestSweep is the longest time between two looks at a partition by default.
const LongestSweep = longestSweep

// SharePipe returns the context of handlers that share a pipeline, and how many of
// them wait in it.
func (s *Store) SharePipe(ctx context.Context, handlers int) (_ context.Context, waiting func() int) {
	p := s.sharePipe(handlers)
	return p.with(ctx), func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.next.asked)
	}
}

// Client is that of the store.
func (s *Store) Client() redis.UniversalClient { return s.client }

// WakeChannel is where wake-ups are published.
func (s *Store) WakeChannel() string { return s.wakes() }

// IdleAsks returns how often a process asks a partition for work in a while in which
// there is none and wake-ups arrive, and in how many rounds.
func IdleAsks(d time.Duration) (asked, rounds int) {
	s, o := newSchedule(longestSweep), DueOptions{Sweep: longestSweep}
	for now := time.Unix(0, 0); now.Before(time.Unix(0, 0).Add(d)); now = now.Add(o.short() * 3 / 4) {
		rounds++
		for _, n := range s.round(now) {
			asked++
			s.heard(n)
		}
	}
	return asked, rounds
}

// MakeDue makes work of the kind due about a document, wherever the id says that it is.
func (s *Store) MakeDue(ctx context.Context, partition int, k Kind, id string, at time.Time) error {
	due := s.partition(partition).due(k)
	return s.client.ZAdd(ctx, string(due.key), redis.Z{Member: due.member(id), Score: float64(due.stored(scoreOf(at)))}).Err()
}

// MakeUndue takes work out of the index.
func (s *Store) MakeUndue(ctx context.Context, partition int, k Kind, id string) error {
	due := s.partition(partition).due(k)
	return s.client.ZRem(ctx, string(due.key), due.member(id)).Err()
}

// Unlist takes a batch off a list, and MakeListed puts it back.
func (s *Store) Unlist(ctx context.Context, partition int, k approvals.ListKey, b approvals.Batch) error {
	l := s.partition(partition).list(k)
	return s.client.ZRem(ctx, string(l.key), l.member(place(b))).Err()
}

func (s *Store) MakeListed(ctx context.Context, partition int, k approvals.ListKey, b approvals.Batch) error {
	l := s.partition(partition).list(k)
	return s.client.ZAdd(ctx, string(l.key), redis.Z{Member: l.member(place(b)), Score: float64(sameScore)}).Err()
}

// AllDue returns the ids of a kind in the index of a partition, due or not.
func (s *Store) AllDue(ctx context.Context, partition int, k Kind) ([]string, error) {
	return s.Timed(ctx, string(k), partition)
}

// Listed returns the ids of the batches that are on a list in a partition.
func (s *Store) Listed(ctx context.Context, partition int, k approvals.ListKey) (ids []string, err error) {
	l := s.partition(partition).list(k)
	members, err := l.after(ctx, s.client, "", 1<<30).Result()
	for _, m := range members {
		ids = append(ids, batchAt(l.place(m)))
	}
	return ids, err
}

// Who works on a store is asked in quick succession.
func init() { aloneEvery = time.Millisecond }

// SetApart gives the stores that are opened with this prefix the layout of older versions.
func SetApart(ctx context.Context, client redis.UniversalClient, prefix string) error {
	return client.Set(ctx, prefix+":{p00}:layout", apart, 0).Err()
}

// MostUnderWay is how many round trips are under way before questions wait.
const MostUnderWay = mostUnderWay

// Patient makes questions wait, for as long as it takes, while so many round trips are
// under way.
func (s *Store) Patient(most int) {
	for who := range s.pipes {
		for behind := range s.pipes[who] {
			s.pipes[who][behind].patience, s.pipes[who][behind].most = time.Hour, most
		}
	}
}

// Waiting is how many questions of people wait for those that are under way: those that
// wait for a barrier, if behind, or those that do not.
func (s *Store) Waiting(behind bool) int {
	p := &s.pipes[0][0]
	if behind {
		p = &s.pipes[0][1]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		return 0
	}
	return len(p.next.asked)
}
