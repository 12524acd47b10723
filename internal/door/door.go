// Package door has what the doors share whose callers stay on the line until
// people have decided: who asks, how many may wait, waiting itself, what a caller
// is told meanwhile, why its call may not run, and which messages of MCP are refused.
package door

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/intake"
)

// Intake is what a door needs of [intake.Service] to wait.
type Intake interface {
	Wait(ctx context.Context, c intake.Client, id approvals.RunID, version string) (intake.Request, error)
	Gone(ctx context.Context, c intake.Client, id approvals.RunID) error
}

// Config is what a [Door] works with. All of it is required.
type Config struct {
	Intake  Intake
	Guard   *bearer.Guard
	Refuses func(r *http.Request) string // why a request is not let in before its credential is looked at; empty if it is
	Log     *slog.Logger

	Handling time.Duration // how long a request may take, besides what it is held
	Holds    int           // how many requests of one agent are held at once
}

// A Door holds requests.
type Door struct {
	c Config

	over context.Context //nolint:containedctx // the life of what is held, which [Door.Drain] ends
	end  context.CancelFunc

	mu    sync.Mutex
	holds map[string]int                 // by agent
	calls map[string]*context.CancelFunc // that clients may cancel, by their name
}

// New returns a door.
func New(c Config) (*Door, error) {
	if c.Intake == nil || c.Guard == nil || c.Refuses == nil || c.Log == nil || c.Handling <= 0 || c.Holds <= 0 {
		return nil, errors.New("a door needs an intake, a guard, a check of requests, a log and its limits")
	}
	d := &Door{c: c, holds: map[string]int{}, calls: map[string]*context.CancelFunc{}}
	d.over, d.end = context.WithCancel(context.Background())
	return d, nil
}

// Drain lets go of everything that is held, and holds nothing from now on.
func (d *Door) Drain() { d.end() }

// Draining reports whether [Door.Drain] was called.
func (d *Door) Draining() bool { return d.over.Err() != nil }

// A Caller is an agent as its request proved it.
type Caller struct {
	intake.Client

	Still func() string // says why the request does not prove the agent any more; nothing if it does
}

// Agent returns the agent that the request proves, if it may use this door, or
// why not, in words for the agent, with the status of HTTP that says so.
func (d *Door) Agent(r *http.Request, door intake.Door) (c Caller, status int, why string) {
	if why := d.c.Refuses(r); why != "" {
		return Caller{}, http.StatusForbidden, why
	}
	agent, err := d.c.Guard.Prove(r)
	switch {
	case errors.Is(err, bearer.ErrMissing):
		return Caller{}, http.StatusUnauthorized, "the request has no bearer token; the variable with the token may be unset, or not in allowedEnvVars of a hook"
	case errors.Is(err, bearer.ErrRefused):
		return Caller{}, http.StatusUnauthorized, "the token proves no agent"
	case errors.Is(err, bearer.ErrUnavailable):
		return Caller{}, http.StatusServiceUnavailable, unavailable
	case err != nil:
		return Caller{}, http.StatusTooManyRequests, limited
	case !slices.Contains(agent.Doors, door):
		return Caller{}, http.StatusUnauthorized, "the configuration of this agent does not list the door " + string(door)
	}
	return Caller{agent.Client, func() string { return ended(d.c.Guard.Still(r, agent)) }}, 0, ""
}

const (
	unavailable = "the keys of the issuer cannot be read now"
	limited     = "too many requests from this address proved no agent"
)

// ended says why a credential that was good does not count any more.
func ended(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, bearer.ErrMissing), errors.Is(err, bearer.ErrRefused):
		return "the token does not prove the agent any more"
	case errors.Is(err, bearer.ErrUnavailable):
		return unavailable
	}
	return limited
}

// Refuse answers a request that [Door.Agent] has refused.
func Refuse(w http.ResponseWriter, status int, why string) {
	if status == http.StatusUnauthorized { // only then would another credential do
		w.Header().Set("WWW-Authenticate", `Bearer realm="countersign"`)
	}
	http.Error(w, why, status)
}

// Body returns the body of a request of MCP. One that is too large, or does not arrive as a
// whole, is refused here, and so is one whose credential was taken away while it arrived.
func (c Caller) Body(w http.ResponseWriter, r *http.Request, most int64) (body []byte, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		http.Error(w, fmt.Sprintf("the message has more than %d bytes", most), http.StatusRequestEntityTooLarge)
		return nil, false
	}
	if err != nil {
		http.Error(w, "the body did not arrive as a whole", http.StatusBadRequest)
		return nil, false
	}
	if why := c.Still(); why != "" {
		Refuse(w, http.StatusUnauthorized, why)
		return nil, false
	}
	return body, true
}

// Hold counts a request of the agent that is held, or says that it is one too
// many.
func (d *Door) Hold(agent string) (release func(), ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.holds[agent] >= d.c.Holds {
		return nil, false
	}
	d.holds[agent]++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.holds[agent]--; d.holds[agent] == 0 {
			delete(d.holds, agent)
		}
	}, true
}

// Held is how many requests are held.
func (d *Door) Held() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, of := range d.holds {
		n += of
	}
	return n
}

// Until returns a context that ends when so much time is over, when the door
// drains, or with ctx.
func (d *Door) Until(ctx context.Context, hold time.Duration) (held context.Context, release context.CancelFunc) {
	held, cancel := context.WithTimeout(ctx, hold)
	stop := context.AfterFunc(d.over, cancel)
	return held, func() { stop(); cancel() }
}

// Wait returns the request once it is decided, or as it stands when held ends. It
// calls tell, if there is one, with the request whenever it changes.
func (d *Door) Wait(held context.Context, c intake.Client, q intake.Request, tell func(intake.Request)) (intake.Request, error) {
	for {
		if tell != nil {
			tell(q)
		}
		if q.State != intake.StatePending || held.Err() != nil {
			return q, nil //nolint:nilerr // the end of a hold is no error
		}
		next, err := d.c.Intake.Wait(held, c, q.ID, q.Version)
		switch {
		case err == nil:
			q = next
		case held.Err() == nil:
			return q, err
		}
	}
}

// Gone says that the caller of a request stopped waiting. A request that no late
// answer can reach is withdrawn, and its card says why.
func (d *Door) Gone(ctx context.Context, c intake.Client, id approvals.RunID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.c.Handling)
	defer cancel()
	if err := d.c.Intake.Gone(ctx, c, id); err != nil {
		d.c.Log.WarnContext(ctx, "a request whose caller is gone stays open", slog.String("request", string(id)), slog.Any("err", err))
	}
}
