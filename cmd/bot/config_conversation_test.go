package main

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/manifests"
)

// What the file says is what happens: in #ops every reply of the thread is
// heard, and nothing is taken while a deletion waits.
func TestRepliesAndPendingAreEnforced(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{
		Events: append(slacksim.DefaultEvents(), "message.channels"),
		Scopes: append(manifests.Scopes(), "channels:history"),
	})
	i.text = `
agents:
  - {name: ops, files: reports, channels: [C0OPS], replies: all, pending: refuse}
  - {name: general, files: reports}
policy: policy.yaml
redis: {durability: fsync}
`
	b := i.bot()
	front := httptest.NewServer(b.handler())
	t.Cleanup(front.Close)
	i.slack.SetURLs(front.URL+"/slack/events", front.URL+"/slack/interactivity", front.URL+"/slack/commands")
	says := func(channel, thread, text string) string {
		t.Helper()
		ts, err := i.slack.PostAs(slacksim.Post{User: alice, Channel: channel, Text: text, ThreadTS: thread})
		require.NoError(t, err)
		require.NoError(t, i.slack.Idle(t.Context()))
		return ts
	}
	taken := func(channel, root string) int {
		t.Helper()
		thread, err := b.store.Thread(t.Context(), agentrun.ThreadIDOf(agentrun.Origin{
			Surface: "slack", Team: slacksim.TeamID, Channel: channel, Root: root,
		}))
		require.NoError(t, err)
		return len(thread.Queue)
	}
	in := says(ops, "", "@countersign clean up")
	says(ops, in, "and the logs")
	require.Equal(t, 1, taken(ops, in))
	elsewhere := says("C0GENERAL", "", "@countersign clean up")
	says("C0GENERAL", elsewhere, "and the logs")
	require.Zero(t, taken("C0GENERAL", elsewhere), "the agent there takes mentions only")
	c, err := config.Read(i.o.Path)
	require.NoError(t, err)
	e, err := config.ReadEnvironment(i.o.Environ)
	require.NoError(t, err)
	agents, err := newAgents(c, e, nil, b.model, b.log)
	require.NoError(t, err)
	require.Equal(t, agentrun.PendingRefuse, agents["ops"].Pending)
	require.Empty(t, agents["general"].Pending, "the default is the rule of the runner")
}

// An agent that overhears needs what the manifest does not ask for.
func TestCheckNamesWhatRepliesNeed(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	require.NotContains(t, i.check(), "history")
	i.replace("- name: ops", "- name: ops\n    replies: all")
	require.Contains(t, i.check(), "Slack: the bot lacks the scopes channels:history, groups:history")
}
