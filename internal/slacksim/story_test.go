package slacksim_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// The whole story with slack-go as the app's client and parser: a mention, a
// card, a click, a modal, a submission, an update, an ephemeral answer.
func TestStoryWithSlackGo(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})

	root, err := w.PostAs(slacksim.Post{User: "alice", Channel: "#ops", Text: "@countersign drop the users index"})
	require.NoError(t, err)
	w.idle(t)
	ev, err := slackevents.ParseEvent(json.RawMessage(w.app.last(t, "/events").body), slackevents.OptionNoVerifyToken())
	require.NoError(t, err)
	mention, ok := ev.InnerEvent.Data.(*slackevents.AppMentionEvent)
	require.True(t, ok)
	require.Equal(t, "U0ALICE", mention.User)
	require.Equal(t, "<@U0BOT> drop the users index", mention.Text)
	require.Equal(t, root, mention.TimeStamp)

	approve := slack.NewButtonBlockElement("approve", "b1:c1", slack.NewTextBlockObject("plain_text", "Approve", false, false))
	deny := slack.NewButtonBlockElement("deny", "b1:c1", slack.NewTextBlockObject("plain_text", "Deny…", false, false))
	channel, ts, err := w.api.PostMessageContext(t.Context(), mention.Channel, slack.MsgOptionTS(root),
		slack.MsgOptionText("Drop the index?", false), slack.MsgOptionBlocks(
			slack.NewHeaderBlock(slack.NewTextBlockObject("plain_text", "Drop the index?", false, false)),
			slack.NewActionBlock("decide", approve, deny)))
	require.NoError(t, err)
	require.Equal(t, "C0OPS", channel)

	w.answers(func(_ http.ResponseWriter, d delivered) {
		if d.path != "/interactivity" {
			return
		}
		var cb slack.InteractionCallback
		if json.Unmarshal([]byte(formValue(d.body, "payload")), &cb) != nil || cb.Type != slack.InteractionTypeBlockActions {
			return
		}
		_, _ = w.api.OpenView(cb.TriggerID, slack.ModalViewRequest{
			Type: slack.VTModal, PrivateMetadata: cb.ActionCallback.BlockActions[0].Value,
			Title:  slack.NewTextBlockObject("plain_text", "Deny", false, false),
			Submit: slack.NewTextBlockObject("plain_text", "Deny", false, false),
			Blocks: slack.Blocks{BlockSet: []slack.Block{slack.NewInputBlock("reason",
				slack.NewTextBlockObject("plain_text", "Reason", false, false), nil,
				slack.NewPlainTextInputBlockElement(nil, "text"))}},
		})
	})
	out, err := w.Click(slacksim.Click{User: "bob", Channel: "C0OPS", TS: ts, ActionID: "deny"})
	require.NoError(t, err)
	require.Equal(t, slacksim.ClickOutcome{Status: 200}, out)

	views := w.Views("bob")
	require.Len(t, views, 1)
	require.Equal(t, "b1:c1", views[0].PrivateMetadata)
	submitted, err := w.SubmitView(slacksim.Submit{
		User: "bob", ViewID: views[0].ID,
		Values: map[string]map[string]any{"reason": {"text": "in use"}},
	})
	require.NoError(t, err)
	require.True(t, submitted.Closed)
	var cb slack.InteractionCallback
	require.NoError(t, json.Unmarshal([]byte(formValue(w.app.last(t, "/interactivity").body, "payload")), &cb))
	require.Equal(t, slack.InteractionTypeViewSubmission, cb.Type)
	require.Equal(t, "in use", cb.View.State.Values["reason"]["text"].Value)

	_, _, _, err = w.api.UpdateMessageContext(t.Context(), "C0OPS", ts, slack.MsgOptionText("Denied by Bob", false),
		slack.MsgOptionBlocks(slack.NewSectionBlock(slack.NewTextBlockObject("mrkdwn", "Denied by <@U0BOB>: in use", false, false), nil, nil)))
	require.NoError(t, err)
	_, err = w.api.PostEphemeralContext(t.Context(), "C0OPS", "U0BOB", slack.MsgOptionText("Recorded.", false))
	require.NoError(t, err)

	bob, err := w.Messages("bob", "C0OPS", "")
	require.NoError(t, err)
	require.Len(t, bob, 3)
	require.Equal(t, "Denied by <@U0BOB>: in use", bob[1].Shown())
	require.Empty(t, bob[1].Actions())
	require.True(t, bob[2].Ephemeral)
	alice, err := w.Messages("alice", "C0OPS", "")
	require.NoError(t, err)
	require.Len(t, alice, 2, "an ephemeral message is for one person")
	require.Equal(t, 1, alice[0].ReplyCount)
}

// The same through the control API only, as a browser or a script does it.
func TestStoryThroughTheControlAPI(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{Suggestions: []string{"@countersign hello"}})
	_, posted := w.sim(t, "post", map[string]any{"user": "alice", "channel": "ops", "text": "<@U0BOT> go"})
	require.NotEmpty(t, posted["ts"])
	w.idle(t)
	ts := w.post(t, approveButtons)

	_, clicked := w.sim(t, "click", map[string]any{"user": "bob", "channel": "C0OPS", "ts": ts, "action_id": "approve"})
	require.EqualValues(t, 200, clicked["status"])
	require.NotContains(t, clicked, "visible_error")

	trigger := w.app.last(t, "/interactivity").payload(t)["trigger_id"]
	opened := w.call(t, "views.open", map[string]any{"trigger_id": trigger, "view": json.RawMessage(reasonModal)})
	require.Equal(t, true, opened["ok"], "%v", opened)
	_, views := w.sim(t, "views?user=bob", nil)
	id := dig(t, views, "views", 0, "id")
	_, refused := w.sim(t, "submit", map[string]any{"user": "bob", "view_id": id, "values": map[string]any{"reason": map[string]any{"text": "no"}}})
	require.Contains(t, dig(t, refused, "errors", "reason"), "at least 3")
	_, done := w.sim(t, "submit", map[string]any{"user": "bob", "view_id": id, "values": map[string]any{"reason": map[string]any{"text": "nope"}}})
	require.Equal(t, true, done["closed"])

	_, seen := w.sim(t, "messages?user=bob&channel=C0OPS", nil)
	require.Len(t, seen["messages"], 2)
	_, state := w.sim(t, "state", nil)
	require.Equal(t, []any{"@countersign hello"}, state["suggestions"])
	_, log := w.sim(t, "log", nil)
	require.NotEmpty(t, log["log"])
	status, missing := w.sim(t, "post", map[string]any{"user": "nobody", "channel": "ops", "text": "x"})
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, missing["error"], "nobody")
}
