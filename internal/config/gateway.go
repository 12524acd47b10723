package config

import (
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// A Gateway serves MCP servers to agents that run elsewhere. To the policy and on
// cards it is one agent, with the tools of its servers.
type Gateway struct {
	Name    string               `yaml:"name"`    // on cards; unique among all agents
	Channel string               `yaml:"channel"` // where its calls are shown
	MCP     map[string]MCPServer `yaml:"mcp"`     // the servers, by name
	Clients []GatewayClient      `yaml:"clients"` // who may call, and who asked then
	Tools   map[string]Tool      `yaml:"tools"`   // by name
	Owners  *Owners              `yaml:"owners"`  // who decide about the gateway itself; nobody if left out

	Gone      string        `yaml:"gone"`       // what becomes of a request whose caller is gone: withdraw or keep; withdraw if left out
	OpenLimit int           `yaml:"open_limit"` // so many of its requests may be open; 100 if left out
	PerMinute int           `yaml:"per_minute"` // so many new requests in a minute; 60 if left out
	Within    time.Duration `yaml:"within"`     // how long its requests can be decided at most; the policy's time if left out
}

// A GatewayClient is a credential of a gateway.
type GatewayClient struct {
	Owner      approvals.UserID `yaml:"owner"`    // the person whose credential it is: they asked
	Triggers   *Triggers        `yaml:"triggers"` // instead: everybody who can make it call
	Tokens     []string         `yaml:"tokens"`   // the SHA-256 of each, as sha256:HEX
	TokensFile string           `yaml:"tokens_file"`
	JWT        *JWT             `yaml:"jwt"` // its JSON Web Tokens
}

// What becomes of a request whose caller is gone.
const (
	GoneWithdraw = "withdraw"
	GoneKeep     = "keep"
)

// Agent is the gateway as something that has tools.
func (g Gateway) Agent() Agent {
	return Agent{Name: g.Name, MCP: g.MCP, Tools: g.Tools, Owners: g.Owners, Channels: []string{g.Channel}}
}

// Remotes are the clients as agents that run elsewhere, with the credentials that
// prove them.
func (g Gateway) Remotes() []RemoteAgent {
	var all []RemoteAgent
	for _, c := range g.Clients {
		all = append(all, RemoteAgent{
			Name: g.Name, Channel: g.Channel, Owner: c.Owner, Triggers: c.Triggers, Tokens: c.Tokens, TokensFile: c.TokensFile, JWT: c.JWT,
			OpenLimit: g.OpenLimit, PerMinute: g.PerMinute, Within: g.Within,
		})
	}
	return all
}

// A placed agent has tools; At is where the configuration has it.
type placed struct {
	Agent

	at string
}

// withTools are the agents and the gateways.
func (c Config) withTools() []placed {
	var all []placed
	for i, a := range c.Agents {
		all = append(all, placed{a, fmt.Sprintf("agents[%d]", i)})
	}
	for i, g := range c.Gateways {
		all = append(all, placed{g.Agent(), fmt.Sprintf("gateways[%d]", i)})
	}
	return all
}

// checkGateways returns what is wrong with the gateways. names, tokens and subjects
// are those of the other agents.
func (c Config) checkGateways(names map[string]string, tokens map[TokenHash]string, subjects map[JWT]string, wrong func(format string, args ...any)) {
	for i, g := range c.Gateways {
		at := fmt.Sprintf("gateways[%d]", i)
		if where, ok := names[g.Name]; ok && g.Name != "" {
			wrong("%s.name: %s is already called %q", at, where, g.Name)
		}
		names[g.Name] = at
		RemoteAgent{Name: g.Name, Channel: g.Channel, OpenLimit: g.OpenLimit, PerMinute: g.PerMinute, Within: g.Within}.checkShown(at, wrong)
		if g.Gone != "" && g.Gone != GoneWithdraw && g.Gone != GoneKeep {
			wrong("%s.gone: must be %s or %s, but is %q", at, GoneWithdraw, GoneKeep, g.Gone)
		}
		if len(g.MCP) == 0 {
			wrong("%s.mcp: not set, so the gateway has no tools", at)
		}
		g.Agent().checkMCP(at, wrong)
		g.Agent().checkEffects(at, wrong)
		g.Owners.check(at, wrong)
		if len(g.Clients) == 0 {
			wrong("%s.clients: there are none, so nobody could call", at)
		}
		for j, r := range g.Remotes() {
			client := fmt.Sprintf("%s.clients[%d]", at, j)
			r.checkWho(client, wrong)
			r.checkTokens(client, tokens, wrong)
			r.JWT.check(client+".jwt", subjects, wrong)
		}
	}
	if len(c.Gateways) > 0 && c.HTTP.Listen == "" {
		wrong("http.listen: not set, so no client can reach the gateways; set an address such as 127.0.0.1:8090")
	}
}
