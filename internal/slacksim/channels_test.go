package slacksim_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// aSecondOps is the default workspace with a public channel without the bot,
// a private one with it, a private one without it, and an archived one.
func aSecondOps() slacksim.Config {
	return slacksim.Config{Channels: append(slacksim.DefaultChannels(),
		slacksim.Channel{ID: "C0LOBBY", Name: "lobby", Members: []string{"U0ALICE"}},
		slacksim.Channel{ID: "C0VAULT", Name: "vault", Private: true, Members: []string{"U0ALICE", slacksim.BotUser}},
		slacksim.Channel{ID: "C0HR", Name: "hr", Private: true, Members: []string{"U0ALICE"}},
		slacksim.Channel{ID: "C0OLD", Name: "old", Archived: true, Members: []string{slacksim.BotUser}},
	)}
}

func named(list []slack.Channel) []string {
	var names []string
	for _, c := range list {
		names = append(names, c.ID)
	}
	slices.Sort(names)
	return names
}

func TestChannelsAreListedByTypeAndMembership(t *testing.T) {
	w := newWorkspace(t, aSecondOps())
	_, _, _, err := w.api.OpenConversation(&slack.OpenConversationParameters{Users: []string{"U0BOB"}})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		types    []string
		archived bool
		want     []string
	}{
		"public, if nothing is said": {nil, false, []string{"C0GENERAL", "C0LOBBY", "C0OLD", "C0OPS"}},
		"not archived":               {[]string{"public_channel"}, true, []string{"C0GENERAL", "C0LOBBY", "C0OPS"}},
		"private, with the bot":      {[]string{"private_channel"}, false, []string{"C0VAULT"}},
		"several types":              {[]string{"private_channel", "im"}, false, []string{"C0VAULT", "D0BOB"}},
	} {
		got, _, err := w.api.GetConversations(&slack.GetConversationsParameters{Types: c.types, ExcludeArchived: c.archived})
		require.NoError(t, err, name)
		require.Equal(t, c.want, named(got), name)
	}
	page, next, err := w.api.GetConversations(&slack.GetConversationsParameters{Limit: 3})
	require.NoError(t, err)
	require.Len(t, page, 3)
	rest, next, err := w.api.GetConversations(&slack.GetConversationsParameters{Limit: 3, Cursor: next})
	require.NoError(t, err)
	require.Len(t, rest, 1)
	require.Empty(t, next)

	in := url.Values{"limit": {"1"}, "exclude_archived": {"true"}}
	var sizes []int
	for {
		answer := w.form(t, "conversations.list", in)
		sizes = append(sizes, len(answer["channels"].([]any)))
		cursor := dig(t, answer, "response_metadata", "next_cursor").(string)
		if cursor == "" {
			break
		}
		in.Set("cursor", cursor)
	}
	require.Equal(t, []int{1, 1, 1, 0}, sizes, "archived ones take their place on a page")

	own, _, err := w.api.GetConversationsForUser(&slack.GetConversationsForUserParameters{Types: []string{"public_channel", "private_channel"}})
	require.NoError(t, err)
	require.Equal(t, []string{"C0GENERAL", "C0OLD", "C0OPS", "C0VAULT"}, named(own), "the bot's own")
	require.NotContains(t, dig(t, w.form(t, "users.conversations", nil), "channels", 0), "is_member", "only conversations.list says it")
	hers, _, err := w.api.GetConversationsForUser(&slack.GetConversationsForUserParameters{UserID: "U0ALICE", Types: []string{"public_channel", "private_channel"}})
	require.NoError(t, err)
	require.Equal(t, []string{"C0GENERAL", "C0LOBBY", "C0OPS", "C0VAULT"}, named(hers), "private ones only where the bot is too")

	require.Equal(t, "invalid_types", w.form(t, "conversations.list", url.Values{"types": {"secret"}})["error"])
	require.Equal(t, "invalid_cursor", w.form(t, "conversations.list", url.Values{"cursor": {"x"}})["error"])
	require.Equal(t, "user_not_found", w.form(t, "users.conversations", url.Values{"user": {"U0EVE"}})["error"])
}

func TestEachTypeOfChannelNeedsItsScope(t *testing.T) {
	cfg := aSecondOps()
	cfg.Scopes = []string{"channels:read", "channels:manage"}
	w := newWorkspace(t, cfg)
	_, _, err := w.api.GetConversations(&slack.GetConversationsParameters{})
	require.NoError(t, err)
	refused := w.form(t, "conversations.list", url.Values{"types": {"public_channel,private_channel"}})
	require.Equal(t, []any{"missing_scope", "groups:read"}, []any{refused["error"], refused["needed"]})
	require.Equal(t, true, w.call(t, "conversations.create", map[string]any{"name": "news"})["ok"])
	refused = w.call(t, "conversations.create", map[string]any{"name": "secret", "is_private": true})
	require.Equal(t, []any{"missing_scope", "groups:write"}, []any{refused["error"], refused["needed"]})
	require.Equal(t, "missing_scope", w.call(t, "conversations.join", map[string]any{"channel": "C0LOBBY"})["error"])
}

func TestHistoryIsReadByTheHundredUnlessMoreIsAsked(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	for range 101 {
		w.post(t, `[`+divider+`]`)
	}
	for limit, want := range map[string]int{"": 100, "101": 101, "1000": 101} {
		page := w.form(t, "conversations.history", url.Values{"channel": {"C0OPS"}, "limit": {limit}})
		require.Len(t, page["messages"], want, limit)
	}
}

func TestOnlyMembersReadMessages(t *testing.T) {
	w := newWorkspace(t, aSecondOps())
	ts, err := w.PostAs(slacksim.Post{User: "alice", Channel: "lobby", Text: "root"})
	require.NoError(t, err)
	for _, method := range []string{"conversations.history", "conversations.replies"} {
		require.Equal(t, "not_in_channel", w.form(t, method, url.Values{"channel": {"C0LOBBY"}, "ts": {ts}})["error"], method)
	}
}

func TestTheBotJoinsPublicChannelsOnly(t *testing.T) {
	cfg := aSecondOps()
	cfg.Events = []string{"member_joined_channel"}
	w := newWorkspace(t, cfg)
	_, _, err := w.api.PostMessage("C0LOBBY", slack.MsgOptionText("x", false))
	require.EqualError(t, err, "not_in_channel")
	ch, warning, _, err := w.api.JoinConversation("C0LOBBY")
	require.NoError(t, err)
	require.Empty(t, warning)
	require.True(t, ch.IsMember)
	w.idle(t)
	require.Equal(t, slacksim.BotUser, dig(t, decode(t, w.app.last(t, "/events").body), "event", "user"), "the app hears of it")
	_, _, err = w.api.PostMessage("C0LOBBY", slack.MsgOptionText("x", false))
	require.NoError(t, err)
	_, warning, warnings, err := w.api.JoinConversation("C0LOBBY")
	require.NoError(t, err)
	require.Equal(t, []string{"already_in_channel", "already_in_channel"}, append(warnings, warning))
	for channel, want := range map[string]string{
		"C0HR": "channel_not_found", "C0VAULT": "method_not_supported_for_channel_type", "C0OLD": "is_archived", "C0NONE": "channel_not_found",
	} {
		_, _, _, err := w.api.JoinConversation(channel)
		require.EqualError(t, err, want, channel)
	}
}

func TestChannelsAreCreatedAndPeopleInvited(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{Events: []string{"channel_created", "member_joined_channel"}})
	ch, err := w.api.CreateConversation(slack.CreateConversationParams{ChannelName: "incident-42"})
	require.NoError(t, err)
	require.Equal(t, []any{"incident-42", slacksim.BotUser, true, false}, []any{ch.Name, ch.Creator, ch.IsMember, ch.IsPrivate})
	w.idle(t)
	sent := map[any]map[string]any{}
	for _, d := range w.app.requests("/events") {
		event := dig(t, decode(t, d.body), "event").(map[string]any)
		sent[event["type"]] = event
	}
	require.Len(t, sent, 2)
	require.Equal(t, []any{slacksim.BotUser, ch.ID}, []any{sent["member_joined_channel"]["user"], sent["member_joined_channel"]["channel"]})
	require.NotContains(t, sent["member_joined_channel"], "inviter")
	created := dig(t, sent["channel_created"], "channel").(map[string]any)
	require.Equal(t, []any{"incident-42", true, false}, []any{created["name"], created["is_channel"], created["is_private"]})
	require.NotContains(t, created, "is_member", "the event is the same for everyone")
	ch, err = w.api.InviteUsersToConversation(ch.ID, "U0BOB", "U0CAROL")
	require.NoError(t, err)
	require.Zero(t, ch.NumMembers, "only conversations.list and conversations.info count")
	require.Len(t, dig(t, w.form(t, "conversations.members", url.Values{"channel": {ch.ID}}), "members"), 3)
	w.idle(t)
	require.Equal(t, slacksim.BotUser, dig(t, decode(t, w.app.last(t, "/events").body), "event", "inviter"))
	_, err = w.PostAs(slacksim.Post{User: "bob", Channel: "incident-42", Text: "here"})
	require.NoError(t, err, "people can write in it")

	private, err := w.api.CreateConversation(slack.CreateConversationParams{ChannelName: "secret", IsPrivate: true})
	require.NoError(t, err)
	require.True(t, private.IsPrivate)

	for name, want := range map[string]string{
		"": "invalid_name_required", strings.Repeat("x", 81): "invalid_name_maxlength", "--_": "invalid_name_punctuation",
		"Ops": "invalid_name_specials", "a b": "invalid_name_specials", "a.b": "invalid_name_specials", "ops": "name_taken", "secret": "name_taken",
	} {
		require.Equal(t, want, w.call(t, "conversations.create", map[string]any{"name": name})["error"], name)
	}
	require.Equal(t, "invalid_arguments", w.call(t, "conversations.create", map[string]any{})["error"])
}

func TestInvitationsAreForAllOrNobody(t *testing.T) {
	w := newWorkspace(t, aSecondOps())
	invite := func(channel, users string, force bool) map[string]any {
		return w.call(t, "conversations.invite", map[string]any{"channel": channel, "users": users, "force": force})
	}
	for _, c := range []struct{ channel, users, want string }{
		{"C0OPS", "", "no_user"},
		{"C0OPS", "U0EVE", "user_not_found"},
		{"C0OPS", "U0BOB", "already_in_channel"},
		{"C0OPS", slacksim.BotUser, "cant_invite_self"},
		{"C0OPS", "U0GONE", "cant_invite"},
		{"C0LOBBY", "U0BOB", "not_in_channel"},
		{"C0HR", "U0BOB", "channel_not_found"},
		{"C0OLD", "U0BOB", "is_archived"},
		{"C0OPS", strings.TrimSuffix(strings.Repeat("U0BOB,", 101), ","), "too_many_users"},
	} {
		require.Equal(t, c.want, invite(c.channel, c.users, false)["error"], c.want)
	}
	refused := invite("C0VAULT", "U0BOB,U0EVE", false)
	require.Equal(t, "user_not_found", refused["error"])
	require.Equal(t, []any{map[string]any{"user": "U0EVE", "ok": false, "error": "user_not_found"}}, refused["errors"])
	members, _, err := w.api.GetUsersInConversation(&slack.GetUsersInConversationParameters{ChannelID: "C0VAULT"})
	require.NoError(t, err)
	require.NotContains(t, members, "U0BOB", "nobody was invited")
	forced := invite("C0VAULT", "U0BOB,U0EVE", true)
	require.Equal(t, true, forced["ok"])
	require.Len(t, forced["errors"], 1)
	members, _, err = w.api.GetUsersInConversation(&slack.GetUsersInConversationParameters{ChannelID: "C0VAULT"})
	require.NoError(t, err)
	require.Contains(t, members, "U0BOB")
}

func TestProfilesAreReadByID(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{Scopes: []string{"users.profile:read"}})
	p, err := w.api.GetUserProfile(&slack.GetUserProfileParameters{UserID: "U0BOB"})
	require.NoError(t, err)
	require.Equal(t, []string{"Bob Brandt", "Bob", "Brandt", "bob", ""}, []string{p.RealName, p.FirstName, p.LastName, p.DisplayName, p.Email},
		"an email needs users:read.email")
	require.NotEmpty(t, p.Image48)
	own := w.form(t, "users.profile.get", nil)
	require.Equal(t, "Countersign", dig(t, own, "profile", "real_name"), "without a user, the bot's own")
	require.Equal(t, "user_not_found", w.form(t, "users.profile.get", url.Values{"user": {"U0EVE"}})["error"])
}

// Who names no limit gets a hundred members and a cursor.
//
// https://docs.slack.dev/reference/methods/conversations.members
func TestMembersAreListedByTheHundred(t *testing.T) {
	people, members := slacksim.DefaultPeople(), []string{slacksim.BotUser}
	for i := range 150 {
		id := fmt.Sprintf("U0CROWD%03d", i)
		people = append(people, slacksim.Person{ID: id, Name: strings.ToLower(id)})
		members = append(members, id)
	}
	w := newWorkspace(t, slacksim.Config{People: people, Channels: []slacksim.Channel{{ID: "C0ALL", Name: "all", Members: members}}})
	first := w.form(t, "conversations.members", url.Values{"channel": {"C0ALL"}})
	require.Len(t, dig(t, first, "members"), 100)
	cursor, _ := dig(t, first, "response_metadata", "next_cursor").(string)
	rest := w.form(t, "conversations.members", url.Values{"channel": {"C0ALL"}, "cursor": {cursor}})
	require.Len(t, dig(t, rest, "members"), 51)
	require.Empty(t, dig(t, rest, "response_metadata", "next_cursor"))
	all := w.form(t, "conversations.members", url.Values{"channel": {"C0ALL"}, "limit": {"999"}})
	require.Len(t, dig(t, all, "members"), 151)
}
