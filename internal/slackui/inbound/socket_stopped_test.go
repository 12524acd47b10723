package inbound

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// While a machine is suspended its timers stop, too. What comes first when it goes on may
// have been sent long before: its person was told that it failed, and may have decided
// otherwise since. Slack delivers events again.
func TestWhatCameWhileTheMachineWasSuspendedIsNotHandled(t *testing.T) {
	handled := make(chan string, 10)
	b := newSwitchboard(t, hello, func(payload string) (Reply, error) {
		handled <- payload
		return Reply{}, nil
	})
	c := b.link()
	b.sends(c, `{"type":"interactive","envelope_id":"e1","payload":1}`)
	require.Equal(t, "1", <-handled)

	b.slept.Add(int64(time.Hour))
	b.sends(c, `{"type":"interactive","envelope_id":"e2","payload":2}`)
	next := b.link()
	b.sends(next, `{"type":"interactive","envelope_id":"e3","payload":3}`)
	require.JSONEq(t, `{"envelope_id":"e3"}`, b.hears(next))
	require.Equal(t, "3", <-handled)
	require.Empty(t, handled)
}
