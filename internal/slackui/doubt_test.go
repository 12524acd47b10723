package slackui_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
)

// inDoubt is a workspace with one card that asks about a call in doubt.
func inDoubt(t *testing.T) (o *workspace, root string, b approvals.Batch) {
	t.Helper()
	d := call("c1", "delete_file", `{"path":"a.txt"}`, sre)
	d.Doubt = approvals.Doubt{Began: noon.Add(-time.Minute), Key: "run-07-q/c1", Approved: "batch-07-q"}
	return one(t, d)
}

// answers presses a button that opens a form, and sends the form with these words.
func (o *workspace) answers(user, root, action, text string) slacksim.SubmitOutcome {
	o.t.Helper()
	require.Equal(o.t, 200, o.press(user, o.card(user, root), action, 0).Status)
	views := o.Views(user)
	require.NotEmpty(o.t, views)
	out, err := o.SubmitView(slacksim.Submit{User: user, ViewID: views[len(views)-1].ID, Values: map[string]map[string]any{"reason": {"text": text}}})
	require.NoError(o.t, err)
	return out
}

// Each of the three answers is a button of the card, and says afterwards who gave
// it and what it means.
func TestACallInDoubtIsAnsweredOnItsCard(t *testing.T) {
	for action, want := range map[string]struct {
		status approvals.Status
		shown  string
	}{
		"happened": {approvals.Confirmed, "The agent reads that as a person's words."},
		"give_up":  {approvals.Denied, "Given up"},
	} {
		o, root, b := inDoubt(t)
		require.Contains(t, o.card("U0BOB", root).Shown(), "This call may or may not have taken effect.")
		require.True(t, o.answers("U0BOB", root, action, "a.txt is gone <!channel>").Closed)
		require.Equal(t, want.status, o.status(b, 0))
		require.Equal(t, "a.txt is gone <!channel>", o.batch(b.ID).Approvals[0].Decisions[0].Reason)
		o.draw(b)
		shown := o.card("U0ALICE", root).Shown()
		require.Contains(t, shown, want.shown)
		require.Contains(t, shown, "a.txt is gone <!channel>")
		require.Empty(t, o.card("U0ALICE", root).Actions())
	}
	o, root, b := inDoubt(t)
	require.Equal(t, 200, o.press("U0BOB", o.card("U0BOB", root), "again", 0).Status)
	require.Equal(t, approvals.Approved, o.status(b, 0), "of one approval one was needed")
	o.draw(b)
	require.Contains(t, o.card("U0ALICE", root).Shown(), "Run again")
}

// Two people answer one doubt in different ways: the first one counts, and the
// other is told in the form.
func TestTheFirstAnswerToADoubtCountsAndTheOthersAreTold(t *testing.T) {
	o, root, b := inDoubt(t)
	require.Equal(t, 200, o.press("U0BOB", o.card("U0BOB", root), "happened", 0).Status)
	form := o.Views("U0BOB")[0]
	require.True(t, o.answers("U0CAROL", root, "give_up", "it is gone").Closed)
	out, err := o.SubmitView(slacksim.Submit{User: "U0BOB", ViewID: form.ID, Values: map[string]map[string]any{"reason": {"text": "it is there"}}})
	require.NoError(t, err)
	require.False(t, out.Closed)
	require.Contains(t, words(o.Views("U0BOB")[0].Blocks), "Someone else already decided this. Nothing changed.")
	require.Equal(t, approvals.Denied, o.status(b, 0))
	require.Len(t, o.batch(b.ID).Approvals[0].Decisions, 1)
}

// Someone who may not approve the call answers nothing, and old buttons of the
// card, such as Approve, do not let it run again.
func TestOnlyThoseWhoMayApproveAnswerADoubt(t *testing.T) {
	o, root, b := inDoubt(t)
	for _, action := range []string{"again", "happened", "give_up"} {
		o.press("U0ALICE", o.card("U0ALICE", root), action, 0)
		require.Equal(t, approvals.Pending, o.status(b, 0), action)
	}
	require.NotEmpty(t, o.whispers("U0ALICE", root))
	for _, button := range o.card("U0BOB", root).Actions() {
		require.NotContains(t, button.ActionID, "approve")
	}
}

// An old copy of the store may have no doubt about a call whose card asks about one. Who
// answers it there reads how the call stands.
func TestAnAnswerToADoubtThatIsGoneIsExplained(t *testing.T) {
	o, root, b := inDoubt(t)
	card := o.card("U0BOB", root)
	o.moves(b, func(now *approvals.Batch) { now.Approvals[0].Doubt = approvals.Doubt{} })
	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0BOB", card, "again", 0))
	require.Equal(t, approvals.Pending, o.status(b, 0))
	require.Contains(t, strings.Join(o.whispers("U0BOB", root), ""), "it has not run. Nothing changed.")
}

// None of the answers stands out, and the one that can do harm is the last and asks
// first. What is in doubt and what each answer does are in blocks of their own, which
// Slack does not fold away with a long text.
func TestNoAnswerToADoubtIsInviting(t *testing.T) {
	o, root, _ := inDoubt(t)
	m := o.card("U0BOB", root)
	var labels []string
	for _, b := range m.Actions() {
		labels = append(labels, b.Text)
		require.Empty(t, b.Style, b.Text)
		require.Equal(t, b.Text == "Run it again", b.Confirm, b.Text)
	}
	require.Equal(t, []string{"It happened…", "Give up…", "Run it again", "View full"}, labels)
	for _, b := range m.Blocks {
		said := words(b)
		if strings.Contains(said, "may or may not") || strings.Contains(said, "the agent reads that nobody knows") {
			require.NotContains(t, said, "a.txt")
			require.Less(t, len(said), 500)
		}
	}
}

// However much the call says of itself, the question before it runs again ends with
// what people must know: Slack takes 300 characters, so it is the call that is cut.
func TestTheWarningBeforeRunningAgainIsWhole(t *testing.T) {
	d := call("c1", "delete_file", `{"path":"`+strings.Repeat("long/", 40)+`"}`, sre)
	d.Ask.Summary = "Delete " + strings.Repeat("really ", 12) + "{args.path}"
	d.Doubt = approvals.Doubt{Began: noon.Add(-time.Minute), Key: "run-07-q/c1", Approved: "batch-07-q"}
	o, root, _ := one(t, d)
	said := words(o.card("U0BOB", root).Blocks)
	require.Contains(t, said, "Run this call again?")
	require.Regexp(t, `Delete really [^.]*…\. If it happened the first time, it happens twice: check that first\. .* permanently\. You approve exactly the arguments on the card\.`, said)
}

// Wherever people read that a call waits for them, they read that it is in doubt: it
// is not a first approval.
func TestADoubtIsNamedWhereverItWaits(t *testing.T) {
	o := newListWorkspace(t)
	d := laddered(call("c1", "delete_file", `{"path":"a.txt"}`, sre), reminds(0))
	d.Ask.Requirement.Ladder[0].At = o.now.Now()
	d.Doubt = approvals.Doubt{Began: o.now.Now().Add(-time.Minute), Key: "run-07-q/c1", Approved: "batch-07-q"}
	b := o.another("q", 0, d)
	o.draw(b)
	require.NoError(t, o.stirs(b))
	o.climbs(b)
	o.notify(b)
	reminder := strings.Join(o.letters("U0BOB"), "\n")
	require.Contains(t, reminder, "1 call waits for your decision")
	require.Contains(t, reminder, "In doubt: Delete file")
	require.NotContains(t, reminder, "approve or deny")
	require.Contains(t, words(o.atHome("U0BOB").Blocks), "In doubt: Delete file")

	require.NoError(t, o.reply(o.run(b.Run)))
	require.Contains(t, o.thread("U0ALICE", o.run(b.Run).Origin.Root)[1].Shown(), "Waiting for a decision about 1 call.")

	listed, err := o.Command(slacksim.Command{User: "U0BOB", Channel: "C0OPS", Command: "/countersign", Text: "list mine"})
	require.NoError(t, err)
	require.Contains(t, listed.Message.Shown(), "In doubt: Delete file")
}

// A call in doubt may have happened, also after a newer message or an operator ended the
// request. Nobody reads that it won't run.
func TestACallInDoubtThatEndsUndecidedIsNeverSaidNotToHaveRun(t *testing.T) {
	newer := approvals.Withdraw{By: "U0ALICE", Reason: approvals.Superseded}
	for want, end := range map[string]approvals.Withdraw{"This was superseded": newer, "This was withdrawn": {By: "U0ALICE"}} {
		o, root, b := inDoubt(t)
		card := o.card("U0BOB", root)
		_, err := o.desk.Withdraw(t.Context(), b.ID, "w", end)
		require.NoError(t, err)
		require.Equal(t, 200, o.press("U0BOB", card, "again", 0).Status)
		said := strings.Join(o.whispers("U0BOB", root), "")
		require.Contains(t, said, want)
		require.Contains(t, said, "The call won't run again, and whether it took effect isn't known. Nothing changed.")
	}
	o, root, b := inDoubt(t)
	_, err := o.desk.Withdraw(t.Context(), b.ID, "w", newer)
	require.NoError(t, err)
	run := o.waitsBehind(b)
	run.Supersedes = b.ID
	require.NoError(t, o.reply(run))
	require.Contains(t, o.last(root), " sent a newer message. 1 call may or may not have taken effect and won't run again: delete_file. ")
	require.NotContains(t, o.last(root), "superseded and won't run")
}
