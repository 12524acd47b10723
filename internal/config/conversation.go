package config

import (
	"slices"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/manifests"
)

// RepliesRule says which replies in a thread of an agent are for it.
type RepliesRule string

// The rules for replies.
const (
	RepliesMention RepliesRule = "mention" // those that mention the bot; the empty rule says the same
	RepliesAll     RepliesRule = "all"
)

// checkConversation returns the problems of the settings replies and pending.
func (a Agent) checkConversation(at string, wrong func(format string, args ...any)) {
	switch a.Replies {
	case "", RepliesMention, RepliesAll:
	default:
		wrong("%s.replies: must be mention or all, but is %q", at, a.Replies)
	}
	switch a.Pending {
	case "", agentrun.PendingReject, agentrun.PendingKeep, agentrun.PendingRefuse:
	default:
		wrong("%s.pending: must be reject, keep or refuse, but is %q", at, a.Pending)
	}
}

// Overhear are the agents that take replies without a mention.
func (c Config) Overhear() map[string]bool {
	all := map[string]bool{}
	for _, a := range c.Agents {
		if a.Replies == RepliesAll {
			all[a.Name] = true
		}
	}
	return all
}

// Pending is what a new message does while calls wait, by agent.
func (c Config) Pending() map[string]agentrun.PendingRule {
	all := map[string]agentrun.PendingRule{}
	for _, a := range c.Agents {
		all[a.Name] = a.Pending
	}
	return all
}

// Scopes are those that the bot needs with this configuration.
func (c Config) Scopes() []string {
	scopes := manifests.Scopes()
	if len(c.Overhear()) > 0 {
		scopes = append(scopes, "channels:history", "groups:history")
	}
	if c.Web.Emails() {
		scopes = append(scopes, "users:read.email")
	}
	return scopes
}

// Events are those that the bot cannot do without.
func (c Config) Events() []string {
	events := []string{"app_mention"}
	if len(c.Overhear()) > 0 {
		events = append(events, "message.channels", "message.groups")
	}
	return slices.Clip(events)
}
