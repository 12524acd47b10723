package bearer_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/intake"
)

// A world is a guard with its clock, its agents and what it logs.
type world struct {
	*bearer.Guard
	now    time.Time
	agents []bearer.Agent
	log    bytes.Buffer
}

func newWorld(agents ...bearer.Agent) *world {
	w := &world{now: time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC), agents: agents}
	w.Guard = bearer.New(bearer.Config{
		Agents: func() []bearer.Agent { return w.agents }, Now: func() time.Time { return w.now },
		Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	})
	return w
}

func agent(name string, tokens ...string) bearer.Agent {
	a := bearer.Agent{Client: intake.Client{Name: name}, Doors: []intake.Door{"api"}}
	for _, t := range tokens {
		a.Tokens = append(a.Tokens, bearer.SumOf(t))
	}
	return a
}

func request(authorization ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.RemoteAddr = "192.0.2.7:1234"
	for _, a := range authorization {
		r.Header.Add("Authorization", a)
	}
	return r
}

func TestATokenProvesItsAgent(t *testing.T) {
	w := newWorld(agent("ci", "one", "two"), agent("laptop", "three"))
	first, err := w.Prove(request("Bearer one"))
	require.NoError(t, err)
	require.Equal(t, "ci", first.Client.Name)
	second, err := w.Prove(request("bearer two"))
	require.NoError(t, err, "the name of the scheme has no case")
	require.Equal(t, "ci", second.Client.Name)
	require.NotEqual(t, first.Client.Credential, second.Client.Credential)
	require.NotContains(t, first.Client.Credential, "one")
	third, err := w.Prove(request("Bearer three"))
	require.NoError(t, err)
	require.Equal(t, "laptop", third.Client.Name)
}

func TestWhatProvesNobodyIsRefused(t *testing.T) {
	w := newWorld(agent("ci", "one"), bearer.Agent{Client: intake.Client{Name: "none"}})
	for _, c := range []struct {
		headers []string
		want    error
	}{
		{nil, bearer.ErrMissing},
		{[]string{"Bearer one", "Bearer one"}, bearer.ErrMissing},
		{[]string{"Basic b25lOg=="}, bearer.ErrMissing},
		{[]string{"Bearer"}, bearer.ErrMissing},
		{[]string{"Bearer "}, bearer.ErrMissing},
		{[]string{"Bearer ONE"}, bearer.ErrRefused},
		{[]string{"Bearer one,two"}, bearer.ErrRefused},
		{[]string{"Bearer sha256:7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"}, bearer.ErrRefused},
		{[]string{"Bearer a.b.c"}, bearer.ErrRefused},
	} {
		_, err := w.Prove(request(c.headers...))
		require.ErrorIs(t, err, c.want, "%q", c.headers)
	}
}

func TestATokenThatIsTakenAwayProvesNobody(t *testing.T) {
	w := newWorld(agent("ci", "one"))
	a, err := w.Prove(request("Bearer one"))
	require.NoError(t, err)
	require.NoError(t, w.Still(request("Bearer one"), a))
	w.agents = []bearer.Agent{agent("ci", "two")}
	require.ErrorIs(t, w.Still(request("Bearer one"), a), bearer.ErrRefused)
	_, err = w.Prove(request("Bearer one"))
	require.ErrorIs(t, err, bearer.ErrRefused)
}

func TestRefusalsAreLimitedByAddressAndNeverLogATokens(t *testing.T) {
	w := newWorld(agent("ci", "one"))
	for range 20 {
		_, err := w.Prove(request("Bearer guess-4711"))
		require.ErrorIs(t, err, bearer.ErrRefused)
	}
	lines := bytes.Count(w.log.Bytes(), []byte("\n"))
	limited := new(bearer.LimitedError)
	for range 100 {
		_, err := w.Prove(request("Bearer guess-4711"))
		require.ErrorAs(t, err, &limited)
	}
	require.Equal(t, time.Minute, limited.After)
	require.Equal(t, lines, bytes.Count(w.log.Bytes(), []byte("\n")), "what is over the limit is not logged")
	require.NotContains(t, w.log.String(), "4711")

	_, err := w.Prove(request("Bearer one"))
	require.NoError(t, err, "a good token counts from a limited address")
	other := request("Bearer guess-4711")
	other.RemoteAddr = "192.0.2.8:1234"
	_, err = w.Prove(other)
	require.ErrorIs(t, err, bearer.ErrRefused, "another address has its own limit")
	w.now = w.now.Add(time.Minute)
	_, err = w.Prove(request("Bearer guess-4711"))
	require.ErrorIs(t, err, bearer.ErrRefused)
}

// An issuer signs JSON Web Tokens and serves its keys.
type issuer struct {
	t      *testing.T
	server *httptest.Server
	keys   jose.JSONWebKeySet
	asked  atomic.Int32
	down   atomic.Bool
	says   atomic.Value // a text instead of the keys
	hang   atomic.Pointer[hang]
}

// A hang is an issuer that takes requests and answers them once goOn is closed.
type hang struct{ asked, goOn, givenUp chan struct{} }

func (i *issuer) hangs() *hang {
	h := &hang{make(chan struct{}, 1), make(chan struct{}), make(chan struct{}, 1)}
	i.hang.Store(h)
	return h
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{t: t}
	i.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.asked.Add(1)
		if h := i.hang.Load(); h != nil {
			h.asked <- struct{}{}
			select {
			case <-h.goOn:
			case <-r.Context().Done():
				h.givenUp <- struct{}{}
			}
		}
		if i.down.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		if text := i.says.Load(); text != nil {
			_, _ = io.WriteString(w, text.(string))
			return
		}
		_ = json.NewEncoder(w).Encode(i.keys)
	}))
	t.Cleanup(i.server.Close)
	return i
}

func (i *issuer) key(id string, algorithm jose.SignatureAlgorithm) crypto.Signer {
	i.t.Helper()
	var k crypto.Signer
	var err error
	switch algorithm {
	case jose.RS256:
		k, err = rsa.GenerateKey(rand.Reader, 2048)
	case jose.ES256:
		k, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		_, k, err = ed25519.GenerateKey(rand.Reader)
	}
	require.NoError(i.t, err)
	i.keys.Keys = append(i.keys.Keys, jose.JSONWebKey{Key: k.Public(), KeyID: id, Algorithm: string(algorithm), Use: "sig"})
	return k
}

func (i *issuer) sign(id string, algorithm jose.SignatureAlgorithm, key any, claims jwt.Claims) string {
	i.t.Helper()
	options := new(jose.SignerOptions)
	if id != "" {
		options = options.WithHeader("kid", id)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options)
	require.NoError(i.t, err)
	out, err := jwt.Signed(s).Claims(claims).Serialize()
	require.NoError(i.t, err)
	return out
}

// proves asks about a token that the issuer signs with the key.
func (w *world) proves(i *issuer, id string, key any) error {
	_, err := w.Prove(request("Bearer " + i.sign(id, jose.EdDSA, key, w.claims())))
	return err
}

func (w *world) claims() jwt.Claims {
	return jwt.Claims{Issuer: "https://ci.example", Audience: jwt.Audience{"countersign"}, Subject: "repo:a/b", Expiry: jwt.NewNumericDate(w.now.Add(time.Minute))}
}

func withJWT(keys string) bearer.Agent {
	a := agent("ci")
	a.JWT = &bearer.JWT{Issuer: "https://ci.example", Audience: "countersign", Subject: "repo:a/b", Keys: keys}
	return a
}

func TestAJSONWebTokenOfTheIssuerProvesItsAgent(t *testing.T) {
	i := newIssuer(t)
	w := newWorld(withJWT(i.server.URL))
	for _, algorithm := range []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.EdDSA} {
		id := string(algorithm)
		key := i.key(id, algorithm)
		w.now = w.now.Add(time.Minute) // for a look at the new key
		a, err := w.Prove(request("Bearer " + i.sign(id, algorithm, key, w.claims())))
		require.NoError(t, err)
		require.Equal(t, "ci", a.Client.Name)
		require.NotEmpty(t, a.Client.Credential)
	}
}

func TestAJSONWebTokenThatIsWrongInAnyWayProvesNobody(t *testing.T) {
	i := newIssuer(t)
	key := i.key("k", jose.ES256)
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	w := newWorld(withJWT(i.server.URL))
	changed := func(change func(*jwt.Claims)) jwt.Claims {
		c := w.claims()
		change(&c)
		return c
	}
	encoded, err := json.Marshal(i.keys.Keys[0])
	require.NoError(t, err)
	for name, token := range map[string]string{
		"another key":       i.sign("k", jose.ES256, stranger, w.claims()),
		"another key's id":  i.sign("other", jose.ES256, key, w.claims()),
		"a shared secret":   i.sign("k", jose.HS256, append(encoded, encoded...), w.claims()),
		"no end":            i.sign("k", jose.ES256, key, changed(func(c *jwt.Claims) { c.Expiry = nil })),
		"over":              i.sign("k", jose.ES256, key, changed(func(c *jwt.Claims) { c.Expiry = jwt.NewNumericDate(w.now.Add(-time.Minute)) })),
		"not yet":           i.sign("k", jose.ES256, key, changed(func(c *jwt.Claims) { c.NotBefore = jwt.NewNumericDate(w.now.Add(time.Minute)) })),
		"another audience":  i.sign("k", jose.ES256, key, changed(func(c *jwt.Claims) { c.Audience = jwt.Audience{"other"} })),
		"no audience":       i.sign("k", jose.ES256, key, changed(func(c *jwt.Claims) { c.Audience = nil })),
		"another issuer":    i.sign("k", jose.ES256, key, changed(func(c *jwt.Claims) { c.Issuer = "https://evil.example" })),
		"another subject":   i.sign("k", jose.ES256, key, changed(func(c *jwt.Claims) { c.Subject = "repo:a/c" })),
		"no signature":      "eyJhbGciOiJub25lIn0.e30.",
		"a broken document": "a.b.c",
	} {
		w.now = w.now.Add(time.Second)
		_, err := w.Prove(request("Bearer " + token))
		require.ErrorIs(t, err, bearer.ErrRefused, name)
	}
	require.LessOrEqual(t, i.asked.Load(), int32(2), "an id that nobody knows does not ask the issuer each time")
}

// An issuer may list a key for something else, or one that is too weak.
func TestAKeyThatIsNotForSignaturesOrTooWeakProvesNobody(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	good, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	proves := func(key *rsa.PrivateKey, listed jose.JSONWebKey) error {
		i := newIssuer(t)
		listed.KeyID = "k"
		i.keys.Keys = []jose.JSONWebKey{listed}
		w := newWorld(withJWT(i.server.URL))
		_, err := w.Prove(request("Bearer " + i.sign("k", jose.RS256, key, w.claims())))
		return err
	}
	require.NoError(t, proves(good, jose.JSONWebKey{Key: good.Public()}), "it need not say what it is for")
	for name, err := range map[string]error{
		"for encryption":        proves(good, jose.JSONWebKey{Key: good.Public(), Use: "enc"}),
		"for another algorithm": proves(good, jose.JSONWebKey{Key: good.Public(), Algorithm: "PS256"}),
		"private":               proves(good, jose.JSONWebKey{Key: good}),
		"too short":             proves(weak, jose.JSONWebKey{Key: weak.Public()}),
	} {
		require.ErrorIs(t, err, bearer.ErrRefused, name)
	}
}

// A key that can't have signed with the algorithm of a token is no choice beside the one
// that can, also if an issuer does not say of its keys what they are for.
func TestAKeyOfAnotherKindDoesNotHideTheOthers(t *testing.T) {
	for name, id := range map[string]string{"a token without an id": "", "one id for all kinds": "k"} {
		i := newIssuer(t)
		keys := map[jose.SignatureAlgorithm]crypto.Signer{}
		for _, algorithm := range []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.EdDSA} {
			keys[algorithm] = i.key("k", algorithm)
		}
		longer, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
		require.NoError(t, err)
		i.keys.Keys = append(i.keys.Keys, jose.JSONWebKey{Key: longer.Public(), KeyID: "k"})
		for n := range i.keys.Keys {
			i.keys.Keys[n].Algorithm, i.keys.Keys[n].Use = "", ""
		}
		w := newWorld(withJWT(i.server.URL))
		for algorithm, key := range keys {
			_, err := w.Prove(request("Bearer " + i.sign(id, algorithm, key, w.claims())))
			require.NoError(t, err, "%s, %s", name, algorithm)
		}
		i.key("k", jose.EdDSA)
		w = newWorld(withJWT(i.server.URL))
		_, err = w.Prove(request("Bearer " + i.sign(id, jose.EdDSA, keys[jose.EdDSA], w.claims())))
		require.ErrorIs(t, err, bearer.ErrRefused, "%s: there is a choice", name)
	}
}

func TestAKeyOfAnUnknownKindDoesNotHideTheOthers(t *testing.T) {
	i := newIssuer(t)
	key := i.key("k", jose.ES256)
	known, err := json.Marshal(i.keys.Keys[0])
	require.NoError(t, err)
	for name, unknown := range map[string]string{
		"post-quantum":    `{"kty":"AKP","alg":"ML-DSA-65","kid":"pq","pub":"AAAA"}`,
		"another curve":   `{"kty":"EC","crv":"secp256k1","kid":"c","x":"AAAA","y":"AAAA"}`,
		"key agreement":   `{"kty":"OKP","crv":"X25519","kid":"x","use":"enc","x":"3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08"}`,
		"a broken object": `"k"`,
	} {
		path := filepath.Join(t.TempDir(), "keys.json")
		require.NoError(t, os.WriteFile(path, []byte(`{"keys":[`+unknown+","+string(known)+"]}"), 0o600))
		w := newWorld(withJWT(path))
		_, err := w.Prove(request("Bearer " + i.sign("k", jose.ES256, key, w.claims())))
		require.NoError(t, err, name)

		require.NoError(t, os.WriteFile(path, []byte(`{"keys":[`+unknown+"]}"), 0o600))
		w = newWorld(withJWT(path))
		_, err = w.Prove(request("Bearer " + i.sign("k", jose.ES256, key, w.claims())))
		require.ErrorIs(t, err, bearer.ErrUnavailable, name)
	}
}

func TestKeysRotate(t *testing.T) {
	i := newIssuer(t)
	old := i.key("old", jose.EdDSA)
	w := newWorld(withJWT(i.server.URL))
	prove := func(id string, key any) error { return w.proves(i, id, key) }
	require.NoError(t, prove("old", old))
	i.keys.Keys = nil
	fresh := i.key("new", jose.EdDSA)
	w.now = w.now.Add(time.Minute)
	require.NoError(t, prove("new", fresh), "a new key is looked for")
	require.ErrorIs(t, prove("old", old), bearer.ErrRefused)

	i.down.Store(true)
	w.now = w.now.Add(15 * time.Minute)
	for range 3 {
		require.NoError(t, prove("new", fresh), "keys outlive a short failure of the issuer")
	}
	require.Equal(t, 1, strings.Count(w.log.String(), "those that were read count for now"), "the log says so, once in a while")
	require.Contains(t, w.log.String(), "500")
	w.now = w.now.Add(time.Hour)
	require.ErrorIs(t, prove("new", fresh), bearer.ErrUnavailable, "not a long one")
}

// While the keys can't be read, it is not known whether the issuer has a new one: who is
// refused is signed out, and counts toward the limit of the address.
func TestATokenOfANewKeyIsNotRefusedWhileTheKeysCannotBeRead(t *testing.T) {
	i := newIssuer(t)
	old := i.key("old", jose.EdDSA)
	w := newWorld(withJWT(i.server.URL))
	prove := func(id string, key any) error { return w.proves(i, id, key) }
	require.NoError(t, prove("old", old))
	fresh := i.key("new", jose.EdDSA)
	i.down.Store(true)
	for _, after := range []time.Duration{time.Minute, 15 * time.Minute} {
		w.now = w.now.Add(after)
		for range 30 {
			require.ErrorIs(t, prove("new", fresh), bearer.ErrUnavailable)
		}
		require.NoError(t, prove("old", old))
	}
	require.LessOrEqual(t, i.asked.Load(), int32(4), "the issuer is not asked each time")
	i.down.Store(false)
	w.now = w.now.Add(time.Minute)
	require.NoError(t, prove("new", fresh))
	require.ErrorIs(t, prove("other", fresh), bearer.ErrRefused)
}

// A token need not name a key, and an issuer can give the id of one to another.
func TestAKeyThatReplacesAnotherUnderItsIDIsLookedFor(t *testing.T) {
	for _, id := range []string{"", "k"} {
		i := newIssuer(t)
		old := i.key(id, jose.EdDSA)
		w := newWorld(withJWT(i.server.URL))
		require.NoError(t, w.proves(i, id, old))
		i.keys.Keys = nil
		fresh := i.key(id, jose.EdDSA)
		require.ErrorIs(t, w.proves(i, id, fresh), bearer.ErrRefused, "the issuer was asked just now")
		w.now = w.now.Add(time.Minute)
		require.NoError(t, w.proves(i, id, fresh))
		require.ErrorIs(t, w.proves(i, id, old), bearer.ErrRefused)
		require.EqualValues(t, 2, i.asked.Load(), "not for each token that no key has signed")

		i.down.Store(true)
		w.now = w.now.Add(time.Minute)
		require.ErrorIs(t, w.proves(i, id, old), bearer.ErrUnavailable, "there may be a newer one")
		require.NoError(t, w.proves(i, id, fresh))
		require.NotContains(t, w.log.String(), "level=ERROR", "the keys that were read count")
	}
}

// While an issuer is away, a token that its key has not signed is as a rule a forged one, and
// verifying it takes time.
func TestForgedTokensAreLimitedWhileTheIssuerIsAway(t *testing.T) {
	i := newIssuer(t)
	known := i.key("k", jose.EdDSA)
	w := newWorld(withJWT(i.server.URL))
	require.NoError(t, w.proves(i, "k", known))
	forged := newIssuer(t).key("k", jose.EdDSA)
	i.down.Store(true)
	w.now = w.now.Add(time.Minute)
	limited := 0
	for range 30 {
		err := w.proves(i, "k", forged)
		if _, ok := errors.AsType[*bearer.LimitedError](err); ok {
			limited++
			continue
		}
		require.ErrorIs(t, err, bearer.ErrUnavailable)
	}
	require.Equal(t, 10, limited)
}

// Tokens that wait for an issuer which replaces its key are not taken for forged ones; but not
// any number of them waits, and none of a known key.
func TestTokensOfANewKeyWaitForTheirIssuer(t *testing.T) {
	i := newIssuer(t)
	known := i.key("k", jose.EdDSA)
	w := newWorld(withJWT(i.server.URL))
	require.NoError(t, w.proves(i, "k", known))
	old := i.keys.Keys
	i.keys.Keys = nil
	fresh := i.key("k", jose.EdDSA)
	token := request("Bearer " + i.sign("k", jose.EdDSA, fresh, w.claims()))
	w.now = w.now.Add(time.Minute)
	h, became := i.hangs(), make(chan error)
	prove := func() { _, err := w.Prove(token); became <- err }
	go prove()
	<-h.asked
	for range 150 {
		go prove()
	}
	for range 50 {
		require.Equal(t, bearer.ErrUnavailable, <-became)
	}
	require.NoError(t, w.proves(i, "k", known))
	close(h.goOn)
	for range 101 {
		require.NoError(t, <-became)
	}
	require.NotEqual(t, old, i.keys.Keys)
	require.NotContains(t, w.log.String(), "proved no agent")
}

// Such a token is signed, so no other key is looked for.
func TestASignedTokenWhoseClaimsCannotBeReadIsRefused(t *testing.T) {
	i := newIssuer(t)
	key := i.key("k", jose.EdDSA)
	log := new(bytes.Buffer)
	now := time.Now()
	g := bearer.NewPeople(bearer.PeopleConfig{
		Issuers: []bearer.Issuer{{Issuer: "https://ci.example", Audience: "countersign", Keys: i.server.URL, Emails: true}},
		Tokens:  func() []bearer.Token { return nil }, Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: key}, new(jose.SignerOptions).WithHeader("kid", "k"))
	require.NoError(t, err)
	for range 2 {
		token, err := jwt.Signed(s).Claims(map[string]any{
			"iss": "https://ci.example", "aud": "countersign", "sub": "x", "exp": now.Add(time.Minute).Unix(), "email": 5,
		}).Serialize()
		require.NoError(t, err)
		_, err = g.Prove(request("Bearer " + token))
		require.ErrorIs(t, err, bearer.ErrRefused)
		now = now.Add(time.Minute)
	}
	require.Contains(t, log.String(), "its claims cannot be read")
	require.EqualValues(t, 1, i.asked.Load())
}

// Such a token proves nothing, so anyone can send as many as they like.
func TestATokenOfAnIssuerWithoutKeysDoesNotFillTheLog(t *testing.T) {
	i := newIssuer(t)
	i.down.Store(true)
	key := i.key("k", jose.EdDSA)
	for _, keys := range []string{i.server.URL, filepath.Join(t.TempDir(), "none")} {
		w := newWorld(withJWT(keys))
		for range 100 {
			require.ErrorIs(t, w.proves(i, "k", key), bearer.ErrUnavailable)
		}
		require.Equal(t, 1, strings.Count(w.log.String(), "cannot read the keys of an issuer"), w.log.String())
		require.Contains(t, w.log.String(), "from="+keys)
		w.now = w.now.Add(time.Minute)
		require.ErrorIs(t, w.proves(i, "k", key), bearer.ErrUnavailable)
		require.Equal(t, 2, strings.Count(w.log.String(), "cannot read the keys of an issuer"))
	}
}

// An answer that is no JWKS takes no key away; one that has none does.
func TestAnAnswerWithoutKeysIsAFailure(t *testing.T) {
	i := newIssuer(t)
	known := i.key("known", jose.EdDSA)
	w := newWorld(withJWT(i.server.URL))
	prove := func(id string) error { return w.proves(i, id, known) }
	require.NoError(t, prove("known"))
	for _, text := range []string{"<html>down for maintenance</html>", `{"error":"down for maintenance"}`, "null", `"` + strings.Repeat("x", 1<<20) + `"`} {
		i.says.Store(text)
		w.now = w.now.Add(11 * time.Minute)
		require.NoError(t, prove("known"), "%.20s", text)
		require.ErrorIs(t, prove("new"), bearer.ErrUnavailable)
	}
	for _, none := range []string{`{"keys":[]}`, `{"keys":null}`} {
		i.says.Store(none)
		w.now = w.now.Add(11 * time.Minute)
		require.ErrorIs(t, prove("known"), bearer.ErrRefused, none)
		require.Contains(t, w.log.String(), "it is not signed with a key of its issuer, which has 0")
	}
}

// A token of a known key does not wait for an issuer that hangs, also if someone sends
// tokens of made-up keys.
func TestAKnownKeyDoesNotWaitWhileItsIssuerIsAsked(t *testing.T) {
	i := newIssuer(t)
	known := i.key("known", jose.EdDSA)
	w := newWorld(withJWT(i.server.URL))
	prove := func(id string) error { return w.proves(i, id, known) }
	// while runs do while the issuer is asked because of a token of this key, and returns what
	// became of that token.
	while := func(asks string, do func()) error {
		h, became := i.hangs(), make(chan error)
		go func() { became <- prove(asks) }()
		<-h.asked
		do()
		require.Empty(t, h.givenUp, "it waited until the issuer was given up")
		i.hang.Store(nil)
		close(h.goOn)
		return <-became
	}
	require.NoError(t, prove("known"))
	w.now = w.now.Add(time.Minute)
	require.ErrorIs(t, while("made-up", func() { require.NoError(t, prove("known")) }), bearer.ErrRefused)

	i.down.Store(true)
	w.now = w.now.Add(15 * time.Minute)
	require.NoError(t, prove("known"))
	i.down.Store(false)
	w.now = w.now.Add(31 * time.Second)
	require.NoError(t, while("known", func() { require.NoError(t, prove("known")) }))

	i.keys.Keys = nil
	w.now = w.now.Add(50 * time.Minute)
	second := make(chan error)
	require.ErrorIs(t, while("known", func() { go func() { second <- prove("known") }() }), bearer.ErrRefused)
	require.ErrorIs(t, <-second, bearer.ErrRefused, "nobody knew that the issuer could not be asked")
}

func TestKeysOfAFileAreReadAnew(t *testing.T) {
	i := newIssuer(t)
	path := filepath.Join(t.TempDir(), "keys.json")
	w := newWorld(withJWT(path))
	old := i.key("k", jose.EdDSA)
	put := func(at time.Time) {
		raw, err := json.Marshal(i.keys)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, raw, 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	put(w.now)
	_, err := w.Prove(request("Bearer " + i.sign("", jose.EdDSA, old, w.claims())))
	require.NoError(t, err, "without an id there must be no choice")
	i.keys.Keys = nil
	fresh := i.key("k", jose.EdDSA)
	put(w.now.Add(time.Second))
	_, err = w.Prove(request("Bearer " + i.sign("k", jose.EdDSA, old, w.claims())))
	require.ErrorIs(t, err, bearer.ErrRefused)
	_, err = w.Prove(request("Bearer " + i.sign("k", jose.EdDSA, fresh, w.claims())))
	require.NoError(t, err)
	before := path
	path += ".new"
	i.keys.Keys = nil
	newest := i.key("k", jose.EdDSA)
	put(w.now.Add(time.Second))
	require.NoError(t, os.Rename(path, before))
	path = before
	_, err = w.Prove(request("Bearer " + i.sign("k", jose.EdDSA, fresh, w.claims())))
	require.ErrorIs(t, err, bearer.ErrRefused, "another file of the same time and size")
	_, err = w.Prove(request("Bearer " + i.sign("k", jose.EdDSA, newest, w.claims())))
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	_, err = w.Prove(request("Bearer " + i.sign("k", jose.EdDSA, newest, w.claims())))
	require.NoError(t, err)
	require.Contains(t, w.log.String(), "those that were read count for now")
	w.now = w.now.Add(2 * time.Hour)
	_, err = w.Prove(request("Bearer " + i.sign("k", jose.EdDSA, fresh, w.claims())))
	require.ErrorIs(t, err, bearer.ErrUnavailable)
}

// Opening a named pipe to which nobody writes would never return, and would keep everyone
// waiting who has a token of the issuer.
func TestKeysAreNotReadFromANamedPipe(t *testing.T) {
	i := newIssuer(t)
	path := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	w := newWorld(withJWT(path))
	_, err := w.Prove(request("Bearer " + i.sign("k", jose.EdDSA, i.key("k", jose.EdDSA), w.claims())))
	require.ErrorIs(t, err, bearer.ErrUnavailable)
}

// A stranger behind a proxy could otherwise keep everyone behind it from signing in
// with a JSON Web Token, or write an address of their choice.
func TestBehindATrustedProxyTheLimitIsThatOfTheSender(t *testing.T) {
	for name, c := range map[string]struct {
		peer       string
		first, now []string // X-Forwarded-For
		same       bool     // the limit of the first sender is that of the second
	}{
		"two senders behind the proxy":         {"10.0.0.1:1", []string{"192.0.2.1"}, []string{"192.0.2.2"}, false},
		"one sender":                           {"10.0.0.1:1", []string{"192.0.2.1"}, []string{"192.0.2.1"}, true},
		"with a port":                          {"10.0.0.1:1", []string{"192.0.2.1:80"}, []string{"192.0.2.1:81"}, true},
		"what the sender wrote":                {"10.0.0.1:1", []string{"198.51.100.1, 192.0.2.1"}, []string{"198.51.100.2, 192.0.2.1"}, true},
		"in several headers":                   {"10.0.0.1:1", []string{"198.51.100.1", "192.0.2.1"}, []string{"198.51.100.2", "192.0.2.1"}, true},
		"two proxies":                          {"10.0.0.1:1", []string{"192.0.2.1, 10.0.0.2"}, []string{"192.0.2.2, 10.0.0.2"}, false},
		"what the sender wrote as a proxy":     {"10.0.0.1:1", []string{"192.0.2.1, 10.0.0.2, 198.51.100.1"}, []string{"192.0.2.2, 10.0.0.2, 198.51.100.1"}, true},
		"no address":                           {"10.0.0.1:1", []string{"192.0.2.1, unknown"}, []string{"192.0.2.2, unknown"}, true},
		"an IPv6 proxy, one customer":          {"[fd00::1]:1", []string{"2001:db8::1"}, []string{"2001:db8::2"}, true},
		"in brackets":                          {"10.0.0.1:1", []string{"[2001:db8:1::1]"}, []string{"[2001:db8:2::1]"}, false},
		"in brackets and not":                  {"10.0.0.1:1", []string{"[2001:db8:1::1]"}, []string{"2001:db8:1::1"}, true},
		"in brackets, with a port":             {"10.0.0.1:1", []string{"[2001:db8:1::1]"}, []string{"[2001:db8:1::1]:80"}, true},
		"an open bracket":                      {"10.0.0.1:1", []string{"[2001:db8:1::1"}, []string{"2001:db8:2::1]"}, true},
		"an IPv4 address in brackets":          {"10.0.0.1:1", []string{"[192.0.2.1]"}, []string{"[192.0.2.2]"}, true},
		"an IPv4 proxy on an IPv6 socket":      {"[::ffff:10.0.0.1]:1", []string{"192.0.2.1"}, []string{"192.0.2.2"}, false},
		"a sender that is no trusted proxy":    {"192.0.2.9:1", []string{"192.0.2.1"}, []string{"192.0.2.2"}, true},
		"a proxy that says nothing is the one": {"10.0.0.1:1", nil, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := bearer.New(bearer.Config{
				Agents: func() []bearer.Agent { return nil }, Now: func() time.Time { return time.Unix(1, 0) }, Log: slog.New(slog.DiscardHandler),
				Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")},
			})
			from := func(forwarded []string) error {
				r := request("Bearer guess")
				r.RemoteAddr = c.peer
				r.Header["X-Forwarded-For"] = forwarded
				_, err := g.Prove(r)
				return err
			}
			for range 20 {
				require.ErrorIs(t, from(c.first), bearer.ErrRefused)
			}
			limited := new(bearer.LimitedError)
			require.ErrorAs(t, from(c.first), &limited)
			require.Equal(t, c.same, errors.As(from(c.now), &limited))
		})
	}
}
