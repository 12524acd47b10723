package slacksim_test

import (
	"bytes"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// request is how one kind of client makes a call.
type request struct {
	method, path, contentType, auth, body string
}

// answered is what came back.
type answered struct {
	status int
	header http.Header
	body   []byte
}

func (w *workspace) send(t *testing.T, r request) answered {
	t.Helper()
	req, err := http.NewRequestWithContext(soon(t), r.method, w.url+r.path, strings.NewReader(r.body))
	require.NoError(t, err)
	for name, value := range map[string]string{"Content-Type": r.contentType, "Authorization": r.auth} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return answered{resp.StatusCode, resp.Header, body}
}

// The same message, as clients in other languages send it.
func TestEveryKindOfClientIsServed(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	token, bearer := w.BotToken(), "Bearer "+w.BotToken()
	const (
		form   = "application/x-www-form-urlencoded"
		blocks = `[{"type":"divider","block_id":"d"}]`
		json   = `{"channel":"C0OPS","text":"hi","blocks":` + blocks + `,"unfurl_links":false}`
	)
	values := url.Values{"channel": {"C0OPS"}, "text": {"hi"}, "blocks": {blocks}, "unfurl_links": {"false"}, "reply_broadcast": {"0"}}
	withToken := url.Values{"token": {token}}
	maps.Copy(withToken, values)
	var parts bytes.Buffer
	writer := multipart.NewWriter(&parts)
	for k, v := range withToken {
		require.NoError(t, writer.WriteField(k, v[0]))
	}
	require.NoError(t, writer.Close())

	for name, c := range map[string]struct {
		request
		warning string
	}{
		"slack-go: form with token":       {request{"POST", "/api/chat.postMessage", form, "", withToken.Encode()}, ""},
		"node: form, bearer":              {request{"POST", "/api/chat.postMessage", form, bearer, values.Encode()}, ""},
		"axios: form with charset":        {request{"POST", "/api/chat.postMessage", form + ";charset=utf-8", bearer, values.Encode()}, "superfluous_charset"},
		"python: JSON":                    {request{"POST", "/api/chat.postMessage", "application/json;charset=utf-8", bearer, json}, ""},
		"java: JSON, charset in capitals": {request{"POST", "/api/chat.postMessage", `application/json; charset="UTF-8"`, bearer, json}, ""},
		"curl: JSON without charset":      {request{"POST", "/api/chat.postMessage", "application/json", bearer, json}, "missing_charset"},
		"blocks as a string in JSON":      {request{"POST", "/api/chat.postMessage", "application/json; charset=utf-8", bearer, `{"channel":"C0OPS","text":"hi","blocks":"[{\"type\":\"divider\",\"block_id\":\"d\"}]","unfurl_links":"false"}`}, ""},
		"multipart":                       {request{"POST", "/api/chat.postMessage", writer.FormDataContentType(), "", parts.String()}, ""},
		"GET with a query":                {request{"GET", "/api/chat.postMessage?" + values.Encode(), "", bearer, ""}, ""},
		"POST with a query":               {request{"POST", "/api/chat.postMessage?" + values.Encode(), "", bearer, ""}, ""},
		"lower-case scheme":               {request{"POST", "/api/chat.postMessage", form, "bearer " + token, values.Encode()}, ""},
		"trailing slash":                  {request{"POST", "/api/chat.postMessage/", form, bearer, values.Encode()}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.send(t, c.request)
			answer := decode(t, got.body)
			require.Equal(t, true, answer["ok"], "%s", got.body)
			require.Equal(t, "d", dig(t, answer, "message", "blocks", 0, "block_id"))
			require.Equal(t, "application/json; charset=utf-8", got.header.Get("Content-Type"))
			if c.warning == "" {
				require.NotContains(t, answer, "warning")
			} else {
				require.Equal(t, c.warning, answer["warning"])
				require.Equal(t, []any{c.warning}, dig(t, answer, "response_metadata", "warnings"))
			}
		})
	}
	seen, err := w.Messages("alice", "C0OPS", "")
	require.NoError(t, err)
	require.Len(t, seen, 12)
}

func TestBooleansInForms(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	for value, want := range map[string]bool{"true": true, "1": true, "false": false, "0": false, "": false} {
		answer := w.form(t, "usergroups.list", url.Values{"include_users": {value}})
		_, got := dig(t, answer, "usergroups", 0).(map[string]any)["users"]
		require.Equal(t, want, got, "%q", value)
	}
}

func TestReadMethodsTakeGET(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	ts := w.post(t, `[`+divider+`]`)
	for _, path := range []string{
		"users.info?user=U0BOB", "users.list?limit=2", "conversations.info?channel=C0OPS", "conversations.members?channel=C0OPS",
		"conversations.history?channel=C0OPS&limit=1", "conversations.replies?channel=C0OPS&ts=" + ts, "usergroups.list",
		"usergroups.users.list?usergroup=S0SRE", "chat.getPermalink?channel=C0OPS&message_ts=" + ts, "team.info", "bots.info",
		"users.lookupByEmail?email=bob@acme.example", "auth.test",
	} {
		body := w.send(t, request{"GET", "/api/" + path, "", "Bearer " + w.BotToken(), ""}).body
		require.Equal(t, true, decode(t, body)["ok"], "%s: %s", path, body)
	}
	body := w.send(t, request{"GET", "/api/auth.test?token=" + w.BotToken(), "", "", ""}).body
	require.Equal(t, "not_authed", decode(t, body)["error"], "tokens do not travel in URLs")
}

func TestOtherHTTPMethodsCallNothing(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	path := "/api/chat.postMessage?channel=C0OPS&text=x"
	for method, want := range map[string]int{"HEAD": 200, "OPTIONS": 200, "PUT": 405, "DELETE": 405} {
		got := w.send(t, request{method, path, "", "Bearer " + w.BotToken(), ""})
		require.Equal(t, want, got.status, method)
	}
	require.Empty(t, w.Calls("chat.postMessage"))
}

func TestUnknownCharsetIsRefused(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	answer := w.raw(t, "auth.test", "application/json; charset=utf-16", "Bearer "+w.BotToken(), "{}")
	require.Equal(t, "invalid_charset", answer["error"])
}

// Every answer to a good token says what the token was granted; what a
// method needs is said to everyone.
func TestScopesAreSaidInHeaders(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{Scopes: []string{"chat:write", "users:read"}})
	for _, c := range []struct{ method, token, granted, needed string }{
		{"auth.test", w.BotToken(), "chat:write,users:read", ""},
		{"users.list", w.BotToken(), "chat:write,users:read", "users:read"},
		{"usergroups.list", w.BotToken(), "chat:write,users:read", "usergroups:read"},
		{"users.list", "xoxb-other", "", "users:read"},
	} {
		got := w.send(t, request{"POST", "/api/" + c.method, "", "Bearer " + c.token, ""})
		require.Equal(t, c.granted, got.header.Get("X-OAuth-Scopes"), c.method)
		require.Equal(t, c.needed, got.header.Get("X-Accepted-OAuth-Scopes"), c.method)
	}
}
