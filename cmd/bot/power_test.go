package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// powerRounds is how often the power fails: a few times in every test run, more
// in make soak.
var powerRounds = flag.Int("power", 3, "power failures under a bot")

// A line leads to whichever server is the master, as a Sentinel's address does.
type line struct {
	socket string

	mu    sync.Mutex
	to    string
	conns []net.Conn
}

func newLine(t *testing.T, to string) *line {
	t.Helper()
	l := &line{socket: filepath.Join(statetest.Folder(t), "s"), to: to}
	listener, err := net.Listen("unix", l.socket)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go l.carry(conn)
		}
	}()
	return l
}

func (l *line) carry(conn net.Conn) {
	l.mu.Lock()
	far, err := net.Dial("unix", l.to)
	if err == nil {
		l.conns = append(l.conns, conn, far)
	}
	l.mu.Unlock()
	if err != nil {
		_ = conn.Close()
		return
	}
	go func() { _, _ = io.Copy(far, conn); _ = far.Close() }()
	_, _ = io.Copy(conn, far)
	_ = conn.Close()
}

// leadTo cuts what is open and leads to another server from then on.
func (l *line) leadTo(to string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = to
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

// failure runs a life in which the power fails after the last signature was
// acknowledged, somewhere while the approved calls run. recover brings Redis back.
// What was acknowledged counts, once, and no call runs twice. It reports whether a call is
// in doubt.
func (w *world) failure(recover func() *statetest.Instance) (doubt bool) {
	t := w.t
	t.Helper()
	p := w.start()
	root := w.sim.ask(cleanUp, "")
	w.sim.approves(root)
	time.Sleep(rand.N(20 * time.Millisecond)) // where exactly the power fails
	cut := w.server.LosePower(rand.Float64())
	now := recover()

	end := w.sim.await(alice, root, "an end, without another click", ended)
	calls := requireOnce(t, p)
	store, err := state.Open(t.Context(), state.Options{Client: now.Client})
	require.NoError(t, err)
	signed := map[approvals.ToolCallID]int{}
	for n := range approvals.Partitions {
		facts, err := state.NewFeed(store).Facts(t.Context(), n, "", 100)
		require.NoError(t, err)
		for _, f := range facts {
			if d, ok := f.Event.(approvals.Decided); ok {
				signed[d.Call]++
			}
		}
	}
	require.Len(t, signed, 2, "acknowledged decisions that are gone")
	for call, n := range signed {
		require.Equal(t, 1, n, call)
	}
	t.Logf("%d bytes of the log were cut off, %d calls started; %.60q", cut, calls, end.words())
	if strings.Contains(end.words(), "may or may not") {
		return true
	}
	require.NoFileExists(t, filepath.Join(w.folder, "reports", "2023-q1-sales.txt"))
	require.NoFileExists(t, filepath.Join(w.folder, "reports", "2023-q2-sales.txt"))
	return false
}

// A powerToll is what power failures have cost.
type powerToll struct {
	mu      sync.Mutex
	setting string
	toll
}

// print prints it when all subtests have ended. Calls that ran twice fail them, and
// messages are not counted.
func (p *powerToll) print(t *testing.T, fault string) {
	t.Helper()
	p.copies = -1
	t.Cleanup(func() { t.Log(tollHead + p.row(fault, p.setting)) })
}

func (p *powerToll) add(setting string, doubt bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setting = setting
	p.points++
	if doubt {
		p.doubts++
	}
}

// setRedis writes what the configuration says of Redis.
func (w *world) setRedis(line string) {
	w.t.Helper()
	text, err := os.ReadFile(w.config)
	require.NoError(w.t, err)
	require.NoError(w.t, os.WriteFile(w.config, fmt.Appendf(text, "\n%s\n", line), 0o600))
}

func TestAPowerFailureUnderABotLosesAndDoublesNothing(t *testing.T) {
	var all powerToll
	all.print(t, "the machine of Redis loses power")
	for round := range *powerRounds {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			t.Parallel()
			w := newWorldOn(t, statetest.NewMachine(t))
			w.setRedis("redis: {durability: fsync}")
			doubt := w.failure(func() *statetest.Instance { w.server.Start(); return w.server })
			all.add(setting(t, w.config), doubt)
		})
	}
}

// With replicated the machine need not come back.
func TestAFailoverUnderABotLosesAndDoublesNothing(t *testing.T) {
	var all powerToll
	all.print(t, "the machine of Redis is lost, and a replica takes over")
	for round := range *powerRounds {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			t.Parallel()
			w := newWorldOn(t, statetest.NewMachine(t))
			w.setRedis("redis: {durability: replicated, replicas: 1}")
			replica := w.server.Replica()
			l := newLine(t, w.server.Socket)
			for i, v := range w.env {
				if strings.HasPrefix(v, "REDIS_URL=") {
					w.env[i] = "REDIS_URL=unix://" + l.socket
				}
			}
			doubt := w.failure(func() *statetest.Instance {
				replica.Promote()
				replica.Replica()
				l.leadTo(replica.Socket)
				return replica
			})
			all.add(setting(t, w.config), doubt)
		})
	}
}
