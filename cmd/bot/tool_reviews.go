package main

import (
	"context"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/policy"
	"github.com/countersign/countersign/internal/slackui/toolcards"
	"github.com/countersign/countersign/internal/tools/mcpreview"
	"github.com/countersign/countersign/internal/tools/mcptool"
)

// newReviews makes what follows the accepted tools of MCP servers, if there are any.
func (b *bot) newReviews(c config.Config, e config.Environment, extra config.ToolsFor, accepted int64) {
	if b.servers == nil {
		return
	}
	owners := c.OwnedBy()
	b.reviews = mcpreview.New(mcpreview.Config{
		Store: b.store, Set: b.servers, Lock: c.MCPLock != "", Now: time.Now, Log: b.log,
		Owners: func(agent string) approvals.From { return owners[agent] },
		Fits: func(pins mcptool.Pins) error {
			judged := c.WithServers(c.Accepted(pins))
			sets, err := config.NewToolSets(judged, e, extra)
			if err != nil {
				return err
			}
			_, err = policy.Load(b.path, b.judging(judged, sets))
			return err
		},
		Take: func(ctx context.Context) error { return b.retool(ctx, e, extra) },
	}, accepted)
}

// retool gives the agents and the policy the tools that the servers have now: both,
// or neither. Runs that are at work keep the tools that they have.
func (b *bot) retool(ctx context.Context, e config.Environment, extra config.ToolsFor) error {
	b.agents.changing.Lock()
	defer b.agents.changing.Unlock()
	c := b.agents.of.WithServers(b.servers)
	sets, err := config.NewToolSets(c, e, extra)
	if err != nil {
		return err
	}
	if _, err := b.agents.make(c, sets); err != nil {
		return err
	}
	// The policy first: it judges a tool that no agent has yet.
	if err := b.policy.Retool(ctx, b.judging(c, sets)); err != nil {
		return err
	}
	return b.agents.load(c, sets)
}

// ownersAsked is where the owners of each agent are asked.
func ownersAsked(c config.Config) map[string]string {
	channels := map[string]string{}
	for _, a := range c.Agents {
		channels[a.Name] = a.OwnersAsked()
	}
	for _, g := range c.Gateways {
		channels[g.Name] = g.Agent().OwnersAsked()
	}
	return channels
}

// drawToolCard draws what owners are asked about an MCP server.
func (b *bot) drawToolCard(ctx context.Context, id string) error {
	if b.ui.ToolCards == nil {
		return nil // the configuration of this process has no servers
	}
	return b.ui.ToolCards.Reconcile(ctx, id)
}

// toolReviews are the reviews for the cards; nil if there are none.
func (b *bot) toolReviews() toolcards.Reviews {
	if b.reviews == nil {
		return nil
	}
	return reviewsOnCards{b.reviews}
}

// reviewsOnCards are reviews as the cards know them.
type reviewsOnCards struct{ reviews *mcpreview.Reviews }

func (r reviewsOnCards) Review(ctx context.Context, id string) (toolcards.Review, error) {
	doc, version, err := r.reviews.Review(ctx, id)
	return onCard(id, doc, version), err
}

func (r reviewsOnCards) Drawn(ctx context.Context, id string, version int64) error {
	return r.reviews.Drawn(ctx, id, version)
}

func (r reviewsOnCards) Decide(ctx context.Context, id, digest string, accept bool, by approvals.Principal) (toolcards.Review, error) {
	verdict := mcptool.Blocked
	if accept {
		verdict = mcptool.Accepted
	}
	doc, err := r.reviews.Decide(ctx, id, digest, verdict, by)
	return onCard(id, doc, 0), err
}

// lines are those of a difference, without the names of its sides. No line of a
// definition can pass for those: JSON has no line breaks in its texts.
func lines(diff string) string {
	_, diff, _ = strings.Cut(strings.TrimPrefix(diff, "--- accepted\n"), "+++ listed\n")
	return diff
}

func onCard(id string, doc mcpreview.Review, version int64) toolcards.Review {
	r := toolcards.Review{
		ID: id, Version: version, Agent: doc.Agent, Server: doc.Server, Digest: doc.Digest, Partial: doc.TooLarge, Lock: doc.Locked,
		Ended: toolcards.Ending(doc.Ended), By: doc.By, At: doc.At,
	}
	for _, t := range doc.Tools {
		r.Tools = append(r.Tools, toolcards.Tool{
			Name: t.Name, Kind: toolcards.Kind(t.Kind), Diff: lines(mcptool.Diff(t.Before, t.After)), Digest: t.Digest(), Why: t.Why,
		})
	}
	return r
}
