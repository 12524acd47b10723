package slacksim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// The types of envelopes.
const (
	eventsEnvelope      = "events_api"
	interactiveEnvelope = "interactive"
	commandsEnvelope    = "slash_commands"
)

// formPayload is a form as a slash command's envelope carries it.
func formPayload(form url.Values) []byte {
	o := object{}
	for name := range form {
		o[name] = form.Get(name)
	}
	return encodeJSON(o)
}

// deliverEnvelope sends an envelope over one of the connections and waits
// for its acknowledgment, at most as long as the app may take. What is
// acknowledged is a reply with status 200. The caller does not hold mu.
func (s *socketMode) deliverEnvelope(d delivery) reply {
	s.delay()
	id := randomUUID()
	content := object{
		"envelope_id": id, "type": d.envelope.kind, "payload": json.RawMessage(d.envelope.payload),
		"accepts_response_payload": d.envelope.accepts,
	}
	if d.envelope.kind == eventsEnvelope {
		content["retry_attempt"], content["retry_reason"] = d.retry, d.why
	}
	message := encodeJSON(content)

	s.mu.Lock()
	w := s.turn()
	if w == nil {
		entry := LogEntry{Direction: ToApp, Kind: d.kind, Method: SocketMethod, URL: overSocket, Request: string(message), Problem: "connection_failed"}
		s.journal.logged(entry, 0, nil)
		s.mu.Unlock()
		return reply{problem: entry.Problem}
	}
	answer := make(chan json.RawMessage, 1)
	w.waiting[id] = answer
	w.delivered++
	s.changed()
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(s.life(), s.ackTimeout())
	defer cancel()
	w.send(message)
	r := s.acknowledgment(ctx, w, answer, d.envelope.accepts)

	entry := w.entry(d.kind, message)
	entry.Problem = r.problem
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(w.waiting, id)
	s.journal.logged(entry, r.status, r.body)
	return r
}

// delay holds an envelope back as long as the faults say, on the workspace's
// clock.
func (s *socketMode) delay() {
	s.mu.Lock()
	wait := time.Duration(s.faults.EnvelopeDelayMS) * time.Millisecond
	s.mu.Unlock()
	if wait <= 0 {
		return
	}
	over := make(chan struct{})
	s.clock.after(wait, func() { close(over) })
	held := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held += n
		s.changed()
	}
	held(1)
	defer held(-1)
	select {
	case <-over:
	case <-s.life().Done():
	}
}

// turn returns the connection that gets the next envelope: each in its turn,
// as long as it is open. The caller holds mu.
func (s *socketMode) turn() *socket {
	for range s.sockets {
		s.turns++
		if w := s.sockets[s.turns%len(s.sockets)]; !w.leaving {
			return w
		}
	}
	return nil
}

func (s *socketMode) acknowledgment(ctx context.Context, w *socket, answer <-chan json.RawMessage, accepts bool) reply {
	acked := func(payload json.RawMessage) reply {
		r := reply{status: http.StatusOK, header: http.Header{}}
		// Anything but an object is taken for an acknowledgment and no more.
		if accepts && bytes.HasPrefix(bytes.TrimSpace(payload), []byte("{")) {
			r.header.Set("Content-Type", jsonType)
			r.body = payload
		}
		return r
	}
	select {
	case payload := <-answer:
		return acked(payload)
	case <-w.gone:
	case <-ctx.Done():
	}
	select {
	case payload := <-answer: // it came before the end
		return acked(payload)
	default:
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return reply{problem: "timeout"}
	}
	return reply{problem: "connection_failed"}
}
