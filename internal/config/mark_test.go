package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/config"
)

// Some editors begin a file with a byte-order mark. It is no part of the first
// key.
func TestAByteOrderMarkIsNoPartOfTheFirstKey(t *testing.T) {
	const text = "policy: policy.yaml\nagents:\n  - name: ops\n"
	want, problems := config.Decode([]byte(text))
	require.Empty(t, problems)
	got, problems := config.Decode([]byte("\uFEFF" + text))
	require.Empty(t, problems)
	require.Equal(t, want, got)
}
