package config

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/tools"
)

// An ExternalTool is a tool of an agent whose calls run elsewhere: a remote agent
// that has it under fulfills gives their results.
type ExternalTool struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Schema      Schema `yaml:"schema"` // of its arguments
}

// A Schema is a JSON Schema, written as YAML.
type Schema json.RawMessage

// UnmarshalYAML writes the schema as JSON. What cannot be, the [form] has said.
func (s *Schema) UnmarshalYAML(decode func(any) error) error {
	var v map[string]any
	if err := decode(&v); err != nil {
		return err
	}
	raw, err := json.Marshal(v)
	*s = raw
	return err
}

// schema compares a node with what a schema may be: its keys are not ours.
func (f *form) schema(at string, n ast.Node) {
	if _, ok := n.(ast.MapNode); !ok {
		f.wrong(n, at, "must be a JSON Schema: a mapping with type: object")
	}
	f.schemaMerges(at, n)
}

// externalTools returns the external tools of agent i. Each has somebody who may
// give its results: otherwise its calls would wait forever.
func (c Config) externalTools(i int) (all []agentrun.Tool, problems []error) {
	a := c.Agents[i]
	for j, d := range a.ExternalTools {
		at := fmt.Sprintf("agents[%d].external_tools[%d]", i, j)
		t, err := tools.NewExternal(tools.Declaration{Name: d.Name, Description: d.Description, Schema: json.RawMessage(d.Schema)})
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", at, err))
			continue
		}
		if len(c.Fulfillers(a.Name, d.Name)) == 0 {
			problems = append(problems, fmt.Errorf("%s: no agent may give the results of %s, so its calls would wait forever; name it under fulfills of one of remote_agents", at, d.Name))
		}
		all = append(all, t)
	}
	return all, problems
}

// Fulfillers are the remote agents that may give the results of these calls.
func (c Config) Fulfillers(agent, tool string) (names []string) {
	for _, r := range c.RemoteAgents {
		if slices.ContainsFunc(r.Fulfills, func(f Fulfills) bool { return f.Agent == agent && slices.Contains(f.Tools, tool) }) {
			names = append(names, r.Name)
		}
	}
	return names
}

// checkFulfilled says which calls remote agents are to give the results of that
// there cannot be, because the agent has no such tool. The tools of remote agents
// are not known.
func (c Config) checkFulfilled(sets ToolSets) (problems []error) {
	for i, r := range c.RemoteAgents {
		for j, f := range r.Fulfills {
			set, ours := sets[f.Agent]
			for _, name := range f.Tools {
				if ours && !slices.ContainsFunc(set, func(t agentrun.Tool) bool { return t.Spec().Name == name }) {
					problems = append(problems, fmt.Errorf("remote_agents[%d].fulfills[%d].tools: %s has no tool %q", i, j, f.Agent, name))
				}
			}
		}
	}
	return problems
}
