package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/policy"
	"github.com/countersign/countersign/internal/state"
)

func (c *checker) checkFile() {
	read, err := config.Read(c.Path)
	c.config = read
	problems := config.Problems(err)
	if len(agentsOf(read)) > 0 || err == nil {
		problems = append(problems, config.Problems(read.Check())...)
	}
	for _, p := range problems {
		c.problem("", "%s", p)
	}
	for _, w := range read.Warnings() {
		c.warn(w.Advice, "%s", w.Text)
	}
	if len(problems) == 0 {
		c.fine("%s: %s", c.Path, strings.Join(agentsOf(read), ", "))
	}
}

// agentsOf says how many agents of each kind there are.
func agentsOf(c config.Config) []string {
	var all []string
	for _, kind := range []struct {
		n         int
		one, many string
	}{
		{len(c.Agents), "agent", "agents"},
		{len(c.RemoteAgents), "remote agent", "remote agents"},
		{len(c.Gateways), "gateway", "gateways"},
	} {
		if kind.n > 0 {
			all = append(all, counted(kind.n, kind.one, kind.many))
		}
	}
	return all
}

// checkTools looks at the folders, and at the tools that the agents have.
func (c *checker) checkTools() {
	for i, a := range c.config.Agents {
		at := fmt.Sprintf("agents[%d].files", i)
		info, err := os.Stat(a.Files)
		switch {
		case a.Files == "":
		case errors.Is(err, os.ErrNotExist):
			c.problem("make the folder, or name another", "%s: there is no folder %s", at, a.Files)
			continue
		case err == nil && !info.IsDir():
			c.problem("name the folder that the file is in", "%s: %s is a file, not a folder", at, a.Files)
			continue
		}
		one := c.config
		one.Agents, one.Gateways = c.config.Agents[i:i+1], nil
		sets, err := config.NewToolSets(one, c.env, c.Extra)
		if err != nil {
			for _, p := range config.Problems(err) {
				c.problem("", "%s", strings.Replace(p.Error(), "agents[0]", fmt.Sprintf("agents[%d]", i), 1))
			}
			continue
		}
		if len(sets[a.Name]) == 0 {
			c.warn("set files to the folder that it should work on", "agents[%d]: %s has no tools, so it can only talk", i, a.Name)
			continue
		}
		c.fine("agents[%d]: %s has %s", i, a.Name, toolWords(a, sets[a.Name]))
	}
	c.checkGateways()
}

// checkGateways looks at the tools that the gateways have.
func (c *checker) checkGateways() {
	for i, g := range c.config.Gateways {
		one := c.config
		one.Agents, one.RemoteAgents, one.Gateways = nil, nil, c.config.Gateways[i:i+1]
		sets, err := config.NewToolSets(one, c.env, nil)
		at := fmt.Sprintf("gateways[%d]", i)
		for _, p := range config.Problems(err) {
			c.problem("", "%s", strings.Replace(p.Error(), "gateways[0]", at, 1))
		}
		switch {
		case err != nil:
		case len(sets[g.Name]) == 0:
			c.problem("run bot mcp pins, and bot mcp pins accept", "%s: %s has no tools: nobody has accepted those of its servers", at, g.Name)
		default:
			var names []string
			for _, t := range sets[g.Name] {
				names = append(names, t.Spec().Name)
			}
			c.fine("%s: %s has %s for %s", at, g.Name, strings.Join(names, ", "), counted(len(g.Clients), "client", "clients"))
		}
	}
}

// toolWords names the tools of an agent, those on its folder first.
func toolWords(a config.Agent, all []agentrun.Tool) string {
	var names []string
	for _, t := range all {
		names = append(names, t.Spec().Name)
	}
	if a.Files == "" {
		return strings.Join(names, ", ")
	}
	// All begins with them. They were made before without an error.
	files, _ := config.NewToolSets(config.Config{Agents: []config.Agent{{Name: a.Name, Files: a.Files}}}, config.Environment{}, nil)
	onFolder := len(files[a.Name])
	folder := strings.Join(names[:onFolder], ", ") + " on " + a.Files
	if onFolder == len(names) {
		return folder
	}
	return folder + ", and " + strings.Join(names[onFolder:], ", ")
}

// checkPolicy reads the policy against the tools, or without them if they are
// not all known: a rule may be for one that is not.
func (c *checker) checkPolicy() {
	if c.config.Policy == "" {
		return // said before
	}
	sets, err := config.NewToolSets(c.config, c.env, c.Extra)
	if err != nil {
		c.unknown("fix the agents first", "%s: whether its rules fit the agents' tools", c.config.Policy)
		sets = nil
	}
	c.judging = config.PolicyOptions(c.config, sets)
	c.judging.Now = c.Now
	c.policy, err = policy.Load(c.config.Policy, c.judging)
	for _, p := range config.Problems(err) {
		c.problem("", "%s", p)
	}
	if err == nil {
		c.fine("%s: %s, version %s", c.config.Policy, counted(len(c.policy.Rules()), "rule", "rules"), c.policy.Version())
		for _, w := range c.policy.Warnings() {
			c.warn("change the rule if that is not what was meant", "%s", w)
		}
		for i, name := range c.config.CheckNames() {
			if !slices.Contains(c.policy.Checks(), name) {
				c.warn("write check: "+name+" in a rule, or remove it", "checks[%d]: no rule of the policy names %s, so it is never asked", i, name)
			}
		}
	}
}

func (c *checker) checkEnvironment(ctx context.Context) {
	before := len(c.all)
	e, err := config.ReadEnvironment(c.Environ)
	e.Data = c.Data
	c.env = e
	for _, p := range config.Problems(err) {
		c.problem("", "%s", p)
	}
	if err := c.config.CheckModelKey(e); err != nil {
		c.problem("", "%s", err)
	}
	token, signing := e.SlackToken.Open(), e.SigningSecret.Open()
	if token != "" && !strings.HasPrefix(token, "xoxb-") && !strings.HasPrefix(token, "xoxe.xoxb-") {
		c.problem(`copy the "Bot User OAuth Token" of the app, from "OAuth & Permissions"`, "SLACK_BOT_TOKEN: this is not a bot token; bot tokens begin with xoxb-")
	}
	if strings.HasPrefix(signing, "xox") || strings.HasPrefix(signing, "xapp") {
		c.problem(`copy the "Signing Secret" of the app, from "Basic Information"`, "SLACK_SIGNING_SECRET: this is a token, not the signing secret")
	}
	if strings.TrimSpace(token) != token || strings.TrimSpace(signing) != signing {
		c.problem("remove the space", "SLACK_BOT_TOKEN or SLACK_SIGNING_SECRET: begins or ends with a space")
	}
	c.checkAppToken()
	c.checkAddr(ctx, e.Addr)
	if to, err := c.config.Redis.Target(e); err != nil {
		c.problem("", "%s", err)
	} else if client, err := state.Connect(to); err != nil {
		c.problem("", "REDIS_URL: %s", err)
	} else {
		_ = client.Close() // it was never used
	}
	if err := openaimodel.CheckBaseURL(e.OpenAIBaseURL); err != nil {
		c.problem("", "OPENAI_BASE_URL: %s", err)
	}
	if len(c.all) == before {
		c.fine("environment: everything that is required is set")
	}
}

// checkAddr looks at the address on which Slack reaches the bot.
func (c *checker) checkAddr(ctx context.Context, addr string) {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.DefaultResolver.LookupPort(ctx, "tcp", port)
	}
	switch {
	case err != nil:
		c.problem("write it as :8080 or 127.0.0.1:8080", "COUNTERSIGN_ADDR: must be a host and a port, but is %q", addr)
	case port == "0":
	case addr == c.config.HTTP.Listen:
		c.problem("give each its own port", "COUNTERSIGN_ADDR: is %q, and so is http.listen", addr)
	case addr == c.config.Metrics.Listen:
		c.problem("give each its own port", "COUNTERSIGN_ADDR: is %q, and so is metrics.listen", addr)
	}
}

// checkHTTPTools looks at the secrets of HTTP tools, which are in the environment.
func (c *checker) checkHTTPTools() {
	for _, p := range config.Problems(c.config.HTTPSecrets(c.env)) {
		c.problem("", "%s", p)
	}
}

// checkWebhooks looks at the secrets of webhooks and checks, which are in the environment.
func (c *checker) checkWebhooks() {
	all, err := c.config.Endpoints(c.env)
	checks, missing := c.config.RuleChecks(c.env)
	err = errors.Join(err, missing)
	for _, p := range config.Problems(err) {
		c.problem(`set it to whsec_ and 32 random bytes: echo "whsec_$(openssl rand -base64 32)"`, "%s", p)
	}
	if err == nil && len(all) > 0 {
		c.fine("webhooks: %s with a secret", counted(len(all), "webhook", "webhooks"))
	}
	if err == nil && len(checks) > 0 {
		c.fine("checks: %s with a secret", counted(len(checks), "check", "checks"))
	}
}
