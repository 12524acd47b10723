package slacksim_test

import (
	"encoding/json"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

func TestMessagesAreEchoedWithAssignedIDs(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	answer := w.call(t, "chat.postMessage", message(inActions(btn)))
	m := answer["message"].(map[string]any)
	require.Equal(t, answer["ts"], m["ts"])
	require.Equal(t, "U0BOT", m["user"])
	require.Equal(t, "B0COUNTERSIGN", m["bot_id"])
	require.Equal(t, "A0COUNTERSIGN", m["app_id"])
	require.NotEmpty(t, dig(t, m, "blocks", 0, "block_id"))
	require.NotEmpty(t, dig(t, m, "blocks", 0, "elements", 0, "action_id"))
}

// An app that compares what comes back with what it sent finds the defaults.
func TestBlocksAreEchoedWithTheirDefaults(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	answer := w.call(t, "chat.postMessage", message(`[{"type":"section","text":{"type":"mrkdwn","text":"x"},"fields":[{"type":"mrkdwn","text":"x","verbatim":true}]},`+
		`{"type":"input","label":`+plainX+`,"hint":{"type":"plain_text","text":"x","emoji":false},"optional":true,"element":{"type":"plain_text_input"}}]`))
	blocks := dig(t, answer, "message", "blocks").([]any)
	section, input := blocks[0].(map[string]any), blocks[1].(map[string]any)
	require.Equal(t, false, dig(t, section, "text", "verbatim"))
	require.Equal(t, true, dig(t, section, "fields", 0, "verbatim"))
	require.Equal(t, true, dig(t, input, "label", "emoji"))
	require.Equal(t, false, dig(t, input, "hint", "emoji"))
	require.Equal(t, []any{true, false}, []any{input["optional"], input["dispatch_action"]})
	w.open(t, reasonModal)
	require.Equal(t, true, dig(t, decode(t, []byte(w.Log()[len(w.Log())-1].Response)), "view", "title", "emoji"))
}

func TestPostMessageErrors(t *testing.T) {
	channels := append(slacksim.DefaultChannels(),
		slacksim.Channel{ID: "C0OLD", Name: "old", Members: []string{"U0BOT"}, Archived: true},
		slacksim.Channel{ID: "C0OTHER", Name: "other", Members: []string{"U0BOB"}},
		slacksim.Channel{ID: "C0SECRET", Name: "secret", Members: []string{"U0BOB"}, Private: true})
	w := newWorkspace(t, slacksim.Config{Channels: channels})
	for want, in := range map[string]url.Values{
		"channel_not_found":       {"channel": {"C0NOPE"}, "text": {"x"}},
		"is_archived":             {"channel": {"C0OLD"}, "text": {"x"}},
		"not_in_channel":          {"channel": {"C0OTHER"}, "text": {"x"}},
		"no_text":                 {"channel": {"C0OPS"}},
		"invalid_thread_ts":       {"channel": {"C0OPS"}, "text": {"x"}, "thread_ts": {"0"}},
		"cannot_reply_to_message": {"channel": {"C0OPS"}, "text": {"x"}, "thread_ts": {"1.000001"}},
		"markdown_text_conflict":  {"channel": {"C0OPS"}, "text": {"x"}, "markdown_text": {"x"}},
		"invalid_metadata_format": {"channel": {"C0OPS"}, "text": {"x"}, "metadata": {"x"}},
		"invalid_metadata_schema": {"channel": {"C0OPS"}, "text": {"x"}, "metadata": {`{"event_type":"x"}`}},
		"metadata_too_large": {"channel": {"C0OPS"}, "text": {"x"}, "metadata": {
			`{"event_type":"x","event_payload":{"a":"` + strings.Repeat("x", 8000) + `"}}`,
		}},
		"too_many_attachments": {"channel": {"C0OPS"}, "text": {"x"}, "attachments": {expand(`[⟦101|{}⟧]`, 0)}},
	} {
		require.Equal(t, want, w.form(t, "chat.postMessage", in)["error"])
	}
	require.Equal(t, "channel_not_found", w.form(t, "chat.postMessage", url.Values{"channel": {"C0SECRET"}, "text": {"x"}})["error"])
	require.Equal(t, "C0OPS", w.form(t, "chat.postMessage", url.Values{"channel": {"#ops"}, "text": {"x"}})["channel"])
	for _, in := range []url.Values{{"text": {" \n"}}, {"text": {""}, "attachments": {`[{}]`}}, {"attachments": {`[{"text":"","color":"good","blocks":[]}]`}}} {
		in.Set("channel", "C0OPS")
		require.Equal(t, "no_text", w.form(t, "chat.postMessage", in)["error"], in)
	}
	refused := w.form(t, "chat.postMessage", url.Values{"channel": {"C0OPS"}, "text": {"x"}, "attachments": {`[{"blocks":[{"type":"header"}]}]`}})
	require.Equal(t, "invalid_attachments", refused["error"])
	require.Equal(t, []any{"missing required field: text [json-pointer:/attachments/0/blocks/0]"}, refused["errors"])
}

func TestAnAttachmentHasBlocksOrLegacyFields(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	_, ts, err := w.api.PostMessage("C0OPS", slack.MsgOptionAttachments(slack.Attachment{Text: "x", Color: "good"}))
	require.NoError(t, err, "slack-go sends blocks that are null")
	_, _, _, err = w.api.UpdateMessage("C0OPS", ts, slack.MsgOptionAttachments(slack.Attachment{Title: "y"}))
	require.NoError(t, err)
	for _, attachment := range []string{
		`{"text":"x","fields":[],"blocks":[]}`, `{"text":"x","blocks":null}`,
		`{"color":"good","fallback":"x","blocks":[` + divider + `]}`,
	} {
		answer := w.form(t, "chat.postMessage", url.Values{"channel": {"C0OPS"}, "attachments": {"[" + attachment + "]"}})
		require.Equal(t, true, answer["ok"], attachment)
	}
	for _, field := range []string{`"text":""`, `"text":null`, `"fields":[]`, `"mrkdwn_in":[]`, `"actions":[]`, `"is_app_unfurl":false`, `"indent":false`} {
		answer := w.form(t, "chat.postMessage", url.Values{
			"channel": {"C0OPS"}, "text": {"x"}, "attachments": {`[{` + field + `,"blocks":[` + divider + `]}]`},
		})
		require.Equal(t, map[string]any{
			"ok": false, "error": "invalid_attachments", "response_metadata": map[string]any{"messages": []any{"[ERROR] invalid_keys"}},
		}, answer, field)
	}
}

// Slack refuses the name of a channel wherever nothing new is posted:
// https://github.com/slackapi/python-slack-sdk/issues/696.
func TestOnlyNewMessagesTakeTheNameOfAChannel(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	ts := w.form(t, "chat.postMessage", url.Values{"channel": {"C0OPS"}, "text": {"x"}})["ts"].(string)
	in := url.Values{
		"text": {"y"}, "user": {"U0BOB"}, "ts": {ts}, "message_ts": {ts}, "timestamp": {ts}, "name": {"eyes"}, "users": {"U0GUEST"},
		"scheduled_message_id": {"Q1"}, "post_at": {strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)},
		"recipient_user_id": {"U0BOB"}, "recipient_team_id": {"T0COUNTER"}, "thread_ts": {ts},
	}
	for name, want := range map[string]any{
		"chat.postMessage": nil, "chat.postEphemeral": nil, "chat.scheduleMessage": nil,

		"chat.update": "channel_not_found", "chat.delete": "channel_not_found", "chat.getPermalink": "channel_not_found",
		"chat.deleteScheduledMessage": "channel_not_found", "chat.scheduledMessages.list": "invalid_channel", "chat.startStream": "channel_not_found",
		"conversations.history": "channel_not_found", "conversations.info": "channel_not_found", "conversations.join": "channel_not_found",
		"conversations.invite": "channel_not_found", "reactions.add": "channel_not_found", "reactions.get": "channel_not_found",
	} {
		in.Set("channel", "#ops")
		require.Equal(t, want, w.form(t, name, in)["error"], name)
	}
	in.Set("channel", "C0OPS")
	require.Equal(t, true, w.form(t, "chat.update", in)["ok"])
}

func TestAPublicChannelNeedsNoMembershipWithItsScope(t *testing.T) {
	channels := append(slacksim.DefaultChannels(),
		slacksim.Channel{ID: "C0OTHER", Name: "other", Members: []string{"U0BOB"}},
		slacksim.Channel{ID: "C0SECRET", Name: "secret", Members: []string{"U0BOB"}, Private: true})
	w := newWorkspace(t, slacksim.Config{Channels: channels, Scopes: []string{"chat:write", "chat:write.public"}})
	for _, method := range []string{"chat.update", "chat.delete"} {
		posted := w.form(t, "chat.postMessage", url.Values{"channel": {"C0OTHER"}, "text": {"x"}})
		require.Equal(t, true, posted["ok"], posted)
		again := w.form(t, method, url.Values{"channel": {"C0OTHER"}, "ts": {posted["ts"].(string)}, "text": {"y"}})
		require.Equal(t, true, again["ok"], again)
	}
	require.Equal(t, "not_in_channel", w.form(t, "chat.postEphemeral", url.Values{"channel": {"C0OTHER"}, "user": {"U0BOB"}, "text": {"x"}})["error"])
	require.Equal(t, "channel_not_found", w.form(t, "chat.postMessage", url.Values{"channel": {"C0SECRET"}, "text": {"x"}})["error"])
}

func TestLongTextIsCutWhenPosted(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	answer := w.call(t, "chat.postMessage", map[string]any{"channel": "C0OPS", "text": strings.Repeat("ä", 40_001)})
	require.Equal(t, "message_truncated", answer["warning"])
	require.Len(t, []rune(dig(t, answer, "message", "text").(string)), 40_000)
	ephemeral := map[string]any{"channel": "C0OPS", "user": "U0BOB", "text": strings.Repeat("ä", 40_001)}
	require.Equal(t, "msg_too_long", w.call(t, "chat.postEphemeral", ephemeral)["error"], "ephemeral text is refused")
}

func TestABroadcastReplyIsSaidToBeOne(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{Events: []string{"message.channels"}})
	root := w.post(t, `[`+divider+`]`)
	answer := w.call(t, "chat.postMessage", map[string]any{"channel": "C0OPS", "text": "x", "thread_ts": root, "reply_broadcast": true})
	require.Equal(t, "thread_broadcast", dig(t, answer, "message", "subtype"))
	require.Equal(t, root, dig(t, answer, "message", "root", "ts"))
	history := w.form(t, "conversations.history", url.Values{"channel": {"C0OPS"}})
	require.Equal(t, "thread_broadcast", dig(t, history, "messages", 0, "subtype"))
	for _, field := range []string{"pin_count", "channel_actions_ts", "channel_actions_count"} { // which Slack's schema requires
		require.Contains(t, history, field)
	}
	answer = w.call(t, "chat.postMessage", map[string]any{"channel": "C0OPS", "text": "x", "reply_broadcast": true})
	require.NotContains(t, answer["message"], "subtype", "it is no reply")
}

func TestAReplyIsBroadcastLater(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	root := w.post(t, `[`+divider+`]`)
	reply := w.call(t, "chat.postMessage", map[string]any{"channel": "C0OPS", "text": "x", "thread_ts": root})["ts"].(string)
	broadcast := func(ts, text string) map[string]any {
		in := map[string]any{"channel": "C0OPS", "ts": ts, "reply_broadcast": 1} // as many apps say true
		if text != "" {
			in["text"] = text
		}
		return w.call(t, "chat.update", in)
	}
	require.Equal(t, "no_dual_broadcast_content_update", broadcast(reply, "y")["error"])
	require.Equal(t, "cant_broadcast_message", broadcast(root, "")["error"])
	answer := broadcast(reply, "")
	require.Equal(t, "thread_broadcast", dig(t, answer, "message", "subtype"))
	require.NotContains(t, answer["message"], "edited", "what it says is the same")
	history := w.form(t, "conversations.history", url.Values{"channel": {"C0OPS"}})
	require.Equal(t, reply, dig(t, history, "messages", 0, "ts"))
	answer = w.call(t, "chat.update", map[string]any{"channel": "C0OPS", "ts": reply, "text": "y"})
	require.Equal(t, "thread_broadcast", dig(t, answer, "message", "subtype"), "it stays in the channel")
}

func TestUpdateRefusesWhatSlackRefuses(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	ts := w.post(t, approveButtons)
	theirs, err := w.PostAs(slacksim.Post{User: "alice", Channel: "ops", Text: "mine"})
	require.NoError(t, err)
	update := func(ts, text string) any {
		return w.call(t, "chat.update", map[string]any{"channel": "C0OPS", "ts": ts, "text": text})["error"]
	}
	require.Nil(t, update(ts, strings.Repeat("x", 4000)))
	require.Equal(t, "msg_too_long", update(ts, strings.Repeat("x", 4001)))
	require.Equal(t, "message_not_found", update("1.000001", "x"))
	require.Equal(t, "cant_update_message", update(theirs, "x"))
	ephemeral := w.call(t, "chat.postEphemeral", map[string]any{"channel": "C0OPS", "user": "U0BOB", "text": "x"})
	require.Equal(t, "message_not_found", update(ephemeral["message_ts"].(string), "x"))
	require.Equal(t, "channel_not_found", w.call(t, "chat.update", map[string]any{"channel": "U0BOB", "ts": ts, "text": "x"})["error"])
	require.Equal(t, "no_text", w.call(t, "chat.update", map[string]any{"channel": "C0OPS", "ts": ts})["error"])
}

func TestUpdateKeepsMetadataUntilItIsEmptied(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	meta := slack.SlackMetadata{EventType: "batch", EventPayload: map[string]any{"id": "b1"}}
	_, ts, err := w.api.PostMessageContext(t.Context(), "C0OPS", slack.MsgOptionText("x", false), slack.MsgOptionMetadata(meta))
	require.NoError(t, err)
	update := func(extra map[string]any) map[string]any {
		in := map[string]any{"channel": "C0OPS", "ts": ts, "text": "y"}
		maps.Copy(in, extra)
		return w.call(t, "chat.update", in)
	}
	require.Equal(t, "b1", dig(t, update(nil), "message", "metadata", "event_payload", "id"))
	history := func(all string) any {
		answer := w.form(t, "conversations.history", url.Values{"channel": {"C0OPS"}, "include_all_metadata": {all}})
		return dig(t, answer, "messages", 0, "metadata")
	}
	require.Equal(t, map[string]any{"event_type": "batch"}, history("false"))
	require.Equal(t, map[string]any{"event_type": "batch", "event_payload": map[string]any{"id": "b1"}}, history("true"))
	require.NotContains(t, update(map[string]any{"metadata": map[string]any{}})["message"], "metadata")
}

// The reference of chat.update: without blocks, the previous ones stay only if
// there is no text either.
func TestATextAloneTakesThePlaceOfBlocks(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	ts := w.post(t, approveButtons)
	answer := w.call(t, "chat.update", map[string]any{"channel": "C0OPS", "ts": ts, "attachments": json.RawMessage(`[{"text":"x"}]`)})
	require.Len(t, dig(t, answer, "message", "blocks"), 3)
	answer = w.call(t, "chat.update", map[string]any{"channel": "C0OPS", "ts": ts, "text": "y"})
	require.NotContains(t, answer["message"], "blocks")
	require.Len(t, dig(t, answer, "message", "attachments"), 1)
	require.Equal(t, ts, answer["ts"])
	require.NotContains(t, answer["message"], "ts", "it is beside the message only")
	answer = w.call(t, "chat.update", map[string]any{"channel": "C0OPS", "ts": ts, "text": "y", "blocks": []any{}})
	require.Empty(t, dig(t, answer, "message", "blocks"))
	require.Equal(t, "U0BOT", dig(t, answer, "message", "edited", "user"))
}

func TestTimestampsAreUniqueAndGrow(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	w := newWorkspace(t, slacksim.Config{Now: func() time.Time { return now }})
	last := ""
	for range 5 {
		ts := w.post(t, `[`+divider+`]`)
		require.Regexp(t, `^1700000000\.\d{6}$`, ts)
		require.Greater(t, ts, last)
		last = ts
	}
}

func TestThreadsCountTheirReplies(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	root, err := w.PostAs(slacksim.Post{User: "alice", Channel: "ops", Text: "root"})
	require.NoError(t, err)
	reply := w.call(t, "chat.postMessage", map[string]any{"channel": "C0OPS", "text": "one", "thread_ts": root})
	require.Equal(t, "U0ALICE", dig(t, reply, "message", "parent_user_id"))
	nested := w.call(t, "chat.postMessage", map[string]any{"channel": "C0OPS", "text": "two", "thread_ts": reply["ts"]})
	require.Equal(t, root, dig(t, nested, "message", "thread_ts"), "a reply to a reply is in the same thread")

	answer := w.form(t, "conversations.replies", url.Values{"channel": {"C0OPS"}, "ts": {root}})
	require.Len(t, answer["messages"], 3)
	require.EqualValues(t, 2, dig(t, answer, "messages", 0, "reply_count"))
	require.Equal(t, nested["ts"], dig(t, answer, "messages", 0, "latest_reply"))
	answer = w.form(t, "conversations.replies", url.Values{"channel": {"C0OPS"}, "ts": {reply["ts"].(string)}})
	require.Len(t, answer["messages"], 1, "a reply has no replies")
	require.Equal(t, "one", dig(t, answer, "messages", 0, "text"))
	history := w.form(t, "conversations.history", url.Values{"channel": {"C0OPS"}})
	require.Len(t, history["messages"], 1, "replies are not in the channel")
	thread, err := w.Messages("bob", "ops", root)
	require.NoError(t, err)
	require.Len(t, thread, 3)
}

func TestHistoryIsPaged(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	for range 3 {
		w.post(t, `[`+divider+`]`)
	}
	first := w.form(t, "conversations.history", url.Values{"channel": {"C0OPS"}, "limit": {"2"}})
	require.Len(t, first["messages"], 2)
	require.Equal(t, true, first["has_more"])
	cursor := dig(t, first, "response_metadata", "next_cursor").(string)
	second := w.form(t, "conversations.history", url.Values{"channel": {"C0OPS"}, "limit": {"2"}, "cursor": {cursor}})
	require.Len(t, second["messages"], 1)
	require.Equal(t, "invalid_cursor", w.form(t, "conversations.history", url.Values{"channel": {"C0OPS"}, "cursor": {"x"}})["error"])
	oldest := dig(t, first, "messages", 1, "ts").(string)
	newer := w.form(t, "conversations.history", url.Values{"channel": {"C0OPS"}, "oldest": {oldest}})
	require.Len(t, newer["messages"], 1)
	newer = w.form(t, "conversations.history", url.Values{"channel": {"C0OPS"}, "oldest": {oldest}, "inclusive": {"true"}})
	require.Len(t, newer["messages"], 2)

	// The reference's ways to find a single message.
	first = w.form(t, "conversations.history", url.Values{"channel": {"C0OPS"}})
	eldest := dig(t, first, "messages", 2, "ts").(string)
	for _, bound := range []string{"oldest", "latest"} {
		single := w.form(t, "conversations.history", url.Values{"channel": {"C0OPS"}, bound: {eldest}, "inclusive": {"true"}, "limit": {"1"}})
		require.Equal(t, eldest, dig(t, single, "messages", 0, "ts"), bound)
		require.Equal(t, bound == "latest", single["latest"] == eldest)
	}
	pages := w.form(t, "conversations.history", url.Values{"channel": {"C0OPS"}, "oldest": {eldest}, "inclusive": {"true"}, "limit": {"2"}})
	require.Equal(t, []any{oldest, eldest}, []any{dig(t, pages, "messages", 0, "ts"), dig(t, pages, "messages", 1, "ts")}, "a page has its newest first")
}

func TestDelete(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	ts := w.post(t, `[`+divider+`]`)
	_, _, err := w.api.DeleteMessageContext(t.Context(), "C0OPS", ts)
	require.NoError(t, err)
	_, _, err = w.api.DeleteMessageContext(t.Context(), "C0OPS", ts)
	require.EqualError(t, err, "message_not_found")
	theirs, err := w.PostAs(slacksim.Post{User: "alice", Channel: "ops", Text: "mine"})
	require.NoError(t, err)
	_, _, err = w.api.DeleteMessageContext(t.Context(), "C0OPS", theirs)
	require.EqualError(t, err, "cant_delete_message")
}

func TestEphemeralsAreForOnePersonInTheChannel(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	_, err := w.api.PostEphemeralContext(t.Context(), "C0OPS", "U0GUEST", slack.MsgOptionText("x", false))
	require.EqualError(t, err, "user_not_in_channel")
	answer := w.call(t, "chat.postEphemeral", map[string]any{"channel": "C0OPS", "user": "U0BOB", "blocks": json.RawMessage(approveButtons), "text": "x"})
	ts := answer["message_ts"].(string)
	_, err = w.Click(click(ts, "approve"))
	require.NoError(t, err)
	p := w.app.last(t, "/interactivity").payload(t)
	require.Equal(t, true, dig(t, p, "container", "is_ephemeral"))
	require.NotContains(t, p, "message")
	other := click(ts, "approve")
	other.User = "alice"
	_, err = w.Click(other)
	require.ErrorIs(t, err, slacksim.ErrNoSuch)
	for _, method := range []string{"chat.update", "chat.delete"} {
		answer := w.call(t, method, map[string]any{"channel": "C0OPS", "ts": ts, "text": "y"})
		require.Equal(t, "message_not_found", answer["error"], method)
	}
	history := w.form(t, "conversations.history", url.Values{"channel": {"C0OPS"}})
	require.Empty(t, history["messages"])
	require.NoError(t, w.Reload("bob"))
	seen, err := w.Messages("bob", "ops", "")
	require.NoError(t, err)
	require.Empty(t, seen, "lost when the client starts again")
}

func TestAnEphemeralMessageDoesNotBeginAThread(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	root := w.post(t, `[`+divider+`]`)
	whisper := map[string]any{"channel": "C0OPS", "user": "U0BOB", "text": "x", "thread_ts": root}
	require.NotEmpty(t, w.call(t, "chat.postEphemeral", whisper)["message_ts"])
	seen, err := w.Messages("bob", "ops", root)
	require.NoError(t, err)
	require.Len(t, seen, 1, "Slack takes it and shows it nowhere")
	require.Equal(t, true, w.call(t, "chat.postMessage", map[string]any{"channel": "C0OPS", "text": "x", "thread_ts": root})["ok"])
	require.NotEmpty(t, w.call(t, "chat.postEphemeral", whisper)["message_ts"])
	seen, err = w.Messages("bob", "ops", root)
	require.NoError(t, err)
	require.Len(t, seen, 3)
}

func TestPermalinkAndReactions(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	ts := w.post(t, `[`+divider+`]`)
	link, err := w.api.GetPermalinkContext(t.Context(), &slack.PermalinkParameters{Channel: "C0OPS", Ts: ts})
	require.NoError(t, err)
	require.Equal(t, "https://acme.slack.com/archives/C0OPS/p"+strings.ReplaceAll(ts, ".", ""), link)
	ref := slack.NewRefToMessage("C0OPS", ts)
	require.NoError(t, w.api.AddReactionContext(t.Context(), "eyes", ref))
	require.EqualError(t, w.api.AddReactionContext(t.Context(), "eyes", ref), "already_reacted")
}
