package bearer

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// algorithms are those that a JSON Web Token may be signed with: no shared
// secrets, and never none.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.EdDSA}

// leeway is how far the clock of an issuer may be off.
const leeway = 30 * time.Second

// minRSA is how many bits a key of RSA must have.
const minRSA = 2048

// readJWT reads a JSON Web Token, and what it says without proof.
func (p *prover) readJWT(r *http.Request, token string) (parsed *jwt.JSONWebToken, said jwt.Claims, err error) {
	if strings.Count(token, ".") != 2 {
		return nil, said, ErrRefused
	}
	if after, limited := p.failed.limited(r); limited {
		return nil, said, &LimitedError{After: after} // signatures take time to verify
	}
	parsed, err = jwt.ParseSigned(token, algorithms)
	if err != nil || len(parsed.Headers) != 1 || parsed.UnsafeClaimsWithoutVerification(&said) != nil {
		return nil, said, ErrRefused
	}
	return parsed, said, nil
}

// claims returns the claims of a token, if a key of its issuer has signed it, they match
// and it has not ended. It reads more of them, too.
func (p *prover) claims(ctx context.Context, from string, token *jwt.JSONWebToken, matches func(jwt.Claims) bool, more ...any) (claims jwt.Claims, err error) {
	header := token.Headers[0]
	err = p.keys.verify(ctx, from, header.KeyID, header.Algorithm, func(key jose.JSONWebKey) bool {
		return token.Claims(key.Key) == nil
	})
	if err == nil && token.UnsafeClaimsWithoutVerification(append(more, &claims)...) != nil { // it is verified
		err = fmt.Errorf("%w: its claims cannot be read", ErrRefused)
	}
	if err == nil && !matches(claims) {
		err = ErrRefused
	}
	if err == nil {
		err = valid(claims, p.now())
	}
	return claims, err
}

// byJWT returns the agent whose issuer, audience and subject are those of the token.
func (g *Guard) byJWT(ctx context.Context, agents []Agent, token *jwt.JSONWebToken, said jwt.Claims) (Agent, error) {
	for _, a := range agents {
		if a.JWT == nil || !a.JWT.matches(said) {
			continue
		}
		if _, err := g.claims(ctx, a.JWT.Keys, token, a.JWT.matches); err != nil {
			return Agent{}, err
		}
		a.Client.Credential = a.JWT.id()
		return a, nil
	}
	return Agent{}, ErrRefused
}

// valid refuses a token that has ended, never ends or does not begin yet.
func valid(c jwt.Claims, now time.Time) error {
	if c.Expiry == nil {
		return fmt.Errorf("%w: it has no end", ErrRefused)
	}
	if c.ValidateWithLeeway(jwt.Expected{Time: now}, leeway) != nil {
		return fmt.Errorf("%w: it has ended or does not begin yet", ErrRefused)
	}
	return nil
}

// matches reports whether all three claims are those of the agent. One that is
// not configured matches nothing.
func (j JWT) matches(c jwt.Claims) bool {
	return j.Issuer != "" && j.Audience != "" && j.Subject != "" &&
		c.Issuer == j.Issuer && c.Subject == j.Subject && c.Audience.Contains(j.Audience)
}

// id names the credential: that of a subject, whose tokens come and go.
func (j JWT) id() string {
	sum := sha256.Sum256([]byte(j.Issuer + "\n" + j.Subject))
	return "jwt:" + hex.EncodeToString(sum[:6])
}

// strong reports whether the key may verify the algorithm: it is of its kind, and long
// enough. Keys of different kinds may have one id.
func strong(k jose.JSONWebKey, algorithm string) bool {
	if !k.Valid() || !k.IsPublic() || k.Use != "" && k.Use != "sig" || k.Algorithm != "" && k.Algorithm != algorithm {
		return false
	}
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return algorithm == string(jose.RS256) && key.N.BitLen() >= minRSA
	case *ecdsa.PublicKey:
		return algorithm == string(jose.ES256) && key.Curve == elliptic.P256()
	case ed25519.PublicKey:
		return algorithm == string(jose.EdDSA)
	}
	return false
}
