package slacksim_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

func TestTokenIsReadFromHeaderOrForm(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	const formType = "application/x-www-form-urlencoded"
	for name, c := range map[string]struct{ contentType, auth, body, want string }{
		"header":            {formType, "Bearer " + w.BotToken(), "", ""},
		"form field":        {formType, "", "token=" + w.BotToken(), ""},
		"header and JSON":   {"application/json; charset=utf-8", "Bearer " + w.BotToken(), "{}", ""},
		"token in JSON":     {"application/json; charset=utf-8", "", `{"token":"` + w.BotToken() + `"}`, "not_authed"},
		"none":              {formType, "", "", "not_authed"},
		"wrong":             {formType, "Bearer xoxb-other", "", "invalid_auth"},
		"app-level token":   {formType, "Bearer xapp-1", "", "invalid_auth"},
		"not JSON":          {"application/json; charset=utf-8", "Bearer " + w.BotToken(), "{", "invalid_json"},
		"JSON, no object":   {"application/json; charset=utf-8", "Bearer " + w.BotToken(), "[]", "json_not_object"},
		"unknown body type": {"text/html", "Bearer " + w.BotToken(), "x", "invalid_post_type"},
		"plain text":        {"text/plain;charset=UTF-8", "Bearer " + w.BotToken(), "token=x", ""},
		"no body type":      {"", "Bearer " + w.BotToken(), "x", "missing_post_type"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := w.raw(t, "auth.test", c.contentType, c.auth, c.body)
			if c.want != "" {
				require.Equal(t, map[string]any{"ok": false, "error": c.want}, answer)
				return
			}
			require.Equal(t, true, answer["ok"])
			require.Equal(t, "B0COUNTERSIGN", answer["bot_id"])
		})
	}
}

func TestJSONWithoutCharsetIsAWarning(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	answer := w.raw(t, "auth.test", "application/json", "Bearer "+w.BotToken(), "{}")
	require.Equal(t, "missing_charset", answer["warning"])
	require.Equal(t, "missing_charset", dig(t, answer, "response_metadata", "warnings", 0))
}

// A warning stands beside the cursor: a client that lost the cursor would take the first
// page for everything.
func TestAWarningKeepsTheCursor(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	answer := w.raw(t, "users.list", "application/x-www-form-urlencoded; charset=utf-8", "Bearer "+w.BotToken(), "limit=2")
	require.Equal(t, "superfluous_charset", dig(t, answer, "response_metadata", "warnings", 0))
	require.NotEmpty(t, dig(t, answer, "response_metadata", "next_cursor"))
}

func TestUnknownMethod(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	require.Equal(t, map[string]any{"ok": false, "error": "unknown_method", "req_method": "chat.nope"}, w.call(t, "chat.nope", nil))
}

// A method that Slack has is not called unknown: its name is right, and it is
// missing here, or retired there.
func TestMethodsThatAreNotSimulated(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	for name, want := range map[string][2]string{
		"files.getUploadURLExternal": {"not_simulated", "[ERROR] Slack has files.getUploadURLExternal, but slacksim does not"},
		"entity.presentComments":     {"not_simulated", "[ERROR] Slack has entity.presentComments, but slacksim does not"},
		"admin.users.list":           {"not_simulated", "[ERROR] Slack has admin.users.list, but slacksim does not"},
		"files.upload":               {"method_deprecated", "[ERROR] Slack has retired files.upload"},
		"channels.list":              {"method_deprecated", "[ERROR] Slack has retired channels.list"},
		"rtm.connect": {
			"not_allowed_token_type", "[ERROR] rtm.connect takes tokens of classic apps only; use the Events API or Socket Mode",
		},
	} {
		require.Equal(t, map[string]any{
			"ok": false, "error": want[0], "req_method": name, "response_metadata": map[string]any{"messages": []any{want[1]}},
		}, w.call(t, name, nil))
	}
	for _, name := range slacksim.Absent() {
		require.NotContains(t, slacksim.Methods(), name)
	}
}

func TestRequiredArgumentsAreNamed(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	answer := w.call(t, "chat.update", map[string]any{"text": "x"})
	require.Equal(t, "invalid_arguments", answer["error"])
	require.Equal(t, []any{"[ERROR] missing required field: channel", "[ERROR] missing required field: ts"},
		dig(t, answer, "response_metadata", "messages"))
	answer = w.call(t, "chat.postMessage", map[string]any{"channel": 7, "text": "x"})
	require.Equal(t, []any{"[ERROR] must provide a string [json-pointer:/channel]"}, dig(t, answer, "response_metadata", "messages"))
}

func TestMethodsThatTakeNoJSONDoNotReadIt(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	require.Equal(t, "invalid_arguments", w.call(t, "users.info", map[string]any{"user": "U0BOB"})["error"])
	require.Equal(t, true, w.form(t, "users.info", url.Values{"user": {"U0BOB"}})["ok"])
}

func TestMissingScopeNamesNeededAndProvided(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{Scopes: []string{"chat:write"}})
	answer := w.form(t, "usergroups.users.list", url.Values{"usergroup": {"S0SRE"}})
	require.Equal(t, map[string]any{"ok": false, "error": "missing_scope", "needed": "usergroups:read", "provided": "chat:write"}, answer)
}

func TestFaultsHitTheCallsTheyName(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	status, _ := w.sim(t, "faults", map[string]any{"next": []any{
		map[string]any{"method": "chat.update", "status": 503},
		map[string]any{"method": "chat.postMessage", "status": 429, "retry_after": 7},
		map[string]any{"method": "chat.postMessage", "error": "restricted_action"},
		map[string]any{"method": "chat.postMessage", "lost_reply": true},
	}})
	require.Equal(t, http.StatusOK, status)
	body := url.Values{"token": {w.BotToken()}, "channel": {"C0OPS"}, "text": {"x"}}

	resp, err := http.PostForm(w.url+"/api/chat.postMessage", body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
	require.Equal(t, "7", resp.Header.Get("Retry-After"))

	require.Equal(t, "restricted_action", w.form(t, "chat.postMessage", body)["error"])

	resp, err = http.PostForm(w.url+"/api/chat.postMessage", body)
	if err == nil {
		require.NoError(t, resp.Body.Close())
	}
	require.Error(t, err, "the reply is lost")
	seen, err := w.Messages("alice", "C0OPS", "")
	require.NoError(t, err)
	require.Len(t, seen, 1, "and the message is there")
}

func TestLogKeepsNoToken(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{BotToken: "xoxb-very-secret", SigningSecret: "so-secret"})
	_, _ = w.PostAs(slacksim.Post{User: "alice", Channel: "ops", Text: "@countersign hi"})
	w.idle(t)
	w.form(t, "auth.test", url.Values{"token": {"xoxb-very-secret"}})
	w.form(t, "auth.test", url.Values{"token": {"xoxb-another-one"}})
	_, _ = w.Command(slacksim.Command{User: "alice", Channel: "ops", Command: "/approvals"})
	_, log := w.sim(t, "log", nil)
	text := string(mustJSON(t, log))
	for _, secret := range []string{"very-secret", "another-one", "so-secret", "slacksim-verification"} {
		require.NotContains(t, text, secret)
	}
}
