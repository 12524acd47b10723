package uistream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// Path is where chats are served.
const Path = "/api/chat"

// Runs is what is stored of chats.
type Runs interface {
	Thread(ctx context.Context, id agentrun.ThreadID) (agentrun.Thread, error)
	Run(ctx context.Context, id approvals.RunID) (agentrun.Run, error)
	Messages(ctx context.Context, id agentrun.ThreadID, from, to int) ([]agentrun.Message, error)
}

// Runner takes the messages of users; [agentrun.Runner] does.
type Runner interface {
	Mention(ctx context.Context, m agentrun.Mention) (agentrun.Run, error)
}

// Desk is what is needed of [approvals.Desk].
type Desk interface {
	Batch(ctx context.Context, id approvals.BatchID) (approvals.Batch, error)
	Call(ctx context.Context, b approvals.Batch, call approvals.ToolCallID) (approvals.ToolCall, error)
	Case(ctx context.Context, b approvals.Batch, call approvals.ToolCallID, shown approvals.Digest, who approvals.Resolver) (approvals.Case, error)
	DecideCase(ctx context.Context, c approvals.Case, r approvals.RequestID, v approvals.Verdict, reason string) (approvals.Case, error)
	Confirm(ctx context.Context, b approvals.Batch) error
	Tick(ctx context.Context, id approvals.BatchID) error
}

// Tools says what the tools of the agents declare.
type Tools interface {
	ToolSpec(agent, name string) (agentrun.Spec, bool)
}

// Changes wakes who waits for a change of what is stored; [state.Feed] does.
type Changes interface {
	Watch(id string) (changed <-chan struct{}, leave func(), err error)
}

// Drafts returns what models are writing, as [draft.Reader] does. leave must be called
// at the end.
type Drafts interface {
	Watch(id agentrun.ThreadID) (changed <-chan struct{}, now func() agentrun.Draft, leave func(), err error)
}

// People proves who sends a request and says who that is in Slack. A refusal is a
// [*RefusedError]; any other error says that it is not known now.
type People interface {
	// Prove returns the account of the person whom the credential of the request
	// proves, who is a full member.
	Prove(r *http.Request) (approvals.UserID, error)
	// MayAsk refuses a person who may not start the agent.
	MayAsk(ctx context.Context, user approvals.UserID, agent string) error
	// MayOpen refuses a person who is not in a conversation elsewhere now. It returns
	// the agent that answers there, empty if none does any more.
	MayOpen(ctx context.Context, user approvals.UserID, o agentrun.Origin) (agent string, err error)
	// Principal says who the person is in the eyes of a policy, as for a click.
	Principal(ctx context.Context, user approvals.UserID, asked approvals.Asked) (approvals.Principal, error)
	// MayRead refuses a person who may not read the arguments of a batch.
	MayRead(ctx context.Context, user approvals.UserID, b approvals.Batch) error
}

// A RefusedError is why a person is turned away, in words for them.
type RefusedError struct {
	Status int // 401, 403, 429 or 503
	Words  string
}

func (e *RefusedError) Error() string { return e.Words }

// Config is what a [Server] works with. Dialect, Reasoning, Origins, the times and
// Streams may be left out.
type Config struct {
	Runs    Runs
	Runner  Runner
	Desk    Desk
	Tools   Tools
	Changes Changes
	Drafts  Drafts
	People  People
	Refuses func(r *http.Request) string // why a request is not let in by its host; nil for never

	Agent     string  // answers all chats
	Channel   string  // of Slack, where their requests are shown
	Dialect   Dialect // of clients that name none
	Reasoning bool    // whether users see the reasoning of the model
	System    bool    // whether the system messages of a client are instructions; otherwise they are dropped
	Origins   []string
	Cookies   bool // whether browsers may keep their credential in a cookie

	Hold      time.Duration // how long a stream waits for people at most; 10 minutes if left out
	Heartbeat time.Duration // how long a stream is silent at most; 15 s if left out
	Look      time.Duration // how often a stream looks for a change without being told; 3 s if left out
	Streams   int           // how many streams one person may have open; 100 if left out
	Now       func() time.Time
	Log       *slog.Logger
}

// A Server serves chats. It is an [http.Handler] for [Path] and what is below it.
type Server struct {
	c      Config
	turns  turns
	routes *http.ServeMux
	cross  *http.CrossOriginProtection

	mu      sync.Mutex
	streams map[approvals.UserID]int
	over    bool          // no stream begins any more
	ended   chan struct{} // closed then
}

// New returns a server.
func New(c Config) (*Server, error) {
	if c.Runs == nil || c.Runner == nil || c.Desk == nil || c.Tools == nil || c.Changes == nil || c.Drafts == nil || c.People == nil || c.Now == nil || c.Log == nil {
		return nil, errors.New("a server of chats needs its ports, a clock and a log")
	}
	if c.Agent == "" || c.Channel == "" {
		return nil, errors.New("a server of chats needs an agent and a channel")
	}
	c.Dialect = cmp.Or(c.Dialect, Common)
	c.Hold = cmp.Or(c.Hold, 10*time.Minute)
	c.Heartbeat = cmp.Or(c.Heartbeat, 15*time.Second)
	c.Look = cmp.Or(c.Look, 3*time.Second)
	c.Streams = cmp.Or(c.Streams, 100)
	s := &Server{c: c, routes: http.NewServeMux(), cross: http.NewCrossOriginProtection(), streams: map[approvals.UserID]int{}, ended: make(chan struct{})}
	s.turns = turns{runs: c.Runs, desk: c.Desk, tools: c.Tools, now: c.Now}
	for pattern, handle := range map[string]func(caller) error{
		"POST " + Path:                                s.post,
		"GET " + Path + "/{id}":                       s.history,
		"GET " + Path + "/{id}/stream":                s.resume,
		"GET " + Path + "/{id}/approvals/{approval}":  s.readApproval,
		"POST " + Path + "/{id}/approvals/{approval}": s.decideApproval,
	} {
		s.routes.Handle(pattern, s.handler(handle))
	}
	if c.Cookies {
		s.routes.Handle("POST "+sessionPath, s.handler(s.signIn))
		s.routes.HandleFunc("DELETE "+sessionPath, s.signOut)
	}
	for _, origin := range c.Origins {
		if err := s.cross.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("a server of chats: %w", err)
		}
	}
	return s, nil
}

// Drain ends the streams: clients come again, to another process.
func (s *Server) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.over = true
		close(s.ended)
	}
}

// Open is how many streams are open.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, of := range s.streams {
		n += of
	}
	return n
}

// enter counts a stream of the person.
func (s *Server) enter(user approvals.UserID) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return nil, refuse(http.StatusServiceUnavailable, "The server is stopping. Send the request again.")
	case s.streams[user] >= s.c.Streams:
		return nil, refuse(http.StatusTooManyRequests, "You have too many chats open. Close some of them.")
	}
	s.streams[user]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.streams[user]--; s.streams[user] == 0 {
			delete(s.streams, user)
		}
	}, nil
}

// A caller is a person with their request.
type caller struct {
	user    approvals.UserID
	r       *http.Request
	w       *begun
	control *http.ResponseController
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	if s.c.Refuses != nil {
		if why := s.c.Refuses(r); why != "" {
			refuse(http.StatusMisdirectedRequest, why).write(w)
			return
		}
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		h.Add("Vary", "Origin")
		if !slices.Contains(s.c.Origins, origin) {
			refuse(http.StatusForbidden, "Pages of this origin can't call this server.").write(w)
			return
		}
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "x-vercel-ai-ui-message-stream")
		if s.c.Cookies {
			h.Set("Access-Control-Allow-Credentials", "true")
		}
		if r.Method == http.MethodOptions {
			h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
			h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, User-Agent, "+headerSDK+", "+headerFollow)
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	r, err := s.fromCookie(r)
	if err != nil {
		s.problemOf(r, err).write(w)
		return
	}
	if _, pattern := s.routes.Handler(r); pattern == "" {
		w = unrouted{w}
	}
	s.routes.ServeHTTP(w, r)
}

// unrouted makes a problem of the plain text by which net/http refuses a request that
// no route takes.
type unrouted struct{ http.ResponseWriter }

func (u unrouted) WriteHeader(status int) { refuse(status, "").write(u.ResponseWriter) }

func (u unrouted) Write(text []byte) (int, error) { return len(text), nil }

// Headers by which a client says how it wants its stream.
const (
	headerSDK    = "Countersign-SDK"    // the dialect
	headerFollow = "Countersign-Follow" // true: the stream stays open while people decide
)

// begun notices whether an answer has begun.
type begun struct {
	http.ResponseWriter

	header bool
}

func (b *begun) WriteHeader(status int) {
	b.header = true
	b.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (b *begun) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// handler proves who calls. What goes wrong before the answer has begun is a
// problem; later the stream is cut.
func (s *Server) handler(handle func(caller) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &begun{ResponseWriter: w}
		c := caller{r: r, w: out, control: http.NewResponseController(w)}
		_ = c.control.SetReadDeadline(s.c.Now().Add(bodyTime))
		_ = c.control.SetWriteDeadline(s.c.Now().Add(handleTime))
		var err error
		if c.user, err = s.c.People.Prove(r); err == nil {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			err = handle(c)
		}
		if err == nil || out.header {
			return
		}
		p := s.problemOf(r, err)
		if of := r.CookiesNamed(cookieName); p.Status == http.StatusUnauthorized && len(of) == 1 && r.Header.Get("Authorization") == "Bearer "+of[0].Value {
			http.SetCookie(w, cookie("", 0)) // the credential in it is no longer valid
		}
		p.write(w)
	})
}

// How long the body of a request may take, an answer that is no stream, and one
// write to a stream.
const (
	bodyTime   = 20 * time.Second
	handleTime = 40 * time.Second
	writeTime  = 20 * time.Second
)
