package receipt

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
)

var b64 = base64.RawURLEncoding.Strict()

// A Key is a public key. The zero Key is none.
type Key struct {
	id     string
	public ed25519.PublicKey
}

func newKey(public ed25519.PublicKey) (Key, error) {
	if len(public) != ed25519.PublicKeySize {
		return Key{}, fmt.Errorf("%w: an Ed25519 key has %d bytes", ErrKey, ed25519.PublicKeySize)
	}
	jwk := `{"crv":"Ed25519","kty":"OKP","x":"` + b64.EncodeToString(public) + `"}`
	sum := sha256.Sum256([]byte(jwk))
	return Key{b64.EncodeToString(sum[:]), slices.Clone(public)}, nil
}

// ID is the key's id, the `kid` of receipts: the thumbprint of RFC 7638. It follows
// from the key, so that nobody has to name keys or can give two of them one name.
func (k Key) ID() string { return k.id }

// Keys are the public keys whose receipts count. The zero Keys accept none.
type Keys struct {
	all      []Key
	byHeader map[string]Key // by the header of the receipts that the key signs, encoded
}

// NewKeys returns the keys without repetitions, in this order.
func NewKeys(keys ...Key) Keys {
	k := Keys{byHeader: map[string]Key{}}
	for _, key := range keys {
		if _, known := k.byHeader[header(key.id)]; !known && key.public != nil {
			k.all = append(k.all, key)
			k.byHeader[header(key.id)] = key
		}
	}
	return k
}

// All returns the keys in their order.
func (k Keys) All() []Key { return slices.Clone(k.all) }

// Empty reports whether there is no key, so that no receipt verifies.
func (k Keys) Empty() bool { return len(k.all) == 0 }

// A jwk is a public key of RFC 8037. D would make it a private one.
type jwk struct {
	Alg string `json:"alg"`
	Crv string `json:"crv"`
	D   string `json:"d,omitempty"`
	Kid string `json:"kid"`
	Kty string `json:"kty"`
	Use string `json:"use"`
	X   string `json:"x"`
}

// JWKS is the keys as a JSON Web Key Set, for /.well-known/countersign-keys. The
// same keys have the same bytes.
func (k Keys) JWKS() []byte {
	set := struct {
		Keys []jwk `json:"keys"`
	}{Keys: []jwk{}}
	for _, key := range k.all {
		set.Keys = append(set.Keys, jwk{Alg: algorithm, Crv: "Ed25519", Kid: key.id, Kty: "OKP", Use: "sig", X: b64.EncodeToString(key.public)})
	}
	out, err := json.MarshalIndent(set, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("receipt: encode keys: %v", err)) // texts only
	}
	return append(out, '\n')
}

// ParseKeys reads public keys: a JSON Web Key Set, or PEM blocks. A private key is
// refused: it does not belong where public keys are kept. Keys of a set that are
// not for receipts are left out, as RFC 7517 asks; one must remain.
func ParseKeys(data []byte) (Keys, error) {
	parse := parsePEM
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		parse = parseJWKS
	}
	all, err := parse(data)
	if err != nil {
		return Keys{}, err
	}
	if len(all) == 0 {
		return Keys{}, fmt.Errorf("%w: there is no Ed25519 public key, neither in PEM nor in a JSON Web Key Set", ErrKey)
	}
	return NewKeys(all...), nil
}

func parseJWKS(data []byte) ([]Key, error) {
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, fmt.Errorf("%w: not a JSON Web Key Set: %w", ErrKey, err)
	}
	var all []Key
	for _, j := range set.Keys {
		if j.D != "" {
			return nil, fmt.Errorf("%w: the key %q is a private key", ErrKey, j.Kid)
		}
		if j.Kty != "OKP" || j.Crv != "Ed25519" || j.Alg != "" && j.Alg != algorithm || j.Use != "" && j.Use != "sig" {
			continue
		}
		raw, err := b64.DecodeString(j.X)
		if err != nil {
			return nil, fmt.Errorf("%w: the key %q is not base64url", ErrKey, j.Kid)
		}
		key, err := newKey(raw)
		if err != nil {
			return nil, err
		}
		if j.Kid != "" && j.Kid != key.id {
			return nil, fmt.Errorf("%w: the id of the key %q does not follow from the key", ErrKey, j.Kid)
		}
		all = append(all, key)
	}
	return all, nil
}

func parsePEM(data []byte) ([]Key, error) {
	var all []Key
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "PUBLIC KEY" {
			return nil, fmt.Errorf("%w: a PEM block %q stands where a PUBLIC KEY is expected", ErrKey, block.Type)
		}
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrKey, err)
		}
		public, ok := parsed.(ed25519.PublicKey)
		if !ok {
			return nil, fmt.Errorf("%w: it is not an Ed25519 key", ErrKey)
		}
		key, err := newKey(public)
		if err != nil {
			return nil, err
		}
		all = append(all, key)
	}
	return all, nil
}
