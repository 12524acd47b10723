package config

import (
	"fmt"

	"github.com/countersign/countersign/internal/receipt"
	"github.com/countersign/countersign/internal/strictyaml"
)

// Receipts are the keys of receipts. Without a key none are signed.
type Receipts struct {
	KeyFile string `yaml:"key_file"`      // the private key that signs, as `bot receipt key` writes it
	OldKeys string `yaml:"old_keys_file"` // public keys that signed before, a JWKS or PEM; they are published too
}

// Open reads the keys: the one that signs, and all that are published. Without a
// key it returns nil.
func (r Receipts) Open() (*receipt.Signer, receipt.Keys, error) {
	if r.KeyFile == "" {
		return nil, receipt.Keys{}, nil
	}
	signer, err := receipt.ReadSigner(r.KeyFile)
	if err != nil {
		return nil, receipt.Keys{}, fmt.Errorf("receipts.key_file: %w", err)
	}
	keys := []receipt.Key{signer.Key()}
	if r.OldKeys != "" {
		text, err := strictyaml.ReadWhole(r.OldKeys)
		if err != nil {
			return nil, receipt.Keys{}, fmt.Errorf("receipts.old_keys_file: %w", err)
		}
		old, err := receipt.ParseKeys(text)
		if err != nil {
			return nil, receipt.Keys{}, fmt.Errorf("receipts.old_keys_file: %w", err)
		}
		keys = append(keys, old.All()...)
	}
	return signer, receipt.NewKeys(keys...), nil
}

func (r Receipts) check(wrong func(format string, args ...any)) {
	if r.KeyFile == "" && r.OldKeys != "" {
		wrong("receipts.key_file: not set, so receipts.old_keys_file has no effect")
	}
	if _, _, err := r.Open(); err != nil {
		wrong("%w", err)
	}
}
