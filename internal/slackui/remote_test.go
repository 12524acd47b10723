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
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// elsewhere makes the run of the batch one of an agent that runs elsewhere, to
// be shown in this channel.
func (o *workspace) elsewhere(b approvals.Batch, channel string) approvals.Batch {
	o.t.Helper()
	run := o.run(b.Run)
	run.Executor, run.Origin = "api", agentrun.Origin{Surface: "api", Team: "ops", Channel: channel, Root: "request-1"}
	b.Executor, b.Channel = "api", channel
	o.setRun(run)
	o.setBatch(b)
	return b
}

func TestARequestFromElsewhereIsShownInTheChannelThatItNames(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	b := o.elsewhere(o.opens("", call("a", "delete_file", `{"path":"/srv/a"}`, sre)), "C0OPS")
	o.draw(b)
	all, err := o.Messages("U0BOB", "C0OPS", "")
	require.NoError(t, err)
	require.Len(t, all, 1, "a message of its own, in no thread")
	require.Contains(t, all[0].Shown(), "/srv/a")

	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0BOB", all[0], "approve", 0))
	o.draw(b)
	all, err = o.Messages("U0BOB", "C0OPS", "")
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Contains(t, all[0].Shown(), "Approved: ")
	require.Contains(t, all[0].Shown(), "Decided. The agent that asked gets the answer.")
}

// A reason is an answer to one request of an agent that runs elsewhere, and part of the
// conversation with one that runs here.
func TestAReasonBarsNobodyFromWhatIsAskedElsewhereNext(t *testing.T) {
	deletes := call("a", "delete_file", `{"path":"/srv/a"}`, sre)
	hint := func(o *workspace, card slacksim.Message) string {
		o.press("U0BOB", card, "deny", 0)
		form := fmt.Sprint(o.Views("U0BOB"))
		require.Contains(t, form, "The agent and everyone who sees the card will read it.")
		return form
	}
	o, root, _ := one(t, deletes)
	require.Contains(t, hint(o, o.card("U0BOB", root)), "you can't approve what the agent does next")
	o = newWorkspace(t, slacksim.Config{})
	o.draw(o.elsewhere(o.opens("", deletes), "C0OPS"))
	all, err := o.Messages("U0BOB", "C0OPS", "")
	require.NoError(t, err)
	elsewhere := hint(o, all[0])
	require.NotContains(t, elsewhere, "you can't approve what the agent does next")
	require.NotContains(t, elsewhere, "thread", "its card is read by the whole channel")
}

func TestNobodyGetsAnAnswerToARequestThatItsAgentTookBack(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	b := o.elsewhere(o.opens("", call("a", "delete_file", `{"path":"/srv/a"}`, sre)), "C0OPS")
	o.draw(b)
	_, err := o.desk.Withdraw(t.Context(), b.ID, "w", approvals.Withdraw{By: "ops"})
	require.NoError(t, err)
	o.draw(b)
	all, err := o.Messages("U0BOB", "C0OPS", "")
	require.NoError(t, err)
	require.Contains(t, all[0].Shown(), "Closed.")
	require.NotContains(t, all[0].Shown(), "gets the answer")
}

func TestARequestFromElsewhereThatNamesNoChannelIsShownInNone(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	b := o.elsewhere(o.opens("", call("a", "delete_file", `{"path":"/srv/a"}`, sre)), "")
	o.draw(b)
	all, err := o.Messages("U0BOB", "C0OPS", "")
	require.NoError(t, err)
	require.Empty(t, all)
}

// Too many people to tell one by one are called together under the card.
func TestARequestFromElsewhereIsRemindedOfUnderItsCard(t *testing.T) {
	sim := slacksim.Config{People: slacksim.DefaultPeople(), Groups: slacksim.DefaultGroups()}
	for i := range 21 {
		p := slacksim.Person{ID: fmt.Sprintf("U1%04d", i), Name: fmt.Sprintf("p%d", i)}
		sim.People = append(sim.People, p)
		sim.Groups[0].Users = append(sim.Groups[0].Users, p.ID)
	}
	o := atNoon(t, sim)
	b := o.elsewhere(o.opens("", laddered(call("c1", "delete_file", `{}`, sre), reminds(time.Hour))), "C0OPS")
	o.draw(b)
	o.pass(time.Hour)
	o.climbs(b)
	o.notify(b)
	all, err := o.Messages("U0BOB", "C0OPS", "")
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, all[0].TS, all[1].ThreadTS, "nothing but the card is posted to the channel")
	require.Contains(t, all[1].Shown(), "1 call still waits for approval")
}

// Of those who share a credential nobody knows who asked, so none of them
// approves, and no words speak of a thread that there is not.
func TestWhoMayHaveAskedFromElsewhereIsTold(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	d := call("a", "delete_file", `{"path":"/srv/a"}`, sre)
	d.Ask.Requirement.Separation = true
	b := o.opens("", d)
	b.Participants = []approvals.UserID{"U0BOB"}
	b = o.elsewhere(b, "C0OPS")
	o.draw(b)
	all, err := o.Messages("U0BOB", "C0OPS", "")
	require.NoError(t, err)
	require.Contains(t, all[0].Shown(), "may have asked for it too, so neither")
	o.press("U0BOB", all[0], "approve", 0)
	require.NoError(t, o.ui.Server.Shutdown(t.Context()))
	all, err = o.Messages("U0BOB", "C0OPS", "")
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Contains(t, all[1].Shown(), "You may be the requester of this call")
	require.NotContains(t, all[1].Shown(), "thread")
}

// A direct message that a request from elsewhere names is of the bot and one
// person, and it is not known of whom: nobody counts as having read it there.
func TestARequestFromElsewhereInADirectMessageReachesItsApprovers(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	_, err := o.PostAs(slacksim.Post{User: "U0CAROL", Channel: "@countersign", Text: "hello"})
	require.NoError(t, err)
	b := o.elsewhere(o.opensAfter("", []approvals.UserID{"U0BOB"}, call("a", "delete_file", `{"path":"/srv/a"}`, by("bob", fromUser("U0BOB")))), "D0CAROL")
	o.draw(b)
	require.Len(t, o.directs("U0BOB"), 1)
}

// drawnElsewhere draws a request of a remote agent, after change, and returns its
// card.
func (o *workspace) drawnElsewhere(b approvals.Batch) slacksim.Message {
	o.t.Helper()
	b = o.elsewhere(b, "C0OPS")
	o.draw(b)
	all, err := o.Messages("U0BOB", "C0OPS", "")
	require.NoError(o.t, err)
	require.Len(o.t, all, 1)
	return all[0]
}

func TestACardSaysWhereARemoteCallWouldRun(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	b := o.opens("", call("a", "Bash", `{"command":"make"}`, sre), call("b", "Bash", `{"command":"make"}`, sre),
		call("c", "query", `{"sql":"select"}`, sre), call("d", "query", `{"sql":"select"}`, sre))
	b.Approvals[0].Place = approvals.Place{Cwd: "/srv/*app*", Repository: "acme/app", Branch: "main"}
	b.Approvals[2].Place = approvals.Place{Server: "test\u200b-db"}
	b.Approvals[3].Place = approvals.Place{Cwd: "/srv", Server: "prod-db"}
	shown := strings.ReplaceAll(o.drawnElsewhere(b).Shown(), "\n", "")
	require.Contains(t, shown, "In /srv/*app* on branch main of acme/app.")
	require.Contains(t, shown, "The agent didn't say in which directory it runs.", "and the calls are not drawn as one")
	require.Contains(t, shown, `The tool is of the MCP server test⟦U+200B⟧-db.`, "the same tool and arguments are another call")
	require.Contains(t, shown, "In /srv. The tool is of the MCP server prod-db.")
}

func TestACardSaysWhoSharesTheCredentialOfAnAgent(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	b := o.opens("", call("a", "deploy", `{}`, sre))
	b.Agent, b.Requester, b.Participants = "ci-deployer", approvals.ServiceUser("ci-deployer"), []approvals.UserID{"U0ALICE", "U0DAVE"}
	b.Approvals[0].Requirement.Separation, b.Approvals[0].Requirement.ParticipantsMaySign = true, true
	shown := strings.ReplaceAll(o.drawnElsewhere(b).Shown(), "\n", "")
	require.Contains(t, shown, "The agent ci-deployer, whose credential 2 people can use, asks.")
	require.Contains(t, shown, "have this credential and may have asked for it, so they can't approve it.")
	require.NotContains(t, shown, "someone")
}

func TestACardOffersNoButtonForWhatItsAgentCannotTake(t *testing.T) {
	for _, none := range []bool{false, true} {
		o := newWorkspace(t, slacksim.Config{})
		b := o.opens("", call("a", "Bash", `{"command":"make"}`, sre))
		b.Limits = approvals.Limits{NoEdits: none, NoReasons: none}
		m := o.drawnElsewhere(b)
		_, err := o.Click(slacksim.Click{User: "U0BOB", Channel: m.Channel, TS: m.TS, ActionID: "countersign.edit.0"})
		require.Equal(t, none, err != nil, "there is a button exactly if it may be edited")
		require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0BOB", m, "deny", 0))
		views := o.Views("U0BOB")
		view := views[len(views)-1]
		require.Equal(t, none, strings.Contains(fmt.Sprint(view), "can't be given a reason"))
		_, err = o.SubmitView(slacksim.Submit{User: "U0BOB", ViewID: view.ID})
		require.NoError(t, err)
		require.Equal(t, approvals.Denied, o.batch(b.ID).Approvals[0].Status)
	}
}

func TestACardSaysWhoseWordItIsThatACallRan(t *testing.T) {
	for want, e := range map[string]approvals.Execution{
		"The agent hasn't used the approval yet.":       {},
		"Approval used by claude-code":                  {State: approvals.Claimed, By: "claude-code"},
		"It isn't known yet whether the call ran.":      {State: approvals.Claimed, By: "claude-code"},
		"reported by claude-code":                       {State: approvals.Ran, By: "claude-code"},
		"Not used in time: the agent has to ask again.": {},
	} {
		o := newWorkspace(t, slacksim.Config{})
		b := o.opens("", call("a", "Bash", `{"command":"make"}`, sre))
		m := o.drawnElsewhere(b)
		o.press("U0BOB", m, "approve", 0)
		if e.State != "" {
			e.At = o.now.Now()
			o.moves(o.batch(b.ID), func(b *approvals.Batch) { b.Approvals[0].Execution = e })
		}
		if strings.HasPrefix(want, "Not used") {
			o.now.Advance(approvals.DefaultClaimWithin)
		}
		o.moves(o.batch(b.ID), func(*approvals.Batch) {})
		o.draw(o.batch(b.ID))
		all, err := o.Messages("U0BOB", "C0OPS", "")
		require.NoError(t, err)
		require.Contains(t, strings.ReplaceAll(all[0].Shown(), "\n", ""), want)
	}
}

// Nothing happens to the batch then, so the card has to be drawn by the clock.
func TestACardSaysWhenAnApprovalCannotBeUsedAnyMore(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	b := o.opens("", call("a", "Bash", `{"command":"make"}`, sre))
	m := o.drawnElsewhere(b)
	o.press("U0BOB", m, "approve", 0)
	shown := func() string {
		all, err := o.Messages("U0BOB", "C0OPS", "")
		require.NoError(t, err)
		return strings.ReplaceAll(all[0].Shown(), "\n", "")
	}
	var later *slackapi.LaterError
	require.ErrorAs(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)), &later)
	require.Contains(t, shown(), "The agent hasn't used the approval yet.")
	o.now.Advance(later.After - time.Second)
	require.ErrorAs(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)), &later)
	require.Equal(t, time.Second, later.After)
	o.now.Advance(later.After)
	require.NoError(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)))
	require.Contains(t, shown(), "Not used in time: the agent has to ask again.")
	require.NotContains(t, shown(), "gets the answer")
	all, err := o.Messages("U0BOB", "C0OPS", "")
	require.NoError(t, err)
	require.Contains(t, all[0].Text, "Approved by <@U0BOB>. Not used in time: the agent has to ask again.", "also without its blocks")
}
