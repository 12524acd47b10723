package main

import (
	"context"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/state"
)

// A remoteAgent is an agent that runs elsewhere, with what proves it and the doors
// that are open to it.
type remoteAgent struct {
	client intake.Client // its credential is filled in by whoever proves it
	doors  []intake.Door
	tokens *config.Tokens
	jwt    *bearer.JWT
}

// newRemoteAgents returns the remote agents of the configuration, and the clients
// of its gateways.
func newRemoteAgents(c config.Config, tokens *config.Credentials) []remoteAgent {
	all := newRemoteClients(c, tokens.Clients)
	for i, a := range c.RemoteAgents {
		all = append(all, newRemoteAgent(a, tokens.Agents[i]))
	}
	return all
}

func newRemoteAgent(a config.RemoteAgent, tokens *config.Tokens) remoteAgent {
	r := remoteAgent{tokens: tokens, client: intake.Client{
		Name: a.Name, Owner: a.Owner, Channel: a.Channel, OpenLimit: a.OpenLimit, PerMinute: a.PerMinute, Within: a.Within,
	}}
	if j := a.JWT; j != nil {
		r.jwt = &bearer.JWT{Issuer: j.Issuer, Audience: j.Audience, Subject: j.Subject, Keys: j.Keys}
	}
	if a.Triggers != nil {
		r.client.Triggers = a.Triggers.Users
	}
	for _, d := range a.Doors {
		r.doors = append(r.doors, intake.Door(d))
	}
	for _, w := range a.Webhooks {
		r.client.Endpoints = append(r.client.Endpoints, w.Name)
	}
	for _, f := range a.Fulfills {
		for _, tool := range f.Tools {
			r.client.Fulfills = append(r.client.Fulfills, intake.Fulfills{Agent: f.Agent, Tool: tool})
		}
	}
	return r
}

// newIntake makes what the doors of remote agents work with.
func (b *bot) newIntake() (err error) {
	i := intake.Config{Store: newTimely(b.store, b.clock), Feed: state.NewFeed(b.store), Runner: b.runner, Desk: b.desk, Now: time.Now, Shown: b.clock.Shown, Agrees: b.clock.Agrees, Notify: b.notify, Fulfillers: b.fulfillers, Log: b.log}
	if b.receipts != nil {
		i.Sign = b.sign
	}
	b.intake, err = intake.New(i)
	return err
}

// fulfillers are the remote agents that may give the results of these calls.
func (b *bot) fulfillers(agent, tool string) []intake.Client {
	var all []intake.Client
	for _, r := range b.remote {
		if slices.Contains(r.client.Fulfills, intake.Fulfills{Agent: agent, Tool: tool}) {
			all = append(all, r.client)
		}
	}
	return all
}

// deliver gives the answers of a settled batch to the remote agent that asked.
func (b *bot) deliver(ctx context.Context, d agentrun.Delivery) error {
	return b.intake.Deliver(ctx, d)
}
