package slackui_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/directory"
)

// knownTools are what is known of the tools here.
var knownTools = toolbox{"delete_file": {Schema: json.RawMessage(fileSchema)}, "read_file": {Annotations: agentrun.Annotations{ReadOnlyHint: true}}}

// newListWorkspace is a workspace with lists, whose tools are known.
func newListWorkspace(t *testing.T) *workspace {
	t.Helper()
	return newWorkspace(t, slacksim.Config{}, inLists)
}

// another stores one more batch, opened so much later, in a thread of its own.
func (o *workspace) another(name string, later time.Duration, calls ...approvals.Deferral) approvals.Batch {
	o.t.Helper()
	root := o.say("U0ALICE", "and "+name)
	run := agentrun.Run{
		ID: approvals.RunID("run-07-" + name), Thread: agentrun.ThreadID("thread-07-" + name), Status: agentrun.RunDeferred,
		Origin:   agentrun.Origin{Surface: "slack", Team: slacksim.TeamID, Channel: "C0OPS", Root: root},
		Deferred: approvals.BatchID("batch-07-" + name), Agent: "ops", Requester: "U0ALICE", Version: 3,
	}
	b, _, err := approvals.Open(approvals.Batch{
		ID: run.Deferred, Run: run.ID, Thread: string(run.Thread), Channel: "C0OPS", Agent: "ops", Requester: "U0ALICE", OpenedAt: o.now.Now().Add(later),
	}, calls, nil)
	require.NoError(o.t, err)
	o.setRun(run)
	o.setBatch(b, toolCalls(calls)...)
	return b
}

// stirs is a round of the due work that follows from a change of the batch.
func (o *workspace) stirs(b approvals.Batch) error {
	o.t.Helper()
	return o.ui.Homes.Reconcile(o.t.Context(), string(b.ID))
}

// atHome opens somebody's Home and waits until it is drawn.
func (o *workspace) atHome(user string) slacksim.View {
	o.t.Helper()
	require.NoError(o.t, o.OpenHome(user))
	require.NoError(o.t, o.Idle(o.t.Context()))
	require.NoError(o.t, o.ui.Server.Shutdown(o.t.Context()))
	home, drawn := o.Home(user)
	require.True(o.t, drawn)
	return home
}

// uses presses the button with this label in a view, and waits for what follows.
func (o *workspace) uses(user string, v slacksim.View, label string) slacksim.ClickOutcome {
	o.t.Helper()
	return o.usesNth(user, v, label, 0)
}

func (o *workspace) usesNth(user string, v slacksim.View, label string, n int) slacksim.ClickOutcome {
	o.t.Helper()
	for _, a := range v.Actions() {
		if a.Text != label {
			continue
		}
		if n--; n >= 0 {
			continue
		}
		out, err := o.Click(slacksim.Click{User: user, ViewID: v.ID, ActionID: a.ActionID, BlockID: a.BlockID, Confirmed: true})
		require.NoError(o.t, err)
		require.NoError(o.t, o.ui.Server.Shutdown(o.t.Context()))
		return out
	}
	o.t.Fatalf("no button %q in %v", label, v.Actions())
	return slacksim.ClickOutcome{}
}

func (o *workspace) top(user string) slacksim.View {
	o.t.Helper()
	views := o.Views(user)
	require.NotEmpty(o.t, views)
	return views[len(views)-1]
}

func TestAHomeShowsWhatWaitsTheMostUrgentFirst(t *testing.T) {
	o := newListWorkspace(t)
	now := o.now.Now()
	old := o.another("old", -time.Hour, call("c1", "read_file", `{}`, sre))
	late := o.another("late", -time.Minute, until(call("c1", "delete_file", `{"path":"a.txt"}`, sre), now.Add(3*time.Hour), true))
	soon := o.another("soon", 0, until(call("c1", "mystery", `{}`, sre), now.Add(time.Hour), true))
	o.another("theirs", 0, call("c1", "not_mine", `{}`, approvals.Quorum{Name: "sec", Need: 1, From: approvals.From{Users: []approvals.UserID{"U0DAVE"}}}))
	for _, b := range []approvals.Batch{old, late, soon} {
		require.NoError(t, o.stirs(b))
	}
	home := o.atHome("U0BOB")
	text := words(home.Blocks)
	require.Regexp(t, `(?s)Waiting for you.*3 requests wait.*Mystery.*Delete file \(path: "a.txt"\).*Read file.*Waiting for others`, text)
	require.Contains(t, text, "requested by <@U0ALICE>")
	require.Contains(t, text, "sre: 0 of 1 approval")
	require.NotContains(t, text, "Not mine")
	require.Contains(t, text, "You aren't away.")

	alice := words(o.atHome("U0ALICE").Blocks)
	require.Contains(t, alice, "Nothing waits for your approval.")
	require.Regexp(t, `(?s)Waiting for others.*Read file.*requested by you`, alice)
}

// rated is the call with a severity and a summary.
func rated(d approvals.Deferral, s approvals.Severity, summary string) approvals.Deferral {
	d.Severity, d.Summary = s, summary
	return d
}

// Within the hour of a deadline, and among what has none, the worst is first.
func TestAHomeShowsTheWorstFirstAmongWhatIsAsUrgent(t *testing.T) {
	o := atNoon(t, slacksim.Config{}, inLists)
	o.another("low", -3*time.Hour, rated(call("c1", "read_file", `{}`, sre), approvals.SeverityLow, ""))
	o.another("unset", -2*time.Hour, call("c1", "mystery", `{}`, sre))
	o.another("worst", -time.Hour, rated(call("c1", "delete_file", `{"path":"a.txt"}`, sre), approvals.SeverityIrreversible, ""))
	o.another("soon", 0, rated(until(call("c1", "tag_file", `{}`, sre), noon.Add(50*time.Minute), true), approvals.SeverityLow, ""))
	o.another("sooner", 0, rated(until(call("c1", "move_file", `{}`, sre), noon.Add(20*time.Minute), true), approvals.SeverityLow, ""))
	o.another("bad", 0, rated(until(call("c1", "drop_table", `{}`, sre), noon.Add(55*time.Minute), true), approvals.SeverityHigh, ""))
	require.NoError(t, o.stirs(o.batch("batch-07-bad")))
	home := o.atHome("U0BOB")
	require.Regexp(t, `(?s)Drop table.*High risk.*Move file.*Low risk.*Tag file.*Low risk.*Delete file.*\*Irreversible\*.*Mystery.*Risk not stated.*Read file.*Low risk`, words(home.Blocks))
}

// The row of several calls is named after the worst of them, and its button opens
// the card with that one.
func TestARowNamesTheWorstOfItsCallsAndItsButtonDoesToo(t *testing.T) {
	o := newListWorkspace(t)
	calls := many(9, `{"path":"a.txt"}`)
	for i := range calls {
		calls[i].Severity = approvals.SeverityLow
	}
	calls[8] = rated(call("last", "delete_file", `{"path":"reports/a.txt"}`, sre), approvals.SeverityIrreversible, "Delete {args.path}")
	require.NoError(t, o.stirs(o.another("one", 0, calls...)))
	home := o.atHome("U0BOB")
	require.Contains(t, words(home.Blocks), "Delete reports/a.txt and 8 more calls")
	require.Contains(t, fmt.Sprint(home.Blocks), "Review: Delete reports/a.txt and 8 more calls")
	o.uses("U0BOB", home, "Review")
	require.Contains(t, words(o.top("U0BOB").Blocks), "reports/a.txt")
}

// A summary shows values of arguments: who may not read them sees the tool only,
// and write-only ones are in nobody's.
func TestAHomeShowsNoArgumentsThatItsOwnerMayNotRead(t *testing.T) {
	o := newListWorkspace(t)
	secret := call("c1", "delete_file", `{"path":"a.txt","token":"hunter2"}`, sre)
	secret.WriteOnly = []string{"/token"}
	b := o.another("one", 0, secret)
	require.NoError(t, o.stirs(b))
	home := o.atHome("U0BOB")
	require.Contains(t, words(home.Blocks), `Delete file (path: "a.txt")`)
	require.NotContains(t, words(home.Blocks), "hunter2")

	people := o.ui.Homes.People
	title := func(summarize func(rows []*card.OpenCalls)) string {
		row := card.OpenCalls{Batch: b, Calls: []int{0}}
		summarize([]*card.OpenCalls{&row})
		return row.Title(200)
	}
	of := func(user string) string {
		return title(func(rows []*card.OpenCalls) { people.Summarize(t.Context(), directory.Who{User: user}, rows) })
	}
	in := func(channel string) string {
		return title(func(rows []*card.OpenCalls) { people.SummarizeIn(t.Context(), channel, rows) })
	}
	b.Channel = "C0SECRET"
	require.Equal(t, `Delete file (path: "a.txt")`, of("U0ALICE"))
	require.Equal(t, "Delete file", of("U0DAVE"), "neither asked, nor asked for, nor there")
	require.Equal(t, `Delete file (path: "a.txt")`, in("C0SECRET"))
	require.Equal(t, "Delete file", in("C0GENERAL"), "it is not shown there")
}

func TestAReviewIsTheCardAndDecidesLikeIt(t *testing.T) {
	o := newListWorkspace(t)
	b := o.another("one", 0, call("c1", "delete_file", `{"path":"a.txt"}`, sre))
	o.draw(b)
	require.NoError(t, o.stirs(b))
	o.uses("U0BOB", o.atHome("U0BOB"), "Review")
	review := o.top("U0BOB")
	require.Equal(t, "Review", review.Title)
	require.Contains(t, plainWords(review), `path: "a.txt"`)
	require.Contains(t, plainWords(review), "Asked in C0OPS")
	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.uses("U0BOB", review, "Approve"))
	require.Equal(t, approvals.Approved, o.status(b, 0))
	review = o.top("U0BOB")
	require.Contains(t, plainWords(review), "Approved by U0BOB")
	require.NotContains(t, fmt.Sprint(review.Actions()), "countersign.approve")
	// Pressed on an old screen, it is explained where the person looks.
	o.draw(b)
	require.NotContains(t, o.card("U0BOB", o.run("run-07-one").Origin.Root).Shown(), "Waiting")
}

func TestARefusalInAReviewIsSaidInIt(t *testing.T) {
	o := newListWorkspace(t)
	b := o.another("one", 0, call("c1", "delete_file", `{"path":"a.txt"}`, sre))
	require.NoError(t, o.stirs(b))
	o.uses("U0BOB", o.atHome("U0BOB"), "Review")
	review := o.top("U0BOB")
	o.approvesAs("U0CAROL", b)
	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.uses("U0BOB", review, "Approve"))
	require.Contains(t, plainWords(o.top("U0BOB")), "Already approved by <@U0CAROL>")
	require.Empty(t, o.Calls("chat.postEphemeral"))
}

// approvesAs decides outside of Slack.
func (o *workspace) approvesAs(user string, b approvals.Batch) {
	o.t.Helper()
	ref := b.Approvals[0].Call
	_, err := o.desk.Decide(o.t.Context(), b.ID, approvals.RequestID(user+string(ref.ID)), approvals.Decide{Decision: approvals.Decision{
		Call: ref.ID, Digest: ref.Digest, Verdict: approvals.Approve, At: o.now.Now(),
		By: approvals.Principal{User: approvals.UserID(user), Groups: []approvals.GroupID{"S0SRE"}, GroupsAt: o.now.Now()},
	}})
	require.NoError(o.t, err)
}

func TestTheFormsOfAReviewLieOverItAndLeadBack(t *testing.T) {
	o := newListWorkspace(t)
	b := o.another("one", 0, call("c1", "delete_file", `{"path":"a.txt"}`, sre))
	require.NoError(t, o.stirs(b))
	o.uses("U0BOB", o.atHome("U0BOB"), "Review")
	o.uses("U0BOB", o.top("U0BOB"), "View full")
	require.Len(t, o.Views("U0BOB"), 2)
	require.Equal(t, "Full arguments", o.top("U0BOB").Title)
	o.leaves()

	o.uses("U0BOB", o.top("U0BOB"), "Edit…")
	require.Len(t, o.Views("U0BOB"), 2)
	o.leaves()
	o.uses("U0BOB", o.top("U0BOB"), "Deny…")
	require.Len(t, o.Views("U0BOB"), 2)
	out, err := o.SubmitView(slacksim.Submit{User: "U0BOB", ViewID: o.top("U0BOB").ID, Values: map[string]map[string]any{"reason": {"text": "Use the archive."}}})
	require.NoError(t, err)
	require.True(t, out.Closed)
	require.NoError(t, o.ui.Server.Shutdown(t.Context()))
	require.Equal(t, approvals.Denied, o.status(b, 0))
	require.Len(t, o.Views("U0BOB"), 1)
	require.Contains(t, plainWords(o.top("U0BOB")), "Denied by U0BOB")
}

// leaves closes what is on top of bob's screen.
func (o *workspace) leaves() {
	o.t.Helper()
	require.NoError(o.t, o.CloseView("U0BOB", o.top("U0BOB").ID, false))
}

func TestNextWalksThroughWhatWaits(t *testing.T) {
	o := newListWorkspace(t)
	for i, name := range []string{"aa", "bb", "cc"} {
		require.NoError(t, o.stirs(o.another(name, time.Duration(i)*time.Minute-time.Hour, call("c1", "tool_"+name, `{}`, sre))))
	}
	o.uses("U0BOB", o.atHome("U0BOB"), "Review")
	for _, want := range []string{"tool_aa", "tool_bb", "tool_cc", "tool_aa"} {
		require.Contains(t, plainWords(o.top("U0BOB")), want+" without arguments")
		o.uses("U0BOB", o.top("U0BOB"), "Next waiting for you")
	}
	for _, want := range []string{"tool_bb", "tool_cc"} {
		require.Contains(t, plainWords(o.top("U0BOB")), want+" without arguments")
		o.uses("U0BOB", o.top("U0BOB"), "Approve")
		o.uses("U0BOB", o.top("U0BOB"), "Next waiting for you")
	}
	require.Contains(t, plainWords(o.top("U0BOB")), "tool_aa without arguments")
	require.NotContains(t, plainWords(o.top("U0BOB")), "Next waiting for you", "nothing else waits")
	o.uses("U0BOB", o.top("U0BOB"), "Approve")
	require.Contains(t, plainWords(o.top("U0BOB")), "Approved: ")
	require.Empty(t, o.top("U0BOB").Actions(), "and nothing is left to press")
}

// What a person has decided and still waits for others has no button in their
// review that decides it again.
func TestAReviewOfWhatOneHasDecidedOffersToTakeItBackOnly(t *testing.T) {
	o := newListWorkspace(t)
	require.NoError(t, o.stirs(o.another("aa", -time.Hour, call("c1", "tool_aa", `{}`, pair()))))
	o.uses("U0BOB", o.atHome("U0BOB"), "Review")
	o.uses("U0BOB", o.top("U0BOB"), "Approve")
	var left []string
	for _, a := range o.top("U0BOB").Actions() {
		left = append(left, a.Text)
	}
	require.Equal(t, []string{"View full", "Take back"}, left)
	o.uses("U0BOB", o.top("U0BOB"), "Take back")
	require.Contains(t, plainWords(o.top("U0BOB")), "Deny…")
}

func TestALargeRequestIsReviewedCardByCard(t *testing.T) {
	o := newListWorkspace(t)
	b := o.another("big", 0, many(20, `{"path":"a.txt"}`)...)
	require.NoError(t, o.stirs(b))
	o.uses("U0BOB", o.atHome("U0BOB"), "Review")
	require.Contains(t, plainWords(o.top("U0BOB")), "Calls 1 to 8 of 20")
	o.uses("U0BOB", o.top("U0BOB"), "Calls after these")
	require.Contains(t, plainWords(o.top("U0BOB")), "Calls 9 to 16 of 20")
	o.usesNth("U0BOB", o.top("U0BOB"), "Approve", 3)
	require.Equal(t, approvals.Approved, o.status(b, 11))
	o.uses("U0BOB", o.top("U0BOB"), "Next waiting for you")
	require.Contains(t, plainWords(o.top("U0BOB")), "Calls 17 to 20 of 20")
}

// lends shows somebody a button that leads to the first card of the batch, and
// they press it.
func (o *workspace) lends(user, batch string) {
	o.t.Helper()
	button := blockkit.Button("countersign.review.0", "r1|"+batch+"|0", "Review", "Review what someone else was asked")
	_, ts, err := slack.New(o.BotToken(), slack.OptionAPIURL(o.api)).PostMessage("C0GENERAL", slack.MsgOptionBlocks(slack.NewActionBlock("", button)), slack.MsgOptionText("see", false))
	require.NoError(o.t, err)
	_, err = o.Click(slacksim.Click{User: user, Channel: "C0GENERAL", TS: ts, ActionID: "countersign.review.0"})
	require.NoError(o.t, err)
	require.NoError(o.t, o.ui.Server.Shutdown(o.t.Context()))
}

// seen is everything that only this person was told in the channel, and sees in
// modals.
func (o *workspace) seen(user string) string {
	o.t.Helper()
	all, err := o.Messages(user, "C0GENERAL", "")
	require.NoError(o.t, err)
	text := ""
	for _, m := range all {
		if m.Ephemeral {
			text += m.Shown() + "\n"
		}
	}
	for _, v := range o.Views(user) {
		text += plainWords(v)
	}
	return text
}

// Members of the channel may read along; others may not, and a question that
// Slack does not answer lets nobody in.
func TestAReviewIsOpenedOnlyForWhoMayLook(t *testing.T) {
	channels := slacksim.DefaultChannels()
	for i := range channels {
		if channels[i].ID == "C0OPS" {
			channels[i].Members = []string{slacksim.BotUser, "U0ALICE", "U0CAROL"}
		}
	}
	o := newWorkspace(t, slacksim.Config{Channels: channels}, func(c *slackui.Config) { c.Lists, _ = c.Memos.(*testStore) })
	secret := approvals.Quorum{Name: "sec", Need: 1, From: approvals.From{Users: []approvals.UserID{"U0ALICE"}}}
	b := o.another("one", 0, call("c1", "delete_file", `{"path":"a.txt"}`, secret))
	for user, says := range map[string]string{
		"U0ALICE": `path: "a.txt"`, "U0CAROL": `path: "a.txt"`, "U0DAVE": "Its approvers and its requester can",
	} {
		o.lends(user, "batch-07-one")
		require.Contains(t, o.seen(user), says, user)
	}
	o.now.Advance(2 * time.Minute)
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "conversations.members", Error: "internal_error"}}})
	o.lends("U0DAVE", string(b.ID))
	require.Contains(t, o.seen("U0DAVE"), "Try again")
	require.NotContains(t, o.seen("U0DAVE"), "a.txt")
}
