package inbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/slackui/slackapi"
)

const (
	defaultSockets = 2
	maxEnvelopes   = 64 // answered at the same time
	openTime       = 10 * time.Second
	steady         = 10 * time.Second // how long a connection must last to count as a good one
	longestWait    = time.Minute
)

// Why there is no connection.
var (
	errNoSocket       = errors.New("no connection to Slack is open yet")
	errPlainSocket    = errors.New("the connection that Slack offers is not encrypted")
	errNoHello        = errors.New("no hello from Slack")
	errLinkDisabled   = errors.New("Socket Mode is turned off in the settings of the app")
	errTooManySockets = errors.New("ten connections of this app are open already, which is as many as Slack allows")
)

// Socket receives in Socket Mode what [HTTP] receives over HTTP: over
// connections that we open, so that nothing has to be reachable from outside.
// Envelopes are not signed; the app-level token that opens a connection
// authenticates it.
//
// Each envelope is handled like the HTTP request with the same content, and
// acknowledged once that is committed, with the answer as its payload. An
// envelope that could not be committed is not acknowledged, so that Slack
// delivers the event again or shows its warning beside the button.
//
// slack-go is only used to open connections. Its socketmode
// client closes a connection as soon as it is told that it will be closed,
// and writes later acknowledgments to the next one, which did not carry the
// envelope; reports an acknowledgment before it is written; drops unwritten
// ones when it stops; and rejects a whole event for one block that it does not
// know. Here a connection is replaced first, and closed when all its envelopes
// are answered.
type Socket struct {
	handle func(ctx context.Context, f frame) (Reply, error) // answers an envelope
	client *slack.Client
	dialer websocket.Dialer
	now    func() time.Time
	log    *slog.Logger
	count  int
	secure bool // only encrypted connections will do
	places chan struct{}
	told   func(path string, code int, took time.Duration)

	mu      sync.Mutex
	up      map[*link]bool
	problem error // why the latest attempt failed
}

// A SocketConfig is what [NewSocket] works with.
type SocketConfig struct {
	AppToken func() string
	APIURL   string
	Sockets  int // how many are held; 0 means 2
	Now      func() time.Time
	Log      *slog.Logger

	// Answered, if it is set, is told of each envelope that Slack acts on: the path and
	// the status that its answer would have over HTTP, and how long Slack waited.
	Answered func(path string, code int, took time.Duration)
}

// NewSocket returns a Socket that hands what it receives to s.
func NewSocket(c SocketConfig, s *HTTP) *Socket {
	count := c.Sockets
	if count == 0 {
		count = defaultSockets
	}
	told := c.Answered
	if told == nil {
		told = func(string, int, time.Duration) {}
	}
	return &Socket{
		handle: s.envelope, told: told, now: c.Now, log: c.Log, count: count, secure: strings.HasPrefix(c.APIURL, "https://"),
		client: slack.New("", slack.OptionAppLevelToken(c.AppToken()), slack.OptionAPIURL(strings.TrimSuffix(c.APIURL, "/")+"/"),
			slack.OptionHTTPClient(slackapi.HTTPClient(openTime, nil))),
		dialer: websocket.Dialer{Proxy: http.ProxyFromEnvironment},
		places: make(chan struct{}, maxEnvelopes), up: map[*link]bool{}, problem: errNoSocket,
	}
}

// Check asks Slack for the address of a connection and does not use it. An
// error is that of apps.connections.open.
func (s *Socket) Check(ctx context.Context) error {
	_, err := s.address(ctx)
	return err
}

// Ready returns nil while at least one connection is up, and otherwise why
// none is.
func (s *Socket) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.up) > 0 {
		return nil
	}
	return s.problem
}

// Run holds the connections until ctx ends. Then it finishes and acknowledges the
// envelopes that it has begun to answer, and closes the connections. It never gives
// up: it tries again, less often each time, and [Socket.Ready] and the log say what
// is wrong.
func (s *Socket) Run(ctx context.Context) {
	var all sync.WaitGroup
	for range s.count {
		all.Go(func() { s.hold(ctx) })
	}
	all.Wait()
}

// hold keeps one connection open, and replaces it as soon as its end is
// announced. Several connections overlap while one hands over to the next.
func (s *Socket) hold(ctx context.Context) {
	var links sync.WaitGroup
	defer links.Wait()
	short := 0 // attempts and connections in a row that did not last
	for ctx.Err() == nil {
		l, err := s.open(ctx)
		if err != nil {
			short++
			s.failed(ctx, err)
			throttle(ctx, wait(short, err))
			continue
		}
		opened := s.now()
		links.Go(func() { l.serve(ctx) })
		select {
		case <-l.ending:
		case <-ctx.Done():
		}
		short++
		if s.now().Sub(opened) >= steady {
			short = 0
		}
		throttle(ctx, wait(short, nil))
	}
}

func (s *Socket) failed(ctx context.Context, err error) {
	s.mu.Lock()
	s.problem = err
	s.mu.Unlock()
	if ctx.Err() == nil {
		s.log.WarnContext(ctx, "no connection to Slack", slog.Any("reason", err))
	}
}

// wait returns how long to wait after n attempts that did not last: not at all after
// the first, then longer each time, and at least as long as Slack asks for.
func wait(n int, err error) time.Duration {
	var asked time.Duration
	if limited, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		asked = slackapi.RetryAfter(limited)
	}
	if n < 2 {
		return asked
	}
	d := min(longestWait, 250*time.Millisecond<<min(n-2, 16))
	return max(asked, d-rand.N(d/4+1)) //nolint:gosec // so that processes do not all try at once
}

func throttle(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// address asks Slack where to connect. The address is a secret.
func (s *Socket) address(ctx context.Context) (string, error) {
	_, address, err := s.client.StartSocketModeContext(ctx)
	if err != nil {
		return "", fmt.Errorf("ask Slack for a connection (apps.connections.open): %w", err)
	}
	u, err := url.Parse(address)
	if err != nil || (s.secure && u.Scheme != "wss") {
		return "", errPlainSocket
	}
	return address, nil
}

// open returns a connection on which Slack has said hello.
func (s *Socket) open(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	address, err := s.address(ctx)
	if err != nil {
		return nil, err
	}
	conn, answer, err := s.dialer.DialContext(ctx, address, nil)
	if err != nil {
		return nil, fmt.Errorf("connect to Slack: %w", err)
	}
	_ = answer.Body.Close()
	l := newLink(s, conn)
	giveUp := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer giveUp()
	hello, err := l.read()
	switch {
	case err != nil:
		err = fmt.Errorf("wait for Slack's hello: %w", err)
	case hello.Type == "disconnect":
		err = hello.refusal()
	case hello.Type != "hello":
		err = errNoHello
	}
	if err != nil {
		l.alive.Stop()
		return nil, errors.Join(err, conn.Close())
	}
	s.mu.Lock()
	s.up[l] = true
	s.mu.Unlock()
	s.log.InfoContext(ctx, "connected to Slack", slog.Int("connections", hello.Connections))
	return l, nil
}

// gone removes a connection from those that are up.
func (s *Socket) gone(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.up, l)
	if len(s.up) == 0 {
		s.problem = errNoSocket
	}
}
