package slacksim_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

func twoCompanies() slacksim.Config {
	cfg := slacksim.Config{}.WithGlobex()
	cfg.Events = []string{
		"app_mention", "app_home_opened", "app_uninstalled", "tokens_revoked", "message.channels", "member_joined_channel",
	}
	return cfg
}

func TestTokensAreOfOneWorkspace(t *testing.T) {
	w := newWorkspace(t, twoCompanies())
	globex := slack.New(w.TokenOf(slacksim.Globex), slack.OptionAPIURL(w.url+"/api/"))
	ours, err := w.api.AuthTest()
	require.NoError(t, err)
	theirs, err := globex.AuthTest()
	require.NoError(t, err)
	require.Equal(t, []string{"T0COUNTER", "U0BOT", "B0COUNTERSIGN"}, []string{ours.TeamID, ours.UserID, ours.BotID})
	require.Equal(t, []string{"T0GLOBEX", "U0BOT2", "B0COUNTERSIGN2"}, []string{theirs.TeamID, theirs.UserID, theirs.BotID})

	_, _, err = w.api.PostMessage("C0LAB", slack.MsgOptionText("x", false))
	require.EqualError(t, err, "channel_not_found")
	_, ts, err := globex.PostMessage("lab", slack.MsgOptionText("x", false))
	require.NoError(t, err)
	_, _, _, err = globex.UpdateMessage("C0LAB", ts, slack.MsgOptionText("y", false))
	require.NoError(t, err)
	_, _, err = globex.PostMessage("C0OPS", slack.MsgOptionText("x", false))
	require.EqualError(t, err, "channel_not_found")

	groups, err := globex.GetUserGroups()
	require.NoError(t, err)
	require.Len(t, groups, 1)
	_, err = globex.GetUserGroupMembers("S0SRE")
	require.EqualError(t, err, "no_such_subteam")
	people, err := globex.GetUsers()
	require.NoError(t, err)
	require.Len(t, people, 3, "erin, fred and the bot")
}

// Someone met in a shared channel is a stranger; someone who is in none is
// not there.
func TestSlackConnectStrangers(t *testing.T) {
	w := newWorkspace(t, twoCompanies())
	erin, err := w.api.GetUserInfo("U0ERIN")
	require.NoError(t, err)
	require.True(t, erin.IsStranger)
	require.Equal(t, "T0GLOBEX", erin.TeamID)
	require.Empty(t, erin.Profile.Email, "an address is not told to strangers")
	_, err = w.api.GetUserInfo("U0FRED")
	require.EqualError(t, err, "user_not_found")
	_, err = w.api.GetUserByEmail("erin@globex.example")
	require.EqualError(t, err, "users_not_found")
	alice, err := w.api.GetUserInfo("U0ALICE")
	require.NoError(t, err)
	require.False(t, alice.IsStranger)

	info := w.form(t, "conversations.info", url.Values{"channel": {"C0DEAL"}})
	require.Equal(t, true, dig(t, info, "channel", "is_ext_shared"))
	require.Equal(t, []any{"T0COUNTER", "T0GLOBEX"}, dig(t, info, "channel", "shared_team_ids"))

	// What a stranger does in a shared channel is our workspace's event.
	_, err = w.PostAs(slacksim.Post{User: "erin", Channel: "deal", Text: "<@U0BOT> hello"})
	require.NoError(t, err)
	w.idle(t)
	var mention map[string]any
	for _, e := range w.app.requests("/events") {
		if got := decode(t, e.body); dig(t, got, "event", "type") == "app_mention" {
			mention = got
		}
	}
	require.Equal(t, "T0COUNTER", mention["team_id"])
	require.Equal(t, true, mention["is_ext_shared_channel"])
	require.Equal(t, "T0GLOBEX", dig(t, mention, "event", "user_team"))
	require.Equal(t, "T0COUNTER", dig(t, mention, "authorizations", 0, "team_id"))

	answer := w.call(t, "chat.postMessage", map[string]any{"channel": "C0DEAL", "text": "x", "blocks": message(approveButtons)["blocks"]})
	out, err := w.Click(slacksim.Click{User: "erin", Channel: "deal", TS: answer["ts"].(string), ActionID: "approve"})
	require.NoError(t, err)
	require.Equal(t, 200, out.Status)
	click := w.app.last(t, "/interactivity").payload(t)
	require.Equal(t, "T0COUNTER", dig(t, click, "team", "id"))
	require.Equal(t, "T0GLOBEX", dig(t, click, "user", "team_id"))

	// The trigger is for the installation that got it.
	view := map[string]any{"trigger_id": click["trigger_id"], "view": message(`[]`)}
	view["view"] = decode(t, []byte(reasonModal))
	stolen := w.raw(t, "views.open", "application/json; charset=utf-8", "Bearer "+w.TokenOf(slacksim.Globex), string(mustJSON(t, view)))
	require.Equal(t, "invalid_trigger_id", stolen["error"])
	opened := w.call(t, "views.open", view)
	require.Equal(t, "T0GLOBEX", dig(t, opened, "view", "team_id"), "%v", opened)
	require.Equal(t, "T0COUNTER", dig(t, opened, "view", "app_installed_team_id"))
	_, err = w.SubmitView(slacksim.Submit{
		User: "erin", ViewID: dig(t, opened, "view", "id").(string), Values: map[string]map[string]any{"reason": {"text": "enough"}},
	})
	require.NoError(t, err)
	submission := w.app.last(t, "/interactivity").payload(t)
	require.Equal(t, "T0GLOBEX", dig(t, submission, "team", "id"), "of the person; the app looks at app_installed_team_id")
	require.Equal(t, "T0COUNTER", dig(t, submission, "view", "app_installed_team_id"))
}

func TestCommandsAndHomeAreOfThePersonsWorkspace(t *testing.T) {
	w := newWorkspace(t, twoCompanies())
	_, err := w.Command(slacksim.Command{User: "erin", Channel: "deal", Command: "/approvals"})
	require.NoError(t, err)
	body := w.app.last(t, "/commands").body
	require.Equal(t, "T0GLOBEX", formValue(body, "team_id"))
	require.Equal(t, "globex", formValue(body, "team_domain"))
	require.NoError(t, w.OpenHome("erin"))
	w.idle(t)
	require.Equal(t, "T0GLOBEX", decode(t, w.app.last(t, "/events").body)["team_id"])

	cfg := twoCompanies()
	cfg.Workspaces[0].Token = ""
	t.Run("not installed there", func(t *testing.T) {
		w := newWorkspace(t, cfg)
		out, err := w.Command(slacksim.Command{User: "erin", Channel: "deal", Command: "/approvals"})
		require.NoError(t, err)
		require.Contains(t, out.VisibleError, "not a valid command")
		require.ErrorIs(t, w.OpenHome("erin"), slacksim.ErrForbidden)
	})
}

// One installation for a whole organization: no team in interactions, the
// enterprise everywhere, and a team_id for methods that list.
func TestOrgInstallation(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{}.WithOrg())

	test := w.form(t, "auth.test", nil)
	require.Equal(t, "E0ACME", test["enterprise_id"])
	require.Equal(t, true, test["is_enterprise_install"])

	teams, _, err := w.api.ListTeams(slack.ListTeamsParameters{})
	require.NoError(t, err)
	require.Equal(t, []slack.Team{{ID: "T0COUNTER", Name: "Acme"}, {ID: "T0GLOBEX", Name: "Globex"}}, teams)
	for _, method := range []string{"usergroups.list", "users.list"} {
		require.Equal(t, "missing_argument", w.form(t, method, nil)["error"], method)
		require.Equal(t, true, w.form(t, method, url.Values{"team_id": {"T0GLOBEX"}})["ok"], method)
		require.Equal(t, "invalid_team", w.form(t, method, url.Values{"team_id": {"T0NONE"}})["error"], method)
	}
	require.Equal(t, "missing_argument", w.form(t, "usergroups.users.list", url.Values{"usergroup": {"S0LAB"}})["error"])
	members, err := w.api.GetUserGroupMembers("S0LAB", slack.GetUserGroupMembersOptionTeamID("T0GLOBEX"))
	require.NoError(t, err)
	require.Equal(t, []string{"U0ERIN"}, members)
	require.Equal(t, "team_not_found", w.call(t, "chat.postMessage", map[string]any{"channel": "#lab", "text": "x"})["error"],
		"a channel's name says nothing without its workspace")
	answer := w.call(t, "chat.postMessage", map[string]any{"channel": "C0LAB", "text": "x", "blocks": message(approveButtons)["blocks"]})
	require.Equal(t, true, answer["ok"], "%v", answer)
	fred, err := w.api.GetUserInfo("U0FRED")
	require.NoError(t, err)
	require.False(t, fred.IsStranger, "colleagues of the organization")
	require.Equal(t, "E0ACME", fred.Enterprise.EnterpriseID)

	_, err = w.Click(slacksim.Click{User: "erin", Channel: "C0LAB", TS: answer["ts"].(string), ActionID: "approve"})
	require.NoError(t, err)
	click := w.app.last(t, "/interactivity").payload(t)
	require.Contains(t, click, "team")
	require.Nil(t, click["team"])
	require.Equal(t, map[string]any{"id": "E0ACME", "name": "Acme Group"}, click["enterprise"])
	require.Equal(t, true, click["is_enterprise_install"])
	require.Equal(t, "T0GLOBEX", dig(t, click, "user", "team_id"))

	_, err = w.PostAs(slacksim.Post{User: "erin", Channel: "C0LAB", Text: "<@U0BOT> hi"})
	require.NoError(t, err)
	w.idle(t)
	event := decode(t, w.app.last(t, "/events").body)
	require.Equal(t, "T0GLOBEX", event["team_id"])
	require.Equal(t, "E0ACME", event["enterprise_id"])
	require.Equal(t, "E0ACME", event["context_enterprise_id"])
	require.Equal(t, map[string]any{
		"enterprise_id": "E0ACME", "team_id": nil, "user_id": "U0BOT", "is_bot": true, "is_enterprise_install": true,
	}, dig(t, event, "authorizations", 0))

	_, err = w.Command(slacksim.Command{User: "erin", Channel: "C0LAB", Command: "/approvals"})
	require.NoError(t, err)
	body := w.app.last(t, "/commands").body
	require.Equal(t, []string{"true", "E0ACME", "Acme Group", "T0GLOBEX"}, []string{
		formValue(body, "is_enterprise_install"), formValue(body, "enterprise_id"), formValue(body, "enterprise_name"), formValue(body, "team_id"),
	})
}

func TestUninstallingEndsTheTokenAndTellsTheApp(t *testing.T) {
	w := newWorkspace(t, twoCompanies())
	status, _ := w.sim(t, "install", map[string]any{"installed": false})
	require.Equal(t, http.StatusOK, status)
	w.idle(t)
	kinds := map[any]any{}
	for _, d := range w.app.requests("/events") {
		e := decode(t, d.body)
		kinds[dig(t, e, "event", "type")] = e["team_id"]
		if tokens, ok := dig(t, e, "event").(map[string]any)["tokens"]; ok {
			require.Equal(t, map[string]any{"oauth": []any{}, "bot": []any{"U0BOT"}}, tokens)
		}
	}
	require.Equal(t, map[any]any{"app_uninstalled": "T0COUNTER", "tokens_revoked": "T0COUNTER"}, kinds)
	_, err := w.api.AuthTest()
	require.EqualError(t, err, "account_inactive")
	out, err := w.Command(slacksim.Command{User: "alice", Channel: "ops", Command: "/approvals"})
	require.NoError(t, err)
	require.Contains(t, out.VisibleError, "not a valid command")

	require.NoError(t, w.SetInstalled("", true))
	_, err = w.api.AuthTest()
	require.NoError(t, err)
	_, err = slack.New(w.TokenOf(slacksim.Globex), slack.OptionAPIURL(w.url+"/api/")).AuthTest()
	require.NoError(t, err, "the other installation is another matter")
}

func TestRevokingEndsTheToken(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	require.Equal(t, map[string]any{"ok": true, "revoked": false}, w.form(t, "auth.revoke", url.Values{"test": {"1"}}))
	require.Equal(t, map[string]any{"ok": true, "revoked": true}, w.form(t, "auth.revoke", nil))
	require.Equal(t, "token_revoked", w.form(t, "auth.test", nil)["error"])
	w.idle(t)
	require.Equal(t, "tokens_revoked", dig(t, decode(t, w.app.last(t, "/events").body), "event", "type"))
}

func TestGroupMessages(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{Events: []string{"message.mpim", "app_mention"}})
	opened := w.form(t, "conversations.open", url.Values{"users": {"U0ALICE,U0BOB"}, "return_im": {"true"}})
	require.Equal(t, true, dig(t, opened, "channel", "is_mpim"), "%v", opened)
	again := w.form(t, "conversations.open", url.Values{"users": {"U0BOB,U0ALICE"}})
	require.Equal(t, dig(t, opened, "channel", "id"), dig(t, again, "channel", "id"))
	require.Equal(t, true, again["already_open"])
	id := dig(t, opened, "channel", "id").(string)
	require.Equal(t, true, w.call(t, "chat.postMessage", map[string]any{"channel": id, "text": "both of you"})["ok"])
	_, err := w.PostAs(slacksim.Post{User: "bob", Channel: id, Text: "yes"})
	require.NoError(t, err)
	w.idle(t)
	require.Equal(t, "mpim", dig(t, decode(t, w.app.last(t, "/events").body), "event", "channel_type"))
	_, err = w.Messages("carol", id, "")
	require.ErrorIs(t, err, slacksim.ErrForbidden)
}

func TestMembershipAndAccounts(t *testing.T) {
	cfg := twoCompanies()
	cfg.Events = append(cfg.Events, "user_change")
	w := newWorkspace(t, cfg)
	require.ErrorIs(t, w.Join("fred", "ops"), slacksim.ErrForbidden)
	require.NoError(t, w.Join("gita", "ops"))
	w.idle(t)
	event := decode(t, w.app.last(t, "/events").body)
	require.Equal(t, "member_joined_channel", dig(t, event, "event", "type"))
	_, err := w.PostAs(slacksim.Post{User: "gita", Channel: "ops", Text: "hi"})
	require.NoError(t, err)
	w.idle(t)

	status, _ := w.sim(t, "account", map[string]any{"user": "bob", "deleted": true})
	require.Equal(t, http.StatusOK, status)
	w.idle(t)
	changed := dig(t, decode(t, w.app.last(t, "/events").body), "event", "user")
	require.Equal(t, true, dig(t, changed, "deleted"))
	require.Equal(t, "en-US", dig(t, changed, "locale"))
	require.Equal(t, map[string]any{}, dig(t, changed, "profile", "fields"))
	_, err = w.PostAs(slacksim.Post{User: "bob", Channel: "ops", Text: "hi"})
	require.ErrorIs(t, err, slacksim.ErrForbidden)
	require.Equal(t, "user_disabled", w.form(t, "conversations.open", url.Values{"users": {"U0BOB"}})["error"])
	require.Equal(t, "users_not_found", w.form(t, "users.lookupByEmail", url.Values{"email": {"bob@acme.example"}})["error"])
}

func TestNothingIsWrittenInAnArchivedChannel(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{Events: append(slacksim.DefaultEvents(), "channel_archive", "channel_unarchive")})
	ts := w.post(t, `[`+divider+`]`)
	says := func(method, code string, values url.Values) {
		t.Helper()
		values.Set("channel", "C0OPS")
		values.Set("text", "x")
		got := w.form(t, method, values)
		require.Equal(t, code == "", got["ok"], method)
		if code != "" {
			require.Equal(t, code, got["error"], method)
		}
	}
	require.ErrorIs(t, w.Archive("fred", "ops", true), slacksim.ErrNoSuch)
	status, _ := w.sim(t, "archive", map[string]any{"user": "alice", "channel": "ops", "archived": true})
	require.Equal(t, http.StatusOK, status)
	w.idle(t)
	event := dig(t, decode(t, w.app.last(t, "/events").body), "event")
	require.Equal(t, map[string]any{"type": "channel_archive", "channel": "C0OPS", "user": "U0ALICE", "event_ts": dig(t, event, "event_ts")}, event)
	says("chat.postMessage", "is_archived", url.Values{})
	says("chat.update", "is_inactive", url.Values{"ts": {ts}})
	_, err := w.PostAs(slacksim.Post{User: "bob", Channel: "ops", Text: "hi"})
	require.ErrorIs(t, err, slacksim.ErrForbidden)

	require.NoError(t, w.Archive("alice", "ops", false))
	w.idle(t)
	require.Equal(t, "channel_unarchive", dig(t, decode(t, w.app.last(t, "/events").body), "event", "type"))
	says("chat.update", "", url.Values{"ts": {ts}})
}

func TestTheAppHearsOfEveryPublicChannelThatIsArchived(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{
		Events: []string{"channel_archive", "group_archive"},
		Channels: []slacksim.Channel{
			{ID: "C0OTHER", Name: "other", Members: []string{"U0ALICE"}},
			{ID: "C0SECRET", Name: "secret", Members: []string{"U0ALICE"}, Private: true},
		},
	})
	require.NoError(t, w.Archive("alice", "other", true))
	require.NoError(t, w.Archive("alice", "secret", true))
	w.idle(t)
	var heard []any
	for _, r := range w.app.requests("/events") {
		heard = append(heard, dig(t, decode(t, r.body), "event", "channel"))
	}
	require.Equal(t, []any{"C0OTHER"}, heard)
}

func TestEachKindOfChannelHasItsScope(t *testing.T) {
	cfg := slacksim.Config{Scopes: []string{"channels:read"}, Channels: append(slacksim.DefaultChannels(), slacksim.Channel{
		ID: "C0SECRET", Name: "secret", Private: true, Members: []string{"U0ALICE", slacksim.BotUser},
	})}
	w := newWorkspace(t, cfg)
	for _, method := range []string{"conversations.info", "conversations.members"} {
		require.Equal(t, true, w.form(t, method, url.Values{"channel": {"C0OPS"}})["ok"], method)
		refused := w.form(t, method, url.Values{"channel": {"C0SECRET"}})
		require.Equal(t, []any{"missing_scope", "groups:read"}, []any{refused["error"], refused["needed"]}, method)
	}
}
