// Package config reads the settings of `bot serve`: the configuration file, the
// process environment, and the tools that the agents of the file have. What is
// wrong with any of them is returned at once, each problem with its place.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/tools/mcptool"
)

// Config is the configuration file. Every key is enforced; one that is not
// listed here fails the start. docs/settings.md is checked against it.
type Config struct {
	Agents []Agent       `yaml:"agents"`
	Policy string        `yaml:"policy"`        // the policy file, or a directory of them
	Reload time.Duration `yaml:"policy_reload"` // how often it is looked at for a change; 5s if left out
	Slack  Slack         `yaml:"slack"`
	Redis  Redis         `yaml:"redis"`
	Runs   Runs          `yaml:"runs"`

	Retention Retention `yaml:"retention"`

	RemoteAgents []RemoteAgent `yaml:"remote_agents"`
	Gateways     []Gateway     `yaml:"gateways"`
	HTTP         HTTP          `yaml:"http"`
	Metrics      Metrics       `yaml:"metrics"`
	Web          Web           `yaml:"web"`
	Receipts     Receipts      `yaml:"receipts"`
	Webhooks     Webhooks      `yaml:"webhooks"`
	Checks       []Check       `yaml:"checks"`   // services that rules of the policy can ask
	MCPLock      string        `yaml:"mcp_lock"` // the file of the accepted tools of MCP servers; they are kept in Redis if left out

	servers     *mcptool.Set         // that the agents use; no key
	file        string               // that it was read from; no key
	summariesAt map[[2]string]string // where the summary of an agent's tool is written; no key
}

// Agent is one of agents[].
type Agent struct {
	Name         string               `yaml:"name"`
	Instructions string               `yaml:"instructions"`
	Model        string               `yaml:"model"`      // overrides OPENAI_MODEL
	ModelAPI     string               `yaml:"model_api"`  // how it is asked: chat or responses; chat if left out
	Files        string               `yaml:"files"`      // the folder that the built-in file tools work on
	MCP          map[string]MCPServer `yaml:"mcp"`        // MCP servers whose tools it has, by name
	HostedMCP    map[string]HostedMCP `yaml:"hosted_mcp"` // MCP servers that the provider of its model calls, by name
	HTTP         *HTTPTools           `yaml:"http"`       // HTTP endpoints that are tools of it
	Channels     []string             `yaml:"channels"`   // where a mention starts this agent; everywhere if left out
	Who          *People              `yaml:"who"`        // whose mention starts it; every full member's if left out
	Owners       *Owners              `yaml:"owners"`     // who decide about the agent itself; nobody if left out
	Replies      RepliesRule          `yaml:"replies"`    // which replies in its threads are for it: mention or all; mention if left out
	Pending      agentrun.PendingRule `yaml:"pending"`    // what a new message does while calls wait; reject if left out
	Approval     Approval             `yaml:"approval"`   // which calls need approval, if the policy has no rule for them
	Tools        map[string]Tool      `yaml:"tools"`      // by name

	ExternalTools []ExternalTool `yaml:"external_tools"` // whose calls run elsewhere

	Timeout time.Duration `yaml:"timeout"` // of one answer of the model; 5m if left out
	Limits  Limits        `yaml:"limits"`
}

// The APIs by which a model can be asked.
const (
	APIChat      = "chat"
	APIResponses = "responses"
)

// Tool is what is different for one tool of an agent.
type Tool struct {
	Approval Approval `yaml:"approval"`
	Summary  Template `yaml:"summary"`
	// Effect says what a second execution of a call would do; that of the tool if
	// left out.
	Effect agentrun.Effect `yaml:"effect"`
}

// A Template says what a call does, as in package summary.
type Template string

// Limits are what one run of an agent may use.
type Limits struct {
	Requests    int `yaml:"requests"`
	ToolCalls   int `yaml:"tool_calls"`
	TotalTokens int `yaml:"total_tokens"`
}

// Slack is how the bot behaves in Slack.
type Slack struct {
	GroupsMaxAge time.Duration `yaml:"groups_max_age"` // how old a looked-up membership may be; 60s if left out

	CardsPerMinute    int `yaml:"cards_per_minute"`    // new cards that a channel gets in any minute; 10 if left out
	MessagesPerMinute int `yaml:"messages_per_minute"` // new direct messages that a person gets in any minute; 10 if left out
}

// Redis is how everything is stored.
type Redis struct {
	Addresses  []string         `yaml:"addresses"` // where it is, instead of REDIS_URL
	Cluster    bool             `yaml:"cluster"`   // whether it is one, also with one address
	Sentinel   Sentinel         `yaml:"sentinel"`
	User       string           `yaml:"user"` // of its access control list
	TLS        RedisTLS         `yaml:"tls"`
	Prefix     string           `yaml:"prefix"`     // of all keys; "countersign" if left out
	Durability state.Durability `yaml:"durability"` // of what is acknowledged: fsync, replicated or everysec; fsync if left out
	Replicas   int              `yaml:"replicas"`   // how many must have it, if that is replicated
}

// Runs is how runs are kept going.
type Runs struct {
	Lease time.Duration `yaml:"lease"` // after how long another process continues a run whose process died; 30s if left out

	PerAgent     int `yaml:"per_agent"`     // how many runs of one agent a process works on at the same time
	PerRequester int `yaml:"per_requester"` // the same for the runs that one person asked for
}

// mostOfOne is how many of the runs that a process works on may be those of one person,
// or of one of several agents, unless the configuration says otherwise. It leaves a
// quarter to the others.
const mostOfOne = 12

// Bounds returns how many runs of one agent and of one person a process works on at the
// same time; 0 is no bound.
func (c Config) Bounds() (perAgent, perRequester int) {
	perAgent, perRequester = c.Runs.PerAgent, cmp.Or(c.Runs.PerRequester, mostOfOne)
	if perAgent == 0 && len(c.Agents) > 1 {
		perAgent = mostOfOne
	}
	return perAgent, perRequester
}

// Check returns everything that is wrong with the configuration, each with the
// key that it is about.
func (c Config) Check() error {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if len(c.Agents)+len(c.RemoteAgents)+len(c.Gateways) == 0 {
		wrong("agents: there are none; add at least one, or one of remote_agents or gateways")
	}
	for i := range c.Agents {
		c.checkAgent(i, wrong)
	}
	tokens, subjects := map[TokenHash]string{}, map[JWT]string{} // each proves one agent or one person
	c.checkRemote(tokens, subjects, wrong)
	c.HTTP.check(wrong)
	c.Metrics.check(c.HTTP, wrong)
	c.checkWeb(tokens, subjects, wrong)
	c.Receipts.check(wrong)
	c.checkWebhooks(wrong)
	c.checkChecks(wrong)
	if c.Policy == "" {
		wrong("policy: not set; name the file that says who must approve what")
	}
	if r := c.Reload; r != 0 && r < time.Second {
		wrong("policy_reload: must be at least 1s, but is %s", r)
	}
	if c.Slack.GroupsMaxAge < 0 {
		wrong("slack.groups_max_age: must not be negative, but is %s", c.Slack.GroupsMaxAge)
	}
	if n := c.Slack.CardsPerMinute; n < 0 {
		wrong("slack.cards_per_minute: must not be negative, but is %d", n)
	}
	if n := c.Slack.MessagesPerMinute; n < 0 {
		wrong("slack.messages_per_minute: must not be negative, but is %d", n)
	}
	if strings.ContainsAny(c.Redis.Prefix, "{} \r\n") {
		wrong("redis.prefix: must not contain braces or spaces, but is %q", c.Redis.Prefix)
	}
	c.Redis.checkServers(wrong)
	c.Redis.checkDurability(wrong)
	c.Retention.check(wrong)
	if l := c.Runs.Lease; l != 0 && l < time.Second {
		wrong("runs.lease: must be at least 1s, but is %s", l)
	}
	if n := c.Runs.PerAgent; n < 0 {
		wrong("runs.per_agent: must not be negative, but is %d", n)
	}
	if n := c.Runs.PerRequester; n < 0 {
		wrong("runs.per_requester: must not be negative, but is %d", n)
	}
	return errors.Join(problems...)
}

func (c Config) checkAgent(i int, wrong func(format string, args ...any)) {
	a, before, at := c.Agents[i], c.Agents[:i], fmt.Sprintf("agents[%d]", i)
	if a.Name == "" {
		wrong("%s.name: not set; every agent needs a name", at)
	}
	if slices.ContainsFunc(before, func(o Agent) bool { return o.Name == a.Name }) {
		wrong("%s.name: another agent is already called %q", at, a.Name)
	}
	if !slices.Contains([]string{"", APIChat, APIResponses}, a.ModelAPI) {
		wrong("%s.model_api: must be %s or %s, but is %q", at, APIChat, APIResponses, a.ModelAPI)
	}
	if a.Timeout < 0 {
		wrong("%s.timeout: must not be negative, but is %s", at, a.Timeout)
	}
	for key, n := range map[string]int{"requests": a.Limits.Requests, "tool_calls": a.Limits.ToolCalls, "total_tokens": a.Limits.TotalTokens} {
		if n < 0 {
			wrong("%s.limits.%s: must not be negative, but is %d", at, key, n)
		}
	}
	a.checkConversation(at, wrong)
	a.checkMCP(at, wrong)
	a.checkEffects(at, wrong)
	a.checkHTTP(at, wrong)
	a.checkHosted(at, wrong)
	if a.Who != nil {
		for _, p := range Problems(a.Who.check(at + ".who")) {
			wrong("%w", p)
		}
	}
	a.Owners.check(at, wrong)
	everywhere := slices.IndexFunc(before, func(o Agent) bool { return len(o.Channels) == 0 })
	if len(a.Channels) == 0 && everywhere >= 0 {
		wrong("%s.channels: not set, but agents[%d] already answers everywhere; list the channels of one of them", at, everywhere)
	}
	for _, ch := range a.Channels {
		if !channelID.MatchString(ch) {
			wrong("%s.channels: %q is not a channel id such as C0123456789; names are not accepted because they can change", at, ch)
		}
		if j := slices.IndexFunc(before, func(o Agent) bool { return slices.Contains(o.Channels, ch) }); j >= 0 {
			wrong("%s.channels: %s already belongs to agents[%d]", at, ch, j)
		}
	}
}

// MayAsk names the people whose mention starts an agent, for agents that not
// everyone may start.
func (c Config) MayAsk() map[string]approvals.From {
	who := map[string]approvals.From{}
	for _, a := range c.Agents {
		if a.Who != nil {
			who[a.Name] = a.Who.from()
		}
	}
	return who
}

// OwnedBy returns the owners of all agents and gateways that have some, by their
// names.
func (c Config) OwnedBy() map[string]approvals.From {
	owners := map[string]approvals.From{}
	for _, a := range c.withTools() {
		if a.Owners != nil {
			owners[a.Name] = a.OwnedBy()
		}
	}
	return owners
}

// OwnedBy returns who decides about the agent itself: about what its MCP servers
// changed, and where the policy names nobody. An agent without owners has an
// empty one, which admits nobody.
func (a Agent) OwnedBy() approvals.From {
	if a.Owners == nil {
		return approvals.From{}
	}
	return a.Owners.people().from()
}

// Problems takes joined errors apart.
func Problems(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, Problems(e)...)
	}
	return all
}
