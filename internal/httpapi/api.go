// Package httpapi is the HTTP API under /v1, by which agents that this program
// does not run ask for approvals, wait for them and claim them. openapi.yaml
// states it and is served; the tests hold the handlers to it.
//
// An agent can ask, read, withdraw, claim and report. There is no route by which
// a credential of an agent approves or denies anything, and no GET writes. Every
// answer is built as a whole before its first byte is sent, and an empty one, a
// panic and a deadline become a problem (RFC 9457): no failure of this package
// reads as a permission.
package httpapi

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/intake"
)

// Intake is what the API needs of [intake.Service].
type Intake interface {
	Ask(ctx context.Context, c intake.Client, a intake.Ask) (intake.Request, error)
	Get(ctx context.Context, c intake.Client, id approvals.RunID) (intake.Request, error)
	Wait(ctx context.Context, c intake.Client, id approvals.RunID, version string) (intake.Request, error)
	List(ctx context.Context, c intake.Client, f intake.Filter) ([]intake.Request, error)
	Withdraw(ctx context.Context, c intake.Client, id approvals.RunID, reason string) (intake.Request, error)
	Claim(ctx context.Context, c intake.Client, id approvals.RunID, call approvals.ToolCallID) (intake.Claim, error)
	Report(ctx context.Context, c intake.Client, id approvals.RunID, call approvals.ToolCallID, r intake.Report) (intake.Request, error)
	Fulfill(ctx context.Context, c intake.Client, id approvals.RunID, call approvals.ToolCallID, r approvals.CallResult) error
	Waiting(ctx context.Context, c intake.Client, after approvals.Cursor, limit int) ([]intake.WaitingCall, approvals.Cursor, error)
	Gone(ctx context.Context, c intake.Client, id approvals.RunID) error
	Place(ctx context.Context, c intake.Client) (string, error)
	Events(ctx context.Context, c intake.Client, after string) iter.Seq2[intake.Event, error]
}

// Config is what an [API] works with.
type Config struct {
	Intake  Intake
	Guard   *bearer.Guard
	Keys    func() []byte // the public keys of receipts as a JWKS; nil if there are none
	Origins []string      // whose pages may call the API; none if left out
	Hosts   []string      // under which a listener on loopback answers, besides localhost
	Now     func() time.Time
	Log     *slog.Logger

	BodyTime  time.Duration // how long a body may take to arrive; 20s if left out
	Heartbeat time.Duration // how long a stream is silent at most; 15s if left out
	Holds     int           // how many requests of one agent may wait at once; 2000 if left out
}

// An API serves the HTTP API. It is an [http.Handler].
type API struct {
	c      Config
	routes *http.ServeMux

	mu    sync.Mutex
	holds map[string]map[*hold]struct{} // by agent
	over  bool                          // no request is held any more
}

// New returns the API.
func New(c Config) (*API, error) {
	if c.Intake == nil || c.Guard == nil || c.Now == nil || c.Log == nil {
		return nil, errors.New("the HTTP API needs an intake, a guard, a clock and a log")
	}
	c.BodyTime = cmp.Or(c.BodyTime, 20*time.Second)
	c.Heartbeat = cmp.Or(c.Heartbeat, 15*time.Second)
	c.Holds = cmp.Or(c.Holds, 2000)
	a := &API{c: c, routes: http.NewServeMux(), holds: map[string]map[*hold]struct{}{}}
	for pattern, methods := range a.table() {
		a.routes.Handle(pattern, resource{a, methods})
	}
	a.routes.Handle("/", resource{a, nil})
	return a, nil
}

// A caller is an agent with its request.
type caller struct {
	bearer.Agent

	r       *http.Request
	control *http.ResponseController
	still   func() error // nil while the request proves the agent
}

// A method answers a request. Open ones need no credential.
type method struct {
	open   func(r *http.Request) (answer, error)
	agent  func(c caller) (answer, error)
	stream func(c caller, w http.ResponseWriter) error // writes by itself, unless it returns an error
	limit  time.Duration                               // how long it may take; [maxHandling] if left out
}

// table is every route and method of the API. There is no other.
func (a *API) table() map[string]map[string]method {
	return map[string]map[string]method{
		"/v1/approvals": {
			http.MethodPost: {agent: a.create, limit: maxWait + maxHandling},
			http.MethodGet:  {agent: a.list},
		},
		"/v1/approvals/{id}":                     {http.MethodGet: {agent: a.read, limit: maxWait + maxHandling}},
		"/v1/approvals/{id}/results":             {http.MethodGet: {agent: a.results, limit: maxWait + maxHandling}},
		"/v1/approvals/{id}/withdraw":            {http.MethodPost: {agent: a.withdraw}},
		"/v1/approvals/{id}/calls/{call}/claim":  {http.MethodPost: {agent: a.claim}},
		"/v1/approvals/{id}/calls/{call}/result": {http.MethodPost: {agent: a.result}},
		"/v1/waiting-calls":                      {http.MethodGet: {agent: a.waiting}},
		"/v1/events":                             {http.MethodGet: {stream: a.events}},
		"/v1/openapi.json":                       {http.MethodGet: {open: document}},
		problems + "{name}":                      {http.MethodGet: {open: func(r *http.Request) (answer, error) { return aboutKind(r.PathValue("name")) }}},
		"/.well-known/countersign-keys":          {http.MethodGet: {open: a.publicKeys}},
	}
}

// publicKeys serves the keys that receipts are checked with.
func (a *API) publicKeys(*http.Request) (answer, error) {
	if a.c.Keys == nil {
		return answer{}, refuse(kindNotFound, "receipts are not signed here")
	}
	return answer{status: http.StatusOK, media: "application/jwk-set+json", body: a.c.Keys()}.set("Cache-Control", "max-age=300"), nil
}
