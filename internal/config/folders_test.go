package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Kernel file systems are mounted in other places too, such as in the root of a
// container.
func TestKernelFileSystemsAreFoundWhereTheyAreMounted(t *testing.T) {
	const mounts = `21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
22 21 0:5 / /proc rw,nosuid - proc proc rw
23 21 0:6 / /srv/box\040one/proc rw shared:7 master:2 - proc proc rw
24 21 0:5 /1 /mnt/init rw - proc proc rw
25 21 0:7 / /sys ro - sysfs sysfs ro
26 21 0:8 / /srv/dev rw - devtmpfs udev rw
27 21 8:1 /proc /srv/not rw - ext4 /dev/sda1 rw
half a line
`
	require.Equal(t, []string{"/proc", "/srv/box one/proc", "/mnt/init", "/sys", "/srv/dev"}, kernelMounts(mounts))
}
