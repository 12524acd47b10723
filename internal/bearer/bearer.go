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
	prover

	agents func() []Agent
}

// New returns a guard.
func New(c Config) *Guard {
	return &Guard{newProver(c.Now, c.Log, c.Proxies), c.Agents}
}

// A prover is what a [Guard] and [People] have in common.
type prover struct {
	now    func() time.Time
	log    *slog.Logger
	keys   keyring
	failed failures
}

func newProver(now func() time.Time, log *slog.Logger, proxies []netip.Prefix) prover {
	fetches := &http.Client{Timeout: 5 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return prover{now: now, log: log, keys: keyring{http: fetches, now: now, log: log}, failed: failures{now: now, proxies: proxies}}
}

// refused counts and logs a request that proves nobody, and returns the reason that its
// sender is told.
func (p *prover) refused(r *http.Request, err error, msg string) error {
	if err == nil || errors.Is(err, ErrUnavailable) && !errors.Is(err, errUnfit) {
		return err
	}
	if after, limited := p.failed.add(r); limited {
		return &LimitedError{After: after}
	}
	p.log.InfoContext(r.Context(), msg, slog.String("from", p.failed.from(r).String()), slog.Any("err", err)) //nolint:sloglint // the callers' messages are static
	return err
}

// maxToken is how many bytes a credential may have.
const maxToken = 8 << 10

// Prove returns the agent that the request's Authorization header proves. The
// error says why it proves none, in one of the ways that are listed above; it
// never quotes the credential.
func (g *Guard) Prove(r *http.Request) (Agent, error) {
	a, err := g.prove(r)
	return a, g.refused(r, err, "a request proved no agent")
}

// Still returns why the request does not prove the agent any more, and nil if it does: its
// token may have been taken away, and a JSON Web Token ends. The errors are those of
// [Guard.Prove]; not each of them says that the token is wrong.
func (g *Guard) Still(r *http.Request, a Agent) error {
	b, err := g.prove(r)
	if err == nil && (b.Client.Name != a.Client.Name || !slices.Equal(b.Doors, a.Doors)) {
		err = ErrRefused
	}
	return err
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

func (g *Guard) prove(r *http.Request) (Agent, error) {
	token, err := credential(r)
	if err != nil {
		return Agent{}, err
	}
	agents := g.agents()
	if a, ok := byToken(agents, SumOf(token)); ok {
		return a, nil
	}
	parsed, said, err := g.readJWT(r, token)
	if err != nil {
		return Agent{}, err
	}
	return g.byJWT(r.Context(), agents, parsed, said)
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
