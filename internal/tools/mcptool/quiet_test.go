package mcptool

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a server writes into a refusal may say that it does not know the session.
func TestARefusalIsNoSignOfTheSession(t *testing.T) {
	for status, quiet := range map[int]bool{0: false, http.StatusBadRequest: true} {
		tap := newTap(time.Hour)
		tap.idle = true
		_, e, _ := tap.begin(t.Context())
		e.id = []byte("1")
		tap.byID["1"] = e
		if status != 0 {
			e.refused(status, false)
		}
		tap.arrived([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Session not found"}}`))
		require.Equal(t, quiet, tap.isQuiet(), status)
	}
	l := &link{tap: newTap(time.Hour), pings: true}
	require.False(t, l.idle())
	l.unknown.Store(true)
	require.True(t, l.idle(), "also if it answers something else")
}
