package slacksim

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// socket is one connection. Its counters, flags and waiting envelopes are
// guarded by the server's mu.
type socket struct {
	id          string
	conn        *websocket.Conn
	since, ends time.Time
	warned      bool
	leaving     bool // it gets no more envelopes
	delivered   int
	waiting     map[string]chan json.RawMessage // for the acknowledgment, by envelope_id
	gone        chan struct{}                   // closed when nothing can come from it any more

	unanswered atomic.Int32 // pings since something came from the app

	ending  sync.Once
	writing sync.Mutex // of messages; control frames may be written beside them, and mu is never waited for with it
}

func newSocket(conn *websocket.Conn) *socket {
	return &socket{conn: conn, waiting: map[string]chan json.RawMessage{}, gone: make(chan struct{})}
}

// send writes a message. A connection on which that does not work is over.
func (w *socket) send(message []byte) {
	w.writing.Lock()
	defer w.writing.Unlock()
	if err := w.conn.WriteMessage(websocket.TextMessage, message); err != nil {
		w.cut()
	}
}

// cut ends the connection without a message.
func (w *socket) cut() {
	w.ending.Do(func() {
		close(w.gone)
		_ = w.conn.Close()
	})
}

// entry is a message to the app in the log.
func (w *socket) entry(kind string, message []byte) LogEntry {
	return LogEntry{Direction: ToApp, Kind: kind, Method: SocketMethod, URL: overSocket + w.id, Request: string(message)}
}

// keep pings until the connection is over, or the server closes. An app that neither
// answers pings nor says anything is given up. Its pings are counted, not the time: a
// machine that is late sends them late, too.
func (s *socketMode) keep(w *socket) {
	ticks := time.NewTicker(s.cfg.SocketPing)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			if w.unanswered.Add(1) > missedPings {
				s.at(w, func(w *socket) { s.forget(w, "pong_timeout") })
				return
			}
			_ = w.conn.WriteControl(websocket.PingMessage, []byte("Ping from "+socketHost), time.Time{})
		case <-w.gone:
			return
		case <-s.life().Done():
			w.cut()
			return
		}
	}
}

// listen reads acknowledgments until the connection is over.
func (s *socketMode) listen(w *socket) {
	alive := func(string) error {
		w.unanswered.Store(0)
		return nil
	}
	w.conn.SetPongHandler(alive)
	w.conn.SetReadLimit(maxBody)
	for {
		_, frame, err := w.conn.ReadMessage()
		if err != nil {
			s.at(w, func(w *socket) { s.forget(w, "") })
			return
		}
		_ = alive("")
		s.at(w, func(w *socket) { s.acknowledged(w, frame) })
	}
}

// at does something with a connection, with mu held.
func (s *socketMode) at(w *socket, do func(*socket)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(w)
}

// acknowledged takes what the app wrote. An acknowledgment counts once, in
// time, and on the connection that its envelope came over. The caller holds
// mu.
func (s *socketMode) acknowledged(w *socket, frame []byte) {
	var ack struct {
		EnvelopeID string          `json:"envelope_id"`
		Payload    json.RawMessage `json:"payload"`
	}
	err := json.Unmarshal(frame, &ack)
	answer, known := w.waiting[ack.EnvelopeID]
	var problem string
	switch {
	case err != nil:
		problem = "not_json"
	case len(frame) >= maxAck:
		problem = "too_large"
	case !known:
		problem = "unknown_envelope"
	default:
		delete(w.waiting, ack.EnvelopeID)
		answer <- ack.Payload
		return
	}
	s.journal.logged(LogEntry{
		Direction: FromApp, Kind: "ack", Method: SocketMethod, URL: overSocket + w.id, Request: string(frame), Problem: problem,
	}, 0, nil)
}

// warn says that the connection will be closed soon. The caller holds mu.
func (s *socketMode) warn(w *socket) {
	if w.leaving || w.warned {
		return
	}
	w.warned = true
	message := w.disconnect(Warning)
	s.journal.logged(w.entry("disconnect", message), http.StatusOK, nil)
	s.spawn(func() { w.send(message) })
}

// refresh closes the connection because its time is over. The caller holds
// mu.
func (s *socketMode) refresh(w *socket) { s.dismiss(w, RefreshRequested) }

// dismiss says why the connection is closed, and closes it. The caller holds
// mu.
func (s *socketMode) dismiss(w *socket, reason string) {
	if w.leaving {
		return
	}
	w.leaving = true
	message := w.disconnect(reason)
	s.journal.logged(w.entry("disconnect", message), http.StatusOK, nil)
	s.spawn(func() {
		w.send(message)
		_ = w.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Time{})
		time.AfterFunc(closeGrace, w.cut)
	})
}

func (w *socket) disconnect(reason string) []byte {
	return encodeJSON(object{"type": "disconnect", "reason": reason, "debug_info": object{"host": socketHost}})
}

// forget ends a connection and takes it off the list. The caller holds mu.
func (s *socketMode) forget(w *socket, problem string) {
	w.leaving = true
	w.cut()
	if i := slices.Index(s.sockets, w); i >= 0 {
		s.sockets = slices.Delete(s.sockets, i, i+1)
		e := w.entry("closed", nil)
		e.Problem = problem
		s.journal.logged(e, 0, nil)
	}
}
