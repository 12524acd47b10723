package bearer

import (
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
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

// byJWT returns the agent whose issuer, audience and subject are those of the
// token, if a key of its issuer has signed it and it has not ended.
func (g *Guard) byJWT(ctx context.Context, agents []Agent, token string) (Agent, error) {
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil || len(parsed.Headers) != 1 {
		return Agent{}, ErrRefused
	}
	var said jwt.Claims
	if err := parsed.UnsafeClaimsWithoutVerification(&said); err != nil {
		return Agent{}, ErrRefused
	}
	for _, a := range agents {
		if a.JWT == nil || !a.JWT.matches(said) {
			continue
		}
		var claims jwt.Claims
		err := g.keys.verify(ctx, a.JWT.Keys, parsed, &claims)
		if errors.Is(err, ErrUnavailable) {
			g.log.ErrorContext(ctx, "cannot read the keys of an issuer", slog.String("agent", a.Client.Name), slog.Any("err", err))
			return Agent{}, ErrUnavailable
		}
		if err == nil && !a.JWT.matches(claims) {
			err = ErrRefused
		}
		if err == nil {
			err = valid(claims, g.now())
		}
		if err != nil {
			return Agent{}, err
		}
		a.Client.Credential = a.JWT.id()
		return a, nil
	}
	return Agent{}, ErrRefused
}

// verify reads the claims of a token if a key of its issuer has signed it.
func (k *keyring) verify(ctx context.Context, from string, token *jwt.JSONWebToken, claims ...any) error {
	key, err := k.find(ctx, from, token.Headers[0].KeyID, token.Headers[0].Algorithm)
	if err != nil {
		return err
	}
	if token.Claims(key.Key, claims...) != nil {
		return ErrRefused
	}
	return nil
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

// strong reports whether the key may verify the algorithm.
func strong(k jose.JSONWebKey, algorithm string) bool {
	if !k.Valid() || !k.IsPublic() || k.Use != "" && k.Use != "sig" || k.Algorithm != "" && k.Algorithm != algorithm {
		return false
	}
	r, isRSA := k.Key.(*rsa.PublicKey)
	return !isRSA || r.N.BitLen() >= minRSA
}
