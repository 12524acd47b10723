package demo

import (
	"os"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
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
	demo, err := slackOf("http://127.0.0.1:1")
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
	require.False(t, demo.NoMessages, "a refusal to someone who is not in the channel goes there")
	for path, url := range map[string]string{
		"/slack/events": demo.EventsURL, "/slack/interactivity": demo.InteractivityURL, "/slack/commands": demo.CommandsURL,
	} {
		require.Equal(t, "http://127.0.0.1:1"+path, url)
	}
}
