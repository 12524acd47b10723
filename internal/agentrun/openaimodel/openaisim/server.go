package openaisim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	maxBody = 16 << 20
	// kept is how many requests are remembered, so that a demo may run for days.
	kept = 256
)

// A Server answers as OpenAI's API would if its model had read a script.
type Server struct {
	stories []Story
	pace    time.Duration // between two pieces of an answer

	mu       sync.Mutex
	faults   []Fault
	requests []Request
	hosts    map[string]func(args string) (string, error)
	hosted   []HostedCall
	unasked  []string
}

// A Request is a call of the chat completions endpoint or of the responses endpoint
// as it arrived, valid or not.
type Request struct {
	Header http.Header
	Body   []byte
}

// New returns a server that knows the stories; the first that matches wins.
func New(stories ...Story) *Server {
	return &Server{stories: slices.Clone(stories)}
}

// Serve answers on l, which must be on loopback, until ctx ends. A client's base
// URL is "http://" + l.Addr().String() + "/v1". Serve closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok || !addr.IP.IsLoopback() {
		return errors.Join(fmt.Errorf("serve the scripted model on %s: not a loopback address", l.Addr()), l.Close())
	}
	h := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = h.Close() })
	defer stop()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the scripted model: %w", err)
	}
	return nil
}

// Fail queues faults. Each strikes one valid request, in order.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Requests returns the latest 256 requests for completions, the oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w = paced{w, r, s.pace}
	switch r.URL.Path {
	case "/v1/chat/completions":
		s.chat(w, r)
	case "/v1/responses":
		s.responses(w, r)
	case "/v1/models":
		s.models(w, r)
	default:
		writeProblem(w, &problem{http.StatusNotFound, "There is no " + r.URL.Path + ".", "invalid_request_error", "", "unknown_url"}, "")
	}
}

func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	if p := admit(r, http.MethodGet); p != nil {
		writeProblem(w, p, "")
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{
		map[string]any{"id": ModelName, "object": "model", "created": created, "owned_by": "countersign"},
	}})
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	body, ok := s.receive(w, r)
	if !ok {
		return
	}
	request, p := decode(body)
	if p != nil {
		writeProblem(w, p, "")
		return
	}
	reply, fault, ok := s.scripted(w, func() Reply { return s.reply(request) })
	if ok {
		deliver(w, r, request, newAnswer(body, reply, fault), fault)
	}
}

// receive reads and records a request. If it returns false, the request was refused,
// and the answer is written.
func (s *Server) receive(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	if p := admit(r, http.MethodPost); p != nil {
		writeProblem(w, p, "")
		return nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		writeProblem(w, invalid("", "", "The body of the request could not be read."), "")
		return nil, false
	}
	s.record(Request{r.Header.Clone(), body})
	return body, true
}

// scripted returns the reply to a valid request, and the fault with which to deliver
// it. If it returns false, the fault is an error of the API, and that is written.
func (s *Server) scripted(w http.ResponseWriter, reply func() Reply) (Reply, Fault, bool) {
	fault, queued := s.takeFault()
	if p := fault.problem(); p != nil {
		writeProblem(w, p, fault.RetryAfter)
		return Reply{}, fault, false
	}
	said := reply()
	if said.Fault != nil && !queued {
		fault = *said.Fault
	}
	if p := fault.problem(); p != nil {
		writeProblem(w, p, fault.RetryAfter)
		return Reply{}, fault, false
	}
	return said, fault, true
}

// admit checks what does not need the body.
func admit(r *http.Request, method string) *problem {
	if r.Method != method {
		return &problem{http.StatusMethodNotAllowed, r.Method + " is not allowed here.", "invalid_request_error", "", "method_not_supported"}
	}
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || strings.TrimSpace(key) == "" {
		return &problem{http.StatusUnauthorized, "There is no API key: send it as a bearer token in the Authorization header.", "invalid_request_error", "", ""}
	}
	return nil
}

func (s *Server) record(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	if extra := len(s.requests) - kept; extra > 0 {
		s.requests = slices.Delete(s.requests, 0, extra)
	}
}

func (s *Server) takeFault() (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.faults) == 0 {
		return Fault{}, false
	}
	f := s.faults[0]
	s.faults = s.faults[1:]
	return f, true
}

func writeProblem(w http.ResponseWriter, p *problem, retryAfter string) {
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	if p.status == http.StatusBadGateway {
		writePage(w, p.status)
		return
	}
	writeJSON(w, p.status, p)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that left needs no answer
}

// writePage answers as something between the client and the API would.
func writePage(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<!doctype html>\n<title>scripted</title>\n<p>A scripted page, where JSON was expected.</p>\n")
}
