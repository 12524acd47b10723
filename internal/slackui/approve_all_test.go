package slackui_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
)

// four are calls that one button may approve together.
func four(q ...approvals.Quorum) []approvals.Deferral {
	var all []approvals.Deferral
	for _, id := range []string{"1", "2", "3", "4"} {
		d := call("c"+id, "tag_file", `{"path":"`+id+`.txt"}`, q...)
		d.Severity = approvals.SeverityHigh
		all = append(all, d)
	}
	return all
}

func (o *workspace) all(b approvals.Batch) string {
	var said []string
	for _, a := range o.batch(b.ID).Approvals {
		said = append(said, string(a.Status))
	}
	return strings.Join(said, " ")
}

func TestOneButtonApprovesEveryCallOfACard(t *testing.T) {
	o, root, b := one(t, four(sre)...)
	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0BOB", o.card("U0BOB", root), "all", 0))
	require.Equal(t, "approved approved approved approved", o.all(b))
	require.Equal(t, b.Version+4, o.batch(b.ID).Version)
	for i, a := range o.batch(b.ID).Approvals {
		require.Equal(t, b.Approvals[i].Call.Digest, a.Decisions[0].Digest)
	}
	require.Empty(t, o.whispers("U0BOB", root), "the card says it")
	o.draw(b)
	require.NotContains(t, o.card("U0BOB", root).Shown(), "Approve all")
}

func TestAPressOnApproveAllThatIsDeliveredAgainChangesNothing(t *testing.T) {
	two := sre
	two.Need = 2
	o, root, b := one(t, four(two)...)
	for range 2 {
		require.Equal(t, 200, o.press("U0BOB", o.card("U0BOB", root), "all", 0).Status)
	}
	require.Equal(t, b.Version+4, o.batch(b.ID).Version)
	require.Contains(t, strings.Join(o.whispers("U0BOB", root), ""), "You already approved this call")
}

// A press that is delivered again after its person took the approvals back approves
// nothing anew, and says nothing: it had its answer.
func TestAPressOnApproveAllIsNotCountedAgainAfterItWasTakenBack(t *testing.T) {
	two := sre
	two.Need = 2
	o, root, b := one(t, four(two)...)
	press := inOps(pressed("U0BOB", "1.a", "all.0", allOf(b, 0, 1, 2, 3)), root)
	require.Equal(t, 200, o.deliver(press))
	for i := range 4 {
		require.Equal(t, 200, o.deliver(inOps(pressed("U0BOB", fmt.Sprintf("2.%d", i), fmt.Sprintf("retract.%d", i), button(b, i)), root)))
		require.Empty(t, o.batch(b.ID).Approvals[i].Decisions)
	}
	require.Equal(t, 200, o.deliver(press))
	for i := range 4 {
		require.Empty(t, o.batch(b.ID).Approvals[i].Decisions)
	}
	require.NoError(t, o.ui.Server.Shutdown(t.Context()))
	require.Empty(t, o.Calls("chat.postEphemeral"))
	require.Equal(t, 1, o.log.Count("calls approved together"))
}

// A press that Slack delivers again had its answer. Another press is told that it counts
// already.
func TestAPressOnApproveAllThatIsDeliveredAgainSaysNothing(t *testing.T) {
	two := sre
	two.Need = 2
	o, root, b := one(t, four(two)...)
	press := inOps(pressed("U0BOB", "1.a", "all.0", allOf(b, 0, 1, 2, 3)), root)
	for range 2 {
		require.Equal(t, 200, o.deliver(press))
	}
	require.Equal(t, 200, o.deliver(inOps(pressed("U0BOB", "2.b", "all.0", allOf(b, 0, 1, 2, 3)), root)))
	require.NoError(t, o.ui.Server.Shutdown(t.Context()))
	said := o.Calls("chat.postEphemeral")
	require.Len(t, said, 1)
	require.Contains(t, said[0].Request, "already+approved")
	require.Equal(t, b.Version+4, o.batch(b.ID).Version)
	require.Equal(t, 1, o.log.Count("calls approved together"))
}

// What the person did not see is not approved, and they read which call it is;
// the others are approved.
func TestApproveAllLeavesAloneWhatChangedAfterTheCardWasDrawn(t *testing.T) {
	o, root, b := one(t, four(sre)...)
	drawn := o.card("U0BOB", root)
	_, err := o.desk.Decide(t.Context(), b.ID, "dave", approvals.Decide{Decision: approvals.Decision{
		Call: "c4", Digest: b.Approvals[3].Call.Digest, Verdict: approvals.Deny, At: o.now.Now(),
		By: approvals.Principal{User: "U0CAROL", Groups: []approvals.GroupID{"S0SRE"}, GroupsAt: o.now.Now()},
	}})
	require.NoError(t, err)
	next, _, err := o.batch(b.ID).Apply(approvals.Amend{
		Call: "c2", From: b.Approvals[1].Call.Digest, Args: json.RawMessage(`{"path":"/etc/passwd"}`), Ruling: approvals.Permit{}, At: o.now.Now(),
		By: approvals.Principal{User: "U0CAROL", Groups: []approvals.GroupID{"S0SRE"}, GroupsAt: o.now.Now()},
	})
	require.NoError(t, err)
	o.setBatch(next, approvals.ToolCall{ID: "c2", Name: "tag_file", Args: json.RawMessage(`{"path":"/etc/passwd"}`)})
	require.Equal(t, 200, o.press("U0BOB", drawn, "all", 0).Status)
	require.Equal(t, "approved pending approved denied", o.all(b))
	said := strings.Join(o.whispers("U0BOB", root), "")
	require.Contains(t, said, "Approved 2 calls.")
	require.Contains(t, said, "Call 2 wasn't approved: Someone edited the arguments after this card was posted.")
	require.Contains(t, said, "Call 4 wasn't approved: ")
}

func TestApproveAllIsNoWayAroundTheRules(t *testing.T) {
	for name, press := range map[string]func(o *workspace, root string, b approvals.Batch){
		"somebody who is no approver": func(o *workspace, root string, _ approvals.Batch) {
			o.press("U0DAVE", o.card("U0DAVE", root), "all", 0)
			require.Contains(o.t, strings.Join(o.whispers("U0DAVE", root), ""), "U0BOB")
		},
		"too late": func(o *workspace, root string, _ approvals.Batch) {
			drawn := o.card("U0BOB", root)
			o.now.Advance(2 * time.Minute)
			o.press("U0BOB", drawn, "all", 0)
			require.Contains(o.t, strings.Join(o.whispers("U0BOB", root), ""), "Too late")
		},
		"a button that is not ours": func(o *workspace, _ string, b approvals.Batch) {
			require.Equal(o.t, 200, o.deliver(pressed("U0BOB", "1.a", "all.0", "t1|"+string(b.ID)+"|0|")))
		},
		"digests of no call": func(o *workspace, _ string, b approvals.Batch) {
			require.Equal(o.t, 200, o.deliver(pressed("U0BOB", "1.a", "all.0", "t1|"+string(b.ID)+"|0|"+strings.Repeat("ab", 32))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls := four(approvals.Quorum{Name: "bob", Need: 1, From: approvals.From{Users: []approvals.UserID{"U0BOB"}}})
			for i := range calls {
				calls[i].Ask.Requirement.Deadline = time.Now().Add(time.Minute)
			}
			o, root, b := one(t, calls...)
			press(o, root, b)
			require.Equal(t, "pending pending pending pending", o.all(b))
		})
	}
}

// A button that was forged, or that an older version drew, approves nothing that
// has to be approved by itself.
func TestApproveAllTakesNoCallThatNeedsMore(t *testing.T) {
	calls := four(sre)
	calls[0].Severity = approvals.SeverityIrreversible
	calls[1].Ask.Requirement.ReasonNeeded = true
	calls[2].Call.Args = json.RawMessage(`{"path":"` + strings.Repeat("x", 5000) + `"}`)
	o, root, b := one(t, calls...)
	require.NotContains(t, o.card("U0BOB", root).Shown(), "Approve all")
	var digests []string
	for _, a := range b.Approvals {
		digests = append(digests, a.Call.Digest.String())
	}
	value := "t1|" + string(b.ID) + "|0|" + strings.Join(digests, ",")
	require.Equal(t, 200, o.deliver(pressed("U0BOB", "1.a", "all.0", value)))
	require.Equal(t, "pending pending pending approved", o.all(b))
}

// In a review, too, what a person has approved already is no call that has to be
// approved by itself.
func TestASecondPressOnApproveAllInAReviewSaysThatItCounts(t *testing.T) {
	two := sre
	two.Need = 2
	o := newListWorkspace(t)
	b := o.another("one", 0, four(two)...)
	require.NoError(t, o.stirs(b))
	o.uses("U0BOB", o.atHome("U0BOB"), "Review")
	first := o.top("U0BOB")
	o.uses("U0BOB", first, "Approve all 4")
	digests := make([]string, len(b.Approvals))
	for i, a := range b.Approvals {
		digests[i] = a.Call.Digest.String()
	}
	again := pressed("U0BOB", "2.b", "all.0", "t1|"+string(b.ID)+"|0|"+strings.Join(digests, ","))
	again["view"] = map[string]any{
		"id": first.ID, "type": "modal", "callback_id": "countersign.review", "private_metadata": first.PrivateMetadata, "hash": first.Hash,
	}
	require.Equal(t, 200, o.deliver(again))
	require.NoError(t, o.ui.Server.Shutdown(t.Context()))
	require.Equal(t, b.Version+4, o.batch(b.ID).Version)
	said := words(o.top("U0BOB").Blocks)
	require.NotContains(t, said, "by itself")
	require.Contains(t, said, "You already approved this call")
}
