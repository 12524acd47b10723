package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/httpapi/format"
	"github.com/countersign/countersign/internal/intake"
)

// events is GET /v1/events: a stream of server-sent events about the requests of
// the agent that the credential proves, and of no other. It begins after
// Last-Event-ID, or without one with the next event.
func (a *API) events(c caller, w http.ResponseWriter) error {
	after := c.r.Header.Get("Last-Event-ID")
	if len(after) > maxName || strings.ContainsFunc(after, func(r rune) bool { return r < ' ' || r > '~' }) {
		return &format.RequestError{At: "Last-Event-ID", Problem: "must be the id of an event"}
	}
	held, release, err := a.hold(c.r.Context(), c.Client.Name)
	if err != nil {
		return err
	}
	defer release()
	if after == "" {
		if after, err = a.c.Intake.Place(held, c.Client); err != nil {
			return err
		}
	} else if err := a.known(held, c.Client, after); err != nil {
		return err
	}
	if err := c.waits(); err != nil {
		return err
	}
	s := &stream{api: a, c: c, w: w, end: release}
	defer s.close()
	// The place is sent at once, so that a client that is cut off before its first
	// event does not miss one.
	if !s.write([]byte("id: " + after + "\nretry: 2000\n\n")) {
		return nil
	}
	for e, err := range a.c.Intake.Events(held, c.Client, after) {
		if err != nil {
			if held.Err() == nil {
				_ = a.explain(c.r, err) // logs it; the client comes again
			}
			return nil
		}
		if !s.send(e) {
			return nil
		}
	}
	return nil
}

// known refuses a place that is none, before the stream begins.
func (a *API) known(ctx context.Context, c intake.Client, after string) error {
	over, cancel := context.WithCancel(ctx)
	cancel()
	for _, err := range a.c.Intake.Events(over, c, after) {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		break
	}
	return nil
}

// A stream is a response that goes on. Its handler sends the events; a timer
// sends the heartbeats, and needs no goroutine while it waits.
type stream struct {
	api *API
	c   caller
	end func()

	mu    sync.Mutex
	w     http.ResponseWriter // nil once the handler is done with it
	begun bool
	timer *time.Timer
}

// beat says that the stream is there, or ends it: its client is gone, or its
// credential was taken away or has ended.
func (s *stream) beat() {
	if s.c.still() != nil || !s.write([]byte(": still here\n\n")) {
		s.end()
	}
}

func (s *stream) send(e intake.Event) bool {
	if s.c.still() != nil { // it was taken away since the last heartbeat, or has ended
		return false
	}
	data, err := encode(wireEvent{Type: e.Type, Approval: e.Request, Call: e.Call, At: e.At.UTC()})
	if err != nil {
		return false
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "id: %s\nevent: %s\ndata: %s\n", e.ID, e.Type, data) // data ends its line
	return s.write(out.Bytes())
}

// write reports whether the bytes are on their way.
func (s *stream) write(b []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.w == nil {
		return false
	}
	_ = s.c.control.SetWriteDeadline(s.api.c.Now().Add(writeTime))
	if !s.begun {
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Accel-Buffering", "no") // proxies that buffer would hold events back
		s.w.WriteHeader(http.StatusOK)
		s.begun = true
		s.timer = time.AfterFunc(s.api.c.Heartbeat, s.beat)
	}
	if _, err := s.w.Write(b); err != nil || s.c.control.Flush() != nil {
		return false
	}
	s.timer.Reset(s.api.c.Heartbeat)
	return true
}

func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w = nil
	if s.timer != nil {
		s.timer.Stop()
	}
}
