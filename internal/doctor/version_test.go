package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckKnowsOldVersions(t *testing.T) {
	for text, want := range map[string][3]int{"7.0.15": {7, 0, 1}, "6.2": {6, 2, 1}, "5.0.7": {5, 0, 1}, "": {}, "7": {}, "x.y.z": {}} {
		major, minor, ok := versionOf(text)
		require.Equal(t, want[2] == 1, ok, text)
		if ok {
			require.Equal(t, want, [3]int{major, minor, 1}, text)
		}
	}
}
