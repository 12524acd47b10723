package slacksim_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// respond posts to a response_url and returns the status and the answer.
func respond(t *testing.T, url, body string) (int, string) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NotEmpty(t, resp.Header.Get("Content-Type"))
	return resp.StatusCode, string(data)
}

// clicked posts a card, clicks it as bob and returns its response_url.
func (w *workspace) clicked(t *testing.T) (ts, url string) {
	t.Helper()
	ts = w.post(t, approveButtons)
	_, err := w.Click(click(ts, "approve"))
	require.NoError(t, err)
	return ts, w.app.last(t, "/interactivity").payload(t)["response_url"].(string)
}

func TestResponseURLHasFiveUses(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	_, u := w.clicked(t)
	for range 5 {
		status, answer := respond(t, u, `{"text":"x"}`)
		require.Equal(t, 200, status)
		require.Equal(t, "ok", answer)
	}
	status, answer := respond(t, u, `{"text":"x"}`)
	require.Equal(t, 404, status)
	require.Equal(t, "used_url", answer)
}

func TestResponseURLLivesThirtyMinutes(t *testing.T) {
	now := time.Now()
	w := newWorkspace(t, slacksim.Config{Now: func() time.Time { return now }})
	_, u := w.clicked(t)
	w.Advance(30 * time.Minute)
	status, _ := respond(t, u, `{"text":"x"}`)
	require.Equal(t, 200, status)
	w.Advance(time.Second)
	status, answer := respond(t, u, `{"text":"x"}`)
	require.Equal(t, 404, status)
	require.Equal(t, "expired_url", answer)
}

func TestResponseURLAnswersAreEphemeralUnlessInChannel(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	ts, u := w.clicked(t)
	respond(t, u, `{"text":"for bob"}`)
	respond(t, u, `{"text":"for all","response_type":"in_channel"}`)
	respond(t, u, `{"text":"in the thread","response_type":"in_channel","replace_original":false,"thread_ts":"`+ts+`"}`)
	alice, err := w.Messages("alice", "ops", "")
	require.NoError(t, err)
	require.Len(t, alice, 3)
	require.Equal(t, ts, alice[2].ThreadTS)
	bob, err := w.Messages("bob", "ops", "")
	require.NoError(t, err)
	require.Len(t, bob, 4)
	require.True(t, bob[1].Ephemeral)
}

func TestResponseURLReplacesAndDeletesTheOriginal(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	ts, u := w.clicked(t)
	require.NoError(t, slack.PostWebhookContext(t.Context(), u, &slack.WebhookMessage{Text: "Approved by Bob", ReplaceOriginal: true}))
	seen, err := w.Messages("alice", "ops", "")
	require.NoError(t, err)
	require.Equal(t, ts, seen[0].TS)
	require.Equal(t, "Approved by Bob", seen[0].Shown())
	status, _ := respond(t, u, `{"delete_original":true}`)
	require.Equal(t, 200, status)
	seen, err = w.Messages("alice", "ops", "")
	require.NoError(t, err)
	require.Empty(t, seen)
}

// A deleted message that has replies leaves a tombstone, which is not the original any more.
func TestResponseURLDoesNotReachADeletedOriginal(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	ts, u := w.clicked(t)
	_, err := w.PostAs(slacksim.Post{User: "alice", Channel: "ops", Text: "why?", ThreadTS: ts})
	require.NoError(t, err)
	require.Equal(t, true, w.call(t, "chat.delete", map[string]any{"channel": "C0OPS", "ts": ts})["ok"])
	for _, body := range []string{`{"replace_original":true,"text":"Approved by Bob"}`, `{"delete_original":true}`} {
		status, answer := respond(t, u, body)
		require.Equal(t, 404, status, body)
		require.Equal(t, "message_not_found", answer)
	}
	seen, err := w.Messages("alice", "ops", "")
	require.NoError(t, err)
	require.Equal(t, "This message was deleted.", seen[0].Text)
	require.Equal(t, "tombstone", seen[0].Subtype)
}

func TestResponseURLReplacesEphemeralMessages(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	answer := w.call(t, "chat.postEphemeral", map[string]any{"channel": "C0OPS", "user": "U0BOB", "text": "x", "blocks": message(approveButtons)["blocks"]})
	_, err := w.Click(click(answer["message_ts"].(string), "approve"))
	require.NoError(t, err)
	respond(t, w.app.last(t, "/interactivity").payload(t)["response_url"].(string), `{"replace_original":true,"text":"done"}`)
	seen, err := w.Messages("bob", "ops", "")
	require.NoError(t, err)
	require.Len(t, seen, 1)
	require.Equal(t, "done", seen[0].Shown())
	require.True(t, seen[0].Ephemeral, "visibility never changes")
}

func TestResponseURLOfACommandCannotTouchTheCommandLine(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	_, err := w.Command(approvals)
	require.NoError(t, err)
	u := formValue(w.app.last(t, "/commands").body, "response_url")
	status, _ := respond(t, u, `{"delete_original":true}`)
	require.Equal(t, 404, status)
	status, answer := respond(t, u, `{"text":"x","blocks":[{"type":"nope"}]}`)
	require.Equal(t, 400, status)
	require.Equal(t, "invalid_blocks", answer)
	status, _ = respond(t, u+"0", `{"text":"x"}`)
	require.Equal(t, 404, status)
	w.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "response_url", Status: 500}}})
	status, _ = respond(t, u, `{"text":"x"}`)
	require.Equal(t, 500, status)
}

// https://github.com/slackapi/node-slack-sdk/pull/1617
func TestAnswersCarryMetadata(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	_, u := w.clicked(t)
	metadata := func(n int) map[string]any {
		t.Helper()
		seen, err := w.Messages("alice", "ops", "")
		require.NoError(t, err)
		return seen[n].Metadata
	}
	const posted = `{"event_type":"card_posted","event_payload":{"id":"1"}}`
	respond(t, u, `{"text":"posted","response_type":"in_channel","metadata":`+posted+`}`)
	require.Equal(t, decode(t, []byte(posted)), metadata(1))

	const decided = `{"event_type":"card_decided","event_payload":{"id":"2"}}`
	respond(t, u, `{"text":"replaced","replace_original":true,"metadata":`+decided+`}`)
	require.Equal(t, decode(t, []byte(decided)), metadata(0))
	respond(t, u, `{"text":"replaced","replace_original":true}`)
	require.Equal(t, decode(t, []byte(decided)), metadata(0), "it is kept until something else takes its place")
	respond(t, u, `{"text":"replaced","replace_original":true,"metadata":{}}`)
	require.Empty(t, metadata(0))

	w.answersJSON(map[string]any{"response_type": "in_channel", "text": "three wait", "metadata": decode(t, []byte(posted))})
	_, err := w.Command(approvals)
	require.NoError(t, err)
	require.Equal(t, decode(t, []byte(posted)), metadata(3))
}

// slack-go sends empty metadata in each of its answers that has no other, and those
// answers have been arriving at Slack for years. The Web API refuses the same value.
func TestMetadataWithoutAnEventIsNoneInAnAnswer(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	_, u := w.clicked(t)
	_, _, err := w.api.PostMessageContext(t.Context(), "C0OPS", slack.MsgOptionText("posted", false), slack.MsgOptionResponseURL(u, "in_channel"))
	require.NoError(t, err)
	w.answersJSON(slack.Msg{Text: "three wait"})
	out, err := w.Command(approvals)
	require.NoError(t, err)
	require.Empty(t, out.VisibleError)
	require.Equal(t, "three wait", out.Message.Text)
	require.Nil(t, out.Message.Metadata)

	status, answer := respond(t, u, `{"text":"x","metadata":{"event_type":"","event_payload":{"id":"1"}}}`)
	require.Equal(t, 400, status)
	require.Equal(t, "invalid_metadata_schema", answer)
	said := w.call(t, "chat.postMessage", map[string]any{"channel": "C0OPS", "text": "x", "metadata": slack.SlackMetadata{}})
	require.Equal(t, "invalid_metadata_schema", said["error"])
}

// markdown_text is an argument of the chat methods, and not part of a message.
func TestAnswersHaveNoMarkdownText(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	_, u := w.clicked(t)
	status, answer := respond(t, u, `{"markdown_text":"**x**"}`)
	require.Equal(t, 400, status)
	require.Equal(t, "no_text", answer)
	status, _ = respond(t, u, `{"blocks":[{"type":"markdown","text":"**x**"}]}`)
	require.Equal(t, 200, status)
	w.answersJSON(map[string]any{"markdown_text": "**x**"})
	out, err := w.Command(approvals)
	require.NoError(t, err)
	require.Contains(t, out.VisibleError, "invalid_command_response")
}
