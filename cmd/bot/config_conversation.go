package main

import (
	"slices"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/manifests"
)

// repliesRule says which replies in a thread of an agent are for it.
type repliesRule string

const (
	repliesMention repliesRule = "mention" // those that mention the bot; the empty rule says the same
	repliesAll     repliesRule = "all"
)

// checkConversation says what is wrong with how the agent takes messages.
func (a agentConfig) checkConversation(at string, wrong func(format string, args ...any)) {
	switch a.Replies {
	case "", repliesMention, repliesAll:
	default:
		wrong("%s.replies: must be mention or all, but is %q", at, a.Replies)
	}
	switch a.Pending {
	case "", agentrun.PendingReject, agentrun.PendingKeep, agentrun.PendingRefuse:
	default:
		wrong("%s.pending: must be reject, keep or refuse, but is %q", at, a.Pending)
	}
}

// arrivals is what Slack would not send without an event.
func arrivals(event string) string {
	if event == "app_mention" {
		return "no mentions"
	}
	return "no replies without a mention"
}

// overhear are the agents that take replies without a mention.
func (c config) overhear() map[string]bool {
	all := map[string]bool{}
	for _, a := range c.Agents {
		if a.Replies == repliesAll {
			all[a.Name] = true
		}
	}
	return all
}

// pending is what a new message does while calls wait, by agent.
func (c config) pending() map[string]agentrun.PendingRule {
	all := map[string]agentrun.PendingRule{}
	for _, a := range c.Agents {
		all[a.Name] = a.Pending
	}
	return all
}

// scopes are those that the bot needs with this configuration.
func (c config) scopes() []string {
	if len(c.overhear()) == 0 {
		return manifests.Scopes()
	}
	return append(manifests.Scopes(), "channels:history", "groups:history")
}

// events are those that the bot cannot do without.
func (c config) events() []string {
	events := []string{"app_mention"}
	if len(c.overhear()) > 0 {
		events = append(events, "message.channels", "message.groups")
	}
	return slices.Clip(events)
}
