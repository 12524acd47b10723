package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
)

// What is wrong in the store is not a fault of the request, and the agent learns nothing
// of it but that the call may not run.
func TestADamagedRequestIsNoFaultOfTheAgent(t *testing.T) {
	w := newWorld(t)
	q := w.post(`{"external_id":"x","calls":[{"id":"c1","tool":"deploy","args":{"n":1}}]}`)
	w.decide(q.ID, "c1", approvals.Approve, "")
	asked, err := w.intake.Get(w.Context(), intake.Client{Name: "claude", Credential: "x", Owner: "alice"}, q.ID)
	require.NoError(t, err)
	before, err := w.store.Batch(w.Context(), asked.Batch)
	require.NoError(t, err)
	damaged := before
	damaged.Version++
	damaged.Approvals = []approvals.Approval{before.Approvals[0]}
	damaged.Approvals[0].Decisions = nil
	require.NoError(t, w.store.CommitBatch(w.Context(), approvals.BatchCommit{Before: before, Batch: damaged}))

	for _, e := range []exchange{
		w.get(q.ID, ""), w.do(http.MethodPost, "/v1/approvals/"+string(q.ID)+"/calls/c1/claim", claudeToken, ""),
	} {
		require.Equal(t, http.StatusServiceUnavailable, e.status, string(e.body))
		require.Equal(t, "unavailable", e.kind(t))
		require.NotContains(t, string(e.body), "c1")
	}
	require.Contains(t, w.log.String(), "unreadable")
}
