package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/countersign/countersign/internal/agentrun"
)

// checkEffects returns what is wrong with the effects of an agent's tools that do
// not depend on the tools.
func (a Agent) checkEffects(at string, wrong func(format string, args ...any)) {
	for _, name := range slices.Sorted(maps.Keys(a.Tools)) {
		if e := a.Tools[name].Effect; e != "" && !slices.Contains(agentrun.Effects, e) {
			wrong("%s.tools.%s.effect: %q is none of %v", at, name, e, agentrun.Effects)
		}
	}
}

// checkLookups refuses an effect of lookup for a tool that has no lookup: it
// would have no effect.
func (c Config) checkLookups(a placed, tools []agentrun.Tool) error {
	var problems []error
	for _, t := range tools {
		s := t.Spec()
		if a.Tools[s.Name].Effect == agentrun.EffectLookup && s.Lookup == nil {
			problems = append(problems, fmt.Errorf("%s.tools.%s.effect: lookup needs a tool that can say whether a call happened, and %s can't", a.at, s.Name, s.Name))
		}
	}
	return errors.Join(problems...)
}

// Effects are what the configuration says of the agent's tools, by their names.
func (a Agent) Effects() map[string]agentrun.Effect {
	all := map[string]agentrun.Effect{}
	for name, t := range a.Tools {
		if t.Effect != "" {
			all[name] = t.Effect
		}
	}
	return all
}
