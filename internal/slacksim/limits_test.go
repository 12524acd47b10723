package slacksim_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// still is a clock that only Advance moves.
func still() time.Time { return time.Unix(1_700_000_000, 0) }

// A tier is per method and installation: the 21st call in a minute waits,
// other methods and other workspaces do not.
func TestTiersLimitEachMethodOfAnInstallation(t *testing.T) {
	cfg := twoCompanies()
	cfg.TierLimits, cfg.Now = true, still
	w := newWorkspace(t, cfg)
	for range 20 {
		_, err := w.api.GetUserGroupMembers("S0SRE")
		require.NoError(t, err)
	}
	_, err := w.api.GetUserGroupMembers("S0SRE")
	var limited *slack.RateLimitedError
	require.ErrorAs(t, err, &limited)
	require.Equal(t, time.Minute, limited.RetryAfter)

	_, err = w.api.GetUserGroups()
	require.NoError(t, err, "another method")
	_, err = slack.New(w.TokenOf(slacksim.Globex), slack.OptionAPIURL(w.url+"/api/")).GetUserGroupMembers("S0LAB")
	require.NoError(t, err, "another workspace")
	w.Advance(limited.RetryAfter)
	_, err = w.api.GetUserGroupMembers("S0SRE")
	require.NoError(t, err, "after the time that was said")
	for range 200 {
		_, err = w.api.AuthTest()
		require.NoError(t, err, "no documented number")
	}
}

func TestPostsAreLimitedPerChannel(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{PostLimit: true, Now: still})
	post := func(channel string) answered {
		body := `{"channel":"` + channel + `","text":"x"}`
		return w.send(t, request{"POST", "/api/chat.postMessage", "application/json; charset=utf-8", "Bearer " + w.BotToken(), body})
	}
	for range 3 {
		require.Equal(t, http.StatusOK, post("C0OPS").status)
	}
	for _, name := range []string{"ops", "#ops"} {
		require.Equal(t, http.StatusTooManyRequests, post(name).status, "another name of the same channel")
	}
	refused := post("C0OPS")
	require.Equal(t, http.StatusTooManyRequests, refused.status)
	require.Equal(t, "3", refused.header.Get("Retry-After"))
	require.Contains(t, string(refused.body), `"ratelimited"`)
	require.Equal(t, http.StatusOK, post("C0GENERAL").status)
	for range 3 {
		require.Equal(t, http.StatusOK, post("U0BOB").status)
	}
	require.Equal(t, http.StatusTooManyRequests, post("U0BOB").status, "the first one opened the conversation")
	w.Advance(3 * time.Second)
	require.Equal(t, http.StatusOK, post("C0OPS").status)
}

func TestTabsThatTheAppDoesNotHave(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{NoHome: true, NoMessages: true})
	home := map[string]any{"type": "home", "blocks": message(`[` + divider + `]`)["blocks"]}
	require.Equal(t, "not_enabled", w.call(t, "views.publish", map[string]any{"user_id": "U0BOB", "view": home})["error"])
	require.ErrorIs(t, w.OpenHome("bob"), slacksim.ErrForbidden)
	require.Equal(t, "messages_tab_disabled", w.call(t, "chat.postMessage", map[string]any{"channel": "U0BOB", "text": "x"})["error"])
	_, err := w.PostAs(slacksim.Post{User: "bob", Channel: "@countersign", Text: "hi"})
	require.ErrorIs(t, err, slacksim.ErrForbidden)

	_, state := w.sim(t, "state", nil)
	require.Equal(t, []any{false, false}, []any{state["home"], state["messages"]}, "so that a page need not offer them")
}

func TestAReadOnlyMessagesTabIsForTheAppToWriteIn(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{ReadMessages: true})
	require.Equal(t, true, w.call(t, "chat.postMessage", map[string]any{"channel": "U0BOB", "text": "x"})["ok"])
	_, err := w.PostAs(slacksim.Post{User: "bob", Channel: "@countersign", Text: "hi"})
	require.ErrorIs(t, err, slacksim.ErrForbidden)
	_, state := w.sim(t, "state", nil)
	require.Equal(t, false, state["messages"])
}

func TestResponseURLTakesAForm(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	_, err := w.Command(slacksim.Command{User: "alice", Channel: "ops", Command: "/approvals"})
	require.NoError(t, err)
	target := formValue(w.app.last(t, "/commands").body, "response_url")
	resp, err := http.Post(target, "application/x-www-form-urlencoded", strings.NewReader("payload=%7B%22text%22%3A%22hi%22%7D"))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	seen, err := w.Messages("alice", "ops", "")
	require.NoError(t, err)
	require.Equal(t, "hi", seen[0].Text)
}
