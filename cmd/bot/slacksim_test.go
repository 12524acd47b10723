package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/manifests"
)

// startSlacksim runs the command until the test ends, and returns its URL and
// what it said.
func startSlacksim(t *testing.T, args ...string) (url, words string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, append([]string{"slacksim", "--addr", "127.0.0.1:0"}, args...), nil, in, io.Discard)
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	said := make([]byte, 4096)
	n, err := out.Read(said)
	require.NoError(t, err)
	words = string(said[:n])
	url = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(words)
	require.NotEmpty(t, url, words)
	return url, words
}

func TestSlacksimServesWhatItPrints(t *testing.T) {
	t.Parallel()
	url, words := startSlacksim(t, "--bot-token", "xoxb-mine")
	require.NotContains(t, words, "xoxb-mine", "what a person chose may be a real token")
	require.Contains(t, words, "token: as given with --bot-token")
	answer, err := slack.New("xoxb-mine", slack.OptionAPIURL(url+"/api/")).AuthTest()
	require.NoError(t, err)
	require.Equal(t, "countersign", answer.User)
	_, err = slack.New("xoxb-other", slack.OptionAPIURL(url+"/api/")).AuthTest()
	require.EqualError(t, err, "invalid_auth")
	for path, want := range map[string]string{"/": "<!doctype html>", "/sim/state": `"people"`} {
		resp, err := http.Get(url + path)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Contains(t, strings.ToLower(string(body)), want)
	}
}

func TestSlacksimLacksTheTabsThatTheAppLacks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args           []string
		home, messages bool
	}{
		{nil, true, true},
		{[]string{"--no-home"}, false, true},
		{[]string{"--no-messages"}, true, false},
	} {
		url, _ := startSlacksim(t, c.args...)
		resp, err := http.Get(url + "/sim/state")
		require.NoError(t, err)
		var state slacksim.State
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&state))
		require.NoError(t, resp.Body.Close())
		require.Equal(t, []bool{c.home, c.messages}, []bool{state.Home, state.Messages}, c.args)
	}
}

func TestSlacksimHasMoreWorkspacesOnDemand(t *testing.T) {
	t.Parallel()
	url, words := startSlacksim(t, "--second-workspace")
	answer, err := slack.New(printed(t, words, "Globex"), slack.OptionAPIURL(url+"/api/")).AuthTest()
	require.NoError(t, err)
	require.Equal(t, "Globex", answer.Team)

	url, words = startSlacksim(t, "--org", "--scopes", "users:read")
	require.NotContains(t, words, "Globex", "one token is good for both")
	api := slack.New(printed(t, words, "Web API"), slack.OptionAPIURL(url+"/api/"))
	answer, err = api.AuthTest()
	require.NoError(t, err)
	require.Equal(t, "E0ACME", answer.EnterpriseID)
	_, err = api.GetUserGroups()
	require.EqualError(t, err, "missing_scope")

	require.ErrorContains(t, run(t.Context(), []string{"slacksim", "--org", "--second-workspace"}, nil, io.Discard, io.Discard), "only one")
}

func TestSlacksimHasSocketModeOnDemand(t *testing.T) {
	t.Parallel()
	url, words := startSlacksim(t, "--socket-mode")
	appToken := regexp.MustCompile(`app-level token: (\S+)`).FindStringSubmatch(words)
	require.NotNil(t, appToken, words)
	require.NotContains(t, words, "Signing", "nothing is signed")
	api := slack.New(printed(t, words, "Web API"), slack.OptionAPIURL(url+"/api/"), slack.OptionAppLevelToken(appToken[1]))
	_, link, err := api.StartSocketModeContext(t.Context())
	require.NoError(t, err)
	require.Contains(t, link, "ws://127.0.0.1:")

	_, words = startSlacksim(t, "--socket-mode", "--app-token", "xapp-1-mine")
	require.NotContains(t, words, "xapp-1-mine")
	err = run(t.Context(), []string{"slacksim", "--socket-mode", "--app-token", "xoxb-1", "--events-url", "http://127.0.0.1:1/"}, nil, io.Discard, io.Discard)
	require.ErrorContains(t, err, "--app-token")
	require.ErrorContains(t, err, "leave them out")
}

// printed is the token on a line of what slacksim said.
func printed(t *testing.T, words, line string) string {
	t.Helper()
	found := regexp.MustCompile(line + ` .*token: (\S+)\)`).FindStringSubmatch(words)
	require.NotNil(t, found, words)
	return found[1]
}

func TestSlacksimMakesUpItsSecretsAndPrintsThem(t *testing.T) {
	t.Parallel()
	url, words := startSlacksim(t)
	_, other := startSlacksim(t)
	require.NotEqual(t, printed(t, words, "Web API"), printed(t, other, "Web API"), "nobody can know it before")
	_, err := slack.New(printed(t, words, "Web API"), slack.OptionAPIURL(url+"/api/")).AuthTest()
	require.NoError(t, err)
	for _, secret := range []string{`Signing +secret: \w{32}\n`, `OAuth +client: slacksim-client, secret: \w{32}\n`} {
		require.Regexp(t, secret, words)
	}
}

func TestSlacksimStaysOnThisMachine(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{":8485", "0.0.0.0:0", "[::]:0", "192.0.2.7:8485"} {
		err := run(t.Context(), []string{"slacksim", "--addr", addr}, nil, io.Discard, io.Discard)
		require.ErrorContains(t, err, "--expose", addr)
	}
	for addr, local := range map[string]bool{"127.0.0.1:0": true, "[::1]:0": true, "127.9.9.9:1": true, "0.0.0.0:0": false} {
		got, err := loopback(t.Context(), addr)
		require.NoError(t, err)
		require.Equal(t, local, got, addr)
	}

	var warned bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, run(ctx, []string{"slacksim", "--addr", "0.0.0.0:0", "--expose"}, nil, io.Discard, &warned))
	require.Contains(t, warned.String(), "no login")
}

func TestSlacksimWarnsOfEventsAndScopesThatDoNothing(t *testing.T) {
	t.Parallel()
	warned := func(args ...string) string {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var said bytes.Buffer
		require.NoError(t, run(ctx, append([]string{"slacksim", "--addr", "127.0.0.1:0"}, args...), nil, io.Discard, &said))
		return said.String()
	}
	require.Equal(t, "Warning: --events: the simulator never sends the event \"app_mentions\"; did you mean app_mention?\n"+
		"Warning: --scopes: nothing in the simulator needs the scope \"usergroup:read\"; did you mean usergroups:read?\n",
		warned("--events", "app_mentions,message.im", "--scopes", "im:history,usergroup:read"))

	said := warned("--events", "link_shared", "--scopes", "canvases:write")
	require.Contains(t, said, `"link_shared"; the names that it knows are app_home_opened, app_mention, app_uninstalled, channel_archive,`)
	require.Contains(t, said, `"canvases:write"; the names that it knows are app_mentions:read,`)

	require.Equal(t, "Warning: --events: the simulator never sends the event \"app_mention\" without the scope app_mentions:read\n"+
		"Warning: --events: the simulator never sends the event \"member_joined_channel\" without the scope channels:read or groups:read\n",
		warned("--events", "app_home_opened,app_mention,member_joined_channel", "--scopes", "chat:write"))
	require.Empty(t, warned("--events", "member_joined_channel", "--scopes", "groups:read"), "it is sent of private channels")
	require.Contains(t, warned("--scopes", "chat:write"), `the event "message.im" without the scope im:history`, "the default events need theirs")

	require.Empty(t, warned(), "the defaults are known")
	app, err := manifests.ReadSlack([]byte(manifests.Slack("https://bot.example.com")))
	require.NoError(t, err)
	scopes := strings.Join(append(app.OAuth.Scopes.Bot, "chat:write.public"), ",")
	require.Empty(t, warned("--events", strings.Join(app.Settings.Events.Bot, ","), "--scopes", scopes))
}

// Countersign gets here, without a flag, every event that its manifest subscribes to.
func TestSlacksimSubscribesToTheEventsOfTheManifest(t *testing.T) {
	t.Parallel()
	app, err := manifests.ReadSlack([]byte(manifests.Slack("https://bot.example.com")))
	require.NoError(t, err)
	require.Subset(t, slacksim.DefaultEvents(), app.Settings.Events.Bot)
}

func TestSlacksimSaysEveryMistakeAtOnce(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"slacksim", "--addr", "nowhere", "--bot-token", "secret", "--events-url", "localhost:3000"}, nil, io.Discard, io.Discard)
	for _, want := range []string{"--addr", "--bot-token", "--events-url"} {
		require.ErrorContains(t, err, want)
	}
}
