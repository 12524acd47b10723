package statetest

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
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
	out, _ := Cuttable(t, c, h)
	return out
}

// Cuttable is [Harmed] with a way to cut all connections that are open.
func Cuttable(t *testing.T, c redis.UniversalClient, h Harm) (out redis.UniversalClient, cut func()) {
	t.Helper()
	w := &wires{harm: h}
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
