// Package hookserver answers coding agents that ask before a tool runs: the
// PreToolUse hook of Claude Code over HTTP, and the permission prompt as a tool
// of MCP. What is asked is one call, in the one use case of package intake.
//
// A coding agent runs the tool after most failures of its approver: a status that
// is not 200, a body that is not JSON, an empty body, a time-out. So every answer
// under the route of a hook is 200 with a whole JSON document that is built
// before the first byte, and each failure, each panic and each deadline in here
// becomes a denial. Only a claimed decision becomes a permission.
package hookserver

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/door"
	"github.com/countersign/countersign/internal/intake"
)

// Intake is what the server needs of [intake.Service].
type Intake interface {
	door.Intake
	Ask(ctx context.Context, c intake.Client, a intake.Ask) (intake.Request, error)
	List(ctx context.Context, c intake.Client, f intake.Filter) ([]intake.Request, error)
	Withdraw(ctx context.Context, c intake.Client, id approvals.RunID, reason string) (intake.Request, error)
	Claim(ctx context.Context, c intake.Client, id approvals.RunID, call approvals.ToolCallID) (intake.Claim, error)
	Report(ctx context.Context, c intake.Client, id approvals.RunID, call approvals.ToolCallID, r intake.Report) (intake.Request, error)
}

// Config is what a [Server] works with.
type Config struct {
	Intake  Intake
	Guard   *bearer.Guard
	Refuses func(r *http.Request) string // why a request is not let in before its credential is looked at; empty if it is
	Now     func() time.Time
	Log     *slog.Logger

	Handling time.Duration // how long a request may take, besides what it is held; 10s if left out: with a quarter more it is less than what the doctor asks for
	Holds    int           // how many requests of one agent are held at once; 500 if left out
	Progress time.Duration // how often a caller of MCP gets a progress message; 10s if left out
}

// A Server is the door of coding agents.
type Server struct {
	c    Config
	door *door.Door
}

// New returns a server.
func New(c Config) (*Server, error) {
	if c.Intake == nil || c.Guard == nil || c.Refuses == nil || c.Now == nil || c.Log == nil {
		return nil, errors.New("the hooks need an intake, a guard, a check of requests, a clock and a log")
	}
	c.Handling = cmp.Or(c.Handling, 10*time.Second)
	c.Holds = cmp.Or(c.Holds, 500)
	c.Progress = cmp.Or(c.Progress, 10*time.Second)
	d, err := door.New(door.Config{Intake: c.Intake, Guard: c.Guard, Refuses: c.Refuses, Log: c.Log, Handling: c.Handling, Holds: c.Holds})
	if err != nil {
		return nil, err
	}
	return &Server{c: c, door: d}, nil
}

// Drain answers everything that is held with what is so now, and holds nothing
// from now on.
func (s *Server) Drain() { s.door.Drain() }
