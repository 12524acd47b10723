package slacksim_test

import (
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

func in(d time.Duration) string { return strconv.FormatInt(still().Add(d).Unix(), 10) }

func TestScheduledMessagesArePostedInTime(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{Now: still})
	root := w.post(t, `[`+divider+`]`)
	channel, id, err := w.api.ScheduleMessage("C0OPS", in(time.Hour), slack.MsgOptionText("later", false), slack.MsgOptionTS(root))
	require.NoError(t, err)
	require.Equal(t, "C0OPS", channel)
	require.Regexp(t, `^Q[A-Z0-9]{8,}$`, id)
	_, _, err = w.api.ScheduleMessage("U0BOB", in(2*time.Hour), slack.MsgOptionText("to Bob", false))
	require.NoError(t, err)
	list, _, err := w.api.GetScheduledMessages(&slack.GetScheduledMessagesParameters{Channel: "C0OPS"})
	require.NoError(t, err)
	require.Equal(t, []slack.ScheduledMessage{
		{ID: id, Channel: "C0OPS", PostAt: int(still().Add(time.Hour).Unix()), DateCreated: int(still().Unix()), Text: "later"},
	}, list)

	w.Advance(time.Hour - time.Second)
	seen, err := w.Messages("bob", "ops", root)
	require.NoError(t, err)
	require.Len(t, seen, 1)
	w.Advance(time.Second)
	seen, err = w.Messages("bob", "ops", root)
	require.NoError(t, err)
	require.Equal(t, []string{"later", root}, []string{seen[1].Text, seen[1].ThreadTS})
	list, _, err = w.api.GetScheduledMessages(&slack.GetScheduledMessagesParameters{})
	require.NoError(t, err)
	require.Len(t, list, 1, "the other one still waits")
	require.Equal(t, "D0BOB", list[0].Channel)
}

func TestScheduledMessagesAreDeletedUntilTheLastMinute(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{Now: still})
	schedule := func(d time.Duration) string {
		_, id, err := w.api.ScheduleMessage("C0OPS", in(d), slack.MsgOptionText("x", false))
		require.NoError(t, err)
		return id
	}
	remove := func(channel, id string) error {
		_, err := w.api.DeleteScheduledMessage(&slack.DeleteScheduledMessageParameters{Channel: channel, ScheduledMessageID: id})
		return err
	}
	soon, later := schedule(time.Minute), schedule(time.Minute+time.Second)
	require.EqualError(t, remove("C0OPS", soon), "invalid_scheduled_message_id", "it is posted within 60 seconds")
	require.EqualError(t, remove("C0GENERAL", later), "invalid_scheduled_message_id", "of another channel")
	require.EqualError(t, remove("C0NONE", later), "channel_not_found")
	require.NoError(t, remove("C0OPS", later))
	require.EqualError(t, remove("C0OPS", later), "invalid_scheduled_message_id")
	w.Advance(time.Hour)
	seen, err := w.Messages("bob", "ops", "")
	require.NoError(t, err)
	require.Len(t, seen, 1)
	require.EqualError(t, remove("C0OPS", soon), "invalid_scheduled_message_id", "it was posted")
}

func TestSchedulingIsRefusedAsSlackDoes(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{Now: still})
	for _, c := range []struct{ channel, at, text, want string }{
		{"C0OPS", in(0), "x", "time_in_past"},
		{"C0OPS", in(120*24*time.Hour + time.Second), "x", "time_too_far"},
		{"C0OPS", "tomorrow", "x", "invalid_time"},
		{"C0OPS", in(time.Hour), "", "no_text"},
		{"C0NONE", in(time.Hour), "x", "channel_not_found"},
	} {
		answer := w.form(t, "chat.scheduleMessage", url.Values{"channel": {c.channel}, "post_at": {c.at}, "text": {c.text}})
		require.Equal(t, c.want, answer["error"], c.want)
	}
	require.Equal(t, "invalid_channel", w.form(t, "chat.scheduledMessages.list", url.Values{"channel": {"C0NONE"}})["error"])
	require.Equal(t, "invalid_arguments", w.call(t, "chat.scheduleMessage", map[string]any{"channel": "C0OPS", "text": "x"})["error"])

	// Thirty within five minutes, and no more.
	for i := range 30 {
		_, _, err := w.api.ScheduleMessage("C0OPS", in(time.Hour+time.Duration(i)*time.Second), slack.MsgOptionText("x", false))
		require.NoError(t, err)
	}
	_, _, err := w.api.ScheduleMessage("C0OPS", in(time.Hour+4*time.Minute), slack.MsgOptionText("x", false))
	require.EqualError(t, err, "restricted_too_many")
	_, _, err = w.api.ScheduleMessage("C0OPS", in(time.Hour+5*time.Minute), slack.MsgOptionText("x", false))
	require.NoError(t, err)
	_, _, err = w.api.ScheduleMessage("C0GENERAL", in(time.Hour), slack.MsgOptionText("x", false))
	require.NoError(t, err, "another channel")
}

// Slack's page of the method says so: what carries metadata is scheduled, and
// never posted.
func TestScheduledMessagesWithMetadataAreNotPosted(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{Now: still})
	meta := slack.SlackMetadata{EventType: "x", EventPayload: map[string]any{"a": 1}}
	_, _, err := w.api.ScheduleMessage("C0OPS", in(time.Minute), slack.MsgOptionText("x", false), slack.MsgOptionMetadata(meta))
	require.NoError(t, err)
	w.Advance(time.Hour)
	seen, err := w.Messages("bob", "ops", "")
	require.NoError(t, err)
	require.Empty(t, seen)
}
