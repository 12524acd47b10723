package slacksim_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

func TestEveryAnswerToTheTokenSaysItsScopes(t *testing.T) {
	sim := slacksim.New(slacksim.Config{Scopes: []string{"chat:write", "users:read"}})
	defer sim.Close()
	srv := httptest.NewServer(sim)
	defer srv.Close()
	header := func(method, token string) http.Header {
		resp, err := http.PostForm(srv.URL+"/api/"+method, url.Values{"token": {token}})
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.Header
	}
	require.Equal(t, "chat:write,users:read", header("auth.test", sim.BotToken()).Get("X-OAuth-Scopes"))
	require.Empty(t, header("auth.test", sim.BotToken()).Get("X-Accepted-OAuth-Scopes"), "it needs none")
	require.Equal(t, "chat:write,users:read", header("usergroups.list", sim.BotToken()).Get("X-OAuth-Scopes"), "refused for want of one")
	require.Equal(t, "usergroups:read", header("usergroups.list", sim.BotToken()).Get("X-Accepted-OAuth-Scopes"))
	require.Empty(t, header("auth.test", "xoxb-other").Get("X-OAuth-Scopes"))
}

// Without chat:write.customize, the name that an app gives itself is ignored.
func TestOnlyAnAppWithTheScopeNamesItself(t *testing.T) {
	named := url.Values{"channel": {"C0OPS"}, "text": {"x"}, "username": {"Payments"}}
	w := newWorkspace(t, slacksim.Config{Scopes: []string{"chat:write"}})
	answer := w.form(t, "chat.postMessage", named)
	require.Equal(t, true, answer["ok"])
	require.NotContains(t, answer["message"], "username")
	seen, err := w.Messages("bob", "C0OPS", "")
	require.NoError(t, err)
	require.Empty(t, seen[0].Username)
}

func TestEventsNeedTheirScopes(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{
		Scopes: []string{"chat:write", "channels:read", "im:history"},
		Events: []string{
			"app_mention", "message.channels", "message.im", "member_joined_channel", "group_archive", "channel_archive",
			"subteam_updated", "user_change", "app_home_opened",
		},
		Channels: append(slacksim.DefaultChannels(), slacksim.Channel{
			ID: "C0DEALS", Name: "deals", Members: []string{"U0ALICE", "U0BOT"}, Private: true,
		}),
	})
	_, err := w.PostAs(slacksim.Post{User: "alice", Channel: "ops", Text: "@countersign hello"})
	require.NoError(t, err)
	require.NoError(t, w.Join("gita", "deals"))
	require.NoError(t, w.Archive("alice", "deals", true))
	require.NoError(t, w.SetGroup("S0SRE", []string{"U0BOB"}))
	require.NoError(t, w.SetActive("dave", false))
	w.idle(t)
	require.Empty(t, w.app.requests("/events"), "of none of these it has the scope")

	_, err = w.PostAs(slacksim.Post{User: "alice", Channel: "@countersign", Text: "hello"})
	require.NoError(t, err)
	require.NoError(t, w.Join("gita", "ops"))
	require.NoError(t, w.Archive("alice", "ops", true))
	require.NoError(t, w.OpenHome("alice"))
	w.idle(t)
	require.Len(t, w.app.requests("/events"), 4)
}

func TestCommandsAndShortcutsNeedTheirScope(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{Scopes: []string{"chat:write"}})
	out, err := w.Command(slacksim.Command{User: "alice", Channel: "ops", Command: "/countersign", Text: "help"})
	require.NoError(t, err)
	require.Equal(t, slacksim.CommandOutcome{VisibleError: "/countersign is not a valid command."}, out)
	_, err = w.Shortcut(slacksim.Shortcut{User: "alice", CallbackID: "ask"})
	require.ErrorIs(t, err, slacksim.ErrForbidden)
	w.idle(t)
	require.Empty(t, append(w.app.requests("/commands"), w.app.requests("/interactivity")...))
}
