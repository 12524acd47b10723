package mcptool

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// How a server is connected to: within how long, and after how long again.
const (
	connectWithin = 30 * time.Second
	listWithin    = 30 * time.Second
	firstPause    = time.Second
	longestPause  = time.Minute
	steadyAfter   = time.Minute // a connection that held so long has no history of failures
	waitsFor      = 10 * time.Second
	pingWithin    = 3 * time.Second
)

// After how long a list that has changed is read: several changes in a moment are one,
// and a list that does not come to rest is read less and less often.
const (
	firstSettling   = 200 * time.Millisecond
	longestSettling = 5 * time.Second
)

// A connection keeps a link to one server open.
type connection struct {
	server Server
	log    *slog.Logger
	update func(live []Listed) // what the server lists now
	asked  chan struct{}       // to look at the list of a server over HTTP now
	wanted chan struct{}       // a call waits for a connection

	mu    sync.Mutex
	link  *link         // nil while there is none
	moved chan struct{} // closed when there is another, or its list was read anew
}

func newConnection(s Server, log *slog.Logger, update func([]Listed)) *connection {
	return &connection{server: s, log: log, update: update, asked: make(chan struct{}, 1), wanted: make(chan struct{}), moved: make(chan struct{})}
}

// look has the list of a server over HTTP read soon, if it is connected.
func (c *connection) look() {
	select {
	case c.asked <- struct{}{}:
	default:
	}
}

// run keeps the server connected until ctx ends, and then ends it. While a call waits, a
// server over HTTP is tried every second.
func (c *connection) run(ctx context.Context) {
	pauses := newPauses(firstPause, longestPause, steadyAfter)
	var wanted <-chan struct{}
	if c.server.URL != "" {
		wanted = c.wanted
	}
	for ctx.Err() == nil {
		pauses.rest()
		err := c.hold(ctx)
		if ctx.Err() != nil {
			return
		}
		pause := pauses.next()
		c.log.WarnContext(ctx, "no connection to an MCP server", slog.Any("err", err), slog.Duration("again", pause))
		pauseFor(ctx, nil, max(firstPause, pause/2+rand.N(pause)), wanted) //nolint:gosec // no secret
	}
}

// pauseFor waits, until the connection is lost at most. After [firstPause] a call that waits
// for a connection ends the pause.
func pauseFor(ctx context.Context, lost <-chan struct{}, pause time.Duration, wanted <-chan struct{}) {
	long := time.After(pause)
	select {
	case <-ctx.Done():
	case <-lost:
	case <-time.After(min(pause, firstPause)):
	}
	select {
	case <-ctx.Done():
	case <-lost:
	case <-long:
	case <-wanted:
	}
}

// hold connects and follows the list of tools, until the connection ends.
func (c *connection) hold(ctx context.Context) error {
	l, err := dial(ctx, c.server, c.log)
	if err != nil {
		return err
	}
	defer func() {
		if l != nil {
			_ = l.end()
		}
	}()
	settling := newPauses(firstSettling, longestSettling, longestSettling)
	redialing := newPauses(firstPause, longestPause, steadyAfter)
	var old *link
	retire := func() {
		if old != nil {
			old.retire()
			old = nil
		}
	}
	defer retire()
	defer c.set(nil)
	var again <-chan time.Time // a program is not replaced by another while it is connected
	var asked <-chan struct{}
	if c.server.URL != "" {
		asked = c.asked
		ticker := time.NewTicker(c.server.relist())
		defer ticker.Stop()
		again = ticker.C
	}
	for fresh, polled := true, false; ; {
		var pause time.Duration
		if fresh { // before its list counts: until the link is set, calls are made on the one before
			l.pings = l.answersPings(ctx)
		}
		said := l.said.Load()
		raw, err := l.list(ctx)
		switch {
		case err != nil && fresh:
			return err
		case err == nil:
			c.update(listed(c.server, raw))
			c.caughtUp(l, said)
			if fresh {
				c.set(l)
				retire()
				if !polled {
					redialing.rest()
				}
			}
			settling.rest()
			fresh, polled = false, false
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-l.lost:
				return l.explain(l.why)
			case <-l.spent: // the list may be another one now
				fresh, pause = true, redialing.next()
			case <-l.changed:
				pause = settling.next()
			case <-again:
				fresh, polled = l.keepsList(), true
			case <-asked:
				fresh, polled = l.keepsList(), true
			}
		default: // calls that are under way may still be answered
			c.log.WarnContext(ctx, "an MCP server does not list its tools again, so it is connected to anew", slog.Any("err", err))
			fresh, polled, pause = true, false, redialing.next()
		}
		var wanted <-chan struct{}
		if fresh {
			wanted = c.wanted
		}
		pauseFor(ctx, l.lost, pause, wanted)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.lost:
			return l.explain(l.why)
		default:
		}
		if !fresh {
			continue
		}
		old = l
		if l, err = dial(ctx, c.server, c.log); err != nil {
			return err
		}
	}
}

// set makes the link the current one; nil if there is none.
func (c *connection) set(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == l {
		return
	}
	if l != nil && c.link == nil {
		c.log.Info("connected to an MCP server")
	}
	close(c.moved)
	c.link, c.moved = l, make(chan struct{})
}

// caughtUp notes that the list of the link was read after the server had said so often that
// it has changed.
func (c *connection) caughtUp(l *link, said int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.read != said {
		l.read = said
		close(c.moved)
		c.moved = make(chan struct{})
	}
}

// current returns a link other than last, for which it waits a while, and counts a call
// of it, which the caller ends. If the server has said that its list has changed, it waits
// until the list was read after that, because the tool may not be as it was accepted.
func (c *connection) current(ctx context.Context, last *link) (*link, error) {
	patience := time.NewTimer(waitsFor)
	defer patience.Stop()
	var seen *link
	var said int64 // a server that says so with each list keeps no call waiting for ever
	for {
		c.mu.Lock()
		l, moved, why := c.link, c.moved, errNotConnected
		found := l != nil && l != last
		if found {
			if l != seen {
				seen, said = l, l.said.Load()
			}
			if found = l.read >= said; !found {
				why = errNotListed
			}
		}
		if found {
			l.calls.Add(1)
		}
		c.mu.Unlock()
		if found {
			return l, nil
		}
		select {
		case <-moved:
		case c.wanted <- struct{}{}:
		case <-ctx.Done():
			return nil, why
		case <-patience.C:
			return nil, why
		}
	}
}

var (
	errNotConnected = errors.New("the server is not connected")
	errNotListed    = errors.New("its server says that its tools have changed, and has not listed them since")
)
