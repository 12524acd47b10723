package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// Hosted is a tool of an MCP server that the provider of the model calls.
type Hosted struct{ spec agentrun.Spec }

// The forms of the label by which the provider knows a server, and of the name that a
// tool has on its server.
var (
	label      = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]{0,63}$`)
	hostedName = regexp.MustCompile(`^[a-zA-Z0-9_./-]{1,128}$`)
)

// NewHosted returns a tool of a hosted server by the name that it has there. This
// program neither executes it nor knows its schema.
func NewHosted(server, tool string) (*Hosted, error) {
	if !label.MatchString(server) {
		return nil, fmt.Errorf("server %q: a name begins with a letter and has up to 64 letters, digits, _ or -", server)
	}
	if !hostedName.MatchString(tool) {
		return nil, fmt.Errorf("tool %q: a name is 1 to 128 letters, digits, _, ., / or -", tool)
	}
	return &Hosted{agentrun.Spec{Name: server + "." + tool, Schema: json.RawMessage(`{"type":"object"}`), Kind: agentrun.KindHosted}}, nil
}

// Spec implements [agentrun.Tool].
func (h *Hosted) Spec() agentrun.Spec { return h.spec }

// Gated reports that calls need approval where neither the policy nor the
// configuration says otherwise.
func (*Hosted) Gated() bool { return true }

// Validate checks that the arguments are an object. Their schema is not known here.
func (*Hosted) Validate(_ context.Context, c agentrun.Call) error {
	if len(c.Args) == 0 {
		return nil
	}
	if err := approvals.CheckArgs(c.Args); err != nil {
		return &agentrun.ArgumentError{Message: err.Error()}
	}
	return nil
}

// Execute is never called.
func (*Hosted) Execute(context.Context, agentrun.Call) (agentrun.Result, error) {
	return agentrun.Result{}, errors.New("the provider of the model runs the calls of a hosted tool") // unreachable
}
