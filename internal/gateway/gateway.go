// Package gateway serves the MCP servers of the configuration as one MCP server
// over streamable HTTP. An agent that never heard of Countersign is gated without
// its cooperation, because the servers and their credentials are here.
//
// A call is asked about in the one use case of package intake, in the name of the
// agent that the credential proves; nothing in a payload names one. While people
// decide, the caller is kept with progress, or told to make the same call again.
// Once the call may run, whoever waits for it claims the decision and has
// [agentrun.Runner.Execute] execute the call as it was approved, once, with a
// journal. The same call of the same agent finds its request again: also on another
// replica, after a restart, and while it is executed. Nothing runs for a caller
// that is gone.
//
// A call that the policy permits is counted, stored, claimed and given to this process
// in one step. One that changes nothing is executed without a journal: it may run again.
package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/door"
	"github.com/countersign/countersign/internal/intake"
)

// Path is where the gateway is. Which servers there are behind it the credential
// says.
const Path = "/v1/mcp/gateway"

// Intake is what the gateway needs of [intake.Service].
type Intake interface {
	door.Intake
	Ask(ctx context.Context, c intake.Client, a intake.Ask) (intake.Request, error)
	Claim(ctx context.Context, c intake.Client, id approvals.RunID, call approvals.ToolCallID) (intake.Claim, error)
	Leave(ctx context.Context, c intake.Client, external string) error
	Owe(ctx context.Context, c intake.Client, id approvals.RunID) error
	Answered(ctx context.Context, c intake.Client, id approvals.RunID) (bool, error)
	Unanswered(ctx context.Context, c intake.Client, id approvals.RunID) error
}

// Runner executes claimed calls; [agentrun.Runner] does.
type Runner interface {
	Execute(ctx context.Context, id approvals.RunID) (agentrun.Executed, error)
	Continue(ctx context.Context, r agentrun.RemoteRun) (agentrun.Executed, error)
	Executed(ctx context.Context, id approvals.RunID) (agentrun.Executed, error)
	Pure(agent, tool string) bool
	Perform(ctx context.Context, r agentrun.RemoteRun) (agentrun.Executed, error)
}

// A Tool is a tool of an MCP server.
type Tool interface {
	agentrun.Tool

	Available() error         // why no call of it can be made now, if none can
	Defined() json.RawMessage // as its server described it
}

// Config is what a [Server] works with. The times and Log may be left out.
type Config struct {
	Intake  Intake
	Runner  Runner
	Guard   *bearer.Guard
	Refuses func(r *http.Request) string // why a request is not let in before its credential is looked at; empty if it is
	Hosts   []string                     // the names under which it answers on loopback, besides localhost
	Tools   func(agent string) []Tool    // of the gateway of this name
	Keeps   func(agent string) bool      // whether a request whose caller is gone stays open
	Summary func(agent, tool string) string
	Sent    func(metadata json.RawMessage) json.RawMessage // the whole result that the metadata of a call keeps, or nil
	Now     func() time.Time
	Log     *slog.Logger

	Handling time.Duration // how long a request may take, besides what it is held; 20s if left out
	Holds    int           // how many calls of one agent are held at once; 500 if left out
	Progress time.Duration // how often a caller gets a progress message; 10s if left out
	Silent   time.Duration // how long a call is held whose caller takes no progress; 50s if left out
	Poll     time.Duration // how often a call is looked at that another process executes; 500ms if left out
}

// A Server is the gateway.
type Server struct {
	c    Config
	door *door.Door

	mu      sync.Mutex
	waiting map[approvals.RunID]int        // how many callers of this process wait for a request
	running map[approvals.RunID]*execution // here
	done    sync.WaitGroup                 // of those that run
}

// New returns a server.
func New(c Config) (*Server, error) {
	if c.Intake == nil || c.Runner == nil || c.Tools == nil || c.Keeps == nil || c.Summary == nil || c.Sent == nil || c.Now == nil {
		return nil, errors.New("the gateway needs an intake, a runner, tools, a clock and what its configuration says")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Handling = cmp.Or(c.Handling, 20*time.Second)
	c.Progress = cmp.Or(c.Progress, 10*time.Second)
	c.Silent = cmp.Or(c.Silent, 50*time.Second)
	c.Poll = cmp.Or(c.Poll, 500*time.Millisecond)
	d, err := door.New(door.Config{
		Intake: c.Intake, Guard: c.Guard, Refuses: c.Refuses, Log: c.Log, Handling: c.Handling, Holds: cmp.Or(c.Holds, 500),
	})
	if err != nil {
		return nil, err
	}
	return &Server{
		c: c, door: d, waiting: map[approvals.RunID]int{}, running: map[approvals.RunID]*execution{},
	}, nil
}

// Drain answers every call that is held with how it stands now, and begins no
// execution from now on.
func (s *Server) Drain() { s.door.Drain() }

// Finish returns when no execution runs here any more, or when ctx ends.
func (s *Server) Finish(ctx context.Context) error {
	over := make(chan struct{})
	go func() {
		s.done.Wait()
		close(over)
	}()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Held is how many calls are held.
func (s *Server) Held() int { return s.door.Held() }

// join counts a caller that waits for the request. leave reports whether it was
// the last one here.
func (s *Server) join(id approvals.RunID) (leave func() (last bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[id]++
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waiting[id]--
		if s.waiting[id] > 0 {
			return false
		}
		delete(s.waiting, id)
		return true
	}
}

// An execution is one that runs here.
type execution struct {
	over chan struct{}
	got  agentrun.Executed
	err  error
}

// execute has the call of a claimed request executed, and returns when it is over
// or when ctx ends: then it goes on without this caller. Callers of one request
// share its execution.
func (s *Server) execute(ctx context.Context, q intake.Request) (agentrun.Executed, error) {
	id := q.ID
	s.mu.Lock()
	e := s.running[id]
	if e == nil {
		e = &execution{over: make(chan struct{})}
		s.running[id] = e
		s.done.Go(func() {
			going := context.WithoutCancel(ctx)
			if q.Claimed {
				e.got, e.err = s.c.Runner.Continue(going, q.Run)
			} else {
				e.got, e.err = s.c.Runner.Execute(going, id)
			}
			s.mu.Lock()
			delete(s.running, id)
			s.mu.Unlock()
			close(e.over)
		})
	}
	s.mu.Unlock()
	select {
	case <-e.over:
		return e.got, e.err
	case <-ctx.Done():
		return agentrun.Executed{}, ctx.Err()
	}
}
