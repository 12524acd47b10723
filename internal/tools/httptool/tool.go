package httptool

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/argschema"
	"github.com/countersign/countersign/internal/dialguard"
	"github.com/countersign/countersign/internal/plainhttp"
	"github.com/countersign/countersign/internal/tools"
)

// A Tool is one endpoint.
type Tool struct {
	config      Config
	schema      argschema.Schema
	hidden      []string // the arguments that are write-only
	origin      url.URL  // scheme and host
	path, query string   // with placeholders
	body        bool
	client      *http.Client
}

// The bounds of an answer.
const (
	maxHeaders   = 64 << 10
	maxAnswer    = 1 << 20 // many are read at a time, and a model reads at most [mostResult] of one
	maxWords     = 4 << 10 // of an answer that is an error
	maxRedirects = 3
	overhead     = 5 * time.Second // of an execution over its request, so that the request ends first
)

func (t *Tool) open() {
	guard := dialguard.Guard{Allow: t.config.Allow, Listed: t.origin.Scheme == "http"}
	t.client = &http.Client{
		Transport: plainhttp.Transport(&http.Transport{
			DialContext:            guard.Dialer(t.config.Resolver).DialContext,
			DisableKeepAlives:      true, // a connection that is used again is not judged again
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeaders,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		}),
		CheckRedirect: t.redirect,
	}
}

// redirect follows a redirect of a request that only reads, to the same scheme, host
// and port. Every other one is an answer.
func (t *Tool) redirect(r *http.Request, via []*http.Request) error {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if !reads || via[0].Method != r.Method || len(via) > maxRedirects || r.URL.User != nil ||
		r.URL.Scheme != t.origin.Scheme || !strings.EqualFold(r.URL.Host, t.origin.Host) {
		return http.ErrUseLastResponse
	}
	return nil
}

// Spec implements [agentrun.Tool].
func (t *Tool) Spec() agentrun.Spec {
	return agentrun.Spec{
		Name: t.config.Name, Description: t.config.Description, Schema: t.config.Schema, Kind: agentrun.KindFunction,
		Timeout: t.within() + overhead, Annotations: agentrun.Annotations{ReadOnlyHint: t.config.ReadOnly}, Effect: t.effect(),
		WriteOnly: t.hidden, Definition: t.definition(),
	}
}

// definition changes with what a call of the tool is sent to.
func (t *Tool) definition() string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(t.config.Method+" "+t.config.URL)))
}

func (t *Tool) effect() agentrun.Effect {
	if t.config.Effect == "" && t.config.ReadOnly {
		return agentrun.EffectPure
	}
	return t.config.Effect
}

// Gated reports whether calls need approval where neither the policy nor the
// configuration says otherwise: unless the operator says that the tool only reads.
func (t *Tool) Gated() bool { return !t.config.ReadOnly }

func (t *Tool) within() time.Duration { return cmp.Or(t.config.Timeout, DefaultTimeout) }

// Validate judges the arguments by the schema, and by the URL that they make.
func (t *Tool) Validate(_ context.Context, c agentrun.Call) error {
	args := tools.Arguments(c)
	if err := approvals.CheckArgs(args); err != nil {
		return &agentrun.ArgumentError{Message: err.Error()}
	}
	if err := tools.Validate(t.schema, args); err != nil {
		return err
	}
	_, _, err := t.request(args)
	if _, known := errors.AsType[*agentrun.ArgumentError](err); err != nil && !known {
		return &agentrun.ArgumentError{Message: err.Error()}
	}
	return err
}

// Execute makes the request, once.
func (t *Tool) Execute(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
	if err := t.Validate(ctx, c); err != nil {
		return agentrun.Result{}, &agentrun.RetryError{Message: err.Error()}
	}
	u, body, err := t.request(tools.Arguments(c))
	if err != nil {
		return agentrun.Result{}, &agentrun.RetryError{Message: err.Error()}
	}
	limited, cancel := context.WithTimeout(ctx, t.within())
	defer cancel()
	var left atomic.Bool // something of the request may have been read
	traced := httptrace.WithClientTrace(limited, &httptrace.ClientTrace{WroteHeaders: func() { left.Store(true) }})
	req, err := http.NewRequestWithContext(traced, t.config.Method, u.String(), bytes.NewReader(body))
	if err != nil {
		return agentrun.Result{}, t.notMade("it makes no request")
	}
	if body == nil {
		req.Body, req.ContentLength = http.NoBody, 0
	} else {
		req.GetBody = nil // it is never sent twice
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", "Countersign/1")
	req.Header.Set("Accept", "application/json, text/*;q=0.9, */*;q=0.5")
	if c.Key != "" && t.effect() != agentrun.EffectPure {
		// The endpoint can tell a call that is run again from another one. The key
		// holds what a model wrote, so its hash is sent.
		req.Header.Set("Idempotency-Key", fmt.Sprintf("%x", sha256.Sum256([]byte(c.Key))))
	}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(req.Header))
	for name, value := range t.config.Headers {
		req.Header.Set(name, value)
	}
	resp, err := t.client.Do(req)
	if err == nil {
		defer resp.Body.Close() //nolint:errcheck // it was read as far as it counts
		return t.answer(resp)
	}
	switch {
	case !left.Load() && limited.Err() != nil:
		return agentrun.Result{}, t.notMade("the endpoint could not be reached in time")
	case !left.Load():
		return agentrun.Result{}, t.notMade(unreached(err))
	case limited.Err() != nil:
		return agentrun.Result{}, t.unsure("The endpoint did not answer within %s.", t.within())
	}
	return agentrun.Result{}, t.unsure("The connection to the endpoint ended before it answered.")
}

// unreached says why nothing was sent. The texts of errors may hold secrets.
func unreached(err error) string {
	if refused, ok := errors.AsType[*dialguard.RefusedError](err); ok {
		return refused.Error()
	}
	return "the endpoint could not be reached"
}

// answer reads what the endpoint says.
func (t *Tool) answer(resp *http.Response) (agentrun.Result, error) {
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if resp.StatusCode >= http.StatusOK && resp.StatusCode < http.StatusMultipleChoices {
		if err != nil {
			return agentrun.Result{}, t.unsure("The endpoint answered with the HTTP status %d, and its answer broke off.", resp.StatusCode)
		}
		return t.result(resp.StatusCode, content), nil
	}
	said := ""
	if words := t.words(content); words != "" {
		said = ": " + words
	}
	if resp.StatusCode < http.StatusMultipleChoices || resp.StatusCode >= http.StatusInternalServerError || unclear[resp.StatusCode] {
		return agentrun.Result{}, t.unsure("The endpoint answered with the HTTP status %d%s.", resp.StatusCode, said)
	}
	return agentrun.Result{}, &agentrun.FailedError{Message: fmt.Sprintf("The endpoint refused the call with the HTTP status %d%s", resp.StatusCode, said)}
}

// unclear are the statuses from 300 to 499 that do not say whether the call took effect. An
// endpoint for forms redirects to a page, with 302 or 303, once it has done its work.
var unclear = map[int]bool{http.StatusFound: true, http.StatusSeeOther: true, http.StatusRequestTimeout: true}

func (t *Tool) notMade(why string) error {
	return &agentrun.FailedError{Message: fmt.Sprintf("The tool %s was not called: %s.", t.config.Name, why)}
}

// unsure is the error of a request that left and has no clear answer. One that only
// reads has failed.
func (t *Tool) unsure(format string, args ...any) error {
	said := fmt.Sprintf(format, args...)
	if t.config.ReadOnly || t.config.Method == http.MethodGet || t.config.Method == http.MethodHead {
		return &agentrun.FailedError{Message: said}
	}
	return &agentrun.UnsureError{Message: said}
}

// words are those of an answer that is an error.
func (t *Tool) words(content []byte) string {
	text := t.conceal(string(content)) // before the cut, which could leave a part of a secret
	return approvals.Visible(strings.TrimSpace(strings.ToValidUTF8(text[:min(len(text), maxWords)], "")))
}

// conceal returns text without the secrets of the tool, should the endpoint have said
// one of them.
func (t *Tool) conceal(text string) string {
	return tools.Conceal(text, tools.HeaderSecrets(t.config.Headers)...)
}
