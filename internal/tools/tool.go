package tools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/argschema"
	"github.com/countersign/countersign/internal/summary"
)

// Approval says whether a tool asks for approval. There is no default: a field
// that was forgotten must not let a call run.
type Approval string

// The approvals that a tool can declare.
const (
	Never  Approval = "never"  // none, unless the policy asks
	When   Approval = "when"   // the calls for which ApproveWhen says so
	Always Approval = "always" // every call
)

// A Spec describes a tool whose arguments are an In, a struct.
type Spec[In any] struct {
	Name        string // as the model calls it: letters, digits, _ and -, 64 at most
	Description string
	Approval    Approval
	// ApproveWhen goes with [When]: it asks for approval where it says true.
	// An error asks too.
	ApproveWhen func(ctx context.Context, c agentrun.Call, in In) (bool, error)
	// Check judges arguments that the schema accepts, before anybody is asked
	// and again before the call runs. Its error is read by the model.
	Check func(ctx context.Context, c agentrun.Call, in In) error
	// Summary says what a call does in one line, such as
	//
	//	Refund {money args.cents "EUR"} to {args.customer}
	//
	// Package summary describes the form. Without one people read the name of the
	// tool and some arguments.
	Summary     string
	Annotations agentrun.Annotations // what a policy may know of its effects; the zero value is the worst
	Severity    approvals.Severity   // how bad a call is that should not have run; left out: what Annotations say, see [agentrun.Spec.Stated]
	// Effect says what a second execution of a call would do, and Lookup whether one
	// that was begun took effect; see [agentrun.Effect]. A tool with a Lookup and no
	// Effect has that of a lookup.
	Effect agentrun.Effect
	Lookup func(ctx context.Context, c agentrun.Call, in In) (agentrun.Looked, error)
	// Preview says what a call would change, for the people who are asked about
	// it. PreviewReads goes with it: it names the tool and the arguments of the
	// call that the preview amounts to, and the preview is made only where the
	// agent may make that call without approval. See [agentrun.Previewer].
	Preview      func(ctx context.Context, c agentrun.Call, in In) (agentrun.Preview, error)
	PreviewReads func(in In) (tool string, args any)
	// ChecksPrecondition says that the function itself compares the precondition
	// of the call with what it is about to change, and returns
	// [*agentrun.PreconditionFailed] if it is another.
	ChecksPrecondition bool

	Sequential bool
	Timeout    time.Duration
}

// name is what the model providers accept as a function's name, see
// https://platform.openai.com/docs/api-reference/chat/create (tools).
var name = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// New returns the tool that f executes. It fails on a name that models refuse,
// on an In that has no schema, if the spec does not say who must approve, and on a
// summary that does not fit the In.
func New[In, Out any](s Spec[In], f func(ctx context.Context, c agentrun.Call, in In) (Out, error)) (agentrun.Tool, error) {
	if !name.MatchString(s.Name) {
		return nil, fmt.Errorf("tool %q: a name is 1 to 64 letters, digits, _ or -", s.Name)
	}
	kind, known := kinds[s.Approval]
	switch {
	case !known:
		return nil, fmt.Errorf("tool %s: Approval is %q, must be never, when or always", s.Name, s.Approval)
	case (s.Approval == When) != (s.ApproveWhen != nil):
		return nil, fmt.Errorf("tool %s: Approval when and ApproveWhen go together", s.Name)
	case (s.Preview != nil) != (s.PreviewReads != nil):
		return nil, fmt.Errorf("tool %s: Preview and PreviewReads go together", s.Name)
	case s.Effect != "" && !slices.Contains(agentrun.Effects, s.Effect):
		return nil, fmt.Errorf("tool %s: Effect is %q, must be one of %v", s.Name, s.Effect, agentrun.Effects)
	case s.Effect == agentrun.EffectLookup && s.Lookup == nil:
		return nil, fmt.Errorf("tool %s: the effect lookup needs a Lookup", s.Name)
	case s.Preview == nil && s.ChecksPrecondition:
		return nil, fmt.Errorf("tool %s: without a Preview there is no precondition", s.Name)
	}
	if s.Severity != approvals.SeverityUnset {
		if _, err := approvals.ParseSeverity(string(s.Severity)); err != nil {
			return nil, fmt.Errorf("tool %s: %w", s.Name, err)
		}
	}
	schema, hidden, err := schemaOf[In]()
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", s.Name, err)
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("tool %s: encode schema: %w", s.Name, err)
	}
	if s.Summary != "" {
		if err := summary.Check(s.Summary, raw, hidden); err != nil {
			return nil, fmt.Errorf("tool %s: Summary: %w", s.Name, err)
		}
	}
	judged, err := argschema.Compile(raw)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", s.Name, err)
	}
	t := &typed[In, Out]{schema: judged, check: s.Check, f: f}
	t.spec = agentrun.Spec{
		Name: s.Name, Description: s.Description, Schema: raw, Kind: kind,
		Sequential: s.Sequential, Timeout: s.Timeout, WriteOnly: hidden,
		Annotations: s.Annotations, Summary: s.Summary, Severity: s.Severity, Effect: s.Effect,
	}
	if s.Lookup != nil {
		t.spec.Effect = cmp.Or(s.Effect, agentrun.EffectLookup)
		t.spec.Lookup = func(ctx context.Context, c agentrun.Call) (agentrun.Looked, error) {
			in, err := t.decode(c)
			if err != nil {
				return agentrun.Looked{}, err
			}
			return s.Lookup(ctx, c, in)
		}
	}
	if s.ApproveWhen != nil {
		t.spec.NeedsApproval = func(ctx context.Context, c agentrun.Call) (bool, error) {
			in, err := t.decode(c)
			if err != nil {
				return true, err
			}
			return s.ApproveWhen(ctx, c, in)
		}
	}
	if s.Preview != nil {
		t.spec.Preview = t.previewer(s)
	}
	return t, nil
}

// previewer reads the arguments for the functions of the spec.
func (t *typed[In, Out]) previewer(s Spec[In]) *agentrun.Previewer {
	return &agentrun.Previewer{
		Reads: func(c agentrun.Call) (approvals.ToolCall, error) {
			in, err := t.decode(c)
			if err != nil {
				return approvals.ToolCall{}, err
			}
			name, args := s.PreviewReads(in)
			raw, err := json.Marshal(args)
			return approvals.ToolCall{Name: name, Args: raw}, err
		},
		Compute: func(ctx context.Context, c agentrun.Call) (agentrun.Preview, error) {
			in, err := t.decode(c)
			if err != nil {
				return agentrun.Preview{}, err
			}
			return s.Preview(ctx, c, in)
		},
		Checks: s.ChecksPrecondition,
	}
}

var kinds = map[Approval]agentrun.Kind{
	Never: agentrun.KindFunction, When: agentrun.KindFunction, Always: agentrun.KindUnapproved,
}

// typed is a tool whose arguments are an In.
type typed[In, Out any] struct {
	spec   agentrun.Spec
	schema argschema.Schema
	check  func(ctx context.Context, c agentrun.Call, in In) error
	f      func(ctx context.Context, c agentrun.Call, in In) (Out, error)
}

func (t *typed[In, Out]) Spec() agentrun.Spec { return t.spec }

func (t *typed[In, Out]) Validate(ctx context.Context, c agentrun.Call) error {
	in, err := t.decode(c)
	if err != nil {
		return err
	}
	if t.check == nil {
		return nil
	}
	return t.check(ctx, c, in)
}

func (t *typed[In, Out]) Execute(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
	in, err := t.decode(c)
	if err != nil {
		return agentrun.Result{}, &agentrun.RetryError{Message: err.Error()}
	}
	out, err := t.f(ctx, c, in)
	if err != nil {
		return agentrun.Result{}, err
	}
	if r, ok := any(out).(agentrun.Result); ok {
		return r, nil
	}
	value, err := json.Marshal(out)
	if err != nil {
		return agentrun.Result{}, fmt.Errorf("encode the result of %s: %w", t.spec.Name, err)
	}
	return agentrun.Result{Value: value}, nil
}

// Arguments returns the arguments of the call, an empty object if it has none.
func Arguments(c agentrun.Call) json.RawMessage {
	if len(bytes.TrimSpace(c.Args)) == 0 {
		return json.RawMessage("{}")
	}
	return c.Args
}

// decode judges the arguments against the schema and reads them.
func (t *typed[In, Out]) decode(c agentrun.Call) (In, error) {
	var in In
	args := Arguments(c)
	if err := Validate(t.schema, args); err != nil {
		return in, err
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return in, &schemaError{"the arguments do not fit the schema: " + err.Error(), []*agentrun.ArgumentError{unread(err)}}
	}
	return in, nil
}

// unread says which argument Go could not read though the schema accepts it,
// such as a number that is too large.
func unread(err error) *agentrun.ArgumentError {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return &agentrun.ArgumentError{Message: "they cannot be read: " + err.Error()}
	}
	return &agentrun.ArgumentError{
		Pointer: pointer(strings.Split(wrong.Field, ".")...),
		Message: fmt.Sprintf("%s does not fit into %s", wrong.Value, wrong.Type),
	}
}
