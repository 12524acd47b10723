package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/propagation"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/argschema"
	"github.com/countersign/countersign/internal/tools"
)

// A Tool is one tool of a server, by the definition that the operator accepted.
type Tool struct {
	server  *serverTools
	defined Definition
	spec    agentrun.Spec
}

func newTool(s *serverTools, d Definition) *Tool {
	c := s.config
	t := &Tool{server: s, defined: d}
	t.spec = agentrun.Spec{
		Name: c.Name + "." + d.Name, Description: d.description, Schema: d.schema, Kind: agentrun.KindFunction,
		Timeout: c.timeout(d.Name) + overhead, Annotations: d.hints(c.TrustAnnotations),
		Definition: d.Digest,
	}
	if c.TrustAnnotations {
		t.spec.WriteOnly = argschema.WriteOnly(d.schema)
	}
	return t
}

// overhead is how much longer the limit of an execution is than that of the
// request, so that a request that ran out of time is told from one that was
// never sent.
const overhead = waitsFor + pingWithin + 5*time.Second

// Spec implements [agentrun.Tool].
func (t *Tool) Spec() agentrun.Spec { return t.spec }

// Available says why no call of the tool can be made now, if none can.
func (t *Tool) Available() error { return t.server.usable(t.defined) }

// Defined is the tool as its server described it and the operator accepted it.
func (t *Tool) Defined() json.RawMessage { return t.defined.Raw }

// Gated reports whether calls need approval where neither the policy nor the
// configuration says otherwise: always, unless a trusted server says that the
// tool only reads.
func (t *Tool) Gated() bool { return !t.spec.Annotations.ReadOnlyHint }

// Validate judges the arguments by the schema of the server. A tool that is not
// as it was accepted refuses every call.
func (t *Tool) Validate(_ context.Context, c agentrun.Call) error {
	if err := t.server.usable(t.defined); err != nil {
		return &agentrun.FailedError{Message: t.sentence(err.Error())}
	}
	return tools.Validate(t.defined.judged, tools.Arguments(c))
}

func (t *Tool) sentence(why string) string {
	return fmt.Sprintf("The tool %s was not called: %s.", agentrun.CallableName(t.spec.Name), why)
}

// idempotencyKey is where a request says, in its _meta, which call it is: the same
// if a call in doubt is made again, so that a server can keep it from taking
// effect twice.
const idempotencyKey = "countersign.dev/idempotency-key"

// Execute makes the call, in a session that the server knows. It is sent once: only one
// that never left, or whose session the server has forgotten with HTTP 404, is tried again,
// on the next connection.
func (t *Tool) Execute(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
	var last *link
	for asked, again := false, false; ; {
		l, err := t.server.connection.current(ctx, last)
		if err != nil {
			return agentrun.Result{}, &agentrun.FailedError{Message: t.sentence(err.Error())}
		}
		if !asked && l.idle() {
			if asked = true; l.forgotten(ctx) {
				last = l
			}
			l.calls.Done()
			continue // its list may have changed meanwhile
		}
		if err := t.server.usable(t.defined); err != nil {
			l.calls.Done()
			return agentrun.Result{}, &agentrun.FailedError{Message: t.sentence(err.Error())}
		}
		result, sent, err := t.send(ctx, l, c)
		if sent || again {
			return result, err
		}
		last, again = l, true
	}
}

// send makes the call on one connection. sent is false if it never left, or
// its session was forgotten.
func (t *Tool) send(ctx context.Context, l *link, c agentrun.Call) (_ agentrun.Result, sent bool, _ error) {
	defer l.calls.Done()
	within := t.server.config.timeout(t.defined.Name)
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	limited, e, meta := l.tap.begin(limited)
	defer l.tap.end(e)
	meta[idempotencyKey] = c.Key
	for name, value := range traceOf(ctx) {
		meta[name] = value
	}
	l.called.Store(true)
	_, err := l.session.CallTool(limited, &mcp.CallToolParams{Meta: meta, Name: t.defined.Name, Arguments: tools.Arguments(c)})
	answered, left, status := e.outcome()
	switch {
	case e.forgotten():
		return agentrun.Result{}, false, &agentrun.FailedError{Message: t.sentence(fmt.Sprintf("the server refused the request with the HTTP status %d", status))}
	case answered != nil:
		result, err := t.server.config.read(answered)
		failed, told := errors.AsType[*agentrun.FailedError](err)
		switch {
		case !t.server.config.Whole:
		case err == nil:
			result.Metadata = t.server.config.whole(answered.Result)
		case told && !t.server.config.tells(answered.Result):
			failed.Metadata = t.server.config.whole(answered.Result)
		}
		return result, true, err
	case !left:
		t.server.log.WarnContext(ctx, "a call did not reach its MCP server", slog.String("tool", t.spec.Name), slog.Any("err", l.explain(cmpErr(err))))
		if l.program == nil && limited.Err() == nil { // the end of a program ends its connection
			l.spend()
		}
		return agentrun.Result{}, false, &agentrun.FailedError{Message: t.sentence("the server could not be reached")}
	case refusals[status]:
		return agentrun.Result{}, true, &agentrun.FailedError{Message: t.sentence(fmt.Sprintf("the server refused the request with the HTTP status %d", status))}
	case status != 0:
		return agentrun.Result{}, true, unsure("The server answered with the HTTP status %d.", status)
	case e.failure() != "":
		return agentrun.Result{}, true, unsure("%s", e.failure())
	case errors.Is(err, errTooLong):
		return agentrun.Result{}, true, unsure("The server sent a message of more than %d MiB, so the connection to it was ended.", maxMessage>>20)
	case limited.Err() != nil:
		l.unanswered(ctx, t.server.log)
		return agentrun.Result{}, true, unsure("The server did not answer within %s.", within)
	}
	return agentrun.Result{}, true, unsure("The connection to the server ended before it answered.")
}

// traceOf is the W3C trace context of ctx, which MCP has in the _meta of a request
// (SEP-414): traceparent, and tracestate if there is one.
func traceOf(ctx context.Context) map[string]string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier
}

func unsure(format string, args ...any) error {
	return &agentrun.UnsureError{Message: fmt.Sprintf(format, args...)}
}
