package receipt_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/receipt"
)

func TestTheIDOfAKeyIsItsThumbprint(t *testing.T) {
	require.Equal(t, kidOfTheRFC, signer(t).Key().ID())
}

func TestPublishedKeysAreReadBack(t *testing.T) {
	other := newSigner(t)
	both := receipt.NewKeys(signer(t).Key(), other.Key(), signer(t).Key(), receipt.Key{})
	require.Len(t, both.All(), 2, "without repetitions")

	fromSet, err := receipt.ParseKeys(both.JWKS())
	require.NoError(t, err)
	require.Equal(t, both, fromSet)

	var pems []byte
	for _, k := range both.All() {
		p, err := k.PEM()
		require.NoError(t, err)
		pems = append(pems, p...)
	}
	fromPEM, err := receipt.ParseKeys(pems)
	require.NoError(t, err)
	require.Equal(t, both, fromPEM)

	var set struct{ Keys []map[string]string }
	require.NoError(t, json.Unmarshal(both.JWKS(), &set))
	require.Equal(t, map[string]string{
		"alg": "EdDSA", "crv": "Ed25519", "kid": kidOfTheRFC, "kty": "OKP", "use": "sig",
		"x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
	}, set.Keys[0])
	require.JSONEq(t, `{"keys":[]}`, string(receipt.Keys{}.JWKS()))
	require.True(t, receipt.Keys{}.Empty())
}

// While keys rotate, receipts of the old one verify as long as it is published.
func TestRotationKeepsOldReceipts(t *testing.T) {
	old := sign(t, approved())
	next := newSigner(t)
	fresh, err := next.Sign(approved())
	require.NoError(t, err)
	during := receipt.NewKeys(next.Key(), signer(t).Key())
	for _, r := range []string{old, fresh} {
		_, err := receipt.Verify(during, r)
		require.NoError(t, err)
	}
	_, err = receipt.Verify(receipt.NewKeys(next.Key()), old)
	require.ErrorIs(t, err, receipt.ErrUnknownKey)
}

func TestWrongPublicKeysAreRefused(t *testing.T) {
	set := string(keys(t).JWKS())
	public, err := signer(t).Key().PEM()
	require.NoError(t, err)
	for name, c := range map[string]struct{ data, want string }{
		"empty":            {"", "no Ed25519 public key"},
		"empty set":        {`{"keys":[]}`, "no Ed25519 public key"},
		"broken set":       {`{"keys":`, "not a JSON Web Key Set"},
		"private JWK":      {strings.Replace(set, `"kid"`, `"d": "x", "kid"`, 1), "is a private key"},
		"private PEM":      {string(pemOf(t, privateKey(t))), `"PRIVATE KEY" stands where`},
		"private at end":   {string(public) + string(pemOf(t, privateKey(t))), `"PRIVATE KEY" stands where`},
		"kid of another":   {strings.Replace(set, kidOfTheRFC, "mine", 1), "does not follow from the key"},
		"short key":        {strings.NewReplacer(kidOfTheRFC, "", "11qYAYKx", "").Replace(set), "has 32 bytes"},
		"no base64":        {strings.Replace(set, "11qYAYKx", "********", 1), "not base64url"},
		"only other types": {strings.Replace(set, "OKP", "EC", 1), "no Ed25519 public key"},
		"only encryption":  {strings.Replace(set, `"sig"`, `"enc"`, 1), "no Ed25519 public key"},
		"EC in PEM":        {string(elsewhere(t, true)), "not an Ed25519 key"},
		"damaged PEM":      {"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "not usable"},
	} {
		_, err := receipt.ParseKeys([]byte(c.data))
		require.ErrorIs(t, err, receipt.ErrKey, name)
		require.ErrorContains(t, err, c.want, name)
	}
}

func TestWrongPrivateKeysAreRefused(t *testing.T) {
	good := pemOf(t, privateKey(t))
	public, err := signer(t).Key().PEM()
	require.NoError(t, err)
	for name, text := range map[string][]byte{
		"empty": nil, "public": public, "two": append(bytes.Clone(good), good...), "EC": elsewhere(t, false),
		"OpenSSH": []byte("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n"),
		"damaged": []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
	} {
		_, err := receipt.ParseSigner(text)
		require.ErrorIs(t, err, receipt.ErrKey, name)
		require.NotContains(t, err.Error(), "AAAA", name)
	}
}

func TestAKeyFileIsForItsOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.pem")
	require.NoError(t, os.WriteFile(path, pemOf(t, privateKey(t)), 0o600))
	s, err := receipt.ReadSigner(path)
	require.NoError(t, err)
	require.Equal(t, kidOfTheRFC, s.Key().ID())
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o644, 0o610} {
		require.NoError(t, os.Chmod(path, mode))
		_, err = receipt.ReadSigner(path)
		require.ErrorIs(t, err, receipt.ErrKey, mode)
		require.ErrorContains(t, err, "chmod 600")
	}
	_, err = receipt.ReadSigner(t.TempDir())
	require.ErrorContains(t, err, "not a regular file")
	pipe := filepath.Join(t.TempDir(), "pipe") // to which nobody writes
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err = receipt.ReadSigner(pipe)
	require.ErrorContains(t, err, "not a regular file")
	_, err = receipt.ReadSigner(path + ".missing")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestASignerIsNotPrinted(t *testing.T) {
	s := signer(t)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		require.Equal(t, "[redacted]", fmt.Sprintf(verb, s))
	}
	out, err := json.Marshal(s)
	require.NoError(t, err)
	require.JSONEq(t, `"[redacted]"`, string(out))
}

func newSigner(t *testing.T) *receipt.Signer {
	t.Helper()
	text, err := receipt.GenerateKey()
	require.NoError(t, err)
	s, err := receipt.ParseSigner(text)
	require.NoError(t, err)
	return s
}

// elsewhere is a key of another type, in PEM.
func elsewhere(t *testing.T, public bool) []byte {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	name := "PRIVATE KEY"
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if public {
		name = "PUBLIC KEY"
		der, err = x509.MarshalPKIXPublicKey(k.Public())
	}
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: name, Bytes: der})
}
