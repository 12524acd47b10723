package inbound

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever reason Slack gives for closing a connection, also one that is new, what came on
// it before is acknowledged there, and another connection takes its place.
func TestAnEnvelopeIsAcknowledgedWhateverTheReasonOfADisconnect(t *testing.T) {
	for _, reason := range []string{"warning", "refresh_requested", "link_disabled", "socket_mode_disabled", "too_many_websockets", "something_new", ""} {
		t.Run(reason, func(t *testing.T) {
			begun, open := make(chan struct{}), make(chan struct{})
			b := newSwitchboard(t, hello, func(string) (Reply, error) {
				close(begun)
				<-open
				return Reply{}, nil
			})
			c := b.link()
			b.sends(c, `{"type":"slash_commands","envelope_id":"e1","payload":{}}`)
			<-begun
			b.sends(c, fmt.Sprintf(`{"type":"disconnect","reason":%q}`, reason))
			next := b.link()
			require.NotSame(t, c, next)
			close(open)
			require.JSONEq(t, `{"envelope_id":"e1"}`, b.hears(c))
		})
	}
}
