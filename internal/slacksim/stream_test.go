package slacksim_test

import (
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

func TestAMessageIsStreamed(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	root, err := w.PostAs(slacksim.Post{User: "alice", Channel: "ops", Text: "go"})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		in   map[string]any
		want string
	}{
		"no user":      {map[string]any{"channel": "C0OPS", "thread_ts": root}, "missing_recipient_user_id"},
		"no team":      {map[string]any{"channel": "C0OPS", "thread_ts": root, "recipient_user_id": "U0ALICE"}, "missing_recipient_team_id"},
		"unknown user": {map[string]any{"channel": "C0OPS", "recipient_user_id": "U0NOBODY", "recipient_team_id": "T0COUNTER"}, "user_not_found"},
		"no channel":   {map[string]any{"channel": "C0NONE"}, "channel_not_found"},
		"no thread":    {map[string]any{"channel": "C0OPS", "thread_ts": "1.2", "recipient_user_id": "U0ALICE", "recipient_team_id": "T0COUNTER"}, "cannot_reply_to_message"},
	} {
		require.Equal(t, c.want, w.call(t, "chat.startStream", c.in)["error"], name)
	}
	channel, ts, err := w.api.StartStream("C0OPS", slack.MsgOptionTS(root), slack.MsgOptionMarkdownText("Looking"),
		slack.MsgOptionRecipientUserID("U0ALICE"), slack.MsgOptionRecipientTeamID("T0COUNTER"), slack.MsgOptionTaskDisplayMode("plan"))
	require.NoError(t, err)
	_, _, err = w.api.AppendStream(channel, ts, slack.MsgOptionMarkdownText(" at it"))
	require.NoError(t, err)
	task := slack.NewTaskUpdateChunk("t1", "Read the log")
	task.Status = "in_progress"
	_, _, err = w.api.AppendStream(channel, ts, slack.MsgOptionChunks(task, slack.NewPlanUpdateChunk("The plan")))
	require.NoError(t, err)
	task.Status, task.Output = "complete", "42 lines"
	_, _, err = w.api.AppendStream(channel, ts, slack.MsgOptionChunks(task))
	require.NoError(t, err)

	_, _, _, err = w.api.UpdateMessage(channel, ts, slack.MsgOptionText("x", false))
	require.EqualError(t, err, "streaming_state_conflict")
	require.Equal(t, "no_text", w.call(t, "chat.appendStream", map[string]any{"channel": channel, "ts": ts})["error"])
	require.Equal(t, "invalid_chunks", w.call(t, "chat.appendStream", map[string]any{"channel": channel, "ts": ts, "chunks": []any{map[string]any{"type": "x"}}})["error"])
	require.Equal(t, "message_not_owned_by_app", w.call(t, "chat.appendStream", map[string]any{"channel": channel, "ts": root, "markdown_text": "x"})["error"])
	require.Equal(t, "message_not_found", w.call(t, "chat.appendStream", map[string]any{"channel": channel, "ts": "1.2", "markdown_text": "x"})["error"])

	stopped := w.call(t, "chat.stopStream", map[string]any{
		"channel": channel, "ts": ts, "blocks": message(`[` + divider + `]`)["blocks"],
		"metadata": map[string]any{"event_type": "done", "event_payload": map[string]any{}},
	})
	require.Equal(t, true, stopped["ok"], "%v", stopped)
	var kinds []any
	for _, b := range dig(t, stopped, "message", "blocks").([]any) {
		kinds = append(kinds, dig(t, b, "type"))
	}
	require.Equal(t, []any{"markdown", "plan", "divider"}, kinds)
	require.Equal(t, "Looking at it", dig(t, stopped, "message", "blocks", 0, "text"))
	require.Equal(t, "The plan", dig(t, stopped, "message", "blocks", 1, "title"))
	require.Equal(t, "complete", dig(t, stopped, "message", "blocks", 1, "tasks", 0, "status"))
	require.Equal(t, "done", dig(t, stopped, "message", "metadata", "event_type"))
	for _, method := range []string{"chat.appendStream", "chat.stopStream"} {
		answer := w.call(t, method, map[string]any{"channel": channel, "ts": ts, "markdown_text": "x"})
		require.Equal(t, "message_not_in_streaming_state", answer["error"], method)
	}
	_, _, _, err = w.api.UpdateMessage(channel, ts, slack.MsgOptionText("edited", false))
	require.NoError(t, err, "what was streamed is a message like others")
}

func TestAPersonStopsAStream(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	dm, _, _, err := w.api.OpenConversation(&slack.OpenConversationParameters{Users: []string{"U0ALICE"}})
	require.NoError(t, err)
	_, ts, err := w.api.StartStream(dm.ID, slack.MsgOptionMarkdownText("one"))
	require.NoError(t, err, "a direct message says for whom it is")
	status, _ := w.sim(t, "stop", map[string]any{"user": "alice", "channel": dm.ID, "ts": ts})
	require.Equal(t, 200, status)
	_, _, err = w.api.AppendStream(dm.ID, ts, slack.MsgOptionMarkdownText("two"))
	require.EqualError(t, err, "stopped_by_user")
	require.ErrorIs(t, w.StopStream("alice", dm.ID, ts), slacksim.ErrNoSuch)
}

func TestAssistantThreads(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	root, err := w.PostAs(slacksim.Post{User: "alice", Channel: "ops", Text: "go"})
	require.NoError(t, err)
	shown := func() map[string]any {
		_, got := w.sim(t, "messages?user=alice&channel=C0OPS&thread_ts="+root, nil)
		a, _ := got["assistant"].(map[string]any)
		return a
	}
	require.Nil(t, shown())
	set := func(status string) error {
		return w.api.SetAssistantThreadsStatus(slack.AssistantThreadsSetStatusParameters{
			ChannelID: "C0OPS", ThreadTS: root, Status: status, LoadingMessages: []string{"one", "two"},
		})
	}
	require.NoError(t, set("is thinking"))
	require.Equal(t, map[string]any{"status": "is thinking", "loading_messages": []any{"one", "two"}}, shown())
	w.Advance(2*time.Minute + time.Second)
	require.Empty(t, shown(), "a status goes by itself")
	require.NoError(t, set("is thinking"))
	_, _, err = w.api.PostMessage("C0OPS", slack.MsgOptionTS(root), slack.MsgOptionText("done", false))
	require.NoError(t, err)
	require.Empty(t, shown(), "or with a message")
	require.NoError(t, set(""))

	require.NoError(t, w.api.SetAssistantThreadsTitle(slack.AssistantThreadsSetTitleParameters{ChannelID: "C0OPS", ThreadTS: root, Title: "The title"}))
	prompts := slack.AssistantThreadsSetSuggestedPromptsParameters{ChannelID: "C0OPS", ThreadTS: root}
	prompts.AddPrompt("Again", "do it again")
	require.NoError(t, w.api.SetAssistantThreadsSuggestedPrompts(prompts))
	require.Equal(t, "The title", shown()["title"])
	require.Equal(t, []any{map[string]any{"title": "Again", "message": "do it again"}}, shown()["suggested_prompts"])
	for range 4 {
		prompts.AddPrompt("More", "more")
	}
	require.EqualError(t, w.api.SetAssistantThreadsSuggestedPrompts(prompts), "invalid_arguments")
	loading := make([]string, 11)
	for i := range loading {
		loading[i] = "x"
	}
	answer := w.call(t, "assistant.threads.setStatus", map[string]any{"channel_id": "C0OPS", "thread_ts": root, "status": "x", "loading_messages": loading})
	require.Equal(t, []any{"[ERROR] no more than 10 items allowed [json-pointer:/loading_messages]"}, dig(t, answer, "response_metadata", "messages"))
	require.Equal(t, "invalid_thread_ts", w.call(t, "assistant.threads.setTitle", map[string]any{"channel_id": "C0OPS", "thread_ts": "1.2", "title": "x"})["error"])
	require.Equal(t, "channel_not_found", w.call(t, "assistant.threads.setTitle", map[string]any{"channel_id": "C0NONE", "thread_ts": root, "title": "x"})["error"])
}
