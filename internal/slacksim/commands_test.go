package slacksim_test

import (
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

var approvals = slacksim.Command{User: "alice", Channel: "#ops", Command: "/approvals", Text: "list @bob"}

func TestSlashCommandCarriesTheDocumentedFields(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	out, err := w.Command(approvals)
	require.NoError(t, err)
	require.Equal(t, slacksim.CommandOutcome{Status: 200}, out)
	d := w.app.last(t, "/commands")
	require.Equal(t, "application/x-www-form-urlencoded", d.header.Get("Content-Type"))
	form, err := url.ParseQuery(string(d.body))
	require.NoError(t, err)
	require.NotEmpty(t, form.Get("trigger_id"))
	require.Regexp(t, "^"+w.url+"/response/", form.Get("response_url"))
	form.Del("trigger_id")
	form.Del("response_url")
	require.Equal(t, url.Values{
		"token": {"slacksim-verification"}, "team_id": {"T0COUNTER"}, "team_domain": {"acme"}, "channel_id": {"C0OPS"},
		"channel_name": {"ops"}, "user_id": {"U0ALICE"}, "user_name": {"alice"}, "command": {"/approvals"},
		"text": {"list @bob"}, "api_app_id": {"A0COUNTERSIGN"}, "is_enterprise_install": {"false"},
	}, form)
}

func TestShouldEscapeTurnsNamesIntoEntities(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{EscapeCommands: true})
	_, err := w.Command(slacksim.Command{User: "alice", Channel: "ops", Command: "/approvals", Text: "hand over @bob in #ops"})
	require.NoError(t, err)
	require.Equal(t, "hand over <@U0BOB|bob> in <#C0OPS|ops>", formValue(w.app.last(t, "/commands").body, "text"))
}

func TestSlashCommandAnswerIsEphemeralByDefault(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	for name, answer := range map[string]func(http.ResponseWriter, delivered){
		"plain text": func(w http.ResponseWriter, _ delivered) { _, _ = io.WriteString(w, "nothing waits") },
		"JSON": func(w http.ResponseWriter, _ delivered) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"text":"nothing waits"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.answers(answer)
			out, err := w.Command(approvals)
			require.NoError(t, err)
			require.Equal(t, "nothing waits", out.Message.Text)
			require.True(t, out.Message.Ephemeral)
		})
	}
	seen, err := w.Messages("bob", "ops", "")
	require.NoError(t, err)
	require.Empty(t, seen)
}

// https://github.com/slack-php/slack-php-app-framework/issues/6
func TestJSONOfAnotherTypeIsShownAsText(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	const body = `{"response_type":"in_channel","text":"nothing waits"}`
	for _, kind := range []string{"text/html; charset=utf-8", "text/plain"} {
		w.answers(func(w http.ResponseWriter, _ delivered) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, body)
		})
		out, err := w.Command(approvals)
		require.NoError(t, err)
		require.Contains(t, out.Message.Text, `"response_type"`, kind)
		require.True(t, out.Message.Ephemeral, kind)
	}
}

func TestInChannelAnswerShowsWhatWasTyped(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	w.answersJSON(map[string]any{"response_type": "in_channel", "text": "three wait"})
	_, err := w.Command(approvals)
	require.NoError(t, err)
	seen, err := w.Messages("bob", "ops", "")
	require.NoError(t, err)
	require.Len(t, seen, 2)
	require.Equal(t, "/approvals list @bob", seen[0].Text)
	require.Equal(t, "three wait", seen[1].Text)
}

func TestSlashCommandIsSentOnceAndFailuresAreSeen(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{AckTimeout: 500 * time.Millisecond})
	for want, answer := range map[string]func(http.ResponseWriter, delivered){
		`/approvals failed with the error "operation_timeout"`:  w.app.silent,
		`/approvals failed with the error "http_service_error"`: func(w http.ResponseWriter, _ delivered) { w.WriteHeader(http.StatusServiceUnavailable) },
		`/approvals failed with the error "http_client_error"`:  func(w http.ResponseWriter, _ delivered) { w.WriteHeader(http.StatusNotFound) },
		`/approvals failed with the error "invalid_command_response"`: func(w http.ResponseWriter, _ delivered) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"blocks":[{"type":"nope"}]}`)
		},
	} {
		before := len(w.app.requests("/commands"))
		w.answers(answer)
		out, err := w.Command(approvals)
		require.NoError(t, err)
		require.Equal(t, want, out.VisibleError)
		w.Advance(time.Hour)
		w.idle(t)
		require.Len(t, w.app.requests("/commands"), before+1, want)
	}
}

func TestSlashCommandsAreRefusedInThreadsAndWhenUnknown(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{Commands: []string{"/approvals"}})
	out, err := w.Command(slacksim.Command{User: "alice", Channel: "ops", Command: "/approvals", ThreadTS: "1.2"})
	require.NoError(t, err)
	require.Contains(t, out.VisibleError, "not supported in threads")
	out, err = w.Command(slacksim.Command{User: "alice", Channel: "ops", Command: "/other"})
	require.NoError(t, err)
	require.Equal(t, "/other is not a valid command.", out.VisibleError)
	require.Empty(t, w.app.requests("/commands"))
}
