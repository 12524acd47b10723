package slacksim_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// open opens a modal for alice and returns its id.
func (w *workspace) open(t *testing.T, view string) string {
	t.Helper()
	answer := w.call(t, "views.open", map[string]any{"trigger_id": w.trigger(t, "alice"), "view": json.RawMessage(view)})
	require.Equal(t, true, answer["ok"], "%v", answer)
	return dig(t, answer, "view", "id").(string)
}

func TestTriggerIsForOneViewWithinThreeSeconds(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	open := func(trigger string) any {
		return w.call(t, "views.open", map[string]any{"trigger_id": trigger, "view": json.RawMessage(reasonModal)})["error"]
	}
	trigger := w.trigger(t, "alice")
	require.Nil(t, open(trigger))
	require.Equal(t, "exchanged_trigger_id", open(trigger))
	require.Equal(t, "invalid_trigger_id", open("1.2.abc"))
	trigger = w.trigger(t, "alice")
	w.Advance(3001 * time.Millisecond)
	require.Equal(t, "expired_trigger_id", open(trigger))
}

func TestOpenedViewIsEchoedWithItsIDs(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	id := w.open(t, reasonModal)
	answer := w.call(t, "views.update", map[string]any{"view_id": id, "view": json.RawMessage(reasonModal)})
	v := answer["view"].(map[string]any)
	require.Equal(t, id, v["root_view_id"])
	require.Nil(t, v["previous_view_id"])
	require.Equal(t, "T0COUNTER", v["app_installed_team_id"])
	require.Equal(t, "B0COUNTERSIGN", v["bot_id"])
	require.NotEmpty(t, v["hash"])
	require.NotEmpty(t, dig(t, v, "blocks", 0, "block_id"))
	require.Equal(t, map[string]any{"type": "plain_text_input", "value": nil}, dig(t, v, "state", "values", "reason", "text"))
}

func TestStackHoldsThreeModals(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	view := `{"type":"modal",` + title + `,"blocks":` + inActions(`{"type":"button","action_id":"next","text":`+plainX+`}`) + `}`
	top := w.open(t, view)
	push := func() map[string]any {
		_, err := w.Click(slacksim.Click{User: "alice", ViewID: top, ActionID: "next"})
		require.NoError(t, err)
		p := w.app.last(t, "/interactivity").payload(t)
		require.Equal(t, map[string]any{"type": "view", "view_id": top}, p["container"])
		require.NotContains(t, p, "response_url")
		require.NotContains(t, p, "message")
		return w.call(t, "views.push", map[string]any{"trigger_id": p["trigger_id"], "view": json.RawMessage(view)})
	}
	root := top
	for range 2 {
		answer := push()
		require.Equal(t, true, answer["ok"], "%v", answer)
		require.Equal(t, root, dig(t, answer, "view", "root_view_id"))
		require.Equal(t, top, dig(t, answer, "view", "previous_view_id"))
		top = dig(t, answer, "view", "id").(string)
	}
	require.Equal(t, "push_limit_reached", push()["error"])
	require.Len(t, w.Views("alice"), 3)
	_, err := w.Click(slacksim.Click{User: "alice", ViewID: root, ActionID: "next"})
	require.ErrorIs(t, err, slacksim.ErrForbidden, "a person reaches the one on top only")
	_, err = w.SubmitView(slacksim.Submit{User: "alice", ViewID: root})
	require.ErrorIs(t, err, slacksim.ErrForbidden)
	require.ErrorIs(t, w.CloseView("alice", root, false), slacksim.ErrForbidden)
	answer := w.call(t, "views.push", map[string]any{"trigger_id": w.trigger(t, "bob"), "view": json.RawMessage(view)})
	require.Equal(t, "not_found", answer["error"], "nothing to push onto")
}

func TestUpdateChecksHashAndExternalIDAndKeepsInputs(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	named := strings.Replace(reasonModal, `"type":"modal"`, `"type":"modal","external_id":"batch-1"`, 1)
	id := w.open(t, named)
	answer := w.call(t, "views.open", map[string]any{"trigger_id": w.trigger(t, "bob"), "view": json.RawMessage(named)})
	require.Equal(t, "duplicate_external_id", answer["error"])

	_, err := w.Click(slacksim.Click{User: "alice", ViewID: id, ActionID: "text", Value: "typed"})
	require.NoError(t, err)
	require.Empty(t, w.app.requests("/interactivity"), "no dispatch_action, no payload")
	hash := w.Views("alice")[0].Hash
	update := func(in map[string]any) map[string]any {
		in["view"] = json.RawMessage(named)
		return w.call(t, "views.update", in)
	}
	answer = update(map[string]any{"external_id": "batch-1", "hash": hash})
	require.Equal(t, true, answer["ok"], "%v", answer)
	require.Equal(t, "typed", dig(t, answer, "view", "state", "values", "reason", "text", "value"))
	require.Equal(t, "hash_conflict", update(map[string]any{"view_id": id, "hash": hash})["error"])
	require.Equal(t, "not_found", update(map[string]any{"view_id": "V0"})["error"])
	answer = w.call(t, "views.update", map[string]any{"view_id": id, "view": json.RawMessage(`{"type":"home","blocks":[{"type":"divider"}]}`)})
	require.Contains(t, dig(t, answer, "response_metadata", "messages", 0), "must match the `type` of the root view")
}

func (w *workspace) submit(t *testing.T, id, text string) slacksim.SubmitOutcome {
	t.Helper()
	out, err := w.SubmitView(slacksim.Submit{User: "alice", ViewID: id, Values: map[string]map[string]any{"reason": {"text": text}}})
	require.NoError(t, err)
	return out
}

func TestInputsAreCheckedBeforeSubmission(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	id := w.open(t, reasonModal)
	for text, want := range map[string]string{
		"":                        "complete this required field",
		"no":                      "at least 3",
		strings.Repeat("long", 9): "at most 20",
	} {
		require.Contains(t, w.submit(t, id, text).Errors["reason"], want)
	}
	require.Empty(t, w.app.requests("/interactivity"))
	require.NotEmpty(t, w.Views("alice")[0].Errors)
}

func TestInputsOfEveryKindAreChecked(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	for name, c := range map[string]struct {
		element string
		input   any
		want    string
	}{
		"email":       {`{"type":"email_text_input","action_id":"text"}`, "no mail", "valid email"},
		"url":         {`{"type":"url_text_input","action_id":"text"}`, "example", "valid URL"},
		"number":      {`{"type":"number_input","action_id":"text","is_decimal_allowed":false}`, "1.5", "valid number"},
		"number min":  {`{"type":"number_input","action_id":"text","is_decimal_allowed":true,"min_value":"2"}`, "1.5", "at least 2"},
		"number max":  {`{"type":"number_input","action_id":"text","is_decimal_allowed":true,"max_value":"1"}`, "1.5", "at most 1"},
		"no users":    {`{"type":"multi_users_select","action_id":"text"}`, nil, "required"},
		"many users":  {`{"type":"multi_users_select","action_id":"text","max_selected_items":1}`, []string{"bob", "carol"}, "at most 1"},
		"no checkbox": {`{"type":"checkboxes","action_id":"text","options":[{"text":` + plainX + `,"value":"a"}]}`, nil, "required"},
	} {
		view := `{"type":"modal",` + title + `,` + submit + `,"blocks":[{"type":"input","block_id":"reason","label":` + plainX + `,"element":` + c.element + `}]}`
		id := w.open(t, view)
		out, err := w.SubmitView(slacksim.Submit{User: "alice", ViewID: id, Values: map[string]map[string]any{"reason": {"text": c.input}}})
		require.NoError(t, err, name)
		require.Contains(t, out.Errors["reason"], c.want, name)
	}
}

func TestSubmissionAnswers(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	other := strings.Replace(reasonModal, `"text":"Say why."`, `"text":"Say more."`, 1)
	for name, c := range map[string]struct {
		answer string
		check  func(t *testing.T, out slacksim.SubmitOutcome)
		views  int
	}{
		"empty closes": {``, func(t *testing.T, out slacksim.SubmitOutcome) { t.Helper(); require.True(t, out.Closed) }, 0},
		"errors": {`{"response_action":"errors","errors":{"reason":"Too vague."}}`, func(t *testing.T, out slacksim.SubmitOutcome) {
			t.Helper()
			require.Equal(t, map[string]string{"reason": "Too vague."}, out.Errors)
		}, 1},
		"errors of another block": {`{"response_action":"errors","errors":{"nope":"Too vague."}}`, troubled, 1},
		"update": {`{"response_action":"update","view":` + other + `}`, func(t *testing.T, out slacksim.SubmitOutcome) {
			t.Helper()
			require.Contains(t, out.View.Shown(), "Say more.")
			require.Equal(t, "because", out.View.Values["reason"]["text"]["value"])
		}, 1},
		"update with a bad view": {`{"response_action":"update","view":{"type":"modal"}}`, troubled, 1},
		"push": {`{"response_action":"push","view":` + other + `}`, func(t *testing.T, out slacksim.SubmitOutcome) {
			t.Helper()
			require.NotEqual(t, out.View.ID, out.View.RootViewID)
		}, 2},
		"clear":          {`{"response_action":"clear"}`, func(t *testing.T, out slacksim.SubmitOutcome) { t.Helper(); require.True(t, out.Closed) }, 0},
		"unknown action": {`{"response_action":"dance"}`, troubled, 1},
		"no JSON":        {`thanks`, troubled, 1},
	} {
		t.Run(name, func(t *testing.T) {
			id := w.open(t, reasonModal)
			w.answers(func(rw http.ResponseWriter, d delivered) {
				if d.path == "/interactivity" {
					_, _ = io.WriteString(rw, c.answer)
				}
			})
			c.check(t, w.submit(t, id, "because"))
			require.Len(t, w.Views("alice"), c.views)
			w.answers(nil)
		})
	}
}

func troubled(t *testing.T, out slacksim.SubmitOutcome) {
	t.Helper()
	require.Contains(t, out.VisibleError, "trouble connecting")
	require.Empty(t, out.Errors)
}

func TestLateSubmissionIsTroubleAndStaysOpen(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{AckTimeout: 500 * time.Millisecond})
	id := w.open(t, reasonModal)
	w.answers(w.app.silent)
	troubled(t, w.submit(t, id, "because"))
	require.Len(t, w.Views("alice"), 1)
}

func TestViewSubmissionPayload(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	id := w.open(t, reasonModal)
	w.submit(t, id, "because")
	p := w.app.last(t, "/interactivity").payload(t)
	require.Equal(t, "view_submission", p["type"])
	require.Equal(t, []any{}, p["response_urls"])
	require.NotContains(t, p, "response_url")
	require.NotEmpty(t, p["trigger_id"])
	require.Equal(t, "deny", dig(t, p, "view", "callback_id"))
	require.Equal(t, "b1:c1", dig(t, p, "view", "private_metadata"))
	require.Equal(t, map[string]any{"type": "plain_text_input", "value": "because"}, dig(t, p, "view", "state", "values", "reason", "text"))
}

// TestAModalWithoutASubmitButtonIsNotSubmitted: nobody can press what is not there.
func TestAModalWithoutASubmitButtonIsNotSubmitted(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	id := w.open(t, `{"type":"modal",`+title+`,"blocks":[{"type":"divider"}]}`)
	_, err := w.SubmitView(slacksim.Submit{User: "alice", ViewID: id})
	require.ErrorIs(t, err, slacksim.ErrForbidden)
	require.Empty(t, w.app.requests("/interactivity"))
}

func TestFileInputsHoldNoFiles(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	id := w.open(t, `{"type":"modal",`+title+`,`+submit+`,"blocks":[{"type":"input","block_id":"proof","optional":true,"label":`+plainX+
		`,"element":{"type":"file_input","action_id":"files"}}]}`)
	_, err := w.SubmitView(slacksim.Submit{User: "alice", ViewID: id})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"type": "file_input", "files": []any{}},
		dig(t, w.app.last(t, "/interactivity").payload(t), "view", "state", "values", "proof", "files"))
}

func TestResponseURLsForConversationInputs(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	id := w.open(t, `{"type":"modal",`+title+`,`+submit+`,"blocks":[{"type":"input","block_id":"where","label":`+plainX+
		`,"element":{"type":"conversations_select","action_id":"c","response_url_enabled":true}}]}`)
	_, err := w.SubmitView(slacksim.Submit{User: "alice", ViewID: id, Values: map[string]map[string]any{"where": {"c": "general"}}})
	require.NoError(t, err)
	u := dig(t, w.app.last(t, "/interactivity").payload(t), "response_urls", 0)
	require.Equal(t, "C0GENERAL", dig(t, u, "channel_id"))
	require.Equal(t, "where", dig(t, u, "block_id"))
}

// A menu that defaults to the current conversation has as its first choice the
// one in which the person opened the modal, and so has a modal on top of it.
func TestMenusDefaultToTheCurrentConversation(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	menu := func(id, kind, more string) string {
		return `{"type":"input","optional":true,"block_id":"` + id + `","label":` + plainX + `,"element":{"type":"` + kind +
			`","action_id":"c","default_to_current_conversation":true` + more + `}}`
	}
	view := `{"type":"modal",` + title + `,` + submit + `,"blocks":[` + menu("one", "conversations_select", `,"response_url_enabled":true`) + `,` +
		menu("several", "multi_conversations_select", "") + `,` + menu("named", "conversations_select", `,"initial_conversation":"C0GENERAL"`) + `,` +
		menu("filtered", "conversations_select", `,"filter":{"include":["im"]}`) + `]}`
	chosen := func(view any) []any {
		var all []any
		for _, at := range [][2]string{{"one", ""}, {"several", "s"}, {"named", ""}, {"filtered", ""}} {
			all = append(all, dig(t, view, "state", "values", at[0], "c", "selected_conversation"+at[1]))
		}
		return all
	}
	want := []any{"C0OPS", []any{"C0OPS"}, "C0GENERAL", nil}
	opened := w.call(t, "views.open", map[string]any{"trigger_id": w.trigger(t, "alice"), "view": json.RawMessage(view)})
	require.Equal(t, want, chosen(opened["view"]))

	w.answers(func(rw http.ResponseWriter, _ delivered) {
		_, _ = io.WriteString(rw, `{"response_action":"push","view":`+view+`}`)
	})
	out, err := w.SubmitView(slacksim.Submit{User: "alice", ViewID: dig(t, opened, "view", "id").(string)})
	require.NoError(t, err)
	require.Equal(t, "C0OPS", dig(t, w.app.last(t, "/interactivity").payload(t), "response_urls", 0, "channel_id"))
	w.answers(nil)
	_, err = w.SubmitView(slacksim.Submit{User: "alice", ViewID: out.View.ID})
	require.NoError(t, err)
	require.Equal(t, want, chosen(w.app.last(t, "/interactivity").payload(t)["view"]))
}

func TestViewClosedOnlyWhenAskedFor(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	quiet := strings.Replace(reasonModal, `"notify_on_close":true,`, "", 1)
	require.NoError(t, w.CloseView("alice", w.open(t, quiet), false))
	require.Empty(t, w.app.requests("/interactivity"))

	id := w.open(t, reasonModal)
	require.NoError(t, w.CloseView("alice", id, false))
	p := w.app.last(t, "/interactivity").payload(t)
	require.Equal(t, "view_closed", p["type"])
	require.Equal(t, false, p["is_cleared"])
	require.NotContains(t, p, "trigger_id")

	root := w.open(t, reasonModal)
	w.answers(func(rw http.ResponseWriter, _ delivered) {
		_, _ = io.WriteString(rw, `{"response_action":"push","view":`+reasonModal+`}`)
	})
	top := w.submit(t, root, "because").View.ID
	w.answers(nil)
	require.NotEqual(t, root, top)
	require.NoError(t, w.CloseView("alice", top, true), "the X in the corner")
	p = w.app.last(t, "/interactivity").payload(t)
	require.Equal(t, root, dig(t, p, "view", "id"))
	require.Equal(t, true, p["is_cleared"])
	require.Empty(t, w.Views("alice"))
}

func TestModalsGoWithAReloadAndTheAppHearsNothing(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	root := w.open(t, reasonModal)
	w.answers(func(rw http.ResponseWriter, _ delivered) {
		_, _ = io.WriteString(rw, `{"response_action":"push","view":`+reasonModal+`}`)
	})
	w.submit(t, root, "because")
	require.Len(t, w.Views("alice"), 2)
	answer := w.call(t, "views.open", map[string]any{"trigger_id": w.trigger(t, "bob"), "view": json.RawMessage(reasonModal)})
	require.Equal(t, true, answer["ok"], "%v", answer)
	before := len(w.app.requests("/interactivity"))

	require.NoError(t, w.Reload("alice"))
	require.Empty(t, w.Views("alice"))
	require.Len(t, w.Views("bob"), 1, "another person's screen stays")
	require.Len(t, w.app.requests("/interactivity"), before, "the views asked for view_closed, and Slack cannot send it")
	answer = w.call(t, "views.update", map[string]any{"view_id": root, "view": json.RawMessage(reasonModal)})
	require.Equal(t, "not_found", answer["error"])
	w.open(t, reasonModal)
	require.Len(t, w.Views("alice"), 1, "a new modal is the root again")

	w.answers(func(rw http.ResponseWriter, _ delivered) {
		_ = w.Reload("alice")
		_, _ = io.WriteString(rw, `{"response_action":"push","view":`+reasonModal+`}`)
	})
	require.Nil(t, w.submit(t, w.Views("alice")[0].ID, "because").View, "nothing is pushed onto what is gone")
	require.Empty(t, w.Views("alice"))
}

func TestHomeTabIsPublishedPerPerson(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	home := json.RawMessage(`{"type":"home","blocks":` + inActions(`{"type":"button","action_id":"go","text":`+plainX+`}`) + `}`)
	answer := w.call(t, "views.publish", map[string]any{"user_id": "U0BOB", "view": home})
	require.Equal(t, true, answer["ok"], "%v", answer)
	hash := dig(t, answer, "view", "hash")
	require.Equal(t, true, w.call(t, "views.publish", map[string]any{"user_id": "U0BOB", "view": home, "hash": hash})["ok"])
	require.Equal(t, "hash_conflict", w.call(t, "views.publish", map[string]any{"user_id": "U0BOB", "view": home, "hash": hash})["error"])
	v, ok := w.Home("bob")
	require.True(t, ok)
	_, err := w.Click(slacksim.Click{User: "bob", ViewID: v.ID, ActionID: "go"})
	require.NoError(t, err)
	_, ok = w.Home("alice")
	require.False(t, ok)
	answer = w.call(t, "views.publish", map[string]any{"user_id": "U0BOB", "view": json.RawMessage(reasonModal)})
	require.Equal(t, "invalid_arguments", answer["error"])
}
