package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/argschema"
)

// A Declaration describes a tool whose calls run elsewhere.
type Declaration struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of its arguments, an object
}

// NewExternal returns a tool that this program never executes: each call waits for
// a result from elsewhere. The model is given the schema, and people who change
// arguments are held to it; what the model writes is not judged by it, as
// upstream, so whoever runs the call has to.
func NewExternal(d Declaration) (agentrun.Tool, error) {
	if !name.MatchString(d.Name) {
		return nil, fmt.Errorf("tool %q: a name is 1 to 64 letters, digits, _ or -", d.Name)
	}
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(d.Schema, &head); err != nil || head.Type != "object" {
		return nil, fmt.Errorf("tool %s: the schema must be one of an object, with type: object", d.Name)
	}
	judged, err := argschema.Compile(d.Schema)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", d.Name, err)
	}
	return external{judged, agentrun.Spec{
		Name: d.Name, Description: d.Description, Schema: d.Schema, Kind: agentrun.KindExternal, WriteOnly: argschema.WriteOnly(d.Schema),
	}}, nil
}

type external struct {
	schema argschema.Schema
	spec   agentrun.Spec
}

func (t external) Spec() agentrun.Spec { return t.spec }

func (t external) Validate(_ context.Context, c agentrun.Call) error {
	args := c.Args
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if err := approvals.CheckArgs(args); err != nil {
		return &agentrun.ArgumentError{Message: err.Error()}
	}
	return Validate(t.schema, args)
}

func (external) Execute(context.Context, agentrun.Call) (agentrun.Result, error) {
	return agentrun.Result{}, errors.New("a call of an external tool runs elsewhere") // unreachable
}
