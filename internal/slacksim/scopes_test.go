package slacksim_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

func TestEveryAnswerToTheTokenSaysItsScopes(t *testing.T) {
	sim := slacksim.New(slacksim.Config{Scopes: []string{"chat:write", "users:read"}})
	defer sim.Close()
	srv := httptest.NewServer(sim)
	defer srv.Close()
	header := func(method, token string) http.Header {
		resp, err := http.PostForm(srv.URL+"/api/"+method, url.Values{"token": {token}})
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.Header
	}
	require.Equal(t, "chat:write,users:read", header("auth.test", sim.BotToken()).Get("X-OAuth-Scopes"))
	require.Empty(t, header("auth.test", sim.BotToken()).Get("X-Accepted-OAuth-Scopes"), "it needs none")
	require.Equal(t, "chat:write,users:read", header("usergroups.list", sim.BotToken()).Get("X-OAuth-Scopes"), "refused for want of one")
	require.Equal(t, "usergroups:read", header("usergroups.list", sim.BotToken()).Get("X-Accepted-OAuth-Scopes"))
	require.Empty(t, header("auth.test", "xoxb-other").Get("X-OAuth-Scopes"))
}

// Without chat:write.customize, the name that an app gives itself is ignored.
func TestOnlyAnAppWithTheScopeNamesItself(t *testing.T) {
	named := url.Values{"channel": {"C0OPS"}, "text": {"x"}, "username": {"Payments"}}
	w := newWorkspace(t, slacksim.Config{Scopes: []string{"chat:write"}})
	answer := w.form(t, "chat.postMessage", named)
	require.Equal(t, true, answer["ok"])
	require.NotContains(t, answer["message"], "username")
	seen, err := w.Messages("bob", "C0OPS", "")
	require.NoError(t, err)
	require.Empty(t, seen[0].Username)
}
