package slacksim_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

func TestPeopleAndGroupsThroughSlackGo(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	who, err := w.api.AuthTestContext(t.Context())
	require.NoError(t, err)
	require.Equal(t, "U0BOT", who.UserID)
	require.Equal(t, "T0COUNTER", who.TeamID)
	for _, field := range []string{"app_id", "app_name", "enterprise_id"} { // of app-level tokens, and of organizations
		require.NotContains(t, w.form(t, "auth.test", nil), field)
	}

	guest, err := w.api.GetUserInfoContext(t.Context(), "U0GUEST")
	require.NoError(t, err)
	require.True(t, guest.IsRestricted)
	require.NotContains(t, dig(t, w.form(t, "users.info", url.Values{"user": {"U0BOB"}}), "user"), "locale")
	require.Equal(t, "en-US", dig(t, w.form(t, "users.info", url.Values{"user": {"U0BOB"}, "include_locale": {"true"}}), "user", "locale"))
	gone, err := w.api.GetUserInfoContext(t.Context(), "U0GONE")
	require.NoError(t, err)
	require.True(t, gone.Deleted)
	_, err = w.api.GetUserInfoContext(t.Context(), "U0EVE")
	require.EqualError(t, err, "user_not_found")
	all, err := w.api.GetUsersContext(t.Context())
	require.NoError(t, err)
	require.Len(t, all, len(slacksim.DefaultPeople()))

	groups, err := w.api.GetUserGroupsContext(t.Context(), slack.GetUserGroupsOptionIncludeUsers(true))
	require.NoError(t, err)
	require.Len(t, groups, 2)
	require.Equal(t, []string{"U0BOB", "U0CAROL"}, groups[0].Users)
	require.NotContains(t, dig(t, w.form(t, "usergroups.list", nil), "usergroups", 0), "user_count")
	require.EqualValues(t, 2, dig(t, w.form(t, "usergroups.list", url.Values{"include_count": {"true"}}), "usergroups", 0, "user_count"))
	members, err := w.api.GetUserGroupMembersContext(t.Context(), "S0SEC")
	require.NoError(t, err)
	require.Equal(t, []string{"U0CAROL"}, members)
	_, err = w.api.GetUserGroupMembersContext(t.Context(), "S0NOPE")
	require.EqualError(t, err, "no_such_subteam")

	team, err := w.api.GetTeamInfoContext(t.Context())
	require.NoError(t, err)
	require.Equal(t, "Acme", team.Name)
	bot, err := w.api.GetBotInfoContext(t.Context(), slack.GetBotInfoParameters{Bot: "B0COUNTERSIGN"})
	require.NoError(t, err)
	require.Equal(t, "A0COUNTERSIGN", bot.AppID)
}

func TestConversationsThroughSlackGo(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	info, err := w.api.GetConversationInfoContext(t.Context(), &slack.GetConversationInfoInput{ChannelID: "C0OPS", IncludeNumMembers: true})
	require.NoError(t, err)
	require.Equal(t, "ops", info.Name)
	require.Equal(t, 5, info.NumMembers)
	members, _, err := w.api.GetUsersInConversationContext(t.Context(), &slack.GetUsersInConversationParameters{ChannelID: "C0OPS"})
	require.NoError(t, err)
	require.Contains(t, members, "U0DAVE")

	dm, _, _, err := w.api.OpenConversationContext(t.Context(), &slack.OpenConversationParameters{Users: []string{"U0BOB"}})
	require.NoError(t, err)
	require.Regexp(t, "^D", dm.ID)
	_, _, again, err := w.api.OpenConversationContext(t.Context(), &slack.OpenConversationParameters{Users: []string{"U0BOB"}})
	require.NoError(t, err)
	require.True(t, again, "already open")
	channel, _, err := w.api.PostMessageContext(t.Context(), "U0BOB", slack.MsgOptionText("for you", false))
	require.NoError(t, err)
	require.Equal(t, dm.ID, channel)
	im := dig(t, w.form(t, "conversations.info", url.Values{"channel": {dm.ID}, "include_num_members": {"true"}}), "channel").(map[string]any)
	require.Equal(t, "for you", dig(t, im, "latest", "text"))
	require.Equal(t, []any{2.0, 0.0, false, true}, []any{im["num_members"], im["unread_count"], im["is_user_deleted"], im["is_open"]})
	seen, err := w.Messages("bob", dm.ID, "")
	require.NoError(t, err)
	require.Equal(t, "for you", seen[0].Text)
	_, err = w.Messages("alice", dm.ID, "")
	require.ErrorIs(t, err, slacksim.ErrForbidden)
}

func TestConversationsOpenErrors(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	for users, want := range map[string]string{
		"": "users_list_not_supplied", "U0EVE": "user_not_found", "U0GONE": "user_disabled", "U0BOT": "cannot_dm_bot",
		strings.TrimSuffix(strings.Repeat("U0BOB,", 9), ","): "too_many_users",
	} {
		require.Equal(t, want, w.call(t, "conversations.open", map[string]any{"users": users})["error"])
	}
}

func TestOtherSitesPagesMayNotAct(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/sim/post", strings.NewReader(`{}`))
	require.NoError(t, err)
	req.Header.Set("Origin", "https://evil.example")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
}

func TestForeignNamesOfThisMachineAreRefused(t *testing.T) {
	ask := func(w *workspace, host string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/sim/state", nil)
		require.NoError(t, err)
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	t.Run("only loopback", func(t *testing.T) {
		w := newWorkspace(t, slacksim.Config{})
		for host, want := range map[string]int{
			"evil.example": 403, "192.0.2.1:80": 403, "localhost:8485": 200, "[::1]:1": 200, "127.0.0.1": 200,
		} {
			require.Equal(t, want, ask(w, host), host)
		}
		w.SetPublicURL("https://sim.example")
		require.Equal(t, http.StatusOK, ask(w, "sim.example"), "the name it was given")
	})
	t.Run("exposed", func(t *testing.T) {
		require.Equal(t, http.StatusOK, ask(newWorkspace(t, slacksim.Config{AnyHost: true}), "anything.example"))
	})
}

func TestPageAndChangesAreServed(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	page, err := http.Get(w.url + "/")
	require.NoError(t, err)
	require.NoError(t, page.Body.Close())
	require.Equal(t, http.StatusOK, page.StatusCode)
	require.Contains(t, page.Header.Get("Content-Type"), "text/html")
	require.NotEmpty(t, page.Header.Get("Content-Security-Policy"))
	req, err := http.NewRequestWithContext(soon(t), http.MethodGet, w.url+"/sim/events", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	buf := make([]byte, 64)
	n, err := resp.Body.Read(buf)
	require.NoError(t, err)
	require.Contains(t, string(buf[:n]), "data: ")
	w.post(t, `[`+divider+`]`)
	n, err = resp.Body.Read(buf)
	require.NoError(t, err)
	require.Contains(t, string(buf[:n]), "data: ", "a change is sent")
}

// Everything at once, for the race detector: nothing is lost and every
// message has its own ts.
func TestConcurrentUse(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	card := w.post(t, approveButtons)
	const each = 20
	var wg sync.WaitGroup
	for _, do := range []func(){
		func() { _, _ = w.PostAs(slacksim.Post{User: "alice", Channel: "ops", Text: "@countersign go"}) },
		func() {
			_, _, _ = w.api.PostMessageContext(t.Context(), "C0OPS", slack.MsgOptionText("x", false))
		},
		func() { _, _ = w.Click(click(card, "approve")) },
		func() {
			_, _, _, _ = w.api.UpdateMessageContext(t.Context(), "C0OPS", card, slack.MsgOptionText("y", false))
		},
		func() { _, _ = w.Messages("bob", "ops", "") },
		func() { _ = w.Views("bob"); _ = w.State(); _ = w.Log() },
	} {
		wg.Go(func() {
			for range each {
				do()
			}
		})
	}
	wg.Wait()
	w.idle(t)
	seen, err := w.Messages("bob", "ops", "")
	require.NoError(t, err)
	require.Len(t, seen, 1+2*each)
	unique := map[string]bool{}
	for _, m := range seen {
		unique[m.TS] = true
	}
	require.Len(t, unique, len(seen))
	require.Len(t, w.app.requests("/interactivity"), each)
	require.Len(t, w.Calls("chat.update"), each)
	answer := w.form(t, "conversations.history", url.Values{"channel": {"C0OPS"}})
	require.Len(t, answer["messages"], 1+2*each)
}
