package slacksim_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

func TestMessageShortcutCarriesTheMessage(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	ts, err := w.PostAs(slacksim.Post{User: "alice", Channel: "ops", Text: "look at this"})
	require.NoError(t, err)
	out, err := w.Shortcut(slacksim.Shortcut{User: "bob", CallbackID: "explain", Channel: "ops", TS: ts})
	require.NoError(t, err)
	require.Equal(t, slacksim.ClickOutcome{Status: 200}, out)

	var cb slack.InteractionCallback
	require.NoError(t, json.Unmarshal([]byte(formValue(w.app.last(t, "/interactivity").body, "payload")), &cb))
	require.Equal(t, slack.InteractionTypeMessageAction, cb.Type)
	require.Equal(t, []string{"explain", ts, "look at this", "C0OPS", "U0BOB"},
		[]string{cb.CallbackID, cb.MessageTs, cb.Message.Text, cb.Channel.ID, cb.User.ID})
	require.NotEmpty(t, cb.ResponseURL)
	_, err = w.api.OpenView(cb.TriggerID, slack.ModalViewRequest{
		Type: slack.VTModal, Title: slack.NewTextBlockObject("plain_text", "Explain", false, false),
		Blocks: slack.Blocks{BlockSet: []slack.Block{slack.NewDividerBlock()}},
	})
	require.NoError(t, err)
	require.Len(t, w.Views("bob"), 1)
	require.NoError(t, slack.PostWebhook(cb.ResponseURL, &slack.WebhookMessage{Text: "for you"}))
	seen, err := w.Messages("bob", "ops", "")
	require.NoError(t, err)
	require.True(t, seen[1].Ephemeral)
}

func TestGlobalShortcutHasNoChannel(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	status, _ := w.sim(t, "shortcut", map[string]any{"user": "bob", "callback_id": "inbox"})
	require.Equal(t, http.StatusOK, status)
	payload := w.app.last(t, "/interactivity").payload(t)
	require.Equal(t, "shortcut", payload["type"])
	require.NotEmpty(t, payload["trigger_id"])
	for _, name := range []string{"channel", "message", "response_url"} {
		require.NotContains(t, payload, name)
	}
	_, err := w.Shortcut(slacksim.Shortcut{User: "bob"})
	require.ErrorIs(t, err, slacksim.ErrBadInput)
	_, err = w.Shortcut(slacksim.Shortcut{User: "gone", CallbackID: "inbox"})
	require.ErrorIs(t, err, slacksim.ErrForbidden)
}

const externalSelect = `[{"type":"actions","block_id":"pick","elements":[
	{"type":"external_select","action_id":"service","min_query_length":2}]}]`

// The app is asked for the options of an external menu, and only what it
// answered can be chosen.
func TestOptionsAreLoadedFromTheApp(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	ts := w.post(t, externalSelect)
	query := slacksim.Query{User: "bob", Channel: "ops", TS: ts, ActionID: "service", Value: "pay"}
	choice := slacksim.Click{User: "bob", Channel: "ops", TS: ts, ActionID: "service", Value: "payments"}
	_, err := w.Click(choice)
	require.ErrorIs(t, err, slacksim.ErrBadInput, "nothing was loaded yet")

	w.answersJSON(map[string]any{"options": []any{
		map[string]any{"text": map[string]any{"type": "plain_text", "text": "Payments"}, "value": "payments"},
	}})
	got, err := w.Suggest(query)
	require.NoError(t, err)
	require.Equal(t, "Payments", dig(t, got.Options[0], "text", "text"))
	payload := w.app.last(t, "/interactivity").payload(t)
	require.Equal(t, []any{"block_suggestion", "pick", "service", "pay"},
		[]any{payload["type"], payload["block_id"], payload["action_id"], payload["value"]})
	require.Equal(t, "C0OPS", dig(t, payload, "container", "channel_id"))
	require.NotContains(t, payload, "trigger_id")
	w.answers(nil)
	_, err = w.Click(choice)
	require.NoError(t, err)
	action := dig(t, w.app.last(t, "/interactivity").payload(t), "actions", 0, "selected_option")
	require.Equal(t, "payments", dig(t, action, "value"))

	short := query
	short.Value = "p"
	_, err = w.Suggest(short)
	require.ErrorIs(t, err, slacksim.ErrBadInput, "min_query_length")
	for name, answer := range map[string]any{
		"no options":        map[string]any{},
		"both":              map[string]any{"options": []any{}, "option_groups": []any{}},
		"an invalid option": map[string]any{"options": []any{map[string]any{"value": "x"}}},
	} {
		w.answersJSON(answer)
		got, err := w.Suggest(query)
		require.NoError(t, err)
		require.Contains(t, got.VisibleError, "could not be loaded", name)
	}
}

func TestOptionsOfAModalComeFromTheirOwnURL(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	w.SetOptionsURL(w.app.URL + "/options")
	view := decode(t, []byte(reasonModal))
	view["blocks"] = []any{map[string]any{
		"type": "input", "block_id": "svc", "label": map[string]any{"type": "plain_text", "text": "Service"},
		"element": map[string]any{"type": "multi_external_select", "action_id": "many", "min_query_length": 0},
	}}
	opened := w.call(t, "views.open", map[string]any{"trigger_id": w.trigger(t, "bob"), "view": view})
	require.Equal(t, true, opened["ok"], "%v", opened)
	id := dig(t, opened, "view", "id").(string)
	w.answersJSON(map[string]any{"option_groups": []any{map[string]any{
		"label":   map[string]any{"type": "plain_text", "text": "All"},
		"options": []any{map[string]any{"text": map[string]any{"type": "plain_text", "text": "A"}, "value": "a"}},
	}}})
	status, got := w.sim(t, "suggest", map[string]any{"user": "bob", "view_id": id, "action_id": "many", "value": ""})
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "All", dig(t, got, "option_groups", 0, "label", "text"))
	require.Equal(t, id, dig(t, w.app.last(t, "/options").payload(t), "view", "id"))
	w.answers(nil)
	out, err := w.SubmitView(slacksim.Submit{User: "bob", ViewID: id, Values: map[string]map[string]any{"svc": {"many": []string{"a"}}}})
	require.NoError(t, err)
	require.True(t, out.Closed)
}

func TestSSLCheckIsUnsigned(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	_, got := w.sim(t, "sslcheck", map[string]any{})
	require.EqualValues(t, http.StatusOK, got["status"])
	require.Empty(t, w.app.last(t, "/commands").header.Get("X-Slack-Request-Timestamp"))
	for _, e := range w.Log() {
		if e.Kind == "ssl_check" {
			require.NotContains(t, e.Headers, "X-Slack-Signature")
			require.Contains(t, e.Request, "ssl_check=1")
		}
	}
	w.SetURLs("", "", "")
	status, _ := w.sim(t, "sslcheck", map[string]any{})
	require.Equal(t, http.StatusBadRequest, status)
}
