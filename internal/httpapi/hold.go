package httpapi

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/httpapi/format"
	"github.com/countersign/countersign/internal/intake"
)

// maxWait is how long a request may wait: proxies cut connections that are silent
// for a minute.
const maxWait = 55 * time.Second

// A hold is a request that waits.
type hold struct{ release context.CancelFunc }

// hold returns a context that ends when the API drains, besides with ctx. Nothing
// runs for it: it is only listed.
func (a *API) hold(ctx context.Context, agent string) (context.Context, func(), error) {
	held, cancel := context.WithCancel(ctx)
	h := &hold{cancel}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		cancel()
		return held, func() {}, nil
	}
	if len(a.holds[agent]) >= a.c.Holds {
		cancel()
		return nil, nil, refuse(kindLimited, "the agent has %d requests that wait", a.c.Holds).again(5 * time.Second)
	}
	if a.holds[agent] == nil {
		a.holds[agent] = map[*hold]struct{}{}
	}
	a.holds[agent][h] = struct{}{}
	return held, func() {
		cancel()
		a.mu.Lock()
		defer a.mu.Unlock()
		if delete(a.holds[agent], h); len(a.holds[agent]) == 0 {
			delete(a.holds, agent)
		}
	}, nil
}

// Drain lets go of every request that waits, and holds none from now on: long
// polls answer with what is so now, and streams end.
func (a *API) Drain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	for _, holds := range a.holds {
		for h := range holds {
			h.release()
		}
	}
}

// wait returns how long the client wants to wait: ?wait=50s, or Prefer: wait=50.
func (c caller) wait() (time.Duration, error) {
	if q := c.r.URL.Query(); q.Has("wait") {
		d, err := time.ParseDuration(q.Get("wait"))
		if seconds, bare := strconv.ParseUint(q.Get("wait"), 10, 16); bare == nil {
			d, err = time.Duration(seconds)*time.Second, nil
		}
		if err != nil || d < 0 || d > maxWait {
			return 0, &format.RequestError{At: "wait", Problem: "must be a duration of at most " + maxWait.String() + ", such as 50s"}
		}
		return d, nil
	}
	for _, header := range c.r.Header.Values("Prefer") {
		for preference := range strings.SplitSeq(header, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(preference), "=")
			seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 16)
			if strings.EqualFold(name, "wait") && err == nil {
				return min(time.Duration(seconds)*time.Second, maxWait), nil
			}
		}
	}
	return 0, nil // a preference that is not understood is none
}

// until waits while the request is as the client does not want it, and returns it
// as it is then. The end of the wait is no error; that of the credential is. With an error
// it returns the request as it was given.
func (a *API) until(c caller, q intake.Request, wait time.Duration, enough func(intake.Request) bool) (intake.Request, error) {
	if wait == 0 || enough(q) {
		return q, nil
	}
	ctx := c.r.Context()
	held, release, err := a.hold(ctx, c.Client.Name)
	if err != nil {
		return q, err
	}
	defer release()
	if err := c.waits(); err != nil {
		return q, err
	}
	waiting, cancel := context.WithTimeout(held, wait)
	defer cancel()
	asked := q
	for waiting.Err() == nil && !enough(q) {
		next, err := a.c.Intake.Wait(waiting, c.Client, q.ID, q.Version)
		if waiting.Err() != nil {
			break
		}
		if err != nil {
			return asked, err
		}
		q = next
	}
	if ctx.Err() != nil {
		return asked, ctx.Err()
	}
	if err := c.still(); err != nil { // it may have been taken away meanwhile
		return asked, err
	}
	if enough(q) {
		return q, nil
	}
	reading, cancel := c.brief()
	defer cancel()
	q, err = a.c.Intake.Get(reading, c.Client, q.ID) // a wait that was missed
	if err != nil {
		return asked, err
	}
	return q, nil
}

// brief is the context of a part of the request that waits for nobody.
func (c caller) brief() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.r.Context(), maxHandling)
}

// left reports whether the client has closed its connection.
func (c caller) left() bool { return errors.Is(c.r.Context().Err(), context.Canceled) }

func settled(q intake.Request) bool { return q.State != intake.StatePending }

// id returns the request that the path names.
func (c caller) id() approvals.RunID { return approvals.RunID(c.r.PathValue("id")) }

func (c caller) call() approvals.ToolCallID { return approvals.ToolCallID(c.r.PathValue("call")) }

func etag(q intake.Request) string { return strconv.Quote(q.Version) }

// unchanged reports whether the client has the request as it is.
func (c caller) unchanged(q intake.Request) bool {
	for _, header := range c.r.Header.Values("If-None-Match") {
		for tag := range strings.SplitSeq(header, ",") {
			if strings.TrimPrefix(strings.TrimSpace(tag), "W/") == etag(q) {
				return true
			}
		}
	}
	return false
}

func (c caller) conditional() bool { return len(c.r.Header.Values("If-None-Match")) > 0 }
