package slackui_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
)

// A thumb that slips signs nothing that may destroy something.
func TestADestructiveCallIsApprovedTwice(t *testing.T) {
	safe := false
	for name, c := range map[string]struct {
		tool    string
		confirm bool
	}{"says nothing": {"delete_file", true}, "only reads": {"read", false}, "only adds": {"add", false}, "not known": {"other", true}} {
		t.Run(name, func(t *testing.T) {
			o := newWorkspace(t, slacksim.Config{}, func(cfg *slackui.Config) {
				cfg.Tools = toolbox{"delete_file": {}, "read": {Annotations: agentrun.Annotations{ReadOnlyHint: true}}, "add": {Annotations: agentrun.Annotations{DestructiveHint: &safe}}}
			})
			root := o.say("U0ALICE", "clean up")
			b := o.opens(root, call("c1", c.tool, `{}`, sre))
			o.draw(b)
			card := o.card("U0BOB", root)
			click := slacksim.Click{User: "U0BOB", Channel: card.Channel, TS: card.TS, ActionID: "countersign.approve.0"}
			out, err := o.Click(click)
			require.NoError(t, err)
			require.Equal(t, c.confirm, out.Confirm != nil)
			if c.confirm {
				require.Equal(t, approvals.Pending, o.status(b, 0))
				click.Confirmed = true
				_, err = o.Click(click)
				require.NoError(t, err)
			}
			require.Equal(t, approvals.Approved, o.status(b, 0))
		})
	}
}

func TestAnApprovalThatMustSayWhyAsksForIt(t *testing.T) {
	d := call("c1", "delete_file", `{"path":"a.txt"}`, sre)
	d.Ask.Requirement.ReasonNeeded = true
	o, root, b := one(t, d)
	require.Contains(t, plainWords(o.card("U0BOB", root)), "an approval needs a reason")
	o.press("U0BOB", o.card("U0BOB", root), "approve", 0)
	require.Equal(t, approvals.Pending, o.status(b, 0))
	view := o.Views("U0BOB")[0]
	require.Contains(t, o.sends("U0BOB", view, map[string]string{"Why do you approve it?": "  "}).Errors["reason"], "Enter a reason.")
	require.True(t, o.sends("U0BOB", view, map[string]string{"Why do you approve it?": "It is a copy."}).Closed)
	require.Equal(t, approvals.Approved, o.status(b, 0))
	o.draw(b)
	require.Contains(t, o.card("U0ALICE", root).Shown(), "It is a copy.")
}

func TestADecisionIsTakenBack(t *testing.T) {
	both := sre
	both.Need = 2
	o, root, b := one(t, call("c1", "delete_file", `{}`, both))
	o.press("U0BOB", o.card("U0BOB", root), "approve", 0)
	o.draw(b)
	require.Contains(t, plainWords(o.card("U0BOB", root)), "1 of 2 approvals by U0BOB")
	o.press("U0CAROL", o.card("U0CAROL", root), "retract", 0)
	require.Contains(t, strings.Join(o.whispers("U0CAROL", root), ""), "You have no decision to take back")
	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0BOB", o.card("U0BOB", root), "retract", 0))
	require.Empty(t, o.whispers("U0BOB", root))
	o.draw(b)
	card := o.card("U0BOB", root)
	require.Contains(t, plainWords(card), "0 of 2 approvals")
	require.NotContains(t, card.Shown(), "Take back")
	o.press("U0BOB", card, "deny", 0)
	_, err := o.SubmitView(slacksim.Submit{User: "U0BOB", ViewID: o.Views("U0BOB")[0].ID})
	require.NoError(t, err)
	require.Equal(t, approvals.Denied, o.status(b, 0), "whoever took back may decide otherwise")
}

func TestNothingIsTakenBackWhenItIsOver(t *testing.T) {
	both := sre
	both.Need = 2
	for name, c := range map[string]struct {
		over func(o *workspace, root string)
		says string
	}{
		"settled": {func(o *workspace, root string) { o.press("U0CAROL", o.card("U0CAROL", root), "approve", 0) }, "Already approved by"},
		"expired": {func(o *workspace, _ string) { o.now.Advance(3 * time.Minute) }, "Nothing changed."},
	} {
		t.Run(name, func(t *testing.T) {
			o, root, b := one(t, until(call("c1", "delete_file", `{}`, both), time.Now().Add(2*time.Minute), false))
			o.press("U0BOB", o.card("U0BOB", root), "approve", 0)
			o.draw(b)
			card := o.card("U0BOB", root)
			c.over(o, root)
			was := o.batch(b.ID).Version
			o.press("U0BOB", card, "retract", 0)
			require.Contains(t, strings.Join(o.whispers("U0BOB", root), ""), c.says)
			require.Equal(t, was, o.batch(b.ID).Version)
		})
	}
}

// A policy can call a tool harmless that Countersign has never seen. The card and the
// question before the approval say both, in the same words.
func TestALowRiskOfAToolThatIsNotKnownIsSaidWithCare(t *testing.T) {
	confirmOf := func(o *workspace, card slacksim.Message, action string) string {
		out, err := o.Click(slacksim.Click{User: "U0BOB", Channel: card.Channel, TS: card.TS, ActionID: action})
		require.NoError(o.t, err)
		return fmt.Sprint(out.Confirm)
	}
	severe := func(tool string, s approvals.Severity) approvals.Deferral {
		d := call("c1", tool, `{"path":"a"}`, sre)
		d.Ask.Severity = s
		return d
	}
	for name, c := range map[string]struct {
		d             approvals.Deferral
		card, confirm string
	}{
		"low, not known":        {severe("other", approvals.SeverityLow), "Rated low risk, but Countersign doesn't know the tool. Waiting", "Rated low risk, but Countersign doesn't know the tool: it may change or delete things permanently."},
		"low, may destroy":      {severe("delete_file", approvals.SeverityLow), "Low risk. Waiting", "Rated low risk, but this tool may change or delete things permanently."},
		"high, not known":       {severe("other", approvals.SeverityHigh), "High risk. Waiting", ". Countersign doesn't know what this tool does: it may change or delete things permanently."},
		"not stated, not known": {severe("other", ""), "Risk not stated. Waiting", ". Countersign doesn't know what this tool does: it may"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newWorkspace(t, slacksim.Config{}, func(cfg *slackui.Config) { cfg.Tools = toolbox{"delete_file": {}} })
			o.draw(o.elsewhere(o.opens("", c.d), "C0OPS"))
			all, err := o.Messages("U0BOB", "C0OPS", "")
			require.NoError(t, err)
			require.Contains(t, plainWords(all[0]), c.card)
			require.Contains(t, confirmOf(o, all[0], "countersign.approve.0"), c.confirm)
		})
	}
	other := severe("other", approvals.SeverityLow)
	other.Call.ID = "c2"
	o := newWorkspace(t, slacksim.Config{}, func(cfg *slackui.Config) {
		cfg.Tools = toolbox{"delete_file": {}, "read": {Annotations: agentrun.Annotations{ReadOnlyHint: true}}}
	})
	o.draw(o.elsewhere(o.opens("", severe("read", approvals.SeverityLow), other), "C0OPS"))
	all, err := o.Messages("U0BOB", "C0OPS", "")
	require.NoError(t, err)
	require.Contains(t, plainWords(all[0]), "Rated low risk, but Countersign doesn't know every tool. Waiting for approval.")
	require.Contains(t, plainWords(all[0]), "Rated low risk, but Countersign doesn't know the toolother")
	require.Contains(t, confirmOf(o, all[0], "countersign.all.0"), "Rated low risk, but Countersign doesn't know every tool. At least one call may change or delete things permanently. You approve exactly")
}
