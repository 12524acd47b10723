package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slackui/slacksim"
)

// The app of the demo's Slack is the one of the manifest that we ship, which
// is read here from its file and with nothing of ours.
func TestTheSlackOfTheDemoHasTheAppOfTheManifest(t *testing.T) {
	text, err := os.ReadFile("../../manifests/slack/manifest.yaml")
	require.NoError(t, err)
	var app map[string]map[string]any
	require.NoError(t, yaml.Unmarshal(text, &app))
	words := func(list any) []string {
		var out []string
		for _, w := range list.([]any) {
			out = append(out, w.(string))
		}
		return out
	}
	demo, err := demoSlack("http://127.0.0.1:1")
	require.NoError(t, err)

	require.Equal(t, words(app["oauth_config"]["scopes"].(map[string]any)["bot"]), demo.Scopes)
	require.Equal(t, words(app["settings"]["event_subscriptions"].(map[string]any)["bot_events"]), demo.Events)
	commands := app["features"]["slash_commands"].([]any)
	require.Len(t, commands, 1, "the demo's Slack has one URL and one should_escape for all")
	command := commands[0].(map[string]any)
	require.Equal(t, []string{command["command"].(string)}, demo.Commands)
	require.Equal(t, command["should_escape"], demo.EscapeCommands)
	home, _ := app["features"]["app_home"].(map[string]any)
	require.Equal(t, home["home_tab_enabled"] != true, demo.NoHome)
	require.Equal(t, home["messages_tab_enabled"] != true, demo.NoMessages)
	require.Equal(t, home["messages_tab_read_only_enabled"] == true, demo.ReadMessages)
	require.False(t, demo.NoMessages, "a refusal to somebody who is not in the channel goes there")
	for path, url := range map[string]string{
		"/slack/events": demo.EventsURL, "/slack/interactivity": demo.InteractivityURL, "/slack/commands": demo.CommandsURL,
	} {
		require.Equal(t, "http://127.0.0.1:1"+path, url)
	}
}

func TestTheDemoHasWhatTheManifestHas(t *testing.T) {
	s, _ := startDemo(t)
	var state slacksim.State
	s.do(http.MethodGet, "/sim/state", nil, &state)
	require.True(t, state.Home, "the manifest has a Home tab")
	require.True(t, state.Messages, "and takes direct messages")
	require.Equal(t, []string{"/countersign"}, state.Commands)
	require.Equal(t, []slacksim.MenuEntry{{CallbackID: "countersign.here", Name: "Review approvals here"}}, state.Shortcuts)
}

func TestTheDemoStaysOnThisMachine(t *testing.T) {
	for _, addr := range []string{":8484", "0.0.0.0:0", "[::]:0", "192.0.2.7:8484"} {
		err := run(t.Context(), []string{"demo", "--addr", addr}, nil, io.Discard, io.Discard)
		require.ErrorContains(t, err, "--expose", addr)
		require.ErrorContains(t, err, "no login", addr)
	}
}

func TestTheDemoIsServedToOtherMachinesOnDemand(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stdout, stderr := newOutput(), newOutput()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"demo", "--addr", "0.0.0.0:0", "--expose"}, nil, stdout, stderr) }()
	s := newSim(t, stdout.await(t, `http://(127\.0\.0\.1|\[::1\]):\d+`))
	root := s.ask("what can you do?", "")
	s.await(alice, root, "the answer", says("I can clean up"))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/sim/state", nil)
	require.NoError(t, err)
	req.Host = "this-machine.example"
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode, "other machines know it by another name")
	stop()
	require.NoError(t, <-ended, stderr.String())
	require.Contains(t, stderr.String(), "Warning: the demo has no login")
}
