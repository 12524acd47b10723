package directory

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// knowing is a directory that knows nothing yet and asks a Slack that says this
// of U1.
func knowing(t *testing.T, says string) *Directory {
	t.Helper()
	slack := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"ok":true,"user":{"id":"U1",%s}}`, says)
	}))
	t.Cleanup(slack.Close)
	return &Directory{
		API: slackapi.New(func() string { return "xoxb" }, slack.URL, nil), Memos: newMemos(t), Team: "T1", Age: time.Minute, Now: time.Now,
	}
}

// Whatever Slack calls somebody who is no full member, they count in no group.
func TestWhoIsNoFullMember(t *testing.T) {
	byName := Sought{Named: []approvals.UserID{"U1"}}
	for says, want := range map[string]error{
		`"team_id":"T1"`:                              nil,
		`"team_id":"T1","deleted":true`:               ErrGone,
		`"team_id":"T1","is_bot":true`:                ErrBot,
		`"team_id":"T1","is_workflow_bot":true`:       ErrBot,
		`"team_id":"T1","is_connector_bot":true`:      ErrBot,
		`"team_id":"T1","is_restricted":true`:         ErrGuest,
		`"team_id":"T1","is_ultra_restricted":true`:   ErrGuest,
		`"team_id":"T1","is_invited_user":true`:       ErrGuest,
		`"team_id":"T1","is_stranger":true`:           ErrStranger,
		`"team_id":"T2"`:                              ErrStranger,
		`"team_id":"T1","is_bot":true,"deleted":true`: ErrGone,
	} {
		member, err := knowing(t, says).Admitted(t.Context(), "U1", "", Sought{})
		require.ErrorIs(t, err, want, says)
		require.Equal(t, want == nil, member, says)

		member, err = knowing(t, says).Admitted(t.Context(), "U1", "", byName)
		require.Equal(t, want == nil, member, "%s: a name makes nobody a member", says)
		if want == ErrGuest || want == ErrStranger { //nolint:errorlint // they are those of the table
			want = nil
		}
		require.ErrorIs(t, err, want, says)
	}
}

// Whom a click calls somebody of elsewhere is one, whatever the account says:
// heard where they are named, and in no group.
func TestWhoClicksFromElsewhere(t *testing.T) {
	ours := `"team_id":"T1"`
	_, err := knowing(t, ours).Admitted(t.Context(), "U1", "T2", Sought{})
	require.ErrorIs(t, err, ErrStranger)
	member, err := knowing(t, ours).Admitted(t.Context(), "U1", "T2", Sought{Named: []approvals.UserID{"U1"}})
	require.NoError(t, err)
	require.False(t, member)
	p, err := knowing(t, ours).Principal(t.Context(), "U1", "T2", Sought{Named: []approvals.UserID{"U1"}, Groups: []approvals.GroupID{"S1"}})
	require.NoError(t, err)
	require.Empty(t, p.Groups)
	_, err = knowing(t, `"team_id":"T1","deleted":true`).Admitted(t.Context(), "U1", "T2", Sought{Named: []approvals.UserID{"U1"}})
	require.ErrorIs(t, err, ErrGone)
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
	what := SoughtFor(b)
	require.ElementsMatch(t, []approvals.UserID{"U1", "U2"}, what.Named)
	require.Equal(t, []approvals.GroupID{"S1", "S2"}, what.Groups)
	require.False(t, what.Others)
	_, err := knowing(t, `"team_id":"T1","is_restricted":true`).Admitted(t.Context(), "U1", "", what)
	require.NoError(t, err)
}
