package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/policy"
	"github.com/countersign/countersign/internal/tools"
	"github.com/countersign/countersign/internal/tools/filetool"
	"github.com/countersign/countersign/internal/tools/mcptool"
)

// ToolsFor returns tools of an agent that its configuration does not name. A
// nil one has none.
type ToolsFor func(agent string) ([]agentrun.Tool, error)

// And returns the tools of both.
func (f ToolsFor) And(more ToolsFor) ToolsFor {
	if f == nil {
		return more
	}
	return func(agent string) ([]agentrun.Tool, error) {
		first, err1 := f(agent)
		second, err2 := more(agent)
		return append(slices.Clone(first), second...), errors.Join(err1, err2)
	}
}

// ToolSets are the tools of every agent and gateway, by its name.
type ToolSets map[string][]agentrun.Tool

// NewToolSets returns the tools of all agents, or everything that is wrong with
// them: a folder that is not there or through which the agent would reach the
// bot itself, two tools of one agent with one name, a setting for a tool that
// the agent does not have, which would guard nothing, and a summary that does not
// fit its tool.
//
// Every command that reads a policy checks it against these tools: if one command left out
// those that code adds, it would refuse a rule that another accepts.
func NewToolSets(c Config, e Environment, extra ToolsFor) (ToolSets, error) {
	sets := ToolSets{}
	var problems []error
	places := c.outOfReach(e)
	for i, a := range c.withTools() {
		all, err := c.toolsOf(i, a, places, e, extra)
		problems = append(problems, err, checkToolNames(a, all), c.checkLookups(a, all), c.checkSummaries(a, all))
		sets[a.Name] = all
	}
	problems = append(problems, c.checkFulfilled(sets)...)
	return sets, errors.Join(problems...)
}

// toolsOf returns the tools of one of [Config.withTools], the ith. Only agents can have
// external and extra ones, not gateways.
func (c Config) toolsOf(i int, a placed, places []place, e Environment, extra ToolsFor) ([]agentrun.Tool, error) {
	var all []agentrun.Tool
	var problems []error
	add := func(set []agentrun.Tool, more ...error) {
		all, problems = append(all, set...), append(problems, more...)
	}
	if a.Files != "" {
		set, err := filetool.New(a.Files)
		if err == nil {
			err = checkFolder(a.Files, places)
		}
		if err != nil {
			err = fmt.Errorf("%s.files: %w", a.at, err)
		}
		add(set, err)
	}
	add(c.mcpTools(a.Agent))
	endpoints, wrong := a.endpoints(a.at+".http", e)
	add(endpoints, wrong...)
	hosted, wrong := a.hostedTools(a.at)
	add(hosted, wrong...)
	if i >= len(c.Agents) {
		return all, errors.Join(problems...)
	}
	if extra != nil {
		set, err := extra(a.Name)
		if err != nil {
			err = fmt.Errorf("agent %s: %w", a.Name, err)
		}
		add(set, err)
	}
	elsewhere, wrong := c.externalTools(i)
	add(elsewhere, wrong...)
	return all, errors.Join(problems...)
}

// checkToolNames refuses two tools with one name, and settings for a tool that is not there.
func checkToolNames(a placed, all []agentrun.Tool) error {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	own, callable := map[string]bool{}, map[string]string{}
	for _, t := range all {
		name := t.Spec().Name
		as := agentrun.CallableName(name)
		switch other, taken := callable[as]; {
		case own[name]:
			wrong("agent %s: two tools are called %s", a.Name, name)
		case taken:
			wrong("agent %s: a model would call both %s and %s as %s; rename the server, or exclude one of them", a.Name, other, name, as)
		}
		own[name], callable[as] = true, name
	}
	for _, name := range slices.Sorted(maps.Keys(a.Tools)) {
		if !own[name] {
			has := "its tools are " + strings.Join(slices.Sorted(maps.Keys(own)), ", ")
			server, _, _ := strings.Cut(name, ".")
			if _, there := a.MCP[server]; there {
				has = "it has those of the server " + server + " that were accepted, with bot mcp pins accept"
			}
			wrong("%s.tools.%s: %s has no such tool, so the setting would have no effect; %s", a.at, name, a.Name, has)
		}
	}
	return errors.Join(problems...)
}

// PolicyOptions returns what a policy is read against: the tools of the agents,
// the names of those that run elsewhere, and those of the checks.
func PolicyOptions(c Config, sets ToolSets) policy.Options {
	o := policy.Options{Tools: policyTools(c, sets), Checks: c.CheckNames()}
	for _, a := range c.RemoteAgents {
		o.Remote = append(o.Remote, a.Name)
	}
	return o
}

func policyTools(c Config, sets ToolSets) []policy.Tool {
	var all []policy.Tool
	for _, a := range c.withTools() {
		for _, t := range sets[a.Name] {
			s := t.Spec()
			all = append(all, policy.Tool{
				Agent: a.Name, Name: s.Name, Schema: s.Schema, WriteOnly: s.WriteOnly,
				Annotations: policy.Annotations(s.Annotations), Asks: policy.Asks(s.Asks()), Severity: s.Stated(),
				Setting:      a.settingOf(t),
				AgentSetting: a.Approval.setting(a.at + ".approval"),
			})
		}
	}
	return all
}

// settingOf is the setting of a tool. Calls of a tool of an MCP server, hosted or not, or
// of an HTTP endpoint need approval unless the policy or a setting of that one tool says otherwise:
// what was said of all tools of the agent was not said of those.
func (a placed) settingOf(t agentrun.Tool) policy.Setting {
	name := t.Spec().Name
	own := a.Tools[name].Approval
	if served, ok := t.(interface{ Gated() bool }); ok && own.Kind == "" && served.Gated() {
		server, _, _ := strings.Cut(name, ".")
		from := "http"
		switch t.(type) {
		case *mcptool.Tool:
			from = "mcp." + server
		case *tools.Hosted:
			from = "hosted_mcp." + server
		}
		return Approval{Kind: ApprovalAll}.setting(a.at + "." + from)
	}
	return own.setting(fmt.Sprintf("%s.tools.%s.approval", a.at, name))
}

func (a Approval) setting(place string) policy.Setting {
	if a.Kind == "" {
		return policy.Setting{}
	}
	return policy.Setting{Approval: policy.Approval(a.Kind), When: a.When, Place: place}
}

// CheckPolicy returns everything that is wrong with the tools of the
// configuration and with its policy.
func (c Config) CheckPolicy(e Environment, extra ToolsFor, now func() time.Time) error {
	sets, err := NewToolSets(c, e, extra)
	if c.Policy == "" {
		return err // that there is none, check says
	}
	if err != nil {
		sets = nil // a rule may be for a tool that is missing
	}
	o := PolicyOptions(c, sets)
	o.Now = now
	_, wrong := policy.Load(c.Policy, o)
	return errors.Join(err, wrong)
}
