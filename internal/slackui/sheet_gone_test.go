package slackui_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
)

// One rule with a group that nobody has keeps nobody from signing what other
// rules ask, and signs nothing itself.
func TestAGroupThatIsGoneIsLeftOutAndTheOthersAreSigned(t *testing.T) {
	for _, gone := range []approvals.GroupID{"S0GONE", "C0GONE"} {
		t.Run(string(gone), func(t *testing.T) {
			h := newSheetWorkspace(t)
			b := h.asks("one", "U0ALICE", time.Hour, tags(2, sre)...)
			lost := h.asks("lost", "U0ALICE", time.Hour, tags(1, by("gone", fromGroup(gone)))...)
			either := h.asks("either", "U0ALICE", time.Hour, tags(1, by("either", fromGroup(gone, "S0SRE")))...)
			v := h.sheet("U0BOB", "approve all")
			require.Equal(t, "Approve 3 calls", v.Submit)
			require.Contains(t, shows(v), "Left out: 1 call that you can't decide, because a group they ask no longer exists")
			id := h.sheetID("U0BOB")
			require.Contains(t, shows(*h.sendsSheet("U0BOB").View), "Approving 3 calls…")
			h.finishes(id)
			require.Equal(t, "approved approved", h.statuses(b))
			require.Equal(t, "approved", h.statuses(either))
			require.Equal(t, "pending", h.statuses(lost))
		})
	}
}

func TestAGroupThatGoesAfterTheListWasMadeSignsNothing(t *testing.T) {
	h := newSheetWorkspace(t)
	b := h.asks("one", "U0ALICE", time.Hour, tags(1, sre)...)
	h.sheet("U0BOB", "approve all")
	h.pass(2 * time.Minute)
	h.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "usergroups.users.list", Error: "no_such_subteam"}}})
	id := h.sheetID("U0BOB")
	h.sendsSheet("U0BOB")
	require.Equal(t, []approvals.Tally{{Why: approvals.WhyNotEligible, Lines: 1}}, h.finishes(id).Summary().Skipped)
	require.Equal(t, "pending", h.statuses(b))
}

// What Slack may say in a moment is not gone, whatever else is.
func TestAGroupThatSlackDoesNotTellNowIsNotGone(t *testing.T) {
	h := newSheetWorkspace(t)
	h.asks("one", "U0ALICE", time.Hour, tags(1, sre)...)
	h.asks("lost", "U0ALICE", time.Hour, tags(1, by("gone", fromGroup("C0GONE")))...)
	h.pass(2 * time.Minute)
	h.SetFaults(slacksim.Faults{Next: slices.Repeat([]slacksim.Fault{{Method: "usergroups.users.list", Error: "internal_error"}}, 9)})
	require.Contains(t, h.slashes("U0BOB", "approve all"), "Try again in a moment.")
	require.Empty(t, h.Views("U0BOB"))
}
