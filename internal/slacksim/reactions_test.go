package slacksim_test

import (
	"net/url"
	"testing"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

func TestReactionsComeAndGo(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{Events: []string{"reaction_added", "reaction_removed"}})
	first := w.post(t, `[`+divider+`]`)
	second := w.post(t, `[`+divider+`]`)
	on := slack.NewRefToMessage("C0OPS", first)
	require.NoError(t, w.api.AddReaction("eyes", on))
	require.EqualError(t, w.api.AddReaction(":eyes:", on), "already_reacted")
	require.NoError(t, w.api.AddReaction("+1::skin-tone-3", on))
	require.NoError(t, w.api.AddReaction("tada", slack.NewRefToMessage("C0OPS", second)))
	w.idle(t)
	event := dig(t, decode(t, w.app.last(t, "/events").body), "event")
	require.Equal(t, []any{"reaction_added", slacksim.BotUser, "message", "C0OPS"},
		[]any{dig(t, event, "type"), dig(t, event, "item_user"), dig(t, event, "item", "type"), dig(t, event, "item", "channel")})

	got, err := w.api.GetReactions(on, slack.NewGetReactionsParameters())
	require.NoError(t, err)
	require.Equal(t, []slack.ItemReaction{
		{Name: "eyes", Count: 1, Users: []string{slacksim.BotUser}}, {Name: "+1::skin-tone-3", Count: 1, Users: []string{slacksim.BotUser}},
	}, got.Reactions)
	require.Contains(t, got.Message.Permalink, "/archives/C0OPS/p")
	list, _, err := w.api.ListReactions(slack.ListReactionsParameters{})
	require.NoError(t, err)
	require.Equal(t, []string{second, first}, []string{list[0].Message.Timestamp, list[1].Message.Timestamp}, "the newest first")
	list, _, err = w.api.ListReactions(slack.ListReactionsParameters{User: "U0BOB"})
	require.NoError(t, err)
	require.Empty(t, list)

	require.NoError(t, w.api.RemoveReaction("eyes", on))
	require.EqualError(t, w.api.RemoveReaction("eyes", on), "no_reaction")
	w.idle(t)
	require.Equal(t, "reaction_removed", dig(t, decode(t, w.app.last(t, "/events").body), "event", "type"))
	got, err = w.api.GetReactions(on, slack.NewGetReactionsParameters())
	require.NoError(t, err)
	require.Len(t, got.Reactions, 1)
	seen, err := w.Messages("bob", "ops", "")
	require.NoError(t, err)
	require.Len(t, seen[0].Reactions, 1, "people see what is left")
}

func TestReactionsAreRefusedAsSlackDoes(t *testing.T) {
	w := newWorkspace(t, aSecondOps())
	ts := w.post(t, `[`+divider+`]`)
	for _, c := range []struct {
		method string
		in     url.Values
		want   string
	}{
		{"reactions.add", url.Values{"channel": {"C0OPS"}, "timestamp": {ts}, "name": {"No Such"}}, "invalid_name"},
		{"reactions.add", url.Values{"channel": {"C0OPS"}, "timestamp": {"yesterday"}, "name": {"eyes"}}, "bad_timestamp"},
		{"reactions.add", url.Values{"channel": {"C0OPS"}, "name": {"eyes"}}, "invalid_arguments"},
		{"reactions.add", url.Values{"channel": {"C0LOBBY"}, "timestamp": {ts}, "name": {"eyes"}}, "channel_not_found"},
		{"reactions.remove", url.Values{"channel": {"C0OPS"}, "name": {"eyes"}}, "no_item_specified"},
		{"reactions.remove", url.Values{"file": {"F1"}, "name": {"eyes"}}, "file_not_found"},
		{"reactions.remove", url.Values{"channel": {"C0OPS"}, "timestamp": {ts}}, "invalid_arguments"},
		{"reactions.get", nil, "no_item_specified"},
		{"reactions.get", url.Values{"file_comment": {"Fc1"}}, "file_comment_not_found"},
		{"reactions.get", url.Values{"channel": {"C0OPS"}, "timestamp": {"1.000001"}}, "message_not_found"},
		{"reactions.list", url.Values{"user": {"U0EVE"}}, "user_not_found"},
	} {
		require.Equal(t, c.want, w.form(t, c.method, c.in)["error"], "%s %v", c.method, c.in)
	}
}
