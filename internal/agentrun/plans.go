package agentrun

import (
	"fmt"
	"time"
)

// parts returns the results in emission order, and after them what is to be
// read with them, in the same order.
func parts(plans []*plan, now func() time.Time) []RequestPart {
	var results, prompts []RequestPart
	for _, p := range plans {
		if p.part == nil {
			continue
		}
		results = append(results, p.part)
		for _, words := range []string{p.changed(), p.prompt} {
			if words != "" {
				prompts = append(prompts, UserPrompt{Content: words, At: now()})
			}
		}
	}
	return append(results, prompts...)
}

// said is the results and, after them, what the person wrote.
func said(results []RequestPart, prompt string, now func() time.Time) []RequestPart {
	if prompt == "" {
		return results
	}
	return append(results, UserPrompt{Content: prompt, At: now()})
}

// standIns are the results that the plans made so far will have, as far as they
// are counted: a call that may run counts as executed before it is. A worker
// who takes over rules on the rest by the same: so what has ended in the
// meantime counts as nothing more.
func standIns(plans []*plan) []RequestPart {
	var parts []RequestPart
	for _, p := range plans {
		switch {
		case p.execute, p.ran, p.stale, p.aside == AsideExternal, p.aside == AsideDoubt:
			parts = append(parts, ToolReturn{ToolName: p.call.Name, CallID: p.call.ID, Outcome: OutcomeSuccess})
		case p.part != nil:
			parts = append(parts, p.part)
		}
	}
	return parts
}

// countRan counts the calls that have been executed in this step.
func countRan(plans []*plan) int {
	n := 0
	for _, p := range plans {
		if p.ran {
			n++
		}
	}
	return n
}

// toSign counts the calls that are set aside for people and run here once they
// are approved.
func toSign(plans []*plan) int {
	n := 0
	for _, p := range plans {
		if (p.aside == AsideApproval || p.aside == AsideDoubt) && (p.tool == nil || p.tool.Spec().Kind != KindExternal) {
			n++
		}
	}
	return n
}

// exhausted returns words for people if the model has been asked to correct its
// calls of a tool as often as the tool allows, and did not.
func exhausted(plans []*plan, retry map[string]int, charged bool) string {
	if !charged {
		return ""
	}
	for _, p := range plans {
		if _, again := p.part.(RetryPrompt); !again {
			continue
		}
		allowed := 1
		if p.tool != nil {
			allowed = max(0, orDefault(p.tool.Spec().MaxRetries, 1))
		}
		if retry[p.call.Name] < allowed {
			continue
		}
		if p.tool == nil {
			return "The model kept calling a tool that does not exist."
		}
		return fmt.Sprintf("The model did not call %s correctly, even after it was corrected.", p.call.Name)
	}
	return ""
}
