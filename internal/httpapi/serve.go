package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/intake"
)

// maxHandling is how long a request may take, besides what it waits.
const maxHandling = 15 * time.Second

// ServeHTTP answers a request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p := a.checkHost(r); p != nil {
		p.answer().write(w)
		return
	}
	if done := a.crossOrigin(w, r); done {
		return
	}
	a.routes.ServeHTTP(w, r)
}

// checkHost refuses names that the listener does not have.
func (a *API) checkHost(r *http.Request) *problem {
	if UnknownHost(r, a.c.Hosts) {
		return refuse(kindHost, "the listener is on loopback")
	}
	return nil
}

// UnknownHost reports whether a request reached a listener on loopback under a name
// that is neither localhost nor one of these. A page of a browser on this machine
// could otherwise reach it under a name of its own (DNS rebinding).
func UnknownHost(r *http.Request, names []string) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	tcp, ok := local.(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return false
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() || strings.EqualFold(host, "localhost") {
		return false
	}
	return !slices.ContainsFunc(names, func(h string) bool { return strings.EqualFold(h, host) })
}

// Refuses says why a request to a handler beside the API is not let in: under a
// name that the listener does not have, or from a page of a browser. It is empty
// for a request that is.
func (a *API) Refuses(r *http.Request) string {
	if words := a.OtherHost(r); words != "" || r.Header.Get("Origin") == "" {
		return words
	}
	return "pages of browsers may not ask here"
}

// OtherHost says that a request to a handler beside the API comes under a name that
// the listener does not have. It is empty for one that does not.
func (a *API) OtherHost(r *http.Request) string {
	if a.checkHost(r) != nil {
		return "the listener does not answer under this name"
	}
	return ""
}

// crossOrigin lets pages of the listed origins call the API, and no others. It
// reports whether the request is answered.
func (a *API) crossOrigin(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	w.Header().Add("Vary", "Origin")
	if !slices.Contains(a.c.Origins, origin) {
		refuse(kindOrigin, "").answer().write(w)
		return true
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "ETag, Location, Retry-After, Preference-Applied")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, Prefer")
	h.Set("Access-Control-Max-Age", "600")
	answer{status: http.StatusNoContent}.write(w)
	return true
}

// A resource answers the methods of one route.
type resource struct {
	api     *API
	methods map[string]method
}

func (s resource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m, ok := s.methods[r.Method]
	switch {
	case s.methods == nil:
		refuse(kindNotFound, "").answer().write(w)
	case !ok:
		refuse(kindMethod, "").set("Allow", strings.Join(slices.Sorted(maps.Keys(s.methods)), ", ")).answer().write(w)
	default:
		s.api.answer(w, r, m)
	}
}

// answer runs a method and sends what it returns, whatever happens in it.
func (a *API) answer(w http.ResponseWriter, r *http.Request, m method) {
	// The deadlines of the server are those of short requests.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(a.c.Now().Add(a.c.BodyTime))
	if m.stream != nil {
		if err := a.stream(w, r, m); err != nil { //nolint:contextcheck // that of the request
			a.explain(r, err).answer().write(w)
		}
		return
	}
	limit := m.limit
	if limit == 0 {
		limit = maxHandling
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	_ = control.SetWriteDeadline(a.c.Now().Add(limit + writeTime))
	out, err := a.run(r.WithContext(ctx), w, m) //nolint:contextcheck // that of the request
	if err != nil {
		out = a.explain(r, err).answer()
	}
	out.write(w)
}

// run runs a method. A panic is an error.
func (a *API) run(r *http.Request, w http.ResponseWriter, m method) (out answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.c.Log.ErrorContext(r.Context(), "a handler panicked", slog.String("route", r.Pattern), slog.String("stack", string(debug.Stack())))
			out, err = answer{}, refuse(kindInternal, "")
		}
	}()
	if m.open != nil {
		return m.open(r)
	}
	agent, err := a.agent(r)
	if err != nil {
		return answer{}, err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	return m.agent(a.caller(agent, r, w))
}

// stream runs a method that writes by itself. A panic before it has begun is an
// error; later the stream is cut, which no client takes for its end.
func (a *API) stream(w http.ResponseWriter, r *http.Request, m method) (err error) {
	out := &begun{ResponseWriter: w}
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		a.c.Log.ErrorContext(r.Context(), "a handler panicked", slog.String("route", r.Pattern), slog.String("stack", string(debug.Stack())))
		if out.header {
			panic(http.ErrAbortHandler)
		}
		err = refuse(kindInternal, "")
	}()
	agent, err := a.agent(r)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	return m.stream(a.caller(agent, r, out), out)
}

func (a *API) caller(agent bearer.Agent, r *http.Request, w http.ResponseWriter) caller {
	return caller{agent, r, http.NewResponseController(w), func() error { return a.c.Guard.Still(r, agent) }}
}

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

// agent returns the agent that the request proves, if it may use this API.
func (a *API) agent(r *http.Request) (bearer.Agent, error) {
	agent, err := a.c.Guard.Prove(r)
	if err != nil {
		return agent, err
	}
	if !slices.Contains(agent.Doors, intake.DoorAPI) {
		return agent, refuse(kindNoDoor, "the agent %q is not configured for %q", agent.Client.Name, string(intake.DoorAPI))
	}
	return agent, nil
}

// challenge is what a client without a credential reads.
const challenge = `Bearer realm="countersign"`

// explain turns an error into what the client may read of it. What it does not
// know is logged, and the client reads nothing of it.
func (a *API) explain(r *http.Request, err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if l, ok := errors.AsType[*bearer.LimitedError](err); ok {
		return refuse(kindLimited, "too many requests from this address proved no agent").again(l.After)
	}
	switch {
	case errors.Is(err, bearer.ErrMissing):
		return refuse(kindUnauthorized, "the request needs exactly one bearer token").set("WWW-Authenticate", challenge)
	case errors.Is(err, bearer.ErrRefused):
		return refuse(kindUnauthorized, "").set("WWW-Authenticate", challenge+`, error="invalid_token"`)
	case errors.Is(err, bearer.ErrUnavailable):
		return refuse(kindUnavailable, "the keys of the issuer cannot be read").again(10 * time.Second)
	}
	if p := ofIntake(err); p != nil {
		return p
	}
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return refuse(kindUnavailable, "the client closed its side of the connection before the answer; keep it open until then").again(time.Second)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		a.c.Log.WarnContext(r.Context(), "a request took too long", slog.String("route", r.Pattern))
		return refuse(kindUnavailable, "it took too long").again(time.Second)
	}
	if errors.Is(err, intake.ErrRuleUnjudged) {
		a.c.Log.WarnContext(r.Context(), "a call cannot be claimed now", slog.Any("err", err))
		return refuse(kindUnavailable, "a rule of the policy, or the check that it names, cannot judge the call now; the decision is not used").again(5 * time.Second)
	}
	a.c.Log.ErrorContext(r.Context(), "cannot handle a request", slog.String("route", r.Pattern), slog.Any("err", err))
	return refuse(kindUnavailable, "").again(5 * time.Second)
}
