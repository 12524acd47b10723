package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/outbox"
	"github.com/countersign/countersign/internal/webhook"
)

// webhooks are those of the configuration, and where each agent's people are told
// of one that is disabled.
type webhooks struct {
	of       map[config.EndpointKey]config.Webhook
	channels map[string]string // by agent
}

// newOutbox makes what sends the messages for webhooks. What is wrong with an
// endpoint or a secret fails the start.
func (b *bot) newOutbox(c config.Config, e config.Environment) error {
	b.webhooks = webhooks{of: map[config.EndpointKey]config.Webhook{}, channels: map[string]string{}}
	for _, a := range c.RemoteAgents {
		b.webhooks.channels[a.Name] = a.Channel
		for _, w := range a.Webhooks {
			b.webhooks.of[config.EndpointKey{Agent: a.Name, Name: w.Name}] = w
		}
	}
	sender, err := c.Webhooks.Sender(time.Now)
	endpoints, secrets := c.Endpoints(e)
	if err := errors.Join(err, secrets); err != nil {
		return err
	}
	b.outbox, err = outbox.New(outbox.Config{
		Store: b.store, Sender: b.counted(sender), Tell: b.tellDisabled, Now: time.Now, Log: b.log,
		Endpoint: func(agent, name string) (webhook.Endpoint, bool) {
			to, ok := endpoints[config.EndpointKey{Agent: agent, Name: name}]
			return to, ok
		},
	})
	return err
}

// notify puts a message about a request into the outbox. An endpoint that is not in
// this configuration may be in that of another process: its message is kept.
func (b *bot) notify(ctx context.Context, n intake.Notice) error {
	w := b.webhooks.of[config.EndpointKey{Agent: n.Agent, Name: n.Endpoint}]
	if !w.Tells(n.Type) {
		return nil
	}
	m, err := outbox.About(n, w.Arguments)
	if err != nil {
		return err
	}
	return b.outbox.Put(ctx, string(n.Request.ID), m)
}

// tellDisabled says in the channel of an agent that a webhook of it is disabled.
func (b *bot) tellDisabled(ctx context.Context, d outbox.Disabled) error {
	channel, ok := b.webhooks.channels[d.Agent]
	if !ok {
		b.log.LogAttrs(ctx, slog.LevelWarn, "a webhook is disabled whose agent is not in the configuration",
			slog.String("agent", d.Agent), slog.String("webhook", d.Endpoint))
		return nil
	}
	return b.ui.Notices.WebhookDisabled(ctx, channel, d.Agent, d.Endpoint, d.Reason)
}
