package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

const (
	secretPrefix = "whsec_"
	minSecret    = 24 // bytes, as the specification says
	maxSecret    = 64
)

// ErrSecret says what is wrong with a secret, and never quotes it.
var ErrSecret = errors.New("the webhook secret is not usable")

// A Secret is a key that an endpoint shares with us. It cannot be printed, logged
// or marshaled. The zero Secret signs nothing.
type Secret struct{ open func() []byte }

// ParseSecret reads "whsec_" and 24 to 64 bytes in base64. Shorter secrets can be
// guessed from one message; with an empty one, anyone can sign.
func ParseSecret(text string) (Secret, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	if !ok {
		return Secret{}, fmt.Errorf("%w: it does not begin with %s", ErrSecret, secretPrefix)
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") {
		return Secret{}, fmt.Errorf("%w: what follows %s is not base64", ErrSecret, secretPrefix)
	}
	if len(key) < minSecret || len(key) > maxSecret {
		return Secret{}, fmt.Errorf("%w: it has %d bytes, expected %d to %d", ErrSecret, len(key), minSecret, maxSecret)
	}
	return Secret{func() []byte { return key }}, nil
}

func (Secret) String() string { return "[redacted]" }

// GoString never tells.
func (Secret) GoString() string { return "[redacted]" }

// MarshalText never tells.
func (Secret) MarshalText() ([]byte, error) { return []byte("[redacted]"), nil }
