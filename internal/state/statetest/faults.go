package statetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

// A Harm decides what happens to one write of a client to its server.
type Harm func(sent []byte) Fault

// Fault is what can happen to a connection.
type Fault string

// The faults. After each the connection is closed.
const (
	None        Fault = ""
	LostRequest Fault = "request" // the server never sees it
	LostReply   Fault = "reply"   // the server has done it, nobody hears
)

// Harmed returns a client of the same server whose connections suffer h.
// Retries are on, as in production.
func Harmed(t *testing.T, c redis.UniversalClient, h Harm) redis.UniversalClient {
	t.Helper()
	out, _ := harmed(t, c, h)
	return out
}

// harmed is Harmed with a way to cut all connections that are open.
func harmed(t *testing.T, c redis.UniversalClient, h Harm) (out redis.UniversalClient, cut func()) {
	t.Helper()
	w := &wires{harm: h}
	if held, ok := c.(*Held); ok {
		out, cut = harmed(t, held.UniversalClient, h)
		return &Held{UniversalClient: out, Durability: held.Durability, Replicas: held.Replicas}, cut
	}
	switch c := c.(type) {
	case *redis.Client:
		o := *c.Options()
		o.Dialer = w.through(o.Dialer)
		out = redis.NewClient(&o)
	case *redis.ClusterClient:
		o := *c.Options()
		o.Dialer = w.through(redis.NewDialer(&redis.Options{DialTimeout: time.Second}))
		out = redis.NewClusterClient(&o)
	default:
		require.Fail(t, "no client of a kind that can be harmed", "%T", c)
	}
	t.Cleanup(func() { _ = out.Close() }) // it may complain about what was cut
	return out, w.cut
}

type wires struct {
	harm Harm

	mu    sync.Mutex
	conns []net.Conn
}

func (w *wires) through(dial func(ctx context.Context, network, addr string) (net.Conn, error),
) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.conns = append(w.conns, conn)
		return &wire{Conn: conn, harm: w.harm}, nil
	}
}

func (w *wires) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
}

var errCut = errors.New("connection cut by the test")

type wire struct {
	net.Conn
	harm Harm
	mute atomic.Bool
}

func (c *wire) Write(b []byte) (int, error) {
	switch c.harm(b) {
	case LostRequest:
		return 0, errors.Join(io.EOF, errCut, c.Close())
	case LostReply:
		c.mute.Store(true)
	case None:
	}
	return c.Conn.Write(b)
}

func (c *wire) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.mute.Load() { // the reply is there, so that the server has done it
		return 0, errors.Join(io.EOF, errCut, c.Close())
	}
	return n, err
}

// isScript reports whether a client sent the commit script.
func isScript(sent []byte) bool {
	return bytes.Contains(sent, []byte("\r\nevalsha\r\n")) || bytes.Contains(sent, []byte("\r\neval\r\n"))
}

// once harms the first script that is sent while it is armed.
type once struct{ armed atomic.Bool }

func (o *once) harm(f Fault) Harm {
	return func(sent []byte) Fault {
		if isScript(sent) && o.armed.CompareAndSwap(true, false) {
			return f
		}
		return None
	}
}

// LostReplies checks that a commit whose reply was lost, and which the client
// sent again, is answered as applied and was applied once. open returns the
// store to try on a harmed client.
func LostReplies(t *testing.T, c redis.UniversalClient, open func(c redis.UniversalClient) *state.Store) error {
	t.Helper()
	var o once
	s := open(Harmed(t, c, o.harm(LostReply)))
	opens := openBatch(t, ids{3}.batch("b"), ids{3}.run("r"), 1, time.Time{})
	require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Batch: opens.Batch}))
	o.armed.Store(true)
	err := s.CommitBatch(t.Context(), decide(t, opens.Batch, approvals.Approve, "click"))
	require.False(t, o.armed.Load(), "no reply was lost")
	b, loadErr := s.Batch(t.Context(), opens.Batch.ID)
	require.NoError(t, loadErr)
	require.EqualValues(t, 2, b.Version)
	facts, factsErr := s.Facts(t.Context(), 3, "", 10)
	require.NoError(t, factsErr)
	require.Len(t, facts, 3, "decided, settled and resolved, once each")
	return err
}

// lostReplies: every kind of commit, once with its reply lost and once with the
// request lost.
func lostReplies(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	require.NoError(t, LostReplies(t, c, func(c redis.UniversalClient) *state.Store {
		return openStore(t, c, newClock().now)
	}))
	for _, f := range []Fault{LostReply, LostRequest} {
		var o once
		s := openStore(t, Harmed(t, c, o.harm(f)), newClock().now)
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
		require.Empty(t, due(t, c, s, state.Cards))
	}
}

// cuts: connections are cut at random under many writers of one document.
// Every version is written by exactly one commit, and what a commit was told is
// true.
func cuts(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	seed := rand.Uint64() //nolint:gosec // no secret
	t.Logf("seed %d", seed)
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // no secret
	calm := openStore(t, c, newClock().now)
	s := openStoreAt(t, Harmed(t, c, func(sent []byte) Fault {
		mu.Lock()
		defer mu.Unlock()
		if !isScript(sent) || r.IntN(5) > 0 {
			return None
		}
		return []Fault{LostReply, LostRequest}[r.IntN(2)]
	}), newClock().now, calm.Prefix())

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
