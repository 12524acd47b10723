package statetest

import (
	"sync"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
)

// A Witness is a server that answers WAIT and WAITAOF as Redis documents them,
// which no server on this machine may know: they are about the writes of their
// connection, and a connection that has written nothing hears at once that all
// is well. It is a miniredis with a script, for one client that does one thing
// at a time.
type Witness struct {
	mu       sync.Mutex
	synced   int  // what WAITAOF says of the server's own disk
	replicas int  // what WAIT says
	old      bool // it does not know WAITAOF
	asked    []string
	wrote    map[*server.Peer]bool
	script   *server.Peer // whose script runs
}

// NewWitness starts one that ends with the test.
func NewWitness(tb testing.TB) (*Witness, redis.UniversalClient) {
	tb.Helper()
	w := &Witness{synced: 1, replicas: 2, wrote: make(map[*server.Peer]bool)}
	m := miniredis.RunT(tb)
	m.Server().SetPreHook(w.hear)
	return w, client(tb, &redis.Options{Addr: m.Addr()})
}

// Says sets what the server says of the writes of a connection from now on.
func (w *Witness) Says(synced, replicas int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.synced, w.replicas = synced, replicas
}

// Old makes it a server from before WAITAOF.
func (w *Witness) Old() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.old = true
}

// Asked returns the questions since it was asked last.
func (w *Witness) Asked() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = nil
	return asked
}

func (w *Witness) hear(p *server.Peer, cmd string, args ...string) (done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch cmd {
	case "EVAL", "EVALSHA":
		w.script = p
	case "SET", "HSET", "ZADD", "ZREM", "HDEL", "RPUSH", "XADD", "PEXPIRE", "PERSIST":
		w.wrote[w.script] = true // commands of a script come from nobody
	case "WAIT":
		w.asked = append(w.asked, "WAIT "+args[0])
		n := 2
		if w.wrote[p] {
			n = w.replicas
		}
		p.WriteInt(n)
		return true
	case "WAITAOF":
		if w.old {
			return false
		}
		w.asked = append(w.asked, "WAITAOF "+args[0]+" "+args[1])
		n := 1
		if w.wrote[p] {
			n = w.synced
		}
		p.WriteLen(2)
		p.WriteInt(n)
		p.WriteInt(0)
		return true
	}
	return false
}
