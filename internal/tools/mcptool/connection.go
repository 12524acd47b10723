package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign/countersign/internal/approvals"
)

// How a server is connected to: within how long, and after how long again.
const (
	connectWithin = 30 * time.Second
	listWithin    = 30 * time.Second
	firstPause    = time.Second
	longestPause  = time.Minute
	steadyAfter   = time.Minute // a connection that held so long has no history of failures
	waitsFor      = 10 * time.Second
)

// After how long a list that has changed is read: several changes in a moment are one,
// and a list that does not come to rest is read less and less often.
const (
	firstSettling   = 200 * time.Millisecond
	longestSettling = 5 * time.Second
)

// A link is an open connection to a server.
type link struct {
	server  Server
	session *mcp.ClientSession
	program *program // of a server over stdio
	tap     *tap
	called  atomic.Bool   // it was sent a call
	changed chan struct{} // the server says that its list has changed
	said    atomic.Int64  // how often it said so
	read    int64         // how often it had when its list was asked for; guarded by [connection.mu]
	lost    chan struct{} // the connection has ended
	why     error         // it has; to be read after that

	calls sync.WaitGroup // that are under way; [connection.current] adds to it

	spent chan struct{} // another one has to take its place
	once  sync.Once     // closes spent
}

// spend notes that the stream has ended on which the server says that its list has
// changed, or that the server has forgotten the session.
func (l *link) spend() { l.once.Do(func() { close(l.spent) }) }

// retire ends the link once its calls are over. It is not the current one any more.
func (l *link) retire() {
	go func() {
		l.calls.Wait()
		_ = l.end()
	}()
}

// dial starts or reaches the server.
func dial(ctx context.Context, s Server, log *slog.Logger) (_ *link, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	l := &link{server: s, tap: newTap(), changed: make(chan struct{}, 1), lost: make(chan struct{}), spent: make(chan struct{})}
	var transport mcp.Transport
	if s.Command != "" {
		if l.program, err = startProgram(s); err != nil {
			return nil, err
		}
		transport = &stdio{l.program, l.tap, log, s.longest()}
	} else {
		transport = web(s, l.tap, l.spend)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "countersign", Version: "1"}, &mcp.ClientOptions{
		// Nothing of this process is for a server: no roots, no sampling, no
		// elicitation. And a request for input is an answer for people.
		Capabilities:   &mcp.ClientCapabilities{},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		Logger:         slog.New(slog.DiscardHandler), // it quotes messages
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			l.said.Add(1)
			select {
			case l.changed <- struct{}{}:
			default:
			}
		},
	})
	l.session, err = client.Connect(ctx, transport, nil)
	if err != nil {
		return nil, errors.Join(l.explain(err), l.end())
	}
	go func() {
		l.why = errEnded
		if err := l.session.Wait(); errors.Is(err, errTooLong) { // others may quote messages
			l.why = fmt.Errorf("%w: %w", errEnded, errTooLong)
		}
		close(l.lost)
	}()
	return l, nil
}

var errEnded = errors.New("the connection ended")

func (l *link) end() error {
	if l.session != nil {
		closed := make(chan struct{})
		go func() { _ = l.session.Close(); close(closed) }()
		select {
		case <-closed:
		case <-time.After(endsWithin):
		}
	}
	if l.program != nil {
		return l.program.close()
	}
	return nil
}

// unanswered is called for a call that was not answered in time. It ends a program that has
// answered nothing for twice as long as any call may take: it hangs, and no further call
// would be answered either. A program that is slow, and gives no answer to a call that was
// given up, answers the ping.
func (l *link) unanswered(ctx context.Context, log *slog.Logger) {
	switch {
	case l.program == nil:
	case l.program.quiet.tooLong():
		log.WarnContext(ctx, "an MCP server answers nothing, so its program is ended and started again",
			slog.Duration("silent", 2*l.server.longest()))
		_ = l.program.close()
	default:
		l.calls.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.server.longest())
			defer cancel()
			_ = l.session.Ping(ctx, nil)
		})
	}
}

// explain returns an error without secrets, and with the last words of the
// program. A program that was sent a call may have written its arguments, which go to
// no log.
func (l *link) explain(err error) error {
	words := approvals.Visible(clip(l.server.conceal(err.Error()), 500))
	if l.program == nil {
		return errors.New(words)
	}
	switch last := l.program.words.end(l.server.conceal); {
	case last == "":
	case l.called.Load():
		words += "; what it wrote to standard error is not shown, because it can hold arguments of calls"
	default:
		words += "; it wrote: " + last
	}
	return errors.New(words)
}

// keepsList reports whether the SDK keeps the list: it does not ask the server again while
// the list is good, and it needs the list for calls. Another link can ask beside it.
func (l *link) keepsList() bool {
	r := l.session.InitializeResult()
	return r != nil && r.ProtocolVersion >= "2026-07-28"
}

// list returns the tools of the server, as it sent them.
func (l *link) list(ctx context.Context) ([]json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	var all []json.RawMessage
	seen := map[string]bool{}
	for cursor := ""; ; {
		e, meta := l.tap.begin()
		_, err := l.session.ListTools(ctx, &mcp.ListToolsParams{Meta: meta, Cursor: cursor})
		a, _, _ := e.outcome()
		l.tap.end(e)
		if a == nil || a.Error != nil {
			return nil, l.explain(fmt.Errorf("it did not list its tools: %w", cmpErr(err)))
		}
		var page struct {
			Tools []json.RawMessage `json:"tools"`
			Next  string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(a.Result, &page); err != nil {
			return nil, fmt.Errorf("its list of tools cannot be read: %w", err)
		}
		all = append(all, page.Tools...)
		if len(all) > maxTools {
			return nil, fmt.Errorf("it lists more than %d tools", maxTools)
		}
		if cursor = page.Next; cursor == "" {
			return all, nil
		}
		if seen[cursor] {
			return nil, errors.New("its list of tools does not end")
		}
		seen[cursor] = true
	}
}

func cmpErr(err error) error {
	if err == nil {
		return errors.New("the list was not on the wire")
	}
	return err
}

// A connection keeps a link to one server open.
type connection struct {
	server Server
	log    *slog.Logger
	update func(live []Listed) // what the server lists now
	asked  chan struct{}       // to look at the list of a server over HTTP now

	mu    sync.Mutex
	link  *link         // nil while there is none
	moved chan struct{} // closed when there is another
}

func newConnection(s Server, log *slog.Logger, update func([]Listed)) *connection {
	return &connection{server: s, log: log, update: update, asked: make(chan struct{}, 1), moved: make(chan struct{})}
}

// look has the list of a server over HTTP read soon, if it is connected.
func (c *connection) look() {
	select {
	case c.asked <- struct{}{}:
	default:
	}
}

// run keeps the server connected until ctx ends, and then ends it.
func (c *connection) run(ctx context.Context) {
	pauses := newPauses(firstPause, longestPause, steadyAfter)
	for ctx.Err() == nil {
		pauses.rest()
		err := c.hold(ctx)
		if ctx.Err() != nil {
			return
		}
		pause := pauses.next()
		c.log.WarnContext(ctx, "no connection to an MCP server", slog.Any("err", err), slog.Duration("again", pause))
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)): //nolint:gosec // no secret
		}
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
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.lost:
			return l.explain(l.why)
		case <-time.After(pause):
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
