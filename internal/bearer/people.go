package bearer

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/countersign/countersign/internal/approvals"
)

// A Person is who a credential proves: an account, or a verified address, of which
// the account is to be looked up.
type Person struct {
	User  approvals.UserID
	Email string // only without a User
}

// A Token is a static token of a person.
type Token struct {
	Sum  Sum
	User approvals.UserID
}

// An Issuer says which JSON Web Tokens prove people, and who they are.
type Issuer struct {
	Issuer   string
	Audience string
	Keys     string // a JWKS: a file, or an https URL
	Subjects map[string]approvals.UserID
	Emails   bool // a subject that is not listed is who has its verified address
}

// PeopleConfig is what [People] need.
type PeopleConfig struct {
	Tokens  func() []Token // those of now: they are asked for with every request
	Issuers []Issuer
	Now     func() time.Time
	Log     *slog.Logger
	Proxies []netip.Prefix // as in [Config]
}

// People prove who sends a request. They are safe for concurrent use.
type People struct {
	prover

	tokens  func() []Token
	issuers []Issuer
}

// NewPeople returns the people of the configuration.
func NewPeople(c PeopleConfig) *People {
	return &People{newProver(c.Now, c.Log, c.Proxies), c.Tokens, c.Issuers}
}

// Prove returns the person that the request's Authorization header proves. The
// errors are those of [Guard.Prove].
func (g *People) Prove(r *http.Request) (Person, error) {
	p, err := g.prove(r)
	return p, g.refused(r, err, "a request proved no person")
}

func (g *People) prove(r *http.Request) (Person, error) {
	token, err := credential(r)
	if err != nil {
		return Person{}, err
	}
	sum, found := SumOf(token), Person{}
	for _, t := range g.tokens() { // all of them, so that the time says nothing
		if subtle.ConstantTimeCompare(t.Sum[:], sum[:]) == 1 {
			found = Person{User: t.User}
		}
	}
	if found.User != "" {
		return found, nil
	}
	parsed, said, err := g.readJWT(r, token)
	if err != nil {
		return Person{}, err
	}
	return g.byJWT(r.Context(), parsed, said)
}

// identity are the claims that say who somebody is.
type identity struct {
	Email    string `json:"email"`
	Verified any    `json:"email_verified"` // only true counts, as a boolean
}

// byJWT returns the person of a token that a listed issuer has signed for us.
func (g *People) byJWT(ctx context.Context, token *jwt.JSONWebToken, said jwt.Claims) (Person, error) {
	for _, i := range g.issuers {
		if i.Issuer == "" || i.Audience == "" || said.Issuer != i.Issuer {
			continue
		}
		matches := func(c jwt.Claims) bool {
			return c.Issuer == i.Issuer && c.Audience.Contains(i.Audience) && c.Subject != ""
		}
		var who identity
		claims, err := g.claims(ctx, i.Keys, token, matches, &who)
		if err != nil {
			return Person{}, err
		}
		return i.person(claims.Subject, who)
	}
	return Person{}, ErrRefused
}

// person is who a subject is.
func (i Issuer) person(subject string, who identity) (Person, error) {
	if user := i.Subjects[subject]; user != "" {
		return Person{User: user}, nil
	}
	if i.Emails && who.Email != "" && who.Verified == true {
		return Person{Email: who.Email}, nil
	}
	return Person{}, ErrRefused
}
