// Package bearer proves which remote agent, or which person, sends an HTTP request. A credential
// is a bearer token, of which only the SHA-256 is known here, or a JSON Web Token
// of an issuer that the configuration names. What does not prove an agent is
// refused, and an address with many refusals is limited.
package bearer

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/intake"
)

// An Agent is an agent with the credentials that prove it.
type Agent struct {
	Client intake.Client // its Credential is filled in by [Guard.Prove]
	Doors  []intake.Door // where it may ask; nowhere if there are none
	Tokens []Sum
	JWT    *JWT
}

// A Sum is the SHA-256 of a token.
type Sum [sha256.Size]byte

// SumOf returns the sum of a token.
func SumOf(token string) Sum { return sha256.Sum256([]byte(token)) }

// ID names the credential in logs and on cards without giving it away.
func (s Sum) ID() string { return "token:" + hex.EncodeToString(s[:6]) }

// A JWT says which JSON Web Tokens prove an agent: all three claims must match.
type JWT struct {
	Issuer   string
	Audience string
	Subject  string
	Keys     string // a JWKS: a file, or an https URL
}

// Why a request proves no agent. A [*LimitedError] is another reason.
var (
	// ErrMissing: there is no credential in it, or more than one.
	ErrMissing = errors.New("no bearer token")
	// ErrRefused: the credential proves no agent of the configuration.
	ErrRefused = errors.New("the bearer token proves no agent")
	// ErrUnavailable: the keys of the issuer cannot be read at the moment.
	ErrUnavailable = errors.New("the keys of the issuer cannot be read")
)

// A LimitedError is that too many requests of an address were refused.
type LimitedError struct{ After time.Duration }

func (e *LimitedError) Error() string { return "too many refused requests" }

// Config is what a [Guard] needs.
type Config struct {
	Agents func() []Agent // those of now: the guard asks for every request
	Now    func() time.Time
	Log    *slog.Logger
	// Proxies stand between agents and the guard, and say in X-Forwarded-For who sends.
	Proxies []netip.Prefix
}

// A Guard proves agents. It is safe for concurrent use.
type Guard struct {
	agents func() []Agent
	now    func() time.Time
	log    *slog.Logger
	keys   keyring
	failed failures
}

// New returns a guard.
func New(c Config) *Guard {
	return &Guard{agents: c.Agents, now: c.Now, log: c.Log, keys: keyring{http: fetching(), now: c.Now, log: c.Log}, failed: failures{now: c.Now, proxies: c.Proxies}}
}

// fetching is the client that fetches keys.
func fetching() *http.Client {
	return &http.Client{Timeout: 5 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// maxToken is how many bytes a credential may have.
const maxToken = 8 << 10

// Prove returns the agent that the request's Authorization header proves. The
// error says why it proves none, in one of the ways that are listed above; it
// never quotes the credential.
func (g *Guard) Prove(r *http.Request) (Agent, error) {
	a, err := g.prove(r)
	if err == nil || errors.Is(err, ErrUnavailable) {
		return a, err
	}
	if after, limited := g.failed.add(r); limited {
		return Agent{}, &LimitedError{After: after}
	}
	g.log.InfoContext(r.Context(), "a request proved no agent", slog.String("from", g.failed.from(r).String()), slog.Any("err", err))
	return Agent{}, err
}

// Proves reports whether the request still proves the agent: its token may have
// been taken away, and a JSON Web Token ends.
func (g *Guard) Proves(r *http.Request, a Agent) bool {
	b, err := g.prove(r)
	return err == nil && b.Client.Name == a.Client.Name && slices.Equal(b.Doors, a.Doors)
}

// credential returns the bearer token of a request.
func credential(r *http.Request) (string, error) {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return "", ErrMissing
	}
	scheme, token, ok := strings.Cut(headers[0], " ")
	token = strings.Trim(token, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", ErrMissing
	}
	if len(token) > maxToken {
		return "", ErrRefused
	}
	return token, nil
}

// isJWT reports whether the token has the form of a JSON Web Token.
func isJWT(token string) bool { return strings.Count(token, ".") == 2 }

func (g *Guard) prove(r *http.Request) (Agent, error) {
	token, err := credential(r)
	if err != nil {
		return Agent{}, err
	}
	agents := g.agents()
	if a, ok := byToken(agents, SumOf(token)); ok {
		return a, nil
	}
	if !isJWT(token) {
		return Agent{}, ErrRefused
	}
	if after, limited := g.failed.limited(r); limited {
		return Agent{}, &LimitedError{After: after} // signatures take time to verify
	}
	return g.byJWT(r.Context(), agents, token)
}

// byToken compares the sum with all sums, so that the time says nothing about
// which it is.
func byToken(agents []Agent, sum Sum) (Agent, bool) {
	found := -1
	for i, a := range agents {
		for _, s := range a.Tokens {
			found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(s[:], sum[:]), i, found)
		}
	}
	if found < 0 {
		return Agent{}, false
	}
	a := agents[found]
	a.Client.Credential = sum.ID()
	return a, true
}
