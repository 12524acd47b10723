package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/policy"
)

// policyCheck says everything that is wrong with a policy, or what it is for.
func policyCheck(ctx context.Context, in *call) error {
	p := newPolicyCommand(in)
	p.takesAgainst()
	p.takesJSON()
	if err := p.parse(); err != nil {
		return err
	}
	loaded, o, path, err := p.load(ctx)
	if p.json {
		return p.checkJSON(ctx, loaded, o, path, err)
	}
	if err != nil {
		return err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s: nothing is wrong, version %s\n", path, loaded.Version())
	fmt.Fprintf(&out, "\nRules, in order (a deny that matches always wins):\n")
	about := rulesOf(ctx, loaded)
	for _, r := range about {
		fmt.Fprintf(&out, "  %-5s  %s%s%s\n", r.Kind, r.Rule, checkWords(r), shadowWords(r))
	}
	if len(about) == 0 {
		fmt.Fprintf(&out, "  none: each tool decides whether a call needs approval, and default says from whom\n")
	}
	fmt.Fprintf(&out, "\nTools, each with the rules that can decide its calls:\n")
	for _, t := range o.Tools {
		fmt.Fprintf(&out, "  %s, agent %s\n", t.Name, t.Agent)
		for _, s := range coverage(ctx, loaded, t) {
			fmt.Fprintf(&out, "    %-5s  %s%s%s\n", s.Kind, s.Rule, checkWords(s), shadowWords(s))
		}
	}
	for _, agent := range o.Remote {
		fmt.Fprintf(&out, "  any tool, agent %s, which runs elsewhere\n", agent)
		for _, s := range coverageOf(ctx, loaded, agent) {
			fmt.Fprintf(&out, "    %-5s  %s%s%s\n", s.Kind, s.Rule, checkWords(s), shadowWords(s))
		}
	}
	if len(o.Tools) == 0 {
		fmt.Fprintf(&out, "  none are known, so conditions on arguments were not checked; use --config or --tools\n")
	}
	if warnings := loaded.Warnings(); len(warnings) > 0 {
		fmt.Fprintf(&out, "\nWarnings (the policy is used all the same):\n")
		for _, w := range warnings {
			fmt.Fprintf(&out, "  %s\n", approvals.Visible(w))
		}
	}
	if o.Roster == nil {
		fmt.Fprintf(&out, "\nWhether enough people can approve was not checked; use --roster FILE or --online.\n")
	}
	return p.say("%s", out.String())
}

func shadowWords(s policy.Step) string {
	if s.Shadow {
		return " (shadow: not enforced)"
	}
	return ""
}

func checkWords(s policy.Step) string {
	if s.Check == "" {
		return ""
	}
	return ", unless the check " + s.Check + " is stricter"
}

// rulesOf are the rules of the file with their kinds.
func rulesOf(ctx context.Context, loaded *policy.Policy) []policy.Step {
	names := loaded.Rules()
	all := loaded.Explain(ctx, approvals.Proposal{}).Steps
	return slices.DeleteFunc(slices.Clone(all[:min(len(all), len(names))]), func(s policy.Step) bool { return !slices.Contains(names, s.Rule) })
}

// coverage are the rules that may decide about calls of the tool, with the
// default at the end if it may be reached.
func coverage(ctx context.Context, loaded *policy.Policy, t policy.Tool) []policy.Step {
	e := loaded.Explain(ctx, approvals.Proposal{Call: approvals.ToolCall{Name: t.Name}, Agent: t.Agent})
	own := len(loaded.Rules())
	var all []policy.Step
	for i, s := range e.Steps {
		last := i == len(e.Steps)-1
		if i < own && s.Outcome == policy.Unmatched && (s.Why == "another tool" || s.Why == "another agent" || s.Why == policy.ToolAsks) {
			continue
		}
		if last && len(all) > 0 && saysForAll(all[len(all)-1], e.Steps[own:], t) {
			continue // what the setting or the code says is for every call
		}
		all = append(all, s)
	}
	return all
}

// coverageOf are the rules that may decide about calls of a remote agent, whatever
// their tools.
func coverageOf(ctx context.Context, loaded *policy.Policy, agent string) []policy.Step {
	e := loaded.Explain(ctx, approvals.Proposal{Agent: agent})
	return slices.DeleteFunc(e.Steps, func(s policy.Step) bool { return s.Outcome == policy.Unmatched && s.Why == "another agent" })
}

// saysForAll reports whether the last step before the default leaves it nothing:
// a setting of the tool or of its agent, or what the code says where it never
// asks.
func saysForAll(s policy.Step, settings []policy.Step, t policy.Tool) bool {
	isSetting := slices.ContainsFunc(settings, func(o policy.Step) bool { return o.Rule == s.Rule && o.At == s.At })
	return isSetting && (s.Kind == policy.KindAsk || t.Asks == policy.AsksNever)
}

func (p *policyCommand) checkJSON(ctx context.Context, loaded *policy.Policy, o policy.Options, path string, err error) error {
	problems := []string{}
	for _, e := range config.Problems(err) {
		problems = append(problems, approvals.Visible(e.Error()))
	}
	out := map[string]any{"policy": path, "problems": problems}
	if err == nil {
		type decider struct {
			Rule   string      `json:"rule"`
			Kind   policy.Kind `json:"kind"`
			At     string      `json:"at,omitempty"`
			Shadow bool        `json:"shadow,omitempty"`
			Check  string      `json:"check,omitempty"`
		}
		type covered struct {
			Agent string    `json:"agent"`
			Tool  string    `json:"tool"`
			By    []decider `json:"by"`
		}
		tools := []covered{}
		for _, t := range o.Tools {
			c := covered{Agent: t.Agent, Tool: t.Name, By: []decider{}}
			for _, s := range coverage(ctx, loaded, t) {
				c.By = append(c.By, decider{s.Rule, s.Kind, s.At, s.Shadow, s.Check})
			}
			tools = append(tools, c)
		}
		for _, agent := range o.Remote {
			c := covered{Agent: agent, Tool: "*", By: []decider{}}
			for _, s := range coverageOf(ctx, loaded, agent) {
				c.By = append(c.By, decider{s.Rule, s.Kind, s.At, s.Shadow, s.Check})
			}
			tools = append(tools, c)
		}
		warnings := []string{}
		for _, w := range loaded.Warnings() {
			warnings = append(warnings, approvals.Visible(w))
		}
		out["version"], out["rules"], out["tools"], out["roster"], out["warnings"] = loaded.Version(), loaded.Rules(), tools, o.Roster != nil, warnings
	}
	if failed := p.sayJSON(out); failed != nil {
		return failed
	}
	return err
}
