package outbox_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An operator sees what was tried, what went wrong and when it is tried next.
func TestDeliveriesSayWhereEachMessageStands(t *testing.T) {
	w := newWorld(t)
	w.hook.answers(http.StatusServiceUnavailable, "")
	id := w.put("a", "ci")
	require.Error(t, w.Reconcile(t.Context(), id))
	list, err := w.Deliveries(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "waiting", list[0].State)
	require.Equal(t, 1, list[0].Attempts)
	require.Equal(t, http.StatusServiceUnavailable, list[0].LastStatus)
	require.NotEmpty(t, list[0].LastError)
	require.WithinDuration(t, w.due(id), list[0].Next, time.Millisecond)

	w.hook.answers(http.StatusOK, "")
	w.clock.Advance(list[0].Next.Sub(w.clock.Now()) + time.Millisecond)
	require.NoError(t, w.Reconcile(t.Context(), id))
	list, err = w.Deliveries(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "done", list[0].State)
	require.Zero(t, list[0].Next)
	list, err = w.Deliveries(t.Context(), "run-07-unknown")
	require.NoError(t, err)
	require.Empty(t, list)
}

// A message for an endpoint that is disabled is tried at no time: it is held.
func TestAMessageForADisabledEndpointIsHeld(t *testing.T) {
	w := newWorld(t)
	w.hook.answers(http.StatusGone, "")
	id := w.put("a", "ci")
	require.Error(t, w.Reconcile(t.Context(), id))
	list, err := w.Deliveries(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "waiting", list[0].State)
	require.True(t, list[0].Held)
	require.Zero(t, list[0].Next)
}
