package receipt

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Kubernetes and systemd provide a secret as a file of root that its group may read:
// the bot, which is another user, could not read it otherwise.
func TestAProvidedKeyMayBeReadByItsGroup(t *testing.T) {
	for _, mode := range []os.FileMode{0o400, 0o440, 0o600, 0o640} {
		require.True(t, private(mode, true), "%#o", mode)
		require.Equal(t, mode&0o040 == 0, private(mode, false), "%#o", mode)
	}
	for _, mode := range []os.FileMode{0o404, 0o444, 0o460, 0o450, 0o644, 0o660} {
		require.False(t, private(mode, true), "%#o", mode)
		require.False(t, private(mode, false), "%#o", mode)
	}
}
