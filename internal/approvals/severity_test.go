package approvals_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

func TestTheWorseSeverityCounts(t *testing.T) {
	unset, low, high, irreversible, unknown := SeverityUnset, SeverityLow, SeverityHigh, SeverityIrreversible, Severity("critical")
	for _, tt := range []struct{ a, b, want Severity }{
		{unset, unset, unset},
		{unset, low, low},
		{low, low, low},
		{low, high, high},
		{high, irreversible, irreversible},
		{low, irreversible, irreversible},
		{unset, unknown, irreversible},
		{low, unknown, irreversible},
	} {
		require.Equal(t, tt.want, tt.a.Worse(tt.b), "%q and %q", tt.a, tt.b)
		require.Equal(t, tt.want, tt.b.Worse(tt.a), "%q and %q", tt.b, tt.a)
	}
}

func TestUnsetSeverityIsNoPromise(t *testing.T) {
	for s, may := range map[Severity]bool{
		SeverityUnset: true, SeverityLow: false, SeverityHigh: false, SeverityIrreversible: true, "critical": true,
	} {
		require.Equal(t, may, s.MayBeIrreversible(), "%q", s)
	}
	all := []Severity{SeverityLow, SeverityUnset, SeverityIrreversible, SeverityHigh}
	slices.SortFunc(all, CompareSeverity)
	require.Equal(t, []Severity{SeverityIrreversible, SeverityUnset, SeverityHigh, SeverityLow}, all)
}

func TestParseSeverityTakesOnlyStatedOnes(t *testing.T) {
	for _, s := range []Severity{SeverityLow, SeverityHigh, SeverityIrreversible} {
		got, err := ParseSeverity(string(s))
		require.NoError(t, err)
		require.Equal(t, s, got)
	}
	for _, s := range []string{"", "High", "critical"} {
		_, err := ParseSeverity(s)
		require.ErrorIs(t, err, ErrInvalid, "%q", s)
	}
}

// TestSeverityOfAnApproval: the tool and the policy may each state one, the
// worse counts, and changed arguments never make a call look harmless.
func TestSeverityOfAnApproval(t *testing.T) {
	call := ToolCall{ID: "c1", Name: "wipe", Args: []byte(`{}`)}
	b, _, err := Open(Batch{ID: "batch-01-x", Run: "run-01-x", Requester: "U1", OpenedAt: opened}, []Deferral{
		{Call: call, Severity: SeverityLow, Ask: Ask{Requirement: all(of(1, "ann")), Severity: SeverityHigh}},
		{Call: ToolCall{ID: "c2", Name: "wipe", Args: []byte(`{}`)}, Severity: SeverityIrreversible, Ask: Ask{Requirement: all(of(1, "ann")), Severity: SeverityLow}},
		{Call: ToolCall{ID: "c3", Name: "wipe", Args: []byte(`{}`)}, Ask: Ask{Requirement: all(of(1, "ann"))}},
	}, nil)
	require.NoError(t, err)
	require.Equal(t, SeverityHigh, b.Approvals[0].Severity)
	require.Equal(t, SeverityIrreversible, b.Approvals[1].Severity)
	require.Equal(t, SeverityUnset, b.Approvals[2].Severity)

	amend := func(ruled Severity) Severity {
		next, _, err := b.Apply(Amend{
			Call: "c1", From: b.Approvals[0].Call.Digest, Args: []byte(`{"x":1}`), By: Principal{User: "ann"}, At: opened.Add(time.Minute),
			Ruling: Ask{Requirement: all(of(1, "ann")), Severity: ruled},
		})
		require.NoError(t, err)
		return next.Approvals[0].Severity
	}
	require.Equal(t, SeverityHigh, amend(SeverityLow))
	require.Equal(t, SeverityIrreversible, amend(SeverityIrreversible))
}
