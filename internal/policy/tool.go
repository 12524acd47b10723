package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/strictyaml"
)

// A tool is one that is known, with what its schema says.
type tool struct {
	Tool
	shape *shape
	hints hints
}

type toolsForm struct {
	Tools []struct {
		Name        string          `json:"name"`
		Title       string          `json:"title"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
		Annotations struct {
			Title           string `json:"title"`
			ReadOnlyHint    bool   `json:"readOnlyHint"`
			DestructiveHint *bool  `json:"destructiveHint"`
			IdempotentHint  bool   `json:"idempotentHint"`
			OpenWorldHint   *bool  `json:"openWorldHint"`
		} `json:"annotations"`
		OutputSchema json.RawMessage `json:"outputSchema"`
		Icons        json.RawMessage `json:"icons"`
		Execution    json.RawMessage `json:"execution"`
		Meta         struct {
			Asks     Asks               `json:"countersign/asks"`
			Severity approvals.Severity `json:"countersign/severity"`
		} `json:"_meta"`
	} `json:"tools"`
	Agents map[string][]string `json:"agents"`
}

// ReadTools reads tools from a JSON file: the result of MCP's tools/list, with
// a mapping of agents to the names of their tools beside it. What a tool's code
// states about approval and severity is in its _meta.
//
//	{"tools": [{"name": "delete_file", "inputSchema": {...}, "annotations": {"destructiveHint": true},
//	            "_meta": {"countersign/asks": "always"}}],
//	 "agents": {"ops": ["delete_file"]}}
func ReadTools(path string) ([]Tool, error) {
	b, err := strictyaml.ReadWhole(path)
	if err != nil {
		return nil, fmt.Errorf("read the tools: %w", err)
	}
	var f toolsForm
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var all []Tool
	var problems []error
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s: "+format, append([]any{path}, args...)...))
	}
	index := map[string]int{}
	for i, t := range f.Tools {
		if _, twice := index[t.Name]; twice || t.Name == "" {
			wrong("tools[%d]: %q is not a valid tool name, or is listed twice", i, t.Name)
		}
		index[t.Name] = i
		if _, err := approvals.ParseSeverity(string(t.Meta.Severity)); err != nil && t.Meta.Severity != approvals.SeverityUnset {
			wrong("tools[%d]: countersign/severity is %q, must be low, high or irreversible", i, string(t.Meta.Severity))
		}
		if !slices.Contains([]Asks{"", AsksNever, AsksWhen, AsksAlways, AsksExternal}, t.Meta.Asks) {
			wrong("tools[%d]: countersign/asks is %q, must be never, when, always or external", i, string(t.Meta.Asks))
		}
	}
	for _, agent := range slices.Sorted(maps.Keys(f.Agents)) {
		for _, name := range f.Agents[agent] {
			i, ok := index[name]
			if !ok {
				wrong("agents.%s: there is no tool %q%s", agent, name, strictyaml.Hint(name, slices.Sorted(maps.Keys(index))))
				continue
			}
			t := f.Tools[i]
			a := t.Annotations
			all = append(all, Tool{
				Agent: agent, Name: name, Schema: t.InputSchema, Asks: t.Meta.Asks, Severity: t.Meta.Severity,
				Annotations: Annotations{a.ReadOnlyHint, a.DestructiveHint, a.IdempotentHint, a.OpenWorldHint},
			})
		}
	}
	if len(all) == 0 {
		wrong(`says of no agent which tools it has; write agents beside tools, such as "agents": {"ops": ["delete_file"]}`)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return all, nil
}
