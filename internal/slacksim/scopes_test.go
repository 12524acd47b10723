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
