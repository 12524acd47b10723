package bearer_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/bearer"
)

// What a signature covers, and what the header asks for, is read in one way only.
func TestAJSONWebTokenThatCouldBeReadInTwoWaysProvesNobody(t *testing.T) {
	i := newIssuer(t)
	key := i.key("k", jose.ES256)
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	w := newWorld(withJWT(i.server.URL))
	end := w.now.Unix() + 60
	good := fmt.Sprintf(`{"iss":"https://ci.example","aud":["other","countersign"],"sub":"repo:a/b","exp":%d}`, end)
	sign := func(payload string, by any, headers ...any) string {
		options := new(jose.SignerOptions).WithHeader("kid", "k")
		for n := 0; n < len(headers); n += 2 {
			options = options.WithHeader(jose.HeaderKey(headers[n].(string)), headers[n+1])
		}
		s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: by}, options)
		require.NoError(t, err)
		signed, err := s.Sign([]byte(payload))
		require.NoError(t, err)
		out, err := signed.CompactSerialize()
		require.NoError(t, err)
		return out
	}
	whole := sign(good, key)
	_, err = w.Prove(request("Bearer " + whole))
	require.NoError(t, err, "one of several audiences is enough")

	parts := strings.Split(whole, ".")
	header := func(h string) string { return base64.RawURLEncoding.EncodeToString([]byte(h)) }
	with := func(old, changed string) string { return sign(strings.Replace(good, old, changed, 1), key) }
	for name, token := range map[string]string{
		"a header that must be understood":   sign(good, key, "crit", []string{"x"}, "x", 1),
		"a key of its own":                   sign(good, stranger, "jwk", jose.JSONWebKey{Key: stranger.Public(), KeyID: "k"}),
		"an address of keys":                 sign(good, stranger, "jku", i.server.URL),
		"a claim twice":                      with(`"sub":"repo:a/b"`, `"sub":"repo:a/b","sub":"repo:x/y"`),
		"a claim in other letters":           with(`"sub"`, `"SUB"`),
		"an end that is text":                with(fmt.Sprint(end), `"tomorrow"`),
		"an end that is null":                with(fmt.Sprint(end), `null`),
		"an end beyond all time":             with(fmt.Sprint(end), `1e300`),
		"an end that is negative":            with(fmt.Sprint(end), `-1`),
		"an audience that is an object":      with(`["other","countersign"]`, `{"countersign":true}`),
		"an audience that only begins alike": with(`"countersign"`, `"countersign2"`),
		"a payload that is a list":           sign("["+good+"]", key),
		"no algorithm":                       header(`{"alg":"none","kid":"k"}`) + "." + parts[1] + ".",
		"no algorithm in other letters":      header(`{"alg":"nOnE","kid":"k"}`) + "." + parts[1] + ".",
		"no algorithm, with a signature":     header(`{"alg":"none","kid":"k"}`) + "." + parts[1] + "." + parts[2],
		"another algorithm of the same key":  header(`{"alg":"ES384","kid":"k"}`) + "." + parts[1] + "." + parts[2],
		"a header twice":                     header(`{"alg":"ES256","kid":"x","kid":"k"}`) + "." + parts[1] + "." + parts[2],
		"a signature that is empty":          parts[0] + "." + parts[1] + ".",
		"a signature of zeros":               parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 64)),
		"another payload":                    parts[0] + "." + header(strings.Replace(good, "repo:a/b", "repo:a/b ", 1)) + "." + parts[2],
		"padding":                            whole + "=",
		"a token that goes on":               whole + ".x",
		"JSON":                               `{"payload":"` + parts[1] + `","signatures":[{"protected":"` + parts[0] + `","signature":"` + parts[2] + `"}]}`,
	} {
		fresh := newWorld(withJWT(i.server.URL)) // without the failures before
		_, err := fresh.Prove(request("Bearer " + token))
		require.ErrorIs(t, err, bearer.ErrRefused, name)
	}
}

// A token that is the beginning of another, or differs by white space or letters, is
// another token.
func TestATokenIsComparedAsAWhole(t *testing.T) {
	w := newWorld(agent("ci", "abcdef"), agent("laptop", "abc"), bearer.Agent{Tokens: []bearer.Sum{{}}})
	for header, name := range map[string]string{"Bearer abcdef": "ci", "Bearer abc": "laptop", "Bearer  abc ": "laptop"} {
		a, err := w.Prove(request(header))
		require.NoError(t, err, header)
		require.Equal(t, name, a.Client.Name)
	}
	for _, header := range []string{"Bearer ab", "Bearer abcd", "Bearer abcdefg", "Bearer ABC", "Bearer abc,abcdef", "Bearer abc\u00a0", "Bearer abc\x00", "Bearer " + strings.Repeat("\x00", 32), "Bearer \tabc"} {
		_, err := w.Prove(request(header))
		require.ErrorIs(t, err, bearer.ErrRefused, "%q", header)
	}
}
