package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/directory"
)

func TestAnOperatorReadsWhoStandsInForWhom(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Second)
	f := deferral(t)
	require.Equal(t, "0 grants\n", f.admin("grants"))
	_, who, err := askSlack(t.Context(), f.o.Environ)
	require.NoError(t, err)
	away := (&directory.Directory{Memos: f.b.store, Team: who.TeamID}).Absences()
	_, _, err = away.Change(t.Context(), func(as approvals.Absences) (approvals.Absences, error) {
		for _, a := range []approvals.Absence{
			{User: "U0BOB", Delegate: "U0CAROL", From: now.Add(-time.Hour), Until: now.Add(time.Hour)},
			{User: "U0CAROL", Delegate: "U0DAVE", From: now.Add(-time.Minute), Until: now.Add(30 * time.Minute)},
			{User: "U0ALICE", Delegate: "U0ERIN", From: now.Add(2 * time.Hour), Until: now.Add(3 * time.Hour)},
			{User: "U0ERIN", From: now.Add(-time.Hour), Until: now.Add(time.Hour)},
		} {
			next, err := as.Set(a, now)
			require.NoError(t, err)
			as = next
		}
		return as, nil
	})
	require.NoError(t, err)
	require.Equal(t, []grantRow{
		{For: "U0BOB", To: "U0CAROL", From: now.Add(-time.Hour), Until: now.Add(time.Hour), Now: true},
		{For: "U0CAROL", To: "U0DAVE", From: now.Add(-time.Minute), Until: now.Add(30 * time.Minute), Now: true},
		{For: "U0BOB", To: "U0DAVE", From: now.Add(-time.Minute), Until: now.Add(30 * time.Minute), Via: []approvals.UserID{"U0CAROL"}, Now: true},
		{For: "U0ALICE", To: "U0ERIN", From: now.Add(2 * time.Hour), Until: now.Add(3 * time.Hour)},
	}, adminJSON[grantRow](f, "grants"))
	text := f.admin("grants")
	require.Contains(t, text, "U0DAVE\tfor U0BOB\t")
	require.Contains(t, text, "\tnow, passed on by U0CAROL\n")
	require.Contains(t, text, "4 grants\n")
	require.Equal(t, "0 grants\n", f.admin("grants", "--team", "T0OTHER"))
	require.ErrorContains(t, run(t.Context(), []string{"admin", "grants", "--team", "acme"}, f.o.Environ, &strings.Builder{}, &strings.Builder{}), "T0123456789")
}
