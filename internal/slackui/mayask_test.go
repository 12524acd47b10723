package slackui_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
)

func onlyFor(from approvals.From) func(*slackui.Config) {
	return func(c *slackui.Config) { c.MayAsk = map[string]approvals.From{"ops": from} }
}

func TestOnlyThoseWhoMayAskAnAgentStartIt(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{}, onlyFor(approvals.From{Users: []approvals.UserID{"U0DAVE", "U0GUEST"}, Groups: []approvals.GroupID{"S0SRE"}}))
	o.say("U0BOB", "@countersign by group")
	o.say("U0DAVE", "@countersign by name")
	o.say("U0ALICE", "@countersign by nobody")
	require.NoError(t, o.Idle(t.Context()))
	var heard []approvals.UserID
	for _, m := range o.mentioned() {
		heard = append(heard, m.Requester)
	}
	require.ElementsMatch(t, []approvals.UserID{"U0BOB", "U0DAVE"}, heard)
	require.Equal(t, []string{
		"You can't ask this agent. Nothing was started. It takes requests from <!subteam^S0SRE>, <@U0DAVE> and <@U0GUEST>.",
	}, o.whispers("U0ALICE", ""))
}

func TestAMembershipThatEndedStartsNothing(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{}, onlyFor(approvals.From{Groups: []approvals.GroupID{"S0SRE"}}))
	o.say("U0BOB", "@countersign one")
	require.NoError(t, o.Idle(t.Context()))
	require.Len(t, o.mentioned(), 1)
	require.NoError(t, o.SetGroup("S0SRE", []string{"U0CAROL"}))
	o.now.Advance(2 * time.Minute) // what was looked up is too old
	o.say("U0BOB", "@countersign two")
	require.NoError(t, o.Idle(t.Context()))
	require.Len(t, o.mentioned(), 1)
}

func TestAGroupThatCannotBeLookedUpLetsNobodyIn(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{RetryScale: 0.001}, onlyFor(approvals.From{Groups: []approvals.GroupID{"S0SRE"}}))
	broken := slacksim.Fault{Method: "usergroups.users.list", Status: http.StatusInternalServerError}
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{broken, broken, broken, broken}}) // for every delivery
	o.say("U0BOB", "@countersign clean up")
	require.NoError(t, o.Await(t.Context(), func() bool { return len(o.Calls("usergroups.users.list")) == 4 }))
	require.NoError(t, o.Idle(t.Context()))
	require.Empty(t, o.mentioned())

	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{broken}})
	o.say("U0BOB", "@countersign clean up")
	o.hears(1) // it is delivered again
}

// While the app lacks a scope, delivering the mention again does not help.
func TestWhoAsksReadsThatSlackRefusesToLookUp(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{}, onlyFor(approvals.From{Groups: []approvals.GroupID{"S0SRE"}}))
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "usergroups.users.list", Error: "missing_scope"}}})
	o.say("U0BOB", "@countersign clean up")
	require.NoError(t, o.Idle(t.Context()))
	require.Empty(t, o.mentioned())
	told := o.whispers("U0BOB", "")
	require.Len(t, told, 1)
	require.Contains(t, told[0], "Slack refuses to tell this app who is in <!subteam^S0SRE>")
}

// A token that is refused may be replaced: the mention is delivered again.
func TestAMentionWaitsForAnotherToken(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{}, onlyFor(approvals.From{Groups: []approvals.GroupID{"S0SRE"}}))
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "users.info", Error: "token_expired"}}})
	o.say("U0BOB", "@countersign clean up")
	o.hears(1)
}

func TestItIsNotSaidWhoMayAskAnAgentThatIsNotThere(t *testing.T) {
	_, err := slackui.New(slackui.Config{Agent: "ops", Agents: map[string]string{"C0OPS": "dba"}, MayAsk: map[string]approvals.From{
		"opps": {Users: []approvals.UserID{"U0BOB"}}, "ops": {}, "dba": {Users: []approvals.UserID{"U0BOB"}},
	}})
	require.ErrorContains(t, err, `MayAsk names the agent "opps"`)
	require.ErrorContains(t, err, `MayAsk lets nobody ask the agent "ops"`)
	require.NotContains(t, err.Error(), `"dba"`)
}
