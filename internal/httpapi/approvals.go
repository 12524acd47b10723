package httpapi

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/httpapi/format"
	"github.com/countersign/countersign/internal/intake"
)

// create is POST /v1/approvals.
func (a *API) create(c caller) (answer, error) {
	wait, err := c.wait()
	if err != nil {
		return answer{}, err
	}
	ask, err := c.ask()
	if err != nil {
		return answer{}, err
	}
	asking, cancel := c.brief()
	defer cancel()
	q, err := a.c.Intake.Ask(asking, c.Client, ask)
	if err != nil {
		return answer{}, err
	}
	q, err = a.until(c, q, wait, settled)
	if c.left() {
		return answer{}, errors.Join(err, a.gone(c, q.ID))
	}
	if errors.Is(err, bearer.ErrRefused) {
		return answer{}, err
	}
	if err != nil { // it is stored: the client must learn its id
		a.c.Log.WarnContext(c.r.Context(), "a new request cannot be waited for", slog.String("request", string(q.ID)), slog.Any("err", err))
	}
	status := http.StatusCreated
	if settled(q) {
		status = http.StatusOK
	}
	out, err := c.reply(status, q)
	return out.set("Location", "/v1/approvals/"+url.PathEscape(string(q.ID))), err
}

// gone says that the client of a new request stopped waiting for its answer: one
// that no late answer can reach is withdrawn.
func (a *API) gone(c caller, id approvals.RunID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), maxHandling)
	defer cancel()
	return a.c.Intake.Gone(ctx, c.Client, id)
}

// reply answers with a request.
func (c caller) reply(status int, q intake.Request) (answer, error) {
	doc, _, err := requestOf(q)
	if err != nil {
		return answer{}, err
	}
	state := doc.State
	doc.State = nil
	out, err := reply(status, doc)
	if err == nil && state != nil { // as it came in: an encoder would take out white space
		out.body = bytes.Join([][]byte{bytes.TrimSuffix(out.body, []byte("}\n")), []byte(`,"state":`), state, []byte("}\n")}, nil)
	}
	out = out.set("ETag", etag(q)).set("Cache-Control", "no-cache, private")
	if wait, err := c.wait(); err == nil && wait > 0 && c.r.Header.Get("Prefer") != "" && !c.r.URL.Query().Has("wait") {
		out = out.set("Preference-Applied", "wait="+strconv.Itoa(int(wait/time.Second)))
	}
	return out, err
}

// read is GET /v1/approvals/{id}. With If-None-Match it waits for a change,
// otherwise until the request is settled.
func (a *API) read(c caller) (answer, error) {
	enough := settled
	if c.conditional() {
		enough = func(q intake.Request) bool { return !c.unchanged(q) }
	}
	q, err := a.get(c, enough)
	if err != nil {
		return answer{}, err
	}
	if c.unchanged(q) {
		return answer{status: http.StatusNotModified}.set("ETag", etag(q)).set("Cache-Control", "no-cache, private"), nil
	}
	return c.reply(http.StatusOK, q)
}

// get returns the request of the path, after the wait that the client wants.
func (a *API) get(c caller, enough func(intake.Request) bool) (intake.Request, error) {
	wait, err := c.wait()
	if err != nil {
		return intake.Request{}, err
	}
	reading, cancel := c.brief()
	defer cancel()
	q, err := a.c.Intake.Get(reading, c.Client, c.id())
	if err != nil {
		return q, err
	}
	return a.until(c, q, wait, enough)
}

// results is GET /v1/approvals/{id}/results: the answer as a framework takes it.
func (a *API) results(c caller) (answer, error) {
	q, err := a.get(c, settled)
	if err != nil {
		return answer{}, err
	}
	_, form, err := requestOf(q)
	if err != nil {
		return answer{}, err
	}
	name := format.Name(c.r.URL.Query().Get("format"))
	if name == "" {
		name = form.Format
	}
	if name == "" {
		return answer{}, &format.RequestError{At: "format", Problem: "is missing: the request was handed in without one"}
	}
	body, err := form.Write(name, q.Calls)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, media: "application/json", body: body}.set("ETag", etag(q)).set("Cache-Control", "no-cache, private"), nil
}

// list is GET /v1/approvals: the requests of the agent, the newest first.
func (a *API) list(c caller) (answer, error) {
	q, err := c.query("status", "group", "external_id", "limit")
	if err != nil {
		return answer{}, err
	}
	for _, filter := range []string{"status", "group", "external_id"} {
		if q.Has(filter) && q.Get(filter) == "" {
			return answer{}, &format.RequestError{At: filter, Problem: "is empty: leave it out to list all"}
		}
	}
	f := intake.Filter{State: intake.State(q.Get("status")), Group: q.Get("group"), ExternalID: q.Get("external_id")}
	if f.State != "" && f.State != intake.StatePending && f.State != intake.StateSettled {
		return answer{}, &format.RequestError{At: "status", Problem: "must be pending or settled"}
	}
	if f.Limit, err = limit(q); err != nil {
		return answer{}, err
	}
	all, err := a.c.Intake.List(c.r.Context(), c.Client, f)
	if err != nil {
		return answer{}, err
	}
	doc := struct {
		Approvals []wireListed `json:"approvals"`
	}{[]wireListed{}}
	for _, q := range all {
		doc.Approvals = append(doc.Approvals, listed(q))
	}
	return reply(http.StatusOK, doc)
}

// query returns the query of a list. What is wrong in it is refused: left out, it
// would make the list longer than its client wants.
func (c caller) query(known ...string) (url.Values, error) {
	q, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, &format.RequestError{At: "query", Problem: "is not well-formed: escape each value"}
	}
	for _, key := range slices.Sorted(maps.Keys(q)) {
		if !slices.Contains(known, key) {
			return nil, &format.RequestError{At: key, Problem: "is not known: the query has " + strings.Join(known, ", ")}
		}
		if len(q[key]) > 1 {
			return nil, &format.RequestError{At: key, Problem: "is there twice"}
		}
	}
	return q, nil
}

// limit is how much of a list the client wants; 0 if it does not say.
func limit(q url.Values) (int, error) {
	if !q.Has("limit") {
		return 0, nil
	}
	n, err := strconv.ParseUint(q.Get("limit"), 10, 31)
	if err != nil || n == 0 {
		return 0, &format.RequestError{At: "limit", Problem: "must be a whole number of at least 1"}
	}
	return int(n), nil
}

// withdraw is POST /v1/approvals/{id}/withdraw.
func (a *API) withdraw(c caller) (answer, error) {
	doc, err := c.object("reason")
	if err != nil {
		return answer{}, err
	}
	reason, err := doc["reason"].Text(maxReport)
	if err != nil {
		return answer{}, err
	}
	q, err := a.c.Intake.Withdraw(c.r.Context(), c.Client, c.id(), reason)
	if err != nil {
		return answer{}, a.withOutcomes(c, err)
	}
	return c.reply(http.StatusOK, q)
}
