package agentrun

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// A toolset has the tools of an agent by their names.
type toolset map[string]Tool

// toolsetOf returns the tools, or the name that two of them have for a model.
func toolsetOf(tools []Tool) (set toolset, twice string) {
	set = make(toolset, len(tools))
	callables := make(map[string]bool, len(tools))
	for _, t := range tools {
		name := t.Spec().Name
		if callables[CallableName(name)] {
			return nil, name
		}
		set[name], callables[CallableName(name)] = t, true
	}
	return set, ""
}

// names returns the tools of the calls, each once.
func (s toolset) names(calls []approvals.ToolCall) []string {
	var names []string
	for _, c := range calls {
		if _, known := s[c.Name]; known && !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

// unknown returns the message for a model that named an unknown tool: it lists
// the tools.
func (s toolset) unknown(name string) string {
	var names []string
	for _, n := range slices.Sorted(maps.Keys(s)) {
		if s[n].Spec().Kind == KindHosted {
			continue // the provider lists these itself
		}
		names = append(names, CallableName(n))
	}
	if len(names) == 0 {
		return fmt.Sprintf("Unknown tool name: '%s'. No tools available.", name)
	}
	return fmt.Sprintf("Unknown tool name: '%s'. Available tools: '%s'", name, strings.Join(names, "', '"))
}

// definitions returns what the model reads about the tools that are not hosted, in
// their order.
func definitions(tools []Tool) []ToolDefinition {
	var defs []ToolDefinition
	for _, t := range tools {
		s := t.Spec()
		if s.Kind == KindHosted {
			continue // the provider defines it
		}
		defs = append(defs, ToolDefinition{Name: CallableName(s.Name), Description: s.Description, Parameters: s.Schema})
	}
	return defs
}
