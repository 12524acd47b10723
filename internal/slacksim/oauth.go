package slacksim

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// oauthAPI is oauth.v2.*, and the page that a browser installs the app from.
type oauthAPI struct {
	*world

	codes map[string]*grant
}

// codeLife is how long the code of an authorization can be exchanged.
const codeLife = 10 * time.Minute

// grant is one authorization that the app has not exchanged yet.
type grant struct {
	redirect  string
	challenge string // of PKCE
	scopes    []string
	in        *installation
	issued    time.Time
}

// serveAuthorize is the page on which a person installs the app. It asks
// nothing and sends the browser back with a code at once.
func (s *oauthAPI) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	back, err := url.Parse(q.Get("redirect_uri"))
	switch {
	case q.Get("client_id") != s.cfg.ClientID:
		http.Error(w, "invalid_client_id", http.StatusBadRequest)
		return
	case q.Get("scope") == "" && q.Get("user_scope") == "":
		http.Error(w, "no_scopes", http.StatusBadRequest)
		return
	case q.Get("scope") == "":
		http.Error(w, "slacksim has no user tokens: ask for scopes of the bot with scope, too", http.StatusBadRequest)
		return
	case err != nil || !IsURL(q.Get("redirect_uri")):
		http.Error(w, "bad_redirect_uri", http.StatusBadRequest)
		return
	}
	in := s.installs[0]
	if team := q.Get("team"); team != "" {
		if in = s.installed(team); in == nil {
			http.Error(w, "invalid_team_for_non_distributed_app", http.StatusBadRequest)
			return
		}
	}
	code := randomHex(16)
	s.codes[code] = &grant{
		redirect: q.Get("redirect_uri"), challenge: q.Get("code_challenge"), in: in, issued: s.clock.now(),
		scopes: strings.FieldsFunc(q.Get("scope"), func(r rune) bool { return r == ',' || r == ' ' }),
	}
	answer := back.Query()
	answer.Set("code", code)
	if state := q.Get("state"); state != "" {
		answer.Set("state", state)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound) //nolint:gosec // the app's own URL, as OAuth wants it
}

// oauthAccess exchanges a code for the token of an installation. Tokens do
// not rotate here.
func (s *oauthAPI) oauthAccess(c *call) (object, *failure) {
	switch {
	case c.str("client_id") != s.cfg.ClientID:
		return nil, fail("invalid_client_id")
	case c.str("client_secret") != s.cfg.ClientSecret:
		return nil, fail("bad_client_secret")
	case c.str("grant_type") == "refresh_token":
		return nil, fail("invalid_refresh_token")
	case c.str("grant_type") != "" && c.str("grant_type") != "authorization_code":
		return nil, fail("invalid_grant_type")
	}
	g := s.codes[c.str("code")]
	delete(s.codes, c.str("code")) // one use, also when it fails
	switch {
	case g == nil || s.clock.now().Sub(g.issued) > codeLife:
		return nil, fail("invalid_code")
	case c.str("redirect_uri") != g.redirect:
		return nil, fail("bad_redirect_uri")
	case g.challenge != "" && challengeOf(c.str("code_verifier")) != g.challenge:
		return nil, fail("invalid_code_verifier")
	}
	g.in.ended = ""
	answer := object{
		"access_token": g.in.token, "token_type": "bot", "scope": strings.Join(s.grantedOf(g.scopes), ","),
		"bot_user_id": g.in.botUser, "app_id": AppID, "team": nil, "enterprise": s.enterpriseOf(g.in.team),
		"is_enterprise_install": g.in.org(), "authed_user": object{"id": "U0ALICE"},
	}
	if !g.in.org() {
		w := s.workspace(g.in.team)
		answer["team"] = object{"id": w.ID, "name": w.Name}
	}
	return answer, nil
}

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func (s *oauthAPI) grantedOf(asked []string) []string {
	return slices.DeleteFunc(slices.Clone(s.cfg.Scopes), func(scope string) bool { return !slices.Contains(asked, scope) })
}

// oauthExchange refuses: the app did not turn token rotation on.
func (s *oauthAPI) oauthExchange(c *call) (object, *failure) {
	switch {
	case c.str("client_id") != s.cfg.ClientID:
		return nil, fail("invalid_client_id")
	case c.str("client_secret") != s.cfg.ClientSecret:
		return nil, fail("bad_client_secret")
	}
	return nil, fail("token_rotation_not_enabled")
}
