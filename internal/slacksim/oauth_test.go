package slacksim_test

import (
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

const back = "https://app.example/oauth"

// authorize is someone's browser installing the app.
func (w *workspace) authorize(t *testing.T, more url.Values) (code, state string) {
	t.Helper()
	q := url.Values{"client_id": {"slacksim-client"}, "scope": {"chat:write,users:read"}, "redirect_uri": {back}, "state": {"s1"}}
	maps.Copy(q, more)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(w.url + "/oauth/v2/authorize?" + q.Encode())
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusFound, resp.StatusCode)
	to, err := resp.Location()
	require.NoError(t, err)
	require.Equal(t, "app.example", to.Host)
	return to.Query().Get("code"), to.Query().Get("state")
}

func (w *workspace) exchange(code string) (*slack.OAuthV2Response, error) {
	return slack.GetOAuthV2Response(http.DefaultClient, "slacksim-client", w.ClientSecret(), code, back, slack.OAuthOptionAPIURL(w.url+"/api/"))
}

// The client's credentials may come as Slack's client for Python sends them.
func TestAClientProvesItselfWithBasicAuthentication(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	exchange := func(secret string) map[string]any {
		code, _ := w.authorize(t, nil)
		form := url.Values{"code": {code}, "redirect_uri": {back}}
		req, err := http.NewRequestWithContext(soon(t), http.MethodPost, w.url+"/api/oauth.v2.access", strings.NewReader(form.Encode()))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.SetBasicAuth("slacksim-client", secret)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		data, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return decode(t, data)
	}
	require.Equal(t, w.BotToken(), exchange(w.ClientSecret())["access_token"])
	require.Equal(t, "bad_client_secret", exchange("not it")["error"])
}

func TestACodeIsExchangedOnceForTheToken(t *testing.T) {
	w := newWorkspace(t, twoCompanies())
	require.NoError(t, w.SetInstalled("", false))
	code, state := w.authorize(t, nil)
	require.Equal(t, "s1", state)
	got, err := w.exchange(code)
	require.NoError(t, err)
	require.Equal(t, w.BotToken(), got.AccessToken)
	require.Equal(t, []string{"bot", "U0BOT", "A0COUNTERSIGN", "T0COUNTER", "Acme"},
		[]string{got.TokenType, got.BotUserID, got.AppID, got.Team.ID, got.Team.Name})
	require.Equal(t, "chat:write,users:read", got.Scope)
	require.False(t, got.IsEnterpriseInstall)
	_, err = w.api.AuthTest()
	require.NoError(t, err, "the app is installed again")
	_, err = w.exchange(code)
	require.EqualError(t, err, "invalid_code")
	for _, e := range w.Calls("oauth.v2.access") {
		require.NotContains(t, e.Request, w.ClientSecret(), "the log is for everyone who looks at the page")
	}

	code, _ = w.authorize(t, url.Values{"team": {"T0GLOBEX"}})
	got, err = w.exchange(code)
	require.NoError(t, err)
	require.Equal(t, w.TokenOf(slacksim.Globex), got.AccessToken)
}

func TestOAuthRefusesWhatSlackRefuses(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	verified, _ := w.authorize(t, url.Values{"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}})
	late, _ := w.authorize(t, nil)
	for name, c := range map[string]struct {
		in   url.Values
		want string
	}{
		"client":   {url.Values{"client_id": {"x"}}, "invalid_client_id"},
		"secret":   {url.Values{"client_secret": {"x"}}, "bad_client_secret"},
		"grant":    {url.Values{"grant_type": {"x"}}, "invalid_grant_type"},
		"refresh":  {url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"x"}}, "invalid_refresh_token"},
		"code":     {url.Values{"code": {"x"}}, "invalid_code"},
		"verifier": {url.Values{"code": {verified}, "code_verifier": {"x"}}, "invalid_code_verifier"},
	} {
		in := url.Values{"client_id": {"slacksim-client"}, "client_secret": {w.ClientSecret()}, "redirect_uri": {back}}
		maps.Copy(in, c.in)
		require.Equal(t, c.want, w.form(t, "oauth.v2.access", in)["error"], name)
	}
	elsewhere, _ := w.authorize(t, nil)
	in := url.Values{"client_id": {"slacksim-client"}, "client_secret": {w.ClientSecret()}, "code": {elsewhere}, "redirect_uri": {"https://other.example"}}
	require.Equal(t, "bad_redirect_uri", w.form(t, "oauth.v2.access", in)["error"])
	w.Advance(10*time.Minute + time.Second)
	_, err := w.exchange(late)
	require.EqualError(t, err, "invalid_code")
	in = url.Values{"client_id": {"slacksim-client"}, "client_secret": {w.ClientSecret()}}
	require.Equal(t, "token_rotation_not_enabled", w.form(t, "oauth.v2.exchange", in)["error"])

	verified, _ = w.authorize(t, url.Values{"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}})
	good := url.Values{
		"client_id": {"slacksim-client"}, "client_secret": {w.ClientSecret()}, "redirect_uri": {back},
		"code": {verified}, "code_verifier": {"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"},
	}
	require.Equal(t, true, w.form(t, "oauth.v2.access", good)["ok"], "the example of RFC 7636")
	for _, q := range []string{"client_id=x", "client_id=slacksim-client", "client_id=slacksim-client&scope=a&redirect_uri=javascript:1", "client_id=slacksim-client&user_scope=search:read&redirect_uri=http://a.example"} {
		resp, err := http.Get(w.url + "/oauth/v2/authorize?" + q)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusBadRequest, resp.StatusCode, q)
	}
}
