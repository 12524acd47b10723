package slackui_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

// allOf is the value of a button that approves these calls of a batch together.
func allOf(b approvals.Batch, calls ...int) string {
	var digests []string
	for _, i := range calls {
		digests = append(digests, b.Approvals[i].Call.Digest.String())
	}
	return "t1|" + string(b.ID) + "|0|" + strings.Join(digests, ",")
}

// inOps is a press in the channel of the card.
func inOps(payload map[string]any, root string) map[string]any {
	payload["channel"] = map[string]any{"id": "C0OPS"}
	payload["container"] = map[string]any{"type": "message", "channel_id": "C0OPS", "message_ts": root}
	return payload
}

// Whoever may not approve one call may not approve several.
func TestNobodyWhoMayNotApproveApprovesAll(t *testing.T) {
	anyone := by("anyone", fromGroup("C0OPS"))
	for name, c := range map[string]struct {
		user, team string
		quorum     approvals.Quorum
	}{
		"a guest in the channel":      {"U0GUEST", "", anyone},
		"a deactivated account":       {"U0GONE", "", by("gone", fromUser("U0GONE"))},
		"somebody from elsewhere":     {"U0BOB", "T0OTHER", sre},
		"whoever asked":               {"U0ALICE", "", anyone},
		"a person without an account": {"U0NOBODY", "", by("nobody", fromUser("U0NOBODY"))},
		"nobody at all":               {"", "", anyone},
	} {
		t.Run(name, func(t *testing.T) {
			calls := four(c.quorum)
			for i := range calls {
				calls[i].Ask.Requirement.Separation = true
			}
			o, root, b := one(t, calls...)
			payload := inOps(pressed(c.user, "1.a", "all.0", allOf(b, 0, 1, 2, 3)), root)
			if c.team != "" {
				payload["user"] = map[string]any{"id": c.user, "team_id": c.team}
			}
			o.deliver(payload)
			require.Equal(t, "pending pending pending pending", o.all(b))
		})
	}
}

// Each call is judged by itself: what a person edited, or asked for with others,
// they do not approve because it is beside calls that they may approve.
func TestApproveAllJudgesEachCallByItself(t *testing.T) {
	calls := four(sre)
	calls[1].EditedBy = []approvals.UserID{"U0BOB"}
	calls[2].Ask.Requirement.Quorums = []approvals.Quorum{by("dave", fromUser("U0DAVE"))}
	o, root, b := one(t, calls...)
	require.Equal(t, 200, o.deliver(inOps(pressed("U0BOB", "1.a", "all.0", allOf(b, 0, 1, 2, 3)), root)))
	require.Equal(t, "approved pending pending approved", o.all(b))

	calls = four(sre)
	for i := range calls {
		calls[i].Ask.Requirement.Separation = true
	}
	o, root, b = one(t, calls...)
	o.moves(b, func(now *approvals.Batch) { now.Participants = []approvals.UserID{"U0BOB"} })
	require.Equal(t, 200, o.deliver(inOps(pressed("U0BOB", "1.a", "all.0", allOf(b, 0, 1, 2, 3)), root)))
	require.Equal(t, "pending pending pending pending", o.all(b))
}

// A button names the calls that it approves. Those of another card, and those that
// it does not name, it leaves alone.
func TestApproveAllApprovesWhatItsButtonNamesAndNothingElse(t *testing.T) {
	var calls []approvals.Deferral
	for _, id := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"} {
		d := call("c"+id, "tag_file", `{"path":"`+id+`.txt"}`, sre)
		d.Severity = approvals.SeverityHigh
		calls = append(calls, d)
	}
	o, root, b := one(t, calls...)
	require.Equal(t, 200, o.deliver(inOps(pressed("U0BOB", "1.a", "all.0", allOf(b, 0, 8, 9)), root)))
	require.Equal(t, "approved"+strings.Repeat(" pending", 9), o.all(b), "the last two are on another card")
}

// Two people who press at the same time count once each, and so does a person who
// presses twice.
func TestPressesOnApproveAllAtOneTimeCountOncePerPerson(t *testing.T) {
	two := sre
	two.Need = 2
	o, root, b := one(t, four(two)...)
	var wg sync.WaitGroup
	for _, trigger := range []string{"1.a", "2.a", "3.a", "4.a"} {
		wg.Go(func() { o.deliver(inOps(pressed("U0BOB", trigger, "all.0", allOf(b, 0, 1, 2, 3)), root)) })
	}
	wg.Wait()
	require.Equal(t, "pending pending pending pending", o.all(b), "one person is one of two approvals")
	for _, user := range []string{"U0CAROL", "U0BOB"} {
		wg.Go(func() { o.deliver(inOps(pressed(user, "5."+user, "all.0", allOf(b, 0, 1, 2, 3)), root)) })
	}
	wg.Wait()
	require.Equal(t, "approved approved approved approved", o.all(b))
	for _, a := range o.batch(b.ID).Approvals {
		require.Len(t, a.Decisions, 2)
	}
}

// Who has left the group since the card was drawn approves nothing.
func TestApproveAllAsksWhoSomebodyIsNow(t *testing.T) {
	o, root, b := one(t, four(sre)...)
	require.NoError(t, o.SetGroup("S0SRE", []string{"U0CAROL"}))
	o.now.Advance(11 * time.Minute)
	require.Equal(t, 200, o.deliver(inOps(pressed("U0BOB", "1.a", "all.0", allOf(b, 0, 1, 2, 3)), root)))
	require.Equal(t, "pending pending pending pending", o.all(b))
}
