package slackui

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

// knowing is a directory that knows nothing yet and asks a Slack that says this
// of U1.
func knowing(t *testing.T, says string) *directory {
	t.Helper()
	slack := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"ok":true,"user":{"id":"U1",%s}}`, says)
	}))
	t.Cleanup(slack.Close)
	return &directory{
		api: newAPI(func() string { return "xoxb" }, slack.URL), memos: &cabinet{}, team: "T1", age: time.Minute, now: time.Now,
	}
}

// Whatever Slack calls somebody who is no full member, they count in no group.
func TestWhoIsNoFullMember(t *testing.T) {
	byName := sought{named: []approvals.UserID{"U1"}}
	for says, want := range map[string]error{
		`"team_id":"T1"`:                              nil,
		`"team_id":"T1","deleted":true`:               errGone,
		`"team_id":"T1","is_bot":true`:                errBot,
		`"team_id":"T1","is_workflow_bot":true`:       errBot,
		`"team_id":"T1","is_connector_bot":true`:      errBot,
		`"team_id":"T1","is_restricted":true`:         errGuest,
		`"team_id":"T1","is_ultra_restricted":true`:   errGuest,
		`"team_id":"T1","is_invited_user":true`:       errGuest,
		`"team_id":"T1","is_stranger":true`:           errStranger,
		`"team_id":"T2"`:                              errStranger,
		`"team_id":"T1","is_bot":true,"deleted":true`: errGone,
	} {
		member, err := knowing(t, says).admitted(t.Context(), "U1", "", sought{})
		require.ErrorIs(t, err, want, says)
		require.Equal(t, want == nil, member, says)

		member, err = knowing(t, says).admitted(t.Context(), "U1", "", byName)
		require.Equal(t, want == nil, member, "%s: a name makes nobody a member", says)
		if want == errGuest || want == errStranger { //nolint:errorlint // they are those of the table
			want = nil
		}
		require.ErrorIs(t, err, want, says)
	}
}

// Whom a click calls somebody of elsewhere is one, whatever the account says:
// heard where they are named, and in no group.
func TestWhoClicksFromElsewhere(t *testing.T) {
	ours := `"team_id":"T1"`
	_, err := knowing(t, ours).admitted(t.Context(), "U1", "T2", sought{})
	require.ErrorIs(t, err, errStranger)
	member, err := knowing(t, ours).admitted(t.Context(), "U1", "T2", sought{named: []approvals.UserID{"U1"}})
	require.NoError(t, err)
	require.False(t, member)
	p, err := knowing(t, ours).principal(t.Context(), "U1", "T2", sought{named: []approvals.UserID{"U1"}, groups: []approvals.GroupID{"S1"}})
	require.NoError(t, err)
	require.Empty(t, p.Groups)
	_, err = knowing(t, `"team_id":"T1","deleted":true`).admitted(t.Context(), "U1", "T2", sought{named: []approvals.UserID{"U1"}})
	require.ErrorIs(t, err, errGone)
}

// A veto names people as a quorum does.
func TestWhoIsNamedOnlyInAVetoIsNamed(t *testing.T) {
	b := approvals.Batch{Approvals: []approvals.Approval{
		{Status: approvals.Pending, Requirement: approvals.Requirement{
			Quorums: []approvals.Quorum{{From: approvals.From{Users: []approvals.UserID{"U2"}, Groups: []approvals.GroupID{"S2"}}}},
			Vetoes:  []approvals.Quorum{{From: approvals.From{Users: []approvals.UserID{"U1"}, Groups: []approvals.GroupID{"S1"}}}},
		}},
		{Status: approvals.Denied, Requirement: approvals.Requirement{
			Delegation: true, Vetoes: []approvals.Quorum{{From: approvals.From{Users: []approvals.UserID{"U3"}}}},
		}},
	}}
	what := soughtFor(b)
	require.ElementsMatch(t, []approvals.UserID{"U1", "U2"}, what.named)
	require.Equal(t, []approvals.GroupID{"S1", "S2"}, what.groups)
	require.False(t, what.others)
	_, err := knowing(t, `"team_id":"T1","is_restricted":true`).admitted(t.Context(), "U1", "", what)
	require.NoError(t, err)
}
