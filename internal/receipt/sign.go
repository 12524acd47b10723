package receipt

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"syscall"
)

const (
	algorithm  = "EdDSA"
	mediaType  = "countersign-receipt+jws"
	maxKeyFile = 64 << 10
)

// header is the protected header of every receipt that the key with this id
// signs, encoded.
func header(kid string) string {
	return b64.EncodeToString([]byte(`{"alg":"` + algorithm + `","kid":"` + kid + `","typ":"` + mediaType + `"}`))
}

// A Signer holds a private key. It cannot be printed, logged or marshaled.
type Signer struct {
	key  Key
	sign func(message []byte) []byte
}

func (*Signer) String() string { return "[redacted]" }

// GoString never tells.
func (*Signer) GoString() string { return "[redacted]" }

// MarshalText never tells.
func (*Signer) MarshalText() ([]byte, error) { return []byte("[redacted]"), nil }

// Key is the public key with which the signer's receipts verify.
func (s *Signer) Key() Key { return s.key }

// Sign returns the receipt for the statement. Times are cut to seconds. Equal
// statements have equal receipts.
func (s *Signer) Sign(st Statement) (string, error) {
	if err := st.check(); err != nil {
		return "", err
	}
	message := header(s.key.id) + "." + b64.EncodeToString(st.encode())
	receipt := message + "." + b64.EncodeToString(s.sign([]byte(message)))
	if len(receipt) > maxReceipt {
		return "", fmt.Errorf("%w: the receipt would have more than %d bytes", ErrStatement, maxReceipt)
	}
	return receipt, nil
}

// GenerateKey makes a private key, in PEM (PKCS #8).
func GenerateKey() ([]byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("encode the key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// ParseSigner reads an Ed25519 private key in PEM (PKCS #8), as GenerateKey and
// `openssl genpkey -algorithm ed25519` write it. No error quotes the text.
func ParseSigner(text []byte) (*Signer, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, fmt.Errorf("%w: expected one PEM block PRIVATE KEY (PKCS #8)", ErrKey)
	}
	if next, _ := pem.Decode(rest); next != nil {
		return nil, fmt.Errorf("%w: there is more than one PEM block; one key signs", ErrKey)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: the PEM block is not a PKCS #8 key", ErrKey) // the error of x509 could tell more
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%w: it is not an Ed25519 key", ErrKey)
	}
	public, _ := private.Public().(ed25519.PublicKey)
	key, err := newKey(public)
	if err != nil {
		return nil, err
	}
	return &Signer{key, func(message []byte) []byte { return ed25519.Sign(private, message) }}, nil
}

// ReadSigner reads the private key in the file. It refuses a file that others than
// its owner may read or write. A file of root may be readable by its group too, if
// the process is not root: so are the secrets that Kubernetes and systemd provide.
func ReadSigner(path string) (*Signer, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the operator names it; a pipe to which nobody writes opens at once
	if err != nil {
		return nil, fmt.Errorf("open the key: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	about, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("look at the key: %w", err)
	}
	if !about.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrKey, path)
	}
	owner, _ := about.Sys().(*syscall.Stat_t)
	if mode := about.Mode().Perm(); !private(mode, owner != nil && owner.Uid == 0 && os.Geteuid() != 0) {
		return nil, fmt.Errorf("%w: others may use %s, its mode is %#o; run chmod 600 on it", ErrKey, path, mode)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	return ParseSigner(text)
}

// private reports whether a file with the mode is secret. One that is provided by root
// to another user has to be readable by its group.
func private(mode os.FileMode, provided bool) bool {
	if provided {
		mode &^= 0o040
	}
	return mode&0o077 == 0
}
