package bearer_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/bearer"
)

func newPeople(now func() time.Time, issuers ...bearer.Issuer) *bearer.People {
	return bearer.NewPeople(bearer.PeopleConfig{
		Tokens:  func() []bearer.Token { return []bearer.Token{{Sum: bearer.SumOf("secret"), User: "U0ANN"}} },
		Issuers: issuers, Now: now, Log: slog.New(slog.DiscardHandler),
	})
}

func TestATokenProvesItsPerson(t *testing.T) {
	g := newPeople(time.Now)
	p, err := g.Prove(request("Bearer secret"))
	require.NoError(t, err)
	require.Equal(t, bearer.Person{User: "U0ANN"}, p)
	_, err = g.Prove(request("Bearer other"))
	require.ErrorIs(t, err, bearer.ErrRefused)
	_, err = g.Prove(request(""))
	require.ErrorIs(t, err, bearer.ErrMissing)
	var limited *bearer.LimitedError
	for range 30 {
		_, err = g.Prove(request("Bearer other"))
	}
	require.ErrorAs(t, err, &limited)
	_, err = g.Prove(request("Bearer secret"))
	require.NoError(t, err, "nobody is locked out by somebody else behind the same proxy")
}

func TestAJSONWebTokenProvesAPersonBySubjectOrByAVerifiedAddress(t *testing.T) {
	i := newIssuer(t)
	key := i.key("k", jose.ES256)
	w := newWorld()
	of := bearer.Issuer{Issuer: "https://ci.example", Audience: "countersign", Keys: i.server.URL, Subjects: map[string]approvals.UserID{"repo:a/b": "U0ANN"}}
	byEmail := of
	byEmail.Subjects, byEmail.Emails = nil, true
	token := func(more map[string]any, change func(*jwt.Claims)) string {
		c := w.claims()
		if change != nil {
			change(&c)
		}
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, new(jose.SignerOptions).WithHeader("kid", "k"))
		require.NoError(t, err)
		out, err := jwt.Signed(signer).Claims(c).Claims(more).Serialize()
		require.NoError(t, err)
		return "Bearer " + out
	}
	verified := map[string]any{"email": "ann@acme.example", "email_verified": true}
	for name, row := range map[string]struct {
		issuer bearer.Issuer
		token  string
		want   bearer.Person
	}{
		"the subject":                   {of, token(verified, nil), bearer.Person{User: "U0ANN"}},
		"a subject that is not listed":  {of, token(verified, func(c *jwt.Claims) { c.Subject = "x" }), bearer.Person{}},
		"a verified address":            {byEmail, token(verified, nil), bearer.Person{Email: "ann@acme.example"}},
		"an address that is not":        {byEmail, token(map[string]any{"email": "ann@acme.example", "email_verified": false}, nil), bearer.Person{}},
		"an address that says nothing":  {byEmail, token(map[string]any{"email": "ann@acme.example"}, nil), bearer.Person{}},
		"an address with a text for it": {byEmail, token(map[string]any{"email": "ann@acme.example", "email_verified": "true"}, nil), bearer.Person{}},
		"no address":                    {byEmail, token(nil, nil), bearer.Person{}},
		"no subject":                    {byEmail, token(verified, func(c *jwt.Claims) { c.Subject = "" }), bearer.Person{}},
		"another audience":              {byEmail, token(verified, func(c *jwt.Claims) { c.Audience = jwt.Audience{"x"} }), bearer.Person{}},
		"another issuer":                {byEmail, token(verified, func(c *jwt.Claims) { c.Issuer = "https://evil.example" }), bearer.Person{}},
		"over":                          {byEmail, token(verified, func(c *jwt.Claims) { c.Expiry = jwt.NewNumericDate(w.now.Add(-time.Hour)) }), bearer.Person{}},
		"no end":                        {byEmail, token(verified, func(c *jwt.Claims) { c.Expiry = nil }), bearer.Person{}},
		"another key":                   {byEmail, token(verified, nil)[:40] + "x" + token(verified, nil)[41:], bearer.Person{}},
	} {
		got, err := newPeople(func() time.Time { return w.now }, row.issuer).Prove(request(row.token))
		require.Equal(t, row.want, got, name)
		if row.want == (bearer.Person{}) {
			require.ErrorIs(t, err, bearer.ErrRefused, name)
		}
	}
}
