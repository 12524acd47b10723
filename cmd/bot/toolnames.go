package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/policy"
)

// checkToolNames returns what would make a rule guard nothing: a rule for a
// tool that no agent has, and two tools of one agent with one name.
func checkToolNames(rules policy.File, agents map[string]agentrun.Agent) error {
	known := map[string]bool{}
	var problems []error
	for _, agent := range slices.Sorted(maps.Keys(agents)) {
		own := map[string]bool{}
		for _, t := range agents[agent].Tools {
			name := t.Spec().Name
			if own[name] {
				problems = append(problems, fmt.Errorf("agent %s: two tools are called %s", agent, name))
			}
			own[name], known[name] = true, true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rules.Tools)) {
		if !known[name] {
			problems = append(problems, errUnknownTool(name))
		}
	}
	return errors.Join(problems...)
}

func errUnknownTool(name string) error {
	return fmt.Errorf("policy.tools.%s: no agent has such a tool, so the rule would guard nothing", name)
}
