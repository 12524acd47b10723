package slacksim_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

func click(ts, action string) slacksim.Click {
	return slacksim.Click{User: "bob", Channel: "C0OPS", TS: ts, ActionID: action}
}

func TestBlockActionsPayloadIsComplete(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	ts := w.post(t, approveButtons)
	_, err := w.Click(click(ts, "approve"))
	require.NoError(t, err)
	d := w.app.last(t, "/interactivity")
	require.Equal(t, "application/x-www-form-urlencoded", d.header.Get("Content-Type"))
	p := d.payload(t)
	require.Equal(t, "block_actions", p["type"])
	require.Equal(t, map[string]any{"id": "U0BOB", "username": "bob", "name": "bob", "team_id": "T0COUNTER"}, p["user"])
	require.Equal(t, map[string]any{"id": "T0COUNTER", "domain": "acme"}, p["team"])
	require.Equal(t, map[string]any{"id": "C0OPS", "name": "ops"}, p["channel"])
	require.Equal(t, map[string]any{"type": "message", "message_ts": ts, "channel_id": "C0OPS", "is_ephemeral": false}, p["container"])
	require.Equal(t, "A0COUNTERSIGN", p["api_app_id"])
	require.Contains(t, p, "enterprise")
	require.Nil(t, p["enterprise"])
	require.Equal(t, false, p["is_enterprise_install"])
	require.Regexp(t, `^\d+\.\d+\.[0-9a-f]+$`, p["trigger_id"])
	require.NotEmpty(t, p["response_url"])
	require.Equal(t, map[string]any{"values": map[string]any{}}, p["state"])
	require.Equal(t, "what", dig(t, p, "message", "blocks", 1, "block_id"))
	require.Equal(t, "B0COUNTERSIGN", dig(t, p, "message", "bot_id"))
	action := dig(t, p, "actions", 0).(map[string]any)
	require.NotEmpty(t, action["action_ts"])
	delete(action, "action_ts")
	require.Equal(t, map[string]any{
		"type": "button", "action_id": "approve", "block_id": "decide", "value": "b1:c1", "style": "primary",
		"text": map[string]any{"type": "plain_text", "text": "Approve", "emoji": true},
	}, action)
}

// Attachments are numbered from 1, and a click in one names it.
func TestClickInAnAttachmentNamesIt(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	in := message(approveButtons)
	in["attachments"] = json.RawMessage(`[{"text":"above"},{"color":"#e01e5a","blocks":` + inActions(`{"type":"button","action_id":"more","text":`+plainX+`}`) + `}]`)
	answer := w.call(t, "chat.postMessage", in)
	require.Equal(t, map[string]any{"id": 1.0, "text": "above", "fallback": "above"}, dig(t, answer, "message", "attachments", 0))
	second := dig(t, answer, "message", "attachments", 1).(map[string]any)
	delete(second, "blocks")
	require.Equal(t, map[string]any{"id": 2.0, "color": "e01e5a", "fallback": "[no preview available]"}, second)
	ts := answer["ts"].(string)
	_, err := w.Click(click(ts, "more"))
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"type": "message_attachment", "message_ts": ts, "channel_id": "C0OPS", "is_ephemeral": false, "attachment_id": 2.0, "is_app_unfurl": false,
	}, dig(t, w.app.last(t, "/interactivity").payload(t), "container"))
	_, err = w.Click(click(ts, "approve"))
	require.NoError(t, err)
	require.Equal(t, "message", dig(t, w.app.last(t, "/interactivity").payload(t), "container", "type"))
}

func TestClickInAThreadNamesIt(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	root, err := w.PostAs(slacksim.Post{User: "alice", Channel: "ops", Text: "hi"})
	require.NoError(t, err)
	in := message(approveButtons)
	in["thread_ts"] = root
	ts := w.call(t, "chat.postMessage", in)["ts"].(string)
	_, err = w.Click(click(ts, "approve"))
	require.NoError(t, err)
	require.Equal(t, root, dig(t, w.app.last(t, "/interactivity").payload(t), "container", "thread_ts"))
}

func TestUnansweredClickIsSeenAndNotRetried(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{AckTimeout: 500 * time.Millisecond})
	ts := w.post(t, approveButtons)
	w.answers(w.app.silent)
	out, err := w.Click(click(ts, "approve"))
	require.NoError(t, err)
	require.Zero(t, out.Status)
	require.Contains(t, out.VisibleError, "in time")
	w.answers(func(w http.ResponseWriter, _ delivered) { w.WriteHeader(http.StatusInternalServerError) })
	out, err = w.Click(click(ts, "approve"))
	require.NoError(t, err)
	require.Equal(t, 500, out.Status)
	require.NotEmpty(t, out.VisibleError)
	w.Advance(time.Hour)
	w.idle(t)
	require.Len(t, w.app.requests("/interactivity"), 2)
}

func TestAppsHaveThreeSecondsByDefault(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	ts := w.post(t, approveButtons)
	w.answers(w.app.silent)
	start := time.Now()
	out, err := w.Click(click(ts, "approve"))
	require.NoError(t, err)
	require.NotEmpty(t, out.VisibleError)
	require.GreaterOrEqual(t, time.Since(start), 3*time.Second)
}

func TestDoubleClicksAreDistinct(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	ts := w.post(t, approveButtons)
	triggers, times := map[any]bool{}, map[any]bool{}
	for _, user := range []string{"bob", "bob", "carol"} {
		c := click(ts, "approve")
		c.User = user
		_, err := w.Click(c)
		require.NoError(t, err)
		p := w.app.last(t, "/interactivity").payload(t)
		triggers[p["trigger_id"]] = true
		times[dig(t, p, "actions", 0, "action_ts")] = true
	}
	require.Len(t, triggers, 3)
	require.Len(t, times, 3)
}

func TestConfirmStandsBeforeTheClick(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	ts := w.post(t, inActions(confirmed("Sure?", "It is gone then.", "Drop it", "Keep it")))
	seen, err := w.Messages("bob", "ops", "")
	require.NoError(t, err)
	action := seen[0].Actions()[0]
	require.True(t, action.Confirm)
	require.NotEmpty(t, action.ActionID, "Slack assigns one")
	require.NotEmpty(t, action.BlockID)

	status, out := w.sim(t, "click", map[string]any{"user": "bob", "channel": "ops", "ts": ts, "action_id": action.ActionID})
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "Sure?", dig(t, out, "confirm", "title", "text"))
	require.Empty(t, w.app.requests("/interactivity"))
	c := click(ts, action.ActionID)
	c.Confirmed = true
	_, err = w.Click(c)
	require.NoError(t, err)
	require.Len(t, w.app.requests("/interactivity"), 1)
}

func TestURLButtonStillSendsAPayload(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	ts := w.post(t, inActions(`{"type":"button","action_id":"run","url":"https://example.com/run/1","text":`+plainX+`}`))
	out, err := w.Click(click(ts, "run"))
	require.NoError(t, err)
	require.Equal(t, "https://example.com/run/1", out.URL)
	require.Equal(t, out.URL, dig(t, w.app.last(t, "/interactivity").payload(t), "actions", 0, "url"))
}

func TestMenusSendWhatWasChosen(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	options := `"options":[{"text":` + plainX + `,"value":"a"},{"text":` + plainX + `,"value":"b"}]`
	ts := w.post(t, inActions(
		`{"type":"overflow","action_id":"more",`+options+`},{"type":"static_select","action_id":"pick",`+options+`},`+
			`{"type":"checkboxes","action_id":"many",`+options+`},{"type":"users_select","action_id":"who"},{"type":"datepicker","action_id":"when"}`))
	for action, c := range map[string]struct {
		value any
		field string
		want  any
	}{
		"more": {"a", "selected_option", map[string]any{"text": map[string]any{"type": "plain_text", "text": "x", "emoji": true}, "value": "a"}},
		"pick": {map[string]any{"value": "b"}, "selected_option", map[string]any{"text": map[string]any{"type": "plain_text", "text": "x", "emoji": true}, "value": "b"}},
		"who":  {"carol", "selected_user", "U0CAROL"},
		"when": {"2026-12-24", "selected_date", "2026-12-24"},
	} {
		in := click(ts, action)
		in.SelectedOption = c.value
		_, err := w.Click(in)
		require.NoError(t, err, action)
		p := w.app.last(t, "/interactivity").payload(t)
		require.Equal(t, c.want, dig(t, p, "actions", 0, c.field), action)
	}
	in := click(ts, "many")
	in.Value = []string{"a", "b"}
	_, err := w.Click(in)
	require.NoError(t, err)
	p := w.app.last(t, "/interactivity").payload(t)
	require.Len(t, dig(t, p, "actions", 0, "selected_options"), 2)
	block := dig(t, p, "actions", 0, "block_id")
	require.Len(t, dig(t, p, "state", "values", block, "many", "selected_options"), 2)
	in.Value = "c"
	_, err = w.Click(in)
	require.ErrorIs(t, err, slacksim.ErrBadInput)
}

// The entry of an element repeats what was chosen in it at first, and the zone of a time.
func TestActionsRepeatTheInitialChoice(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	ts := w.post(t, inActions(
		`{"type":"datepicker","action_id":"day","initial_date":"2026-01-01"},{"type":"users_select","action_id":"who","initial_user":"U0BOB"},`+
			`{"type":"timepicker","action_id":"time","initial_time":"08:00","timezone":"Europe/Berlin"}`))
	for action, c := range map[string]struct {
		value string
		want  map[string]any
	}{
		"day":  {"2026-12-24", map[string]any{"type": "datepicker", "selected_date": "2026-12-24", "initial_date": "2026-01-01"}},
		"who":  {"carol", map[string]any{"type": "users_select", "selected_user": "U0CAROL", "initial_user": "U0BOB"}},
		"time": {"09:30", map[string]any{"type": "timepicker", "selected_time": "09:30", "initial_time": "08:00", "timezone": "Europe/Berlin"}},
	} {
		in := click(ts, action)
		in.Value = c.value
		_, err := w.Click(in)
		require.NoError(t, err)
		p := w.app.last(t, "/interactivity").payload(t)
		got := dig(t, p, "actions", 0).(map[string]any)
		block := got["block_id"].(string)
		for _, name := range []string{"action_id", "block_id", "action_ts"} {
			delete(got, name)
		}
		require.Equal(t, c.want, got)
		require.Equal(t, "Europe/Berlin", dig(t, p, "state", "values", block, "time", "timezone"))
	}
}

// What nobody can choose in Slack's client is refused, and the app hears nothing.
func TestWhatCannotBeChosenIsRefused(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	ts := w.post(t, inActions(
		`{"type":"datepicker","action_id":"day"},{"type":"timepicker","action_id":"time"},{"type":"users_select","action_id":"who"},`+
			`{"type":"channels_select","action_id":"where"},{"type":"conversations_select","action_id":"talk"}`))
	for action, c := range map[string]struct {
		value string
		want  error
	}{
		"day":   {"2026-02-30", slacksim.ErrBadInput},
		"time":  {"9:30", slacksim.ErrBadInput},
		"who":   {"nobody", slacksim.ErrNoSuch},
		"where": {"bob", slacksim.ErrNoSuch},
		"talk":  {"nowhere", slacksim.ErrNoSuch},
	} {
		in := click(ts, action)
		in.Value = c.value
		_, err := w.Click(in)
		require.ErrorIs(t, err, c.want, action)
	}
	require.Empty(t, w.app.requests("/interactivity"))
	in := click(ts, "talk")
	in.Value = "bob"
	_, err := w.Click(in)
	require.NoError(t, err)
	require.Equal(t, "U0BOB", dig(t, w.app.last(t, "/interactivity").payload(t), "actions", 0, "selected_conversation"))
}

func TestClicksNeedAPersonWhoSeesTheElement(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	ts := w.post(t, approveButtons)
	for name, c := range map[string]struct {
		in   slacksim.Click
		want error
	}{
		"nobody":            {slacksim.Click{User: "eve", Channel: "ops", TS: ts, ActionID: "approve"}, slacksim.ErrNoSuch},
		"not in channel":    {slacksim.Click{User: "gita", Channel: "ops", TS: ts, ActionID: "approve"}, slacksim.ErrForbidden},
		"deactivated":       {slacksim.Click{User: "gone", Channel: "ops", TS: ts, ActionID: "approve"}, slacksim.ErrForbidden},
		"no such message":   {click("1.000001", "approve"), slacksim.ErrNoSuch},
		"no such action_id": {click(ts, "explode"), slacksim.ErrNoSuch},
	} {
		_, err := w.Click(c.in)
		require.ErrorIs(t, err, c.want, name)
	}
	require.Empty(t, w.app.requests("/interactivity"))
}

// A person may click a button that the app took away before the change reached their
// screen, whichever way the app took.
func TestAClickMayCrossAnEdit(t *testing.T) {
	for name, edit := range map[string]func(t *testing.T, w *workspace, ts, url string){
		"chat.update": func(t *testing.T, w *workspace, ts, _ string) {
			t.Helper()
			w.call(t, "chat.update", map[string]any{"channel": "C0OPS", "ts": ts, "text": "Approved by Bob"})
		},
		"response_url": func(t *testing.T, _ *workspace, _, url string) {
			t.Helper()
			respond(t, url, `{"replace_original":true,"text":"Approved by Bob"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkspace(t, slacksim.Config{})
			ts, url := w.clicked(t)
			edit(t, w, ts, url)
			in := click(ts, "approve")
			in.User = "carol"
			_, err := w.Click(in)
			require.NoError(t, err)
			require.Equal(t, "Approved by Bob", dig(t, w.app.last(t, "/interactivity").payload(t), "message", "text"))
		})
	}
}

func TestClickWithoutAnInteractivityURL(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	ts := w.post(t, approveButtons)
	w.SetURLs("", "", "")
	out, err := w.Click(click(ts, "approve"))
	require.NoError(t, err)
	require.Contains(t, out.VisibleError, "not configured")
}

// What a person chose or typed in a message is in the state of their next
// click, until their client starts again. An input block sends nothing by
// itself unless it says so.
func TestInputsOfAMessageAreInTheStateOfTheNextClick(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	options := `"options":[{"text":` + plainX + `,"value":"a"},{"text":` + plainX + `,"value":"b"}]`
	blocks := `[{"type":"input","block_id":"why","label":` + plainX + `,"element":{"type":"plain_text_input","action_id":"text"}},` +
		`{"type":"actions","block_id":"do","elements":[{"type":"static_select","action_id":"pick",` + options + `},` +
		`{"type":"button","action_id":"deny","text":` + plainX + `}]}]`
	ts := w.post(t, blocks)
	enter := func(action string, value any) {
		in := click(ts, action)
		in.Value = value
		_, err := w.Click(in)
		require.NoError(t, err)
	}
	state := func(user string) []any {
		in := click(ts, "deny")
		in.User = user
		_, err := w.Click(in)
		require.NoError(t, err)
		p := w.app.last(t, "/interactivity").payload(t)
		return []any{dig(t, p, "state", "values", "why", "text", "value"), dig(t, p, "state", "values", "do", "pick", "selected_option")}
	}
	enter("text", "not today")
	require.Empty(t, w.app.requests("/interactivity"), "an input block without dispatch_action")
	enter("pick", "b")
	require.Len(t, w.app.requests("/interactivity"), 1)
	b := map[string]any{"text": map[string]any{"type": "plain_text", "text": "x", "emoji": true}, "value": "b"}
	require.Equal(t, []any{"not today", b}, state("bob"))
	require.Equal(t, []any{nil, nil}, state("carol"), "of another person")
	w.call(t, "chat.update", map[string]any{"channel": "C0OPS", "ts": ts, "text": "again", "blocks": json.RawMessage(blocks)})
	require.Equal(t, []any{"not today", b}, state("bob"), "the elements are still there")
	require.NoError(t, w.Reload("bob"))
	require.Equal(t, []any{nil, nil}, state("bob"))
}
