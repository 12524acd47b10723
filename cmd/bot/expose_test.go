package main

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// --expose lets other machines in where they can come from. On a loopback
// address nobody but a page of another site comes under a foreign name.
func TestOnlyAnAddressOfOtherMachinesIsExposed(t *testing.T) {
	t.Parallel()
	for addr, local := range map[string]bool{"127.0.0.1:1": true, "127.8.8.8:1": true, "[::1]:1": true, "0.0.0.0:1": false, "[::]:1": false, "192.0.2.1:1": false} {
		tcp, err := net.ResolveTCPAddr("tcp", addr)
		require.NoError(t, err)
		require.Equal(t, local, isLoopback(tcp), addr)
	}
}
