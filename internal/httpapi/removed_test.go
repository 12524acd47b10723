package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A request that was removed is gone and not unknown: nothing is made in its place,
// and its caller is told so.
func TestARequestThatWasRemovedIsGone(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	const body = `{"external_id":"x","calls":[{"id":"c1","tool":"free","args":{}}]}`
	q := w.post(body)
	require.Equal(t, http.StatusOK, w.claim(q.ID, "c1").status)
	run, err := w.store.Run(ctx, q.ID)
	require.NoError(t, err)
	remains, err := w.intake.Remains(ctx, run)
	require.NoError(t, err)
	m := remains.Marker
	require.NoError(t, w.store.CommitMemo(ctx, m.ID, m.Surface, m.Data, m.Version, 0))

	at := "/v1/approvals/" + string(q.ID)
	for _, got := range []exchange{
		w.do(http.MethodPost, "/v1/approvals", claudeToken, body),
		w.do(http.MethodGet, at, claudeToken, ""),
		w.results(q.ID, ""),
		w.do(http.MethodPost, at+"/withdraw", claudeToken, "{}"),
		w.claim(q.ID, "c1"),
		w.do(http.MethodPost, w.callPath(q.ID, "c1")+"/result", claudeToken, `{"state":"ran"}`),
	} {
		require.Equal(t, http.StatusGone, got.status, string(got.body))
		require.Equal(t, "removed", got.kind(t))
		require.Contains(t, string(got.body), "removed_at")
	}
	require.Equal(t, http.StatusNotFound, w.do(http.MethodGet, at, otherToken, "").status)
}
