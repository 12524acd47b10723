package uistream_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/plainhttp/plainhttptest"
	"github.com/countersign/countersign/internal/uistream"
)

const ourPage, session = "https://app.example", "/api/chat/session"

// mortal are people whose credentials can be taken away.
type mortal struct {
	people
	gone atomic.Bool
}

func (m *mortal) Prove(r *http.Request) (approvals.UserID, error) {
	if m.gone.Load() {
		return "", &uistream.RefusedError{Status: http.StatusUnauthorized, Words: "Sign in."}
	}
	return m.people.Prove(r)
}

// withCookies is a world whose chats are used from a browser.
func withCookies(t *testing.T) (*world, *mortal) {
	t.Helper()
	m := &mortal{}
	return newWorld(t, func(c *uistream.Config, _ *agentrun.Agent) { c.Cookies, c.People = true, m }), m
}

// signsIn exchanges the credential of the person for a cookie.
func (w *world) signsIn(user approvals.UserID) *http.Cookie {
	w.Helper()
	c := w.client(user)
	c.head.Set("Origin", ourPage)
	r := c.do(http.MethodPost, session, nil)
	require.Equal(w, http.StatusNoContent, r.code)
	got := (&http.Response{Header: r.header}).Cookies()
	require.Len(w, got, 1)
	return got[0]
}

// browser is a page of our own with the cookie.
func (w *world) browser(of *http.Cookie) *client {
	c := w.client("")
	c.head.Set("Cookie", of.Name+"="+of.Value)
	c.head.Set("Origin", ourPage)
	c.head.Set("Sec-Fetch-Site", "same-site")
	return c
}

func TestACredentialIsExchangedForACookie(t *testing.T) {
	w, _ := withCookies(t)
	of := w.signsIn(alice)
	require.True(t, strings.HasPrefix(of.Name, "__Host-"), "so browsers take it from no other host")
	require.True(t, of.HttpOnly && of.Secure)
	require.Equal(t, http.SameSiteStrictMode, of.SameSite)
	require.Equal(t, "/", of.Path)
	require.Empty(t, of.Domain)
	require.Equal(t, 8*60*60, of.MaxAge)

	c := w.browser(of)
	read(t, c.say("u1", "say hello")).all()
	require.Contains(t, body(t, w.client(alice).do(http.MethodGet, "/api/chat/chat1", nil)), "hello", "it is the same person")
	r := c.do(http.MethodGet, "/api/chat/chat1", nil)
	require.Equal(t, http.StatusOK, r.code)
	require.Equal(t, "true", r.header.Get("Access-Control-Allow-Credentials"))

	both := w.client(bob)
	both.head = c.head.Clone()
	require.Equal(t, http.StatusNotFound, both.do(http.MethodGet, "/api/chat/chat1", nil).code, "the header goes before the cookie")
	require.Equal(t, http.StatusUnauthorized, c.do(http.MethodPost, session, nil).code, "a cookie does not renew itself")
	c.head.Add("Cookie", of.Name+"=UBOB")
	require.Equal(t, http.StatusUnauthorized, c.do(http.MethodGet, "/api/chat/chat1", nil).code, "of two nobody knows which")

	for _, bad := range []approvals.UserID{"UA;B", "UA B", approvals.UserID("U" + strings.Repeat("A", 3900))} {
		require.Equal(t, http.StatusUnprocessableEntity, w.client(bad).do(http.MethodPost, session, nil).code)
	}
	off := newWorld(t)
	require.NotEqual(t, http.StatusNoContent, off.client(alice).do(http.MethodPost, session, nil).code)
	require.Equal(t, http.StatusUnauthorized, off.browser(of).do(http.MethodGet, "/api/chat/chat1", nil).code, "without the setting a cookie proves nobody")
}

// Another page can make a browser send a request with the cookie. Nothing comes of it.
func TestARequestThatAnotherPageForgesDoesNothing(t *testing.T) {
	w, _ := withCookies(t)
	of := w.signsIn(bob)
	_, asked := w.client(alice).ask("bobs:a")
	decide := "/api/chat/chat1/approvals/" + asked["c0.0.0"]
	for name, head := range map[string]map[string]string{
		"another site":                     {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
		"another host of the same site":    {"Origin": "https://blog.app.example", "Sec-Fetch-Site": "same-site"},
		"a sandboxed frame":                {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
		"another port":                     {"Origin": "https://app.example:8443", "Sec-Fetch-Site": "same-site"},
		"without encryption":               {"Origin": "http://app.example", "Sec-Fetch-Site": "cross-site"},
		"an origin that begins like ours":  {"Origin": "https://app.example.evil.example", "Sec-Fetch-Site": "cross-site"},
		"an older browser":                 {"Origin": "https://evil.example"},
		"no origin":                        {"Sec-Fetch-Site": "cross-site"},
		"no origin, of the same site":      {"Sec-Fetch-Site": "same-site"},
		"what does not say where it is of": {},
	} {
		c := w.browser(of)
		c.head.Del("Origin")
		c.head.Del("Sec-Fetch-Site")
		for k, v := range head {
			c.head.Set(k, v)
		}
		require.Equal(t, http.StatusForbidden, c.do(http.MethodPost, decide, object{"approved": true}).code, name)
		require.Equal(t, http.StatusForbidden, c.say("u1", "free:a").code, name)
		r := c.do(http.MethodDelete, session, nil)
		require.Equal(t, http.StatusForbidden, r.code, name)
		require.Empty(t, r.header.Values("Set-Cookie"), name)
		if len(head) > 0 {
			require.Equal(t, http.StatusForbidden, c.do(http.MethodGet, "/api/chat/chat1/stream", nil).code, "%s: nor a stream, as by the address of an image", name)
		}
		if origin := head["Origin"]; origin != "" {
			r := c.do(http.MethodOptions, "/api/chat", nil)
			require.Equal(t, http.StatusForbidden, r.code, name)
			require.Empty(t, r.header.Get("Access-Control-Allow-Credentials"), name)
		}
	}
	form := w.browser(of)
	form.head.Set("Content-Type", "application/x-www-form-urlencoded")
	require.Equal(t, http.StatusUnsupportedMediaType, form.do(http.MethodPost, decide, "approved=true").code, "a form is no JSON")
	form.head.Set("Content-Type", "application/json; charset=utf-16")
	require.Equal(t, http.StatusUnsupportedMediaType, form.do(http.MethodPost, decide, object{"approved": true}).code, "JSON is in UTF-8")
	require.Empty(t, w.executed())
	require.Equal(t, http.StatusNotFound, w.client(bob).do(http.MethodGet, "/api/chat/chat1", nil).code, "no message was taken")

	require.Equal(t, http.StatusOK, w.browser(of).do(http.MethodPost, decide, object{"approved": true}).code, "our own page may")
	require.Eventually(t, func() bool { return len(w.executed()) == 1 }, waitTime, tick)
}

// A cookie is worth as much as its credential, and as long.
func TestACookieEndsWithItsCredential(t *testing.T) {
	w, m := withCookies(t)
	c := w.browser(w.signsIn(alice))
	c.head.Set("Countersign-Follow", "true")
	s := read(t, c.say("u1", "bobs:a"))
	s.until("tool-approval-request")
	m.gone.Store(true)
	require.NotContains(t, "\n"+short(s.all()), "\nfinish ", "an open stream ends too")
	r := c.do(http.MethodGet, "/api/chat/chat1", nil)
	require.Equal(t, http.StatusUnauthorized, r.code)
	gone := (&http.Response{Header: r.header}).Cookies()
	require.Len(t, gone, 1, "and the browser forgets it")
	require.Negative(t, gone[0].MaxAge)

	r = c.do(http.MethodDelete, session, nil)
	require.Equal(t, http.StatusNoContent, r.code, "who signs out needs no credential")
	require.Contains(t, r.header.Get("Set-Cookie"), "Max-Age=0")
}

// What a person whose credential was taken away had begun to send counts for nothing.
func TestACredentialThatIsTakenAwayWhileABodyArrivesChangesNothing(t *testing.T) {
	m := &mortal{}
	w := newWorld(t, func(c *uistream.Config, _ *agentrun.Agent) { c.People = m })
	c := w.client(alice)
	_, asked := c.ask("del:a")
	for path, sent := range map[string]string{
		"/approvals/" + asked["c0.0.0"]: `{"approved":true}`, "": `{"id":"chat2","messages":[{"id":"u1","role":"user","parts":[{"type":"text","text":"say hello"}]}]}`,
	} {
		url := uistream.Path
		if path != "" {
			url += "/" + c.chat + path
		}
		m.gone.Store(false)
		out := plainhttptest.PostLate(w.http.Config.Handler, url, string(alice), sent, func() { m.gone.Store(true) })
		require.Equal(t, http.StatusUnauthorized, out.Code, "%s: %s", url, out.Body)
	}
	m.gone.Store(false)
	require.Contains(t, body(t, c.do(http.MethodGet, uistream.Path+"/"+c.chat, nil)), `"state":"approval-requested"`)
	require.Equal(t, http.StatusNotFound, c.do(http.MethodGet, uistream.Path+"/chat2", nil).code)
	require.Empty(t, w.executed())
	out := plainhttptest.PostLate(w.http.Config.Handler, uistream.Path+"/"+c.chat+"/approvals/"+asked["c0.0.0"], string(alice), `{"approved":true}`, func() {})
	require.Equal(t, http.StatusOK, out.Code, out.Body)
}
