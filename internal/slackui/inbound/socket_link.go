package inbound

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/countersign/countersign/internal/slackui/blockkit"
)

const (
	pingEvery = 10 * time.Second
	silence   = 30 * time.Second // a connection that is silent for this long is dead
	writeTime = 5 * time.Second
	// handover is how long a connection stays open after its end was announced;
	// Slack documents ten seconds.
	handover  = 15 * time.Second
	closeTime = time.Second // for Slack's half of the closing handshake
	maxFrame  = 8 << 20
	maxAck    = 20 << 10 // Slack silently drops a larger one
)

// frame is what Slack sends: hello, disconnect, or an envelope.
type frame struct {
	Type        string          `json:"type"`
	Reason      string          `json:"reason"`
	Connections int             `json:"num_connections"`
	Envelope    string          `json:"envelope_id"`
	Payload     json.RawMessage `json:"payload"`
	Accepts     bool            `json:"accepts_response_payload"`
	Retry       int             `json:"retry_attempt"`
}

// refusal is why Slack disconnects.
func (f frame) refusal() error {
	switch f.Reason {
	case "link_disabled", "socket_mode_disabled":
		return errLinkDisabled
	case "too_many_websockets":
		return errTooManySockets
	}
	return fmt.Errorf("%w: disconnect for the reason %q", errNoHello, blockkit.Brief(f.Reason, 64))
}

// link is one connection.
type link struct {
	socket  *Socket
	conn    *websocket.Conn
	heard   time.Time     // when something came last
	alive   *time.Timer   // closes the connection unless it is reset
	ending  chan struct{} // closed when the connection is to be replaced
	over    chan struct{} // closed when nothing more arrives on it
	writing sync.Mutex

	mu      sync.Mutex
	begun   int           // envelopes that are being answered
	leaving bool          // it is closed as soon as there are none
	drained chan struct{} // closed then; no envelope is begun after that
}

func newLink(s *Socket, conn *websocket.Conn) *link {
	l := &link{socket: s, conn: conn, heard: s.now().Round(0), ending: make(chan struct{}), over: make(chan struct{}), drained: make(chan struct{})}
	l.alive = time.AfterFunc(silence, func() { _ = conn.Close() })
	conn.SetReadLimit(maxFrame)
	pong := conn.PingHandler()
	conn.SetPingHandler(func(data string) error {
		if err := l.hear(); err != nil {
			return err
		}
		return pong(data)
	})
	conn.SetPongHandler(func(string) error { return l.hear() })
	return l
}

// errSuspended says that nothing was heard for longer than a connection lives.
var errSuspended = errors.New("nothing came for too long, as if this process or its machine had been suspended")

// hear keeps the connection alive because something came on it. It returns an error if
// nothing came for longer than the connection may be silent: while a machine is suspended
// the timer stops, and a process that was stopped may read before the timer closes the
// connection. What comes then may have been sent long ago, and its person was told that it
// failed.
func (l *link) hear() error {
	now := l.socket.now().Round(0) // without the clock that stops with the machine
	if now.Sub(l.heard) > silence {
		return errSuspended
	}
	l.heard = now
	l.alive.Reset(silence)
	return nil
}

// read returns the next message. It skips one that cannot be decoded, which cannot
// be acknowledged.
func (l *link) read() (frame, error) {
	for {
		_, message, err := l.conn.ReadMessage()
		if err != nil {
			return frame{}, fmt.Errorf("read from Slack: %w", err)
		}
		if err := l.hear(); err != nil {
			return frame{}, err
		}
		var f frame
		if err := json.Unmarshal(message, &f); err != nil {
			l.socket.log.Warn("message from Slack not understood", slog.Any("err", err))
			continue
		}
		return f, nil
	}
}

// serve answers envelopes until the connection is over, has been replaced, or ctx
// ends. It returns when every envelope that it has begun is answered.
func (l *link) serve(ctx context.Context) {
	var both sync.WaitGroup
	defer both.Wait()
	defer func() { _ = l.conn.Close() }()
	defer l.alive.Stop()
	both.Go(func() { l.receive(ctx) })
	both.Go(l.ping)
	select {
	case <-l.over:
	case <-ctx.Done():
	case <-l.ending:
		select {
		case <-l.over:
		case <-ctx.Done():
		case <-time.After(handover):
		}
	}
	l.leave()
	<-l.drained
	l.socket.gone(l)
	l.farewell()
}

// farewell closes the connection with the closing handshake.
func (l *link) farewell() {
	_ = l.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Time{})
	select {
	case <-l.over:
	case <-time.After(closeTime):
	}
}

func (l *link) ping() {
	ticks := time.NewTicker(pingEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			_ = l.conn.WriteControl(websocket.PingMessage, nil, time.Time{}) // a dead connection is noticed by its silence
		case <-l.over:
			return
		}
	}
}

// receive reads messages until the connection is over.
func (l *link) receive(ctx context.Context) {
	announced := false
	announce := func() {
		if !announced {
			announced = true
			close(l.ending)
		}
	}
	defer announce()
	defer close(l.over)
	log := l.socket.log
	for {
		f, err := l.read()
		switch {
		case err != nil:
			if !announced && ctx.Err() == nil {
				log.WarnContext(ctx, "connection to Slack lost", slog.Any("reason", err))
			}
			return
		case f.Type == "disconnect":
			log.InfoContext(ctx, "connection to Slack ends soon", slog.String("reason", blockkit.Brief(f.Reason, 64)))
			announce()
		case f.Envelope == "":
			log.DebugContext(ctx, "message without an envelope", slog.String("type", blockkit.Brief(f.Type, 64)))
		default:
			l.take(ctx, f)
		}
	}
}

// take begins to answer an envelope. For a free place it waits at most as long as
// an answer may take.
func (l *link) take(ctx context.Context, f frame) {
	if !l.begin() {
		return
	}
	began := l.socket.now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ackTimeout)
	places := l.socket.places
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
		l.socket.log.ErrorContext(ctx, "envelope failed", slog.String("type", blockkit.Brief(f.Type, 64)), slog.String("err", "too many envelopes at the same time"))
		l.socket.answered(f, http.StatusServiceUnavailable, began)
		cancel()
		l.end()
		return
	}
	go func() {
		defer l.end()
		defer func() { <-places }()
		defer cancel()
		l.socket.answered(f, l.answer(ctx, f), began)
	}()
}

// begin reports whether an envelope may be begun, and counts it.
func (l *link) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaving && l.begun == 0 {
		return false
	}
	l.begun++
	return true
}

func (l *link) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun--
	if l.leaving && l.begun == 0 {
		close(l.drained)
	}
}

// leave ends the connection once all envelopes are answered. Envelopes that arrive
// before that are still answered.
func (l *link) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving = true
	if l.begun == 0 {
		close(l.drained)
	}
}

// answer handles an envelope and acknowledges it if that succeeds. It returns the
// status that the answer would have over HTTP. A panic of the handler loses this
// envelope and does not end the process.
func (l *link) answer(ctx context.Context, f frame) (code int) {
	log := l.socket.log.With(slog.String("type", blockkit.Brief(f.Type, 64)), slog.Int("retry", f.Retry))
	defer func() {
		if p := recover(); p != nil {
			log.ErrorContext(ctx, "envelope failed", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			code = http.StatusInternalServerError
		}
	}()
	answer, err := l.socket.handle(ctx, f)
	switch {
	case errors.Is(err, errBody):
		log.WarnContext(ctx, "envelope not understood", slog.Any("err", err))
		return http.StatusBadRequest
	case err != nil:
		log.ErrorContext(ctx, "envelope failed", slog.Any("err", err))
		return http.StatusInternalServerError
	}
	if err := l.acknowledge(f, answer); err != nil {
		log.ErrorContext(ctx, "envelope handled, but not acknowledged", slog.Any("err", err))
		return http.StatusInternalServerError
	}
	return http.StatusOK
}

// errAckTooLarge is an answer that Slack would drop.
var errAckTooLarge = errors.New("the answer is larger than an acknowledgment may be")

// acknowledge tells Slack that an envelope is handled, on the connection on which it
// arrived.
func (l *link) acknowledge(f frame, answer Reply) error {
	ack := struct {
		Envelope string `json:"envelope_id"`
		Payload  any    `json:"payload,omitempty"`
	}{Envelope: f.Envelope}
	if f.Accepts {
		ack.Payload = answer.body
	}
	message, err := json.Marshal(ack)
	if err != nil {
		return fmt.Errorf("write the answer as JSON: %w", err)
	}
	if len(message) >= maxAck {
		return errAckTooLarge
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	stuck := time.AfterFunc(writeTime, func() { _ = l.conn.Close() })
	defer stuck.Stop()
	if err := l.conn.WriteMessage(websocket.TextMessage, message); err != nil {
		return fmt.Errorf("write to Slack: %w", err)
	}
	return nil
}
