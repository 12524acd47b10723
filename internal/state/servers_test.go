package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/state"
)

func TestOldVersionsOfRedisAreKnown(t *testing.T) {
	for version, want := range map[string]struct{ supported, known bool }{
		"7.0.15": {true, true}, "6.2": {true, true}, "10.0.0": {true, true}, "6.0.16": {false, true}, "5.0.7": {false, true}, "5.9": {false, true},
		"": {}, "7": {}, "x.y.z": {},
	} {
		supported, known := state.Supported(version)
		require.Equal(t, want.supported, supported, version)
		require.Equal(t, want.known, known, version)
	}
}
