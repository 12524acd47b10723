package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/modelcontextprotocol/go-sdk/mcp"
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

	pings   bool          // the server answers them in this session; set before calls are made
	asking  chan struct{} // holds a value while a ping is sent
	unknown atomic.Bool   // the server refused it

	spent chan struct{} // another one has to take its place
	once  sync.Once     // closes spent
}

// spend notes that the stream has ended on which the server says that its list has
// changed, that the server has forgotten the session, or that a call did not reach it.
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
	l := &link{server: s, tap: newTap(s.quiet()), changed: make(chan struct{}, 1), asking: make(chan struct{}, 1), lost: make(chan struct{}), spent: make(chan struct{})}
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

// idle reports whether only a ping tells if the server still knows the session, because it
// has answered nothing for a while, or has told that it does not.
func (l *link) idle() bool { return l.unknown.Load() || l.pings && l.tap.isQuiet() }

// forgotten reports whether the server refuses a ping in this session, and has another
// one opened then. Calls that ask at the same time share a ping. It is sent before a call
// and not after one that was refused, because HTTP 400 can also mean that a call failed.
// The SDK for Python and mcp-go sent that for a long time for a session that they do not
// know, where MCP wants 404, and servers that were written after the examples of the SDK
// for TypeScript still do. After any other answer to the ping, or none, the call is made.
// https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management
func (l *link) forgotten(ctx context.Context) bool {
	select {
	case l.asking <- struct{}{}:
		defer func() { <-l.asking }()
	case <-ctx.Done():
		return false
	}
	if l.unknown.Load() || !l.idle() {
		return l.unknown.Load()
	}
	_, status := l.ping(ctx)
	unknown := status == http.StatusBadRequest || status == http.StatusNotFound
	switch {
	case unknown:
		l.unknown.Store(true)
		l.spend()
	case ctx.Err() == nil:
		l.tap.rests()
	}
	return unknown
}

// answersPings reports whether the server answers a ping in the session that was just
// opened, if only with an error. To refuse one later means something only then.
func (l *link) answersPings(ctx context.Context) bool {
	if l.session.ID() == "" {
		return false
	}
	answered, status := l.ping(ctx)
	return answered && status == 0
}

// ping returns whether the server answered a ping, and the status with which HTTP refused it.
func (l *link) ping(ctx context.Context) (answered bool, status int) {
	ctx, cancel := context.WithTimeout(ctx, pingWithin)
	defer cancel()
	ctx, e, meta := l.tap.begin(ctx)
	defer l.tap.end(e)
	e.probe = true
	_ = l.session.Ping(ctx, &mcp.PingParams{Meta: meta}) // the exchange says how it ended
	a, _, status := e.outcome()
	return a != nil, status
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
		asking, e, meta := l.tap.begin(ctx)
		_, err := l.session.ListTools(asking, &mcp.ListToolsParams{Meta: meta, Cursor: cursor})
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
