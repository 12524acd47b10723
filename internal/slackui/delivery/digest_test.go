package delivery

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

// A record that an earlier version wrote has no severities: it is read, and the
// next change of the request brings them.
func TestADigestOfAnEarlierVersionTakesUpSeverities(t *testing.T) {
	var x Digest
	require.NoError(t, json.Unmarshal([]byte(`{"channel":"C1","changes":1,"drawn":1,"requests":{"batch-01-a":{"v":1,"c":1,"a":"ops","t":{"delete_file":1},"o":"2026-03-04T12:00:00Z"}}}`), &x))
	require.Equal(t, 1, x.sums().Calls)
	require.Empty(t, x.sums().Risks)

	b := approvals.Batch{ID: "batch-01-a", Version: 2, Agent: "ops", Approvals: []approvals.Approval{{
		Call: approvals.CallRef{ID: "c1", Name: "delete_file"}, Status: approvals.Pending, Severity: approvals.SeverityIrreversible,
	}}}
	x.note("C1", b, time.Time{})
	require.False(t, x.shows(b.ID), "it is drawn anew")
	require.Equal(t, map[approvals.Severity]int{approvals.SeverityIrreversible: 1}, x.sums().Risks)

	raw, err := json.Marshal(x)
	require.NoError(t, err)
	var again Digest
	require.NoError(t, json.Unmarshal(raw, &again))
	require.Equal(t, x, again)
	b.Version, b.Approvals[0].Call.Digest = 3, approvals.Digest{1}
	again.drew("1.1", again.Changes, time.Time{})
	again.note("C1", b, time.Time{})
	require.False(t, again.shows(b.ID), "edited arguments change what the message says it does")
}
