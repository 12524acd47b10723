package slacksim

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// socketMode is the connections over which the app is reached instead of by
// HTTP.
type socketMode struct {
	*installations

	journal *journal
	sockets []*socket            // the oldest first
	turns   int                  // of which connection gets an envelope
	held    int                  // envelopes that the faults hold back
	tickets map[string]time.Time // for one connection each
}

// Socket is one open connection of an app in Socket Mode.
type Socket struct {
	ID        string    `json:"id"`
	Since     time.Time `json:"since"`
	Ends      time.Time `json:"ends"` // when it is refreshed
	Warned    bool      `json:"warned,omitempty"`
	Delivered int       `json:"delivered"` // envelopes, so far
	Waiting   int       `json:"waiting"`   // of them not acknowledged yet
}

// The bounds of Socket Mode.
//
// https://docs.slack.dev/apis/events-api/using-socket-mode
const (
	maxSockets    = 10
	ticketLife    = 30 * time.Second
	debugLife     = 360 * time.Second // with debug_reconnects=true
	warningBefore = 10 * time.Second
	closeGrace    = time.Second // for the app's half of the closing handshake
	maxAck        = 20 << 10    // larger acknowledgments are dropped silently
	missedPings   = 3           // without a pong or a frame, until the connection is given up
)

// The reasons of a disconnect message, and [Cut], which ends the connection
// without a message.
const (
	Warning          = "warning"
	RefreshRequested = "refresh_requested"
	LinkDisabled     = "link_disabled"
	TooManySockets   = "too_many_websockets"
	Cut              = "cut"
)

const socketHost = "applink-slacksim"

// overSocket is where an app in Socket Mode listens.
const overSocket = "socket:"

// listens returns where something is to be sent that over HTTP is sent to a
// URL; nothing, if the app does not listen. The caller holds mu.
func (s *socketMode) listens(target string) string {
	if s.cfg.SocketMode {
		return overSocket
	}
	return target
}

// AppToken is the app-level token with which connections are opened.
func (s *socketMode) AppToken() string { return s.cfg.AppToken }

// SetSocketMode turns Socket Mode on or off, as the app's settings do. While it
// is on, nothing is sent over HTTP; when it is turned off, every connection
// gets link_disabled and is closed.
func (s *socketMode) SetSocketMode(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.SocketMode = on
	s.changed()
	if !on {
		for _, w := range s.sockets {
			s.dismiss(w, LinkDisabled)
		}
	}
}

// Sockets returns the open connections, the oldest first.
func (s *socketMode) Sockets() []Socket {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Socket, 0, len(s.sockets))
	for _, w := range s.sockets {
		if !w.leaving {
			all = append(all, Socket{
				ID: w.id, Since: w.since, Ends: w.ends, Warned: w.warned, Delivered: w.delivered, Waiting: len(w.waiting),
			})
		}
	}
	return all
}

// Disconnect does to one connection, or to all when id is empty, what the
// reason says. It returns to how many.
func (s *socketMode) Disconnect(id, reason string) (int, error) {
	if !slices.Contains([]string{Warning, RefreshRequested, Cut}, reason) {
		return 0, fmt.Errorf("%w: the reason is %s, %s or %s", ErrBadInput, Warning, RefreshRequested, Cut)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, w := range slices.Clone(s.sockets) {
		if w.leaving || (id != "" && w.id != id) {
			continue
		}
		n++
		switch reason {
		case Warning:
			s.warn(w)
			w.ends = s.clock.now().Add(warningBefore)
			s.clock.after(warningBefore, func() { s.at(w, s.refresh) })
		case Cut:
			s.forget(w, Cut)
		default:
			s.dismiss(w, reason)
		}
	}
	if n == 0 && id != "" {
		return 0, noSuch("socket", id)
	}
	return n, nil
}

// appsConnectionsOpen answers with a URL for one connection. It takes an
// app-level token and no other.
func (s *socketMode) appsConnectionsOpen(c *call) (object, *failure) {
	switch {
	case c.token == "":
		return nil, fail("not_authed")
	case s.withToken(c.token) != nil:
		return nil, fail("not_allowed_token_type")
	case c.token != s.cfg.AppToken:
		return nil, fail("invalid_auth")
	case !slices.Contains(s.cfg.AppScopes, "connections:write"):
		f := fail("missing_scope")
		f.extra = object{"needed": "connections:write", "provided": strings.Join(s.cfg.AppScopes, ",")}
		return nil, f
	}
	ticket := randomHex(16)
	s.tickets[ticket] = s.clock.now()
	at, secure := strings.CutPrefix(s.public, "https://")
	scheme := "ws"
	if secure {
		scheme = "wss"
	}
	q := url.Values{"ticket": {ticket}, "app_id": {randomHex(32)}}
	return object{"url": scheme + "://" + strings.TrimPrefix(at, "http://") + linkPath + "?" + q.Encode()}, nil
}

// admit takes a ticket and returns how long its connection may live; zero,
// when it is not one, is too old or was used. The caller holds mu.
func (s *socketMode) admit(q url.Values) time.Duration {
	issued, ok := s.tickets[q.Get("ticket")]
	delete(s.tickets, q.Get("ticket"))
	switch {
	case !ok, s.clock.now().Sub(issued) > ticketLife:
		return 0
	case q.Get("debug_reconnects") == "true":
		return debugLife
	}
	return s.cfg.SocketLife
}

// serveLink is one connection, from its ticket to its end.
func (s *socketMode) serveLink(rw http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	life := s.admit(r.URL.Query())
	s.mu.Unlock()
	if life == 0 {
		http.Error(rw, "the ticket is not known any more: open another connection", http.StatusForbidden)
		return
	}
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }} // the guard has looked at it, and the ticket is the proof
	conn, err := upgrader.Upgrade(rw, r, nil)
	if err != nil {
		return // it has answered
	}
	w := newSocket(conn)
	w.writing.Lock() // nothing is sent before hello
	s.mu.Lock()
	greeting := s.join(w, life)
	s.mu.Unlock()
	if greeting != nil && conn.WriteMessage(websocket.TextMessage, greeting) != nil {
		w.cut()
	}
	w.writing.Unlock()
	s.listen(w)
}

// join makes a connection one of the app's and returns what it is greeted
// with, or sends it away. The caller holds mu.
func (s *socketMode) join(w *socket, life time.Duration) (greeting []byte) {
	if s.closed {
		w.cut()
		return nil
	}
	open := 1
	for _, other := range s.sockets {
		if !other.leaving {
			open++
		}
	}
	now := s.clock.now()
	w.id, w.since, w.ends = s.nextID("W"), now, now.Add(life)
	s.sockets = append(s.sockets, w)
	s.wg.Go(func() { s.keep(w) })
	switch {
	case !s.cfg.SocketMode:
		s.dismiss(w, LinkDisabled)
		return nil
	case open > maxSockets:
		s.dismiss(w, TooManySockets)
		return nil
	}
	if life > warningBefore {
		s.clock.after(life-warningBefore, func() { s.at(w, s.warn) })
	}
	s.clock.after(life, func() { s.at(w, s.refresh) })
	greeting = encodeJSON(object{
		"type": "hello", "num_connections": open,
		"connection_info": object{"app_id": AppID},
		"debug_info": object{
			"host": socketHost, "build_number": 1, "started": now.UTC().Format(time.DateTime),
			"approximate_connection_time": int(life.Seconds()),
		},
	})
	s.journal.logged(w.entry("hello", greeting), http.StatusSwitchingProtocols, nil)
	return greeting
}

// linkPath is where connections of Socket Mode are opened.
const linkPath = "/link/"
