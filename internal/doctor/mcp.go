package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/policy"
	"github.com/countersign/countersign/internal/tools/mcptool"
)

// acceptTools makes the tools of MCP servers known that were accepted. If they
// are in Redis, they are looked up there.
func (c *checker) acceptTools(ctx context.Context) {
	if !c.config.HasMCP() {
		return
	}
	for _, p := range config.Problems(serversError(c.config.Servers(c.env))) {
		c.problem("", "%s", p)
	}
	if c.Accepted == nil {
		return
	}
	accepted, pins, err := c.Accepted(ctx, c.config, c.env)
	if err != nil {
		if !errors.Is(err, config.ErrNoPins) { // else the tools say it
			c.problem("", "%s", err)
		}
		return
	}
	c.config, c.pins = accepted, &pins
}

func serversError(_ []mcptool.Server, err error) error { return err }

// checkServers starts or reaches each MCP server, compares what it lists with what
// was accepted, and says by which rules its tools are decided.
func (c *checker) checkServers(ctx context.Context) {
	servers, err := c.config.Servers(c.env)
	if err != nil || c.pins == nil {
		return // said before
	}
	for _, s := range servers {
		at := fmt.Sprintf("MCP server %s of %s", s.Describe(), s.Agent)
		live, err := mcptool.List(ctx, s, slog.New(slog.DiscardHandler))
		if err != nil {
			c.problem("its tools fail until it answers", "%s: %s", at, err)
			continue
		}
		if !c.pins.Knows(mcptool.Place{Agent: s.Agent, Server: s.Name}) {
			c.problem("run bot mcp pins, and bot mcp pins accept", "%s: nobody has accepted its tools, so the agent has none of them", at)
			continue
		}
		changes := c.pins.Compare(s, live)
		for _, change := range changes {
			advice := "run bot mcp pins to see how it differs, and bot mcp pins accept"
			if change.Kind == mcptool.ToolUnusable {
				c.warn("exclude it, so that this is not said again", "%s: the tool %s cannot be used: %s", at, change.Tool, change.Why)
				continue
			}
			c.problem(advice, "%s: the tool %s is %s, and nobody has accepted that, so it is not available", at, change.Tool, change.Kind)
		}
		c.checkAsked(s.Agent)
		c.fine("%s: it answers and lists %s%s", at, counted(len(live), "tool", "tools"), c.deciders(ctx, s))
	}
}

// checkAsked warns if nobody would be asked about what a server of the agent changes.
func (c *checker) checkAsked(agent string) {
	i := slices.IndexFunc(c.config.Agents, func(a config.Agent) bool { return a.Name == agent })
	if i < 0 || c.said[agent] {
		return
	}
	if c.said == nil {
		c.said = map[string]bool{}
	}
	c.said[agent] = true
	a := c.config.Agents[i]
	switch {
	case a.OwnersAsked() == "":
		c.warn("set owners.channel or channels", "agents[%d]: %s has MCP servers and no channel, so nobody is asked when a server changes a tool", i, agent)
	case a.Owners == nil && c.config.MCPLock == "":
		c.warn("set owners, or run bot mcp pins accept", "agents[%d]: %s has MCP servers and no owners, so nobody can accept in Slack what a server changes", i, agent)
	}
}

// deciders says by which rules the tools of a server are decided, a line each.
func (c *checker) deciders(ctx context.Context, s mcptool.Server) string {
	if c.policy == nil || c.Rules == nil {
		return ""
	}
	var out strings.Builder
	for _, t := range c.judging.Tools {
		server, _, _ := strings.Cut(t.Name, ".")
		if t.Agent != s.Agent || server != s.Name {
			continue
		}
		var by []string
		for _, step := range c.Rules(ctx, c.policy, t) {
			by = append(by, fmt.Sprintf("%s %s", step.Kind, step.Rule))
		}
		fmt.Fprintf(&out, "\n%s: %s", t.Name, strings.Join(slices.Compact(by), ", then "))
	}
	return out.String()
}

// callable is what a model is told of a tool.
func callable(s agentrun.Spec) agentrun.ToolDefinition {
	return agentrun.ToolDefinition{Name: agentrun.CallableName(s.Name), Description: s.Description, Parameters: s.Schema}
}

// A Deciders returns the steps of a policy that may decide calls of a tool.
type Deciders func(ctx context.Context, p *policy.Policy, t policy.Tool) []policy.Step
