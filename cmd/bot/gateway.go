package main

import (
	"cmp"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/gateway"
	"github.com/countersign/countersign/internal/httpapi"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/summary"
	"github.com/countersign/countersign/internal/tools/mcptool"
)

// addGateways adds the gateways to the agents whose calls are executed here. They have no
// model, and no mention starts one.
func addGateways(agents map[string]agentrun.Agent, c config.Config, sets config.ToolSets) {
	for _, g := range c.Gateways {
		a := g.Agent()
		agents[g.Name] = agentrun.Agent{Name: g.Name, Tools: sets[g.Name], Summaries: a.Summaries(), Effects: a.Effects(), Owners: a.OwnedBy()}
	}
}

// newRemoteClients returns the clients of the gateways of the configuration.
func newRemoteClients(c config.Config, tokens []*config.Tokens) (all []remoteAgent) {
	for _, g := range c.Gateways {
		for _, a := range g.Remotes() {
			r := newRemoteAgent(a, tokens[len(all)])
			r.doors = []intake.Door{intake.DoorGateway}
			all = append(all, r)
		}
	}
	return all
}

// newGateway makes the gateway; without one in the configuration there is none.
func (b *bot) newGateway(c config.Config, guard *bearer.Guard, api *httpapi.API) (*gateway.Server, error) {
	if len(c.Gateways) == 0 {
		return nil, nil
	}
	keeps := map[string]bool{}
	for _, g := range c.Gateways {
		keeps[g.Name] = g.Gone == config.GoneKeep
	}
	tools := func(agent string) (all []gateway.Tool) { // the current ones: owners accept others while the bot runs
		a, _ := b.agents.agent(agent)
		for _, t := range a.Tools {
			if served, ok := t.(*mcptool.Tool); ok {
				all = append(all, served)
			}
		}
		return all
	}
	return gateway.New(gateway.Config{
		Intake: b.intake, Runner: b.runner, Guard: guard, Refuses: api.Refuses, Hosts: c.HTTP.Hosts, Now: time.Now, Log: b.log, Sent: mcptool.Sent,
		Tools: tools,
		Keeps: func(agent string) bool { return keeps[agent] },
		Summary: func(agent, tool string) string {
			a, _ := b.agents.agent(agent)
			spec, _ := b.catalog.ToolSpec(agent, tool)
			return cmp.Or(a.Summaries[tool], spec.Summary, summary.Default(tool, spec.Schema, spec.WriteOnly))
		},
	})
}
