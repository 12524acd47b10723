package state_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// harmed is [statetest.Harmed] for a client of the suite.
func harmed(t *testing.T, c redis.UniversalClient, h statetest.Harm) redis.UniversalClient {
	t.Helper()
	out, _ := cuttable(t, c, h)
	return out
}

// cuttable is [statetest.Cuttable] for a client of the suite.
func cuttable(t *testing.T, c redis.UniversalClient, h statetest.Harm) (out redis.UniversalClient, cut func()) {
	t.Helper()
	if behind, ok := c.(*held); ok {
		out, cut = statetest.Cuttable(t, behind.UniversalClient, h)
		return behind.through(out), cut
	}
	return statetest.Cuttable(t, c, h)
}

// isScript reports whether a client sent the commit script.
func isScript(sent []byte) bool {
	return bytes.Contains(sent, []byte("\r\nevalsha\r\n")) || bytes.Contains(sent, []byte("\r\neval\r\n"))
}

// once harms the first script that is sent while it is armed.
type once struct{ armed atomic.Bool }

func (o *once) harm(f statetest.Fault) statetest.Harm {
	return func(sent []byte) statetest.Fault {
		if isScript(sent) && o.armed.CompareAndSwap(true, false) {
			return f
		}
		return statetest.None
	}
}

// losesReply checks that a commit whose reply was lost, and which the client
// sent again, is answered as applied and was applied once. open returns the
// store to try on a harmed client.
func losesReply(t *testing.T, c redis.UniversalClient, open func(c redis.UniversalClient) *state.Store) error {
	t.Helper()
	var o once
	s := open(harmed(t, c, o.harm(statetest.LostReply)))
	opens := openBatch(t, ids{3}.batch("b"), ids{3}.run("r"), 1, time.Time{})
	require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Batch: opens.Batch}))
	o.armed.Store(true)
	err := s.CommitBatch(t.Context(), decide(t, opens.Batch, approvals.Approve, "click"))
	require.False(t, o.armed.Load(), "no reply was lost")
	b, loadErr := s.Batch(t.Context(), opens.Batch.ID)
	require.NoError(t, loadErr)
	require.EqualValues(t, 2, b.Version)
	facts, factsErr := state.NewFeed(s).Facts(t.Context(), 3, "", 10)
	require.NoError(t, factsErr)
	require.Len(t, facts, 3, "decided, settled and resolved, once each")
	return err
}

// lostReplies: every kind of commit, once with its reply lost and once with the
// request lost.
func lostReplies(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	require.NoError(t, losesReply(t, c, func(c redis.UniversalClient) *state.Store {
		return openStore(t, c, newClock().Now)
	}))
	for _, f := range []statetest.Fault{statetest.LostReply, statetest.LostRequest} {
		var o once
		s := openStore(t, harmed(t, c, o.harm(f)), newClock().Now)
		opens := openBatch(t, ids{3}.batch("b"), ids{3}.run("r"), 2, time.Time{})
		for name, commit := range map[string]func() error{
			"open": func() error { return s.CommitBatch(t.Context(), approvals.BatchCommit{Batch: opens.Batch}) },
			"memo": func() error { return s.CommitMemo(t.Context(), string(ids{3}.thread("m")), "people", nil, 0, 0) },
		} {
			o.armed.Store(true)
			require.NoError(t, commit(), "%s with its %s lost", name, f)
			require.False(t, o.armed.Load())
		}
		o.armed.Store(true)
		require.NoError(t, s.CommitMemo(t.Context(), string(opens.Batch.ID), "cards", nil, 0, 1))
		require.Empty(t, due(t, s, state.Cards))
	}
}

// repeated: nothing remembers that an item was put off. To do so again, because the
// reply was lost, changes nothing.
func repeated(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	k := newClock()
	calm := openStore(t, c, k.Now)
	opens := openBatch(t, ids{5}.batch("b"), ids{5}.run("r"), 1, time.Time{})
	id := string(opens.Batch.ID)
	require.NoError(t, calm.CommitBatch(t.Context(), approvals.BatchCommit{Batch: opens.Batch}))
	var sent, begun atomic.Int64
	s := openStoreAt(t, harmed(t, c, func(b []byte) statetest.Fault {
		if bytes.Contains(b, []byte("ZADD")) && sent.Add(1) == 1 {
			return statetest.LostReply
		}
		return statetest.None
	}), k.Now, calm.Prefix())
	d := state.NewDue(s, state.DueOptions{Sweep: 5 * time.Millisecond, Grace: grace})
	work(t, d, state.Cards, func(context.Context, string) error {
		begun.Add(1)
		return later(time.Hour)
	})
	statetest.Await(t, "it to be sent again", func() bool { return sent.Load() == 2 })
	requireScore(t, s, state.Cards, id, k.Now().Add(time.Hour))
	require.EqualValues(t, 1, begun.Load())
	require.Equal(t, state.Counts{Delayed: 1}, d.Counts()[state.Cards])
}

// remembered: a client that had no answer to its change of a memo learns that it was
// applied, also if others have changed the memo since.
func remembered(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	calm := openStore(t, c, newClock().Now)
	id := string(ids{3}.thread("m"))
	var sent atomic.Int64
	const others = 7
	s := openStoreAt(t, harmed(t, c, func(b []byte) statetest.Fault {
		if !bytes.Contains(b, []byte("mine")) {
			return statetest.None
		}
		switch sent.Add(1) {
		case 1:
			return statetest.LostReply
		case 2: // it is sent again, after these
			for version := range int64(others) {
				require.NoError(t, calm.CommitMemo(t.Context(), id, "people", []byte("theirs"), version+1, 0))
			}
		}
		return statetest.None
	}), newClock().Now, calm.Prefix())
	require.NoError(t, calm.CommitMemo(t.Context(), id, "other", nil, 0, 0)) // the server knows the script
	require.NoError(t, s.CommitMemo(t.Context(), id, "people", []byte("mine"), 0, 0))
	require.EqualValues(t, 2, sent.Load())
	data, version, err := calm.Memo(t.Context(), id, "people")
	require.NoError(t, err)
	require.Equal(t, "theirs", string(data))
	require.EqualValues(t, 1+others, version)
}

// cuts: connections are cut at random under many writers of one document.
// Every version is written by exactly one commit, and what a commit was told is
// true.
func cuts(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 0))
	calm := openStore(t, c, newClock().Now)
	var opened atomic.Bool // a store may refuse to open over a line that is cut again and again
	s := openStoreAt(t, harmed(t, c, func(sent []byte) statetest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if !opened.Load() || !isScript(sent) || r.IntN(5) > 0 {
			return statetest.None
		}
		return []statetest.Fault{statetest.LostReply, statetest.LostRequest}[r.IntN(2)]
	}), newClock().Now, calm.Prefix())
	opened.Store(true)

	opens := openBatch(t, ids{9}.batch("b"), ids{9}.run("r"), 1, time.Time{})
	require.NoError(t, calm.CommitBatch(t.Context(), approvals.BatchCommit{Batch: opens.Batch}))
	const writers, each = 6, 25
	var wg sync.WaitGroup
	wrote := make(map[int64]int) // version to how many commits wrote it
	var lies []string
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				b, err := calm.Batch(t.Context(), opens.Batch.ID)
				if err != nil {
					return // the count below is wrong then
				}
				request := approvals.RequestID(fmt.Sprintf("%d-%d", w, i))
				before := b
				b.Version++
				err = s.CommitBatch(t.Context(), approvals.BatchCommit{Request: request, Before: before, Batch: b})
				applied, askErr := calm.Answered(t.Context(), b.ID, request)
				mu.Lock()
				if applied {
					wrote[b.Version]++
				}
				if askErr != nil || (err == nil) != applied && (err == nil || errors.Is(err, approvals.ErrConflict)) {
					lies = append(lies, string(request))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Empty(t, lies, "commits that were told something else than what happened")
	final, err := calm.Batch(t.Context(), opens.Batch.ID)
	require.NoError(t, err)
	require.Len(t, wrote, int(final.Version-1))
	for v, n := range wrote {
		require.Equal(t, 1, n, "version %d", v)
	}
}
