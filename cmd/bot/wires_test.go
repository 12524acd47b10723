package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// A port is a [net.Listener] in memory, whose connections hold what is written until
// it is read.
//
// Unlike those of bufconn, their timers are never set to a time that is over. In a
// bubble of synctest the runtime runs such a timer in the goroutine that sets it, and
// the race detector takes all of these goroutines for one. If two of them do so at the
// same time, the detector crashes or reports races that do not exist (Go 1.26,
// timer.modify in runtime/time.go).
type port struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newPort() *port {
	closed := make(chan struct{})
	return &port{conns: make(chan net.Conn), closed: closed, close: sync.OnceFunc(func() { close(closed) })}
}

func (p *port) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *port) dial(ctx context.Context) (net.Conn, error) {
	near, far := newPipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *port) Close() error   { p.close(); return nil }
func (p *port) Addr() net.Addr { return inMemory{} }

type inMemory struct{}

func (inMemory) Network() string { return "memory" }
func (inMemory) String() string  { return "memory" }

// newPipe is net.Pipe whose writes never wait.
func newPipe() (near, far net.Conn) {
	there, back := newQueue(), newQueue()
	return &end{reads: back, writes: there}, &end{reads: there, writes: back}
}

// An end of a pipe.
type end struct{ reads, writes *queue }

func (e *end) Read(b []byte) (int, error)  { return e.reads.read(b) }
func (e *end) Write(b []byte) (int, error) { return e.writes.write(b) }

func (e *end) Close() error {
	e.reads.change(func(q *queue) { q.gone, q.bytes = true, nil })
	e.writes.change(func(q *queue) { q.ended = true })
	return nil
}

func (e *end) LocalAddr() net.Addr              { return inMemory{} }
func (e *end) RemoteAddr() net.Addr             { return inMemory{} }
func (e *end) SetDeadline(t time.Time) error    { return e.SetReadDeadline(t) }
func (e *end) SetWriteDeadline(time.Time) error { return nil }

func (e *end) SetReadDeadline(t time.Time) error {
	e.reads.change(func(q *queue) { q.until = t })
	return nil
}

// A queue is what one end has written and the other has not read.
type queue struct {
	mu      sync.Mutex
	bytes   []byte
	ended   bool          // nothing more is written
	gone    bool          // nobody reads any more
	until   time.Time     // for reading; zero: no limit
	changed chan struct{} // closed at each change
}

func newQueue() *queue { return &queue{changed: make(chan struct{})} }

func (q *queue) change(f func(*queue)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f(q)
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *queue) write(b []byte) (n int, err error) {
	q.change(func(q *queue) {
		if q.ended || q.gone {
			err = io.ErrClosedPipe
			return
		}
		q.bytes, n = append(q.bytes, b...), len(b)
	})
	return n, err
}

func (q *queue) read(b []byte) (int, error) {
	for {
		n, err := q.take(b)
		nothing, ok := errors.AsType[emptyError](err)
		if !ok {
			return n, err
		}
		nothing.wait()
	}
}

// take reads what is there.
func (q *queue) take(b []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.gone:
		return 0, io.ErrClosedPipe
	case !q.until.IsZero() && !time.Now().Before(q.until):
		return 0, os.ErrDeadlineExceeded
	case len(q.bytes) > 0 || len(b) == 0:
		n := copy(b, q.bytes)
		q.bytes = q.bytes[n:]
		return n, nil
	case q.ended:
		return 0, io.EOF
	}
	return 0, emptyError{q.changed, q.until}
}

// An emptyError is that of a queue from which one can read after a change, or when a
// time is over; zero: never.
type emptyError struct {
	changed <-chan struct{}
	until   time.Time
}

func (emptyError) Error() string { return "nothing was written" }

func (n emptyError) wait() {
	if n.until.IsZero() {
		<-n.changed
		return
	}
	timer := time.NewTimer(time.Until(n.until)) // in a bubble, it is still to come
	defer timer.Stop()
	select {
	case <-n.changed:
	case <-timer.C:
	}
}
