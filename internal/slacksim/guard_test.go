package slacksim_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// everywhere is a request to each of the simulator's doors: the Web API, the
// control API, OAuth, a response_url, Socket Mode and the page.
func everywhere(w *workspace) []request {
	form, token := "application/x-www-form-urlencoded", url.Values{"token": {w.BotToken()}}.Encode()
	return []request{
		{"POST", "/api/auth.test", form, "", token},
		{"POST", "/api/auth.test/", form, "", token},
		{"OPTIONS", "/api/auth.test", "", "", ""},
		{"GET", "/api/auth.test", "", "Bearer " + w.BotToken(), ""},
		{"GET", "/sim/state", "", "", ""},
		{"GET", "/oauth/v2/authorize?client_id=slacksim-client&scope=chat:write&redirect_uri=https://app.example", "", "", ""},
		{"POST", "/response/T0COUNTER/none", "application/json", "", `{"text":"x"}`},
		{"GET", "/link/?ticket=none", "", "", ""},
		{"GET", "/", "", "", ""},
	}
}

// asks sends a request under a host name, from a page of an origin if one is
// given, and returns the answer and its status.
func (w *workspace) asks(t *testing.T, r request, host, origin string) (int, http.Header, string) {
	t.Helper()
	req := httptest.NewRequest(r.method, r.path, strings.NewReader(r.body))
	req.Host = host
	for name, value := range map[string]string{"Content-Type": r.contentType, "Authorization": r.auth, "Origin": origin} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, req)
	return rec.Code, rec.Header(), rec.Body.String()
}

func TestPagesOfOtherSitesReachNothing(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	for _, r := range everywhere(w) {
		for _, origin := range []string{"https://evil.example", "null", "http://localhost:1", "https://api.slack.com"} {
			status, header, body := w.asks(t, r, "localhost:8485", origin)
			if r.path == "/link/?ticket=none" && origin == "https://api.slack.com" {
				require.NotContains(t, body, "another site", "slack-go sends this origin when it opens a connection")
				continue
			}
			require.Equal(t, http.StatusForbidden, status, "%s %s from %s", r.method, r.path, origin)
			require.Contains(t, body, "another site's page", "%s %s from %s", r.method, r.path, origin)
			require.Empty(t, header.Get("Access-Control-Allow-Origin"), "%s %s", r.method, r.path)
		}
		_, _, body := w.asks(t, r, "localhost:8485", "http://localhost:8485")
		require.NotContains(t, body, "another site's page", "its own page: %s %s", r.method, r.path)
	}
}

// A page whose name was pointed at this machine afterwards (DNS rebinding) is
// of the same origin as far as its browser can tell; only the name gives it away.
func TestNothingIsServedUnderAForeignName(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	w.SetPublicURL("")
	for _, r := range everywhere(w) {
		status, _, body := w.asks(t, r, "evil.example:8485", "http://evil.example:8485")
		require.Equal(t, http.StatusForbidden, status, "%s %s", r.method, r.path)
		require.Contains(t, body, "evil.example:8485", "%s %s", r.method, r.path)
		_, _, body = w.asks(t, r, "127.0.0.1:8485", "")
		require.NotContains(t, body, "is not served under", "%s %s", r.method, r.path)
	}
	exposed := newNamed(t, slacksim.Config{AnyHost: true})
	status, _, _ := exposed.asks(t, everywhere(exposed)[0], "sim.internal:8485", "")
	require.Equal(t, http.StatusOK, status, "another machine may be one that the app runs on")
}

// newNamed is a workspace that was told no public URL.
func newNamed(t *testing.T, cfg slacksim.Config) *workspace {
	t.Helper()
	s := slacksim.New(cfg)
	t.Cleanup(s.Close)
	return &workspace{Server: s}
}

// The addresses that the app gets start with the name by which the app itself
// reached the simulator. Someone else's name for it must not get in there:
// the app would send its answers to them.
func TestOnlyTheAppSaysByWhichNameItReachesTheSimulator(t *testing.T) {
	for name, exposed := range map[string]bool{"on this machine": false, "exposed": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorkspace(t, slacksim.Config{AnyHost: exposed})
			w.SetPublicURL("")
			responseURL := func() string {
				_, err := w.Command(slacksim.Command{User: "alice", Channel: "ops", Command: "/approvals"})
				require.NoError(t, err)
				return formValue(w.app.last(t, "/commands").body, "response_url")
			}
			form := "application/x-www-form-urlencoded"
			w.asks(t, request{"POST", "/api/auth.test", form, "", "token=" + w.BotToken()}, "localhost:1", "")
			require.Contains(t, responseURL(), "http://localhost:1/response/")
			for _, r := range everywhere(w)[4:] {
				w.asks(t, r, "evil.example", "")
			}
			w.asks(t, request{"POST", "/api/auth.test", form, "", "token=xoxb-guessed"}, "evil.example", "")
			require.Contains(t, responseURL(), "http://localhost:1/response/")
		})
	}
}

func TestCredentialsAreRandomUnlessTheyAreChosen(t *testing.T) {
	credentials := func(cfg slacksim.Config) []string {
		w := newNamed(t, cfg.WithGlobex())
		return []string{w.BotToken(), w.SigningSecret(), w.AppToken(), w.ClientSecret(), w.TokenOf(slacksim.Globex)}
	}
	one, other := credentials(slacksim.Config{}), credentials(slacksim.Config{})
	for i, prefix := range []string{"xoxb-", "", "xapp-", "", "xoxb-"} {
		require.NotEqual(t, one[i], other[i])
		require.True(t, strings.HasPrefix(one[i], prefix), one[i])
		require.GreaterOrEqual(t, len(one[i]), 32, "it cannot be guessed")
	}
	chosen := slacksim.Config{BotToken: "xoxb-1", SigningSecret: "s", AppToken: "xapp-1", ClientSecret: "c"}
	require.Equal(t, []string{"xoxb-1", "s", "xapp-1", "c"}, credentials(chosen)[:4])
}
