package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/receipt"
)

func TestKeysOfReceiptsAreReadBeforeTheStart(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, text []byte, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, text, mode))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	problems := func(r Receipts) error {
		c, found := Decode([]byte("agents:\n  - name: ops\npolicy: p.yaml\n"))
		require.Empty(t, found)
		c.Receipts = r
		return c.Check()
	}
	key, err := receipt.GenerateKey()
	require.NoError(t, err)
	before, err := receipt.GenerateKey()
	require.NoError(t, err)
	old, err := receipt.ParseSigner(before)
	require.NoError(t, err)
	good, published := file("key.pem", key, 0o600), file("old.json", receipt.NewKeys(old.Key()).JWKS(), 0o644)

	require.NoError(t, problems(Receipts{}))
	require.NoError(t, problems(Receipts{KeyFile: good, OldKeys: published}))
	signer, keys, err := Receipts{KeyFile: good, OldKeys: published}.Open()
	require.NoError(t, err)
	require.Equal(t, []receipt.Key{signer.Key(), old.Key()}, keys.All(), "receipts of before verify while keys rotate")

	require.ErrorContains(t, problems(Receipts{OldKeys: published}), "receipts.key_file: not set")
	require.ErrorContains(t, problems(Receipts{KeyFile: filepath.Join(dir, "none")}), "receipts.key_file: open the key")
	require.ErrorContains(t, problems(Receipts{KeyFile: file("open.pem", key, 0o644)}), "receipts.key_file")
	require.ErrorContains(t, problems(Receipts{KeyFile: good, OldKeys: file("private.pem", before, 0o600)}), "receipts.old_keys_file")
}
