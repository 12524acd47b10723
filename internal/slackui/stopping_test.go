package slackui_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
)

// Whoever asked cannot deny it; they read how they stop it, if they can.
func TestWhoAskedReadsHowToStopIt(t *testing.T) {
	for rule, want := range map[agentrun.PendingRule]string{
		"": "To stop it, mention the agent", agentrun.PendingReject: "To stop it, mention the agent",
		agentrun.PendingKeep: "", agentrun.PendingRefuse: "", "overhears": "To stop it, send a new message in the thread.",
	} {
		o := newWorkspace(t, slacksim.Config{}, func(c *slackui.Config) {
			c.Pending = map[string]agentrun.PendingRule{"ops": rule}
			if rule == "overhears" {
				c.Pending = nil
				overhears(c)
			}
		})
		root := o.say("U0ALICE", "clean up")
		d := call("c1", "delete_file", `{}`, by("both", fromUser("U0ALICE", "U0BOB")))
		d.Ask.Requirement.Separation = true
		o.draw(o.opens(root, d))
		o.press("U0ALICE", o.thread("U0ALICE", root)[0], "deny", 0)
		said := strings.Join(o.whispers("U0ALICE", root), "")
		require.Contains(t, said, "You asked for this, so only someone else can deny it.", rule)
		require.Contains(t, said, want, rule)
		require.Equal(t, want != "", strings.Contains(said, "To stop it"), rule)
	}
}

// The form that wipes a denial away is not opened for whoever asked.
func TestWhoAskedCannotEditADenialAway(t *testing.T) {
	d := deletion(by("three", fromUser("U0BOB", "U0CAROL", "U0DAVE")))
	d.Ask.Requirement.Deny = 2
	o, root, b := rewrite(t, rulings{}, nil, d)
	o.moves(b, func(now *approvals.Batch) {
		next, _, err := now.Apply(approvals.Decide{Decision: approvals.Decision{
			Call: "c1", By: approvals.Principal{User: "U0BOB"}, Verdict: approvals.Deny, Digest: now.Approvals[0].Call.Digest, At: o.now.Now(),
		}})
		require.NoError(t, err)
		next.Version = now.Version
		*now = next
	})
	o.press("U0ALICE", o.card("U0ALICE", root), "edit", 0)
	require.Empty(t, o.Views("U0ALICE"))
	require.Contains(t, strings.Join(o.whispers("U0ALICE", root), ""), "Someone denied this call, so its requester")
	require.Equal(t, 200, o.press("U0CAROL", o.card("U0CAROL", root), "edit", 0).Status)
	require.Len(t, o.Views("U0CAROL"), 1)
}
