package slackui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

var (
	server redis.UniversalClient // shared by all tests of the package
	stores atomic.Int64          // that were opened on it, each with a prefix of its own
)

// TestMain starts a redis-server: under the race detector a miniredis is too
// slow for many clicks at once, which have to be answered in time.
func TestMain(m *testing.M) {
	statetest.Main(m, func(c redis.UniversalClient) { server = c })
}

// testStore is the real store. A test may put documents into it, make it fail, and read
// what surfaces have stored.
type testStore struct {
	*state.Store

	tb testing.TB

	// onMemo, if not nil, is called before a memo is read or written, and its error is
	// the answer.
	onMemo func(surface string, writes bool) error

	mu       sync.Mutex
	drawn    map[string]int64 // the last version of a document that a surface drew
	mentions []agentrun.Mention
	fail     error // what every call answers instead
	volatile error // what is answered to who asks whether it is durable
}

var errOutage = errors.New("the store does not answer")

func newTestStore(tb testing.TB, now func() time.Time) *testStore {
	tb.Helper()
	s := &testStore{tb: tb, drawn: map[string]int64{}}
	s.connect(fmt.Sprintf("t%d", stores.Add(1)), now, statetest.Hook(s.pass))
	return s
}

// connect opens the store on a client of its own with this hook.
func (s *testStore) connect(prefix string, now func() time.Time, hook redis.Hook) {
	s.tb.Helper()
	of, ok := server.(*redis.Client)
	require.True(s.tb, ok)
	c := redis.NewClient(of.Options())
	c.AddHook(hook)
	s.tb.Cleanup(func() { require.NoError(s.tb, c.Close()) })
	var err error
	s.Store, err = state.Open(s.tb.Context(), state.Options{Client: c, Prefix: prefix, Now: now})
	require.NoError(s.tb, err)
}

// breaks makes every call fail until it is called with nil.
func (s *testStore) breaks(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// forgets makes everything that is stored such that it may be lost, until it is
// called with nil.
func (s *testStore) forgets(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.volatile = err
}

func (s *testStore) pass(_ context.Context, cmds []redis.Cmder, send func() error) error {
	s.mu.Lock()
	err := s.fail
	s.mu.Unlock()
	if err != nil {
		return statetest.Fail(cmds, err)
	}
	return send()
}

func (s *testStore) lost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.volatile
}

func (s *testStore) Confirm(ctx context.Context, id string) error {
	if err := s.lost(); err != nil {
		return err
	}
	return s.Store.Confirm(ctx, id)
}

func (s *testStore) KeepMemo(ctx context.Context, id, surface string, data []byte, version int64) error {
	if err := s.lost(); err != nil {
		return err
	}
	return s.Store.KeepMemo(ctx, id, surface, data, version)
}

func (s *testStore) Memo(ctx context.Context, id, surface string) ([]byte, int64, error) {
	if s.onMemo != nil {
		if err := s.onMemo(surface, false); err != nil {
			return nil, 0, err
		}
	}
	return s.Store.Memo(ctx, id, surface)
}

func (s *testStore) CommitMemo(ctx context.Context, id, surface string, data []byte, version, drawn int64) error {
	if s.onMemo != nil {
		if err := s.onMemo(surface, true); err != nil {
			return err
		}
	}
	err := s.Store.CommitMemo(ctx, id, surface, data, version, drawn)
	if err == nil && drawn > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drawn[id+"/"+surface] = drawn
	}
	return err
}

// Mention is that of a runner, and starts nothing.
func (s *testStore) Mention(_ context.Context, m agentrun.Mention) (agentrun.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return agentrun.Run{}, s.fail
	}
	s.mentions = append(s.mentions, m)
	return agentrun.Run{ID: "run-01-x"}, nil
}

func (s *testStore) mentioned() []agentrun.Mention {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mentions)
}

func (s *testStore) drawnVersion(id, surface string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drawn[id+"/"+surface]
}

// batch is the batch as it is stored, the zero Batch if it is not. A test may change its
// approvals.
func (s *testStore) batch(id approvals.BatchID) approvals.Batch {
	s.tb.Helper()
	b, err := s.Batch(context.Background(), id)
	if !errors.Is(err, approvals.ErrNotFound) {
		require.NoError(s.tb, err)
	}
	b.Approvals = slices.Clone(b.Approvals)
	return b
}

// run is the run as it is stored.
func (s *testStore) run(id approvals.RunID) agentrun.Run {
	s.tb.Helper()
	r, err := s.Run(context.Background(), id)
	require.NoError(s.tb, err)
	return r
}

// args are the bytes of a call as they are stored.
func (s *testStore) args(id approvals.BatchID, d approvals.Digest) json.RawMessage {
	s.tb.Helper()
	raw, err := s.Args(context.Background(), id, d)
	require.NoError(s.tb, err)
	return raw
}

// setBatch stores a batch as it is, whatever was there before.
func (s *testStore) setBatch(b approvals.Batch, args ...approvals.ToolCall) {
	s.tb.Helper()
	ctx, version, before := context.Background(), b.Version, s.batch(b.ID)
	b.Version = before.Version + 1
	c := approvals.BatchCommit{Before: before, Batch: b, Args: map[approvals.Digest]json.RawMessage{}}
	for _, call := range args {
		c.Args[approvals.DigestOf(b.ID, call)] = call.Args
	}
	require.NoError(s.tb, s.CommitBatch(ctx, c))
	s.setVersion("batch", string(b.ID), version)
}

// setRun stores a run as it is, whatever was there before, and its thread if that
// is not there.
func (s *testStore) setRun(r agentrun.Run) {
	s.tb.Helper()
	ctx, version := context.Background(), r.Version
	before, err := s.Run(ctx, r.ID)
	if !errors.Is(err, approvals.ErrNotFound) {
		require.NoError(s.tb, err)
	}
	r.Version = before.Version
	require.NoError(s.tb, s.Commit(ctx, agentrun.Commit{Runs: []agentrun.Run{r}}))
	s.setVersion("run", string(r.ID), version)
	if _, err := s.Thread(ctx, r.Thread); errors.Is(err, approvals.ErrNotFound) {
		s.setThread(agentrun.Thread{ID: r.Thread, Origin: r.Origin})
	}
}

// setThread stores a thread, whatever was there before.
func (s *testStore) setThread(th agentrun.Thread) {
	s.tb.Helper()
	before, err := s.Thread(context.Background(), th.ID)
	if !errors.Is(err, approvals.ErrNotFound) {
		require.NoError(s.tb, err)
	}
	th.Version = before.Version
	require.NoError(s.tb, s.Commit(context.Background(), agentrun.Commit{Thread: &th}))
}

func (s *testStore) setVersion(kind, id string, version int64) {
	s.tb.Helper()
	require.NoError(s.tb, server.HSet(context.Background(), s.key(kind, id), "v", version).Err())
}

// loses takes a batch out of the store, as a server does that was restored from
// an old copy.
func (s *testStore) loses(b approvals.Batch) {
	s.tb.Helper()
	require.Equal(s.tb, int64(1), server.Del(context.Background(), s.key("batch", string(b.ID))).Val())
}

// key is a key of the store, for what no program of ours does.
func (s *testStore) key(kind, id string) string {
	n, err := approvals.Partition(id)
	require.NoError(s.tb, err)
	return fmt.Sprintf("%s:{p%02d}:%s:%s", s.Prefix(), n, kind, id)
}
