package agentrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// What a person reads when their change of a call is refused.
const (
	uncheckedWords = "the arguments could not be checked, so nothing was changed"
	hiddenWords    = "it is not what the tool accepts"
)

// A Catalog knows the tools of all agents. It is for people and for what is shown
// to them; it runs nothing.
type Catalog struct {
	agents func(name string) (Agent, bool)
	log    *slog.Logger
}

// NewCatalog returns a catalog of the agents. A nil log discards.
func NewCatalog(agents func(name string) (Agent, bool), log *slog.Logger) *Catalog {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Catalog{agents: agents, log: log}
}

// ToolSpec returns what the tool of an agent declares. If two tools have the
// name, it returns neither.
func (c *Catalog) ToolSpec(agent, name string) (Spec, bool) {
	t, err := c.tool(agent, name)
	if err != nil {
		return Spec{}, false
	}
	return t.Spec(), true
}

// CheckCall says, for the person who changes the arguments of a call of b,
// whether the call could be run: it is an [approvals.Check]. Wrong arguments are
// one or more [*ArgumentError] in the chain of the error, an unknown agent or
// tool is [approvals.ErrNotFound], and arguments are refused if the tool panics
// or does not return.
//
// A tool that asks for approval, or defers the call, does not object. If calls
// of the tool run elsewhere, only its schema counts. The tools of an agent that
// runs elsewhere are not known here, unless it has those of a gateway: any object
// fits them.
func (c *Catalog) CheckCall(ctx context.Context, b approvals.Batch, call approvals.ToolCall) error {
	if err := approvals.CheckArgs(call.Args); err != nil {
		return &ArgumentError{Message: err.Error()}
	}
	if _, known := c.agents(b.Agent); b.Executor != "" && !known {
		return nil
	}
	t, err := c.tool(b.Agent, call.Name)
	if err != nil {
		return err
	}
	spec := t.Spec()
	proposed := Call{ToolCall: call, Run: b.Run, Agent: b.Agent, Requester: b.Requester}
	proposed.Args = slices.Clone(call.Args)
	_, err, late := guard(ctx, timeout(t), func(ctx context.Context) (struct{}, error) {
		return struct{}{}, t.Validate(ctx, proposed)
	})
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return c.objection(ctx, spec, call, err, late)
}

// objection turns what a tool says of arguments into words for a person.
func (c *Catalog) objection(ctx context.Context, spec Spec, call approvals.ToolCall, err error, late bool) error {
	var (
		asked    *ApprovalRequired
		deferred *CallDeferred
		retry    *RetryError
		failed   *FailedError
	)
	wrong := ArgumentErrors(err)
	switch {
	case errors.As(err, &asked), errors.As(err, &deferred):
		return nil
	case len(wrong) > 0:
		hidden := approvals.HiddenAt(spec.WriteOnly)
		var all []error
		for _, e := range wrong {
			if within(hidden, e.Pointer) && e.Message != ArgumentMissing { // the words may quote the value
				e = &ArgumentError{Pointer: e.Pointer, Message: hiddenWords}
			}
			all = append(all, e)
		}
		return errors.Join(all...)
	case late, errors.Is(err, errPanicked), errors.Is(err, errHung):
		c.log.LogAttrs(ctx, slog.LevelError, "validation broke",
			slog.String("call", string(call.ID)), slog.String("tool", call.Name), slog.String("err", class(err)))
		return &ArgumentError{Message: uncheckedWords}
	case spec.Kind == KindExternal:
		return nil
	case errors.As(err, &retry):
		return &ArgumentError{Message: retry.Message}
	case errors.As(err, &failed):
		return &ArgumentError{Message: failed.Message}
	}
	return &ArgumentError{Message: err.Error()}
}

// tool finds the one tool of this name.
func (c *Catalog) tool(agent, name string) (Tool, error) {
	a, ok := c.agents(agent)
	if !ok {
		return nil, fmt.Errorf("the agent %q no longer exists: %w", agent, approvals.ErrNotFound)
	}
	var found Tool
	for _, t := range a.Tools {
		if t.Spec().Name != name {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("the agent has two tools called %q: %w", name, approvals.ErrInvalid)
		}
		found = t
	}
	if found == nil {
		return nil, fmt.Errorf("the agent no longer has a tool called %q: %w", name, approvals.ErrNotFound)
	}
	return found, nil
}

// ArgumentErrors returns all of them in the tree of err.
func ArgumentErrors(err error) []*ArgumentError {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case *ArgumentError:
		return []*ArgumentError{e}
	case interface{ Unwrap() error }:
		return ArgumentErrors(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all []*ArgumentError
		for _, inner := range e.Unwrap() {
			all = append(all, ArgumentErrors(inner)...)
		}
		return all
	}
	return nil
}

// within reports whether a JSON pointer leads to a hidden value, or into one.
func within(h approvals.Hidden, pointer string) bool {
	if h.Here() {
		return true
	}
	if pointer == "" {
		return false
	}
	for key := range strings.SplitSeq(pointer[1:], "/") {
		if h = h.Below(strings.NewReplacer("~1", "/", "~0", "~").Replace(key)); h.Here() {
			return true
		}
	}
	return false
}
