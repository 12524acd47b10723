package slackui_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/card"
)

// refund is a call that tells its whole story.
func refund(id, cents string) approvals.Deferral {
	d := until(call(id, "issue_refund", `{"order":"1042","cents":`+cents+`,"customer":"ACME"}`, sre), noon.Add(4*time.Hour), true)
	d.Summary = `Refund {money args.cents "EUR"} to {args.customer or "nobody"}`
	d.Severity = approvals.SeverityHigh
	d.GateReason = approvals.QuoteOf("Refunds above 100 EUR need a person.")
	d.Preview = approvals.Preview{
		Status: approvals.PreviewMade, Reads: "read_order", CheckedAt: noon.Add(-2 * time.Minute),
		Facts: []approvals.Fact{{Label: "Balance", Value: "1,240.00 EUR"}, {Label: "Last refund", At: noon.Add(-48 * time.Hour)}},
	}
	return d
}

// telling is a card on which everybody says something.
func telling(tb testing.TB, calls []approvals.Deferral) card.Card {
	tb.Helper()
	c := drawn(tb, calls)
	c.Batch.Prompt = approvals.QuoteOf("Refund order 1042, please.\nThe customer <!channel> was charged twice.")
	c.Batch.Said = approvals.QuoteOf("The order was charged twice, so I refund *one* of the charges. " + strings.Repeat("It is in the ledger. ", 30))
	return c
}

// becameOf is a card of seven approved calls, and what became of each.
func becameOf(tb testing.TB) card.Card {
	tb.Helper()
	at := noon.Add(3 * time.Minute)
	all := []approvals.Execution{
		{State: approvals.Ran, At: at, Took: 1234 * time.Millisecond, Excerpt: "refund re_1 of 10.00 EUR <!channel>"},
		{State: approvals.RanFailed, At: at, Took: 20 * time.Second, Words: "the ledger is closed"},
		{State: approvals.InDoubt, At: at},
		{State: approvals.NotRun, At: at, Words: "The limit of 5 calls was reached."},
		{State: approvals.Refused, At: at, Words: "Refunds are frozen."},
		{State: approvals.AskedAgain, At: at},
		{},
	}
	var calls []approvals.Deferral
	var cmds []approvals.Command
	for i := range all {
		d := refund(fmt.Sprintf("c%d", i), fmt.Sprintf("%d00", i+10))
		d.GateReason, d.Preview = approvals.Quote{}, approvals.Preview{}
		calls, cmds = append(calls, d), append(cmds, says("U0BOB", approvals.Approve, d, ""))
	}
	conclude := approvals.Conclude{At: at}
	for i, e := range all[:6] {
		conclude.Calls = append(conclude.Calls, approvals.Conclusion{Call: calls[i].Call.ID, Execution: e})
	}
	return drawn(tb, calls, append(cmds, conclude)...)
}

// asked is a call that people are asked about once more.
func asked(tb testing.TB) card.Card {
	tb.Helper()
	d := refund("c1", "12900")
	d.Severity = approvals.SeverityIrreversible
	d.Preview.Again = 1
	d.Preview.Before = approvals.Before{Batch: "batch-07-before", Facts: []approvals.Fact{{Label: "Balance", Value: "40.00 EUR"}}}
	return telling(tb, []approvals.Deferral{d})
}

// doubting are cards that ask about calls in doubt, and how these were answered.
func doubting(tb testing.TB) map[string]card.Card {
	tb.Helper()
	began := noon.Add(-10 * time.Minute)
	d := refund("c1", "12900")
	d.Doubt = approvals.Doubt{Began: began, Key: "run-07-r/c1", Approved: "batch-07-before"}
	owners := d
	owners.Call.ID, owners.Ask.Requirement = "c2", approvals.Requirement{}
	owners.Ask.Why = "The policy let this call run without approval. It may or may not have taken effect, so people decide what to do."
	late := approvals.Report{Call: "c1", At: noon, Execution: approvals.Execution{
		State: approvals.Ran, Took: time.Minute, Excerpt: "refund re_1 of 129.00 EUR <!channel>",
	}}
	one := func(cmds ...approvals.Command) card.Card { return drawn(tb, []approvals.Deferral{d}, cmds...) }
	unsure := d
	unsure.Doubt.Unsure, unsure.Doubt.Said = true, approvals.QuoteOf("The server did not answer within 1m0s. <!channel>")
	return map[string]card.Card{
		"doubt":           telling(tb, []approvals.Deferral{d}),
		"doubt_unsure":    telling(tb, []approvals.Deferral{unsure}),
		"doubt_late":      one(late),
		"doubt_several":   telling(tb, []approvals.Deferral{d, owners, refund("c3", "500")}),
		"doubt_again":     one(says("U0BOB", approvals.RunAgain, d, "")),
		"doubt_happened":  one(says("U0BOB", approvals.Happened, d, "refund re_1 is in the *ledger*")),
		"doubt_given_up":  one(says("U0BOB", approvals.GiveUp, d, "the order is gone")),
		"doubt_expired":   one(approvals.Expire{At: noon.Add(5 * time.Hour)}),
		"doubt_withdrawn": one(approvals.Withdraw{By: "U0ALICE", Reason: approvals.Superseded, At: noon}),
	}
}

// undestructive says of the tools of a card that they destroy nothing.
func undestructive(c card.Card) card.Card {
	no := false
	c.Tools = map[string]agentrun.Spec{}
	for _, a := range c.Batch.Approvals {
		c.Tools[a.Call.Name] = agentrun.Spec{Name: a.Call.Name, Annotations: agentrun.Annotations{DestructiveHint: &no}}
	}
	return c
}

// checked is a card of calls that the check of a rule asks about.
func checked(tb testing.TB) card.Card {
	tb.Helper()
	says, silent := refund("c1", "12900"), refund("c2", "500")
	says.GateReason, silent.GateReason = approvals.Quote{}, approvals.Quote{}
	says.Ask.Checked = approvals.Checked{Check: "fraud", Answer: approvals.CheckAsk, Said: approvals.QuoteOf("The customer is *new*. <!channel>")}
	silent.Ask.Checked = approvals.Checked{Check: "fraud", Answer: approvals.CheckAsk}
	return drawn(tb, []approvals.Deferral{says, silent})
}

// stories are the cards that say who asks, why, how bad it is, and what became
// of it.
func stories(tb testing.TB) map[string]card.Card {
	tb.Helper()
	low, unread := refund("c2", "500"), refund("c3", "900")
	low.Severity, unread.Severity = approvals.SeverityLow, approvals.SeverityIrreversible
	low.GateReason, low.Preview = approvals.Quote{}, approvals.Preview{Status: approvals.PreviewFailed}
	unread.GateReason, unread.Preview = approvals.Quote{}, approvals.Preview{Status: approvals.PreviewReadAsks}
	return map[string]card.Card{
		"story":       telling(tb, []approvals.Deferral{refund("c1", "12900")}),
		"story_mixed": telling(tb, []approvals.Deferral{refund("c1", "12900"), low, unread}),
		"checked":     checked(tb),
		"asked_again": asked(tb),
		"became":      becameOf(tb),
		"terminal":    terminal(tb),
		"all_at_once": undestructive(telling(tb, []approvals.Deferral{refund("c1", "12900"), low})),
	}
}

// allCards are the cards whose every byte is kept.
func allCards(tb testing.TB) map[string]card.Card {
	tb.Helper()
	all := golden(tb)
	maps.Copy(all, stories(tb))
	maps.Copy(all, doubting(tb))
	return all
}

// buttonsOf are the buttons of a card.
func buttonsOf(c card.Card, now time.Time) []*slack.ButtonBlockElement {
	var all []*slack.ButtonBlockElement
	for _, b := range card.Render(c, now) {
		row, ok := b.(*slack.ActionBlock)
		if !ok {
			continue
		}
		for _, e := range row.Elements.ElementSet {
			if button, ok := e.(*slack.ButtonBlockElement); ok {
				all = append(all, button)
			}
		}
	}
	return all
}

// spokenBy are the labels for screen readers of the buttons of a card.
func spokenBy(c card.Card, now time.Time) map[string]string {
	labels := map[string]string{}
	for _, b := range buttonsOf(c, now) {
		labels[b.ActionID] = b.AccessibilityLabel
	}
	return labels
}

func TestEveryButtonSaysWhichCallItIsFor(t *testing.T) {
	seen := 0
	for name, c := range allCards(t) {
		spoken := map[string]bool{}
		for id, label := range spokenBy(c, noon.Add(time.Minute)) {
			require.NotEmpty(t, label, "%s of %s", id, name)
			require.LessOrEqual(t, len([]rune(label)), 75, "%s of %s", id, name)
			if !strings.Contains(id, ".sheet.") && !strings.Contains(id, ".each.") && !c.Sheets {
				require.False(t, spoken[label], "%s says %q twice", name, label)
			}
			spoken[label] = true
			seen++
		}
	}
	require.Greater(t, seen, 80)
	two := stories(t)["all_at_once"]
	require.Equal(t, "Approve call 1 of 2: Refund 129.00 EUR to ACME", spokenBy(two, noon)["countersign.approve.0"])
}

func TestTheTextOfACardTellsItWithoutItsBlocks(t *testing.T) {
	all := stories(t)
	one := all["story"].Message(noon).Text.String()
	for _, words := range []string{"<@U0ALICE> asked ops: Refund 129.00 EUR to ACME.", "High risk.", "Waiting for approval from <!subteam^S0SRE>.", "Expires <!date^"} {
		require.Contains(t, one, words)
	}
	mixed := all["story_mixed"].Message(noon).Text.String()
	for _, words := range []string{"for 3 calls: 1. Refund 129.00 EUR to ACME; 2. Refund 5.00 EUR to ACME; 3. Refund 9.00 EUR to ACME;", "3 calls need approval.", "Irreversible: 1 of 3 calls."} {
		require.Contains(t, mixed, words)
	}
	many := drawn(t, []approvals.Deferral{refund("c1", "500"), refund("c2", "500"), refund("c3", "500"), refund("c4", "500"), refund("c5", "500")})
	require.Contains(t, many.Message(noon).Text.String(), "3. Refund 5.00 EUR to ACME; and 2 more; 5 calls need approval.", "each part ends before the next")
	require.Contains(t, many.Message(noon).Text.String(), " Expires <!date^", "all of them at once")
	var nine []approvals.Deferral
	for i := range card.CallsPerCard + 1 {
		nine = append(nine, refund(fmt.Sprintf("c%d", i), "500"))
	}
	first := drawn(t, nine)
	require.Contains(t, first.Message(noon).Text.String(), " asked ops for calls 1 to 8 of 9: 1. Refund", "the request is larger than its card")
	last := first
	last.Part = 1
	require.Contains(t, last.Message(noon).Text.String(), " asked ops for call 9 of 9: Refund 5.00 EUR to ACME.")
	require.Contains(t, shownText(t, last), "Call 9 of 9. The agent continues when all 9 calls are decided.")
	review, err := json.Marshal(card.ReviewView(first, noon, blockkit.Mrkdwn{}, ""))
	require.NoError(t, err)
	require.Contains(t, string(review), "Calls after these: call 9 of 9")
	sooner := refund("c2", "500")
	sooner.Ask.Requirement.Deadline = sooner.Ask.Requirement.Deadline.Add(-time.Hour)
	apart := drawn(t, []approvals.Deferral{refund("c1", "500"), sooner}).Message(noon).Text.String()
	require.Contains(t, apart, " The first expires <!date^", "the others can be decided after that")
	d := refund("c1", "12900")
	over := drawn(t, []approvals.Deferral{d}, says("U0BOB", approvals.Approve, d, ""), approvals.Conclude{At: noon.Add(time.Hour), Calls: []approvals.Conclusion{
		{Call: "c1", Execution: approvals.Execution{State: approvals.RanFailed, Words: "secret"}},
	}})
	text := over.Message(noon).Text.String()
	require.Contains(t, text, "Approved by <@U0BOB>. Failed.")
	require.NotContains(t, text, "Waiting")
	require.Contains(t, golden(t)["hostile"].Message(noon).Text.String(), "&lt;!channel&gt;")
}

// What the agent waits for is said of what is still open alone.
func TestACardSaysWhatTheAgentStillWaitsFor(t *testing.T) {
	one, two := refund("c1", "500"), refund("c2", "500")
	both := says("U0BOB", approvals.Approve, two, "")
	waits := func(results int, calls []approvals.Deferral, cmds ...approvals.Command) string {
		c := drawn(t, calls, cmds...)
		for i := range 2 {
			c.Batch.Calls = append(c.Batch.Calls, approvals.External{})
			if i < results {
				c.Batch.Calls[i].Result = approvals.ToolReturn{}
			}
		}
		return shownTextAt(t, c, noon.Add(time.Hour))
	}
	only := []approvals.Deferral{one}
	require.Contains(t, waits(0, only), "The agent waits for this decision. It also waits for 2 calls to run elsewhere.")
	require.Contains(t, waits(1, only), "The agent waits for this decision. It also waits for 1 call to run elsewhere.")
	decided := waits(1, only, says("U0BOB", approvals.Approve, one, ""))
	require.Contains(t, decided, "The agent waits for 1 call to run elsewhere.")
	require.NotContains(t, decided, "waits for this decision")
	all := waits(0, []approvals.Deferral{one, two}, says("U0BOB", approvals.Approve, one, ""), both)
	require.Contains(t, all, "Not run yet: the agent also waits for calls that run elsewhere.")
	require.NotContains(t, all, "when both calls are decided")
	overdue := waits(2, []approvals.Deferral{until(one, noon.Add(time.Minute), false)})
	require.Contains(t, overdue, "Expired")
	require.NotContains(t, overdue, "The agent waits")
	late := []approvals.Deferral{one, until(two, noon.Add(time.Minute), false)}
	approved := says("U0BOB", approvals.Approve, one, "")
	approved.At = noon.Add(time.Second)
	require.Contains(t, waits(1, late, approved), "Not run yet: the agent also waits for calls that run elsewhere.")
	recorded := waits(2, late, approved)
	require.Contains(t, recorded, "Not run yet.")
	require.NotContains(t, recorded, "are decided")
}

// An escalation may add people to a call that names none yet.
func TestACallWhoseEscalationAddsPeopleIsNotSaidToHaveNobody(t *testing.T) {
	d := call("c1", "restart", `{}`, approvals.Quorum{Name: "sre", Need: 1})
	require.Contains(t, shownText(t, drawn(t, []approvals.Deferral{d})), "Nobody can decide it")
	d.Ask.Requirement.Ladder = []approvals.Rung{{At: noon.Add(time.Hour), Kind: approvals.Escalate, Quorum: "sre", Add: approvals.From{Users: []approvals.UserID{"U0DAVE"}}}}
	require.NotContains(t, shownText(t, drawn(t, []approvals.Deferral{d})), "Nobody can decide it")
}

// Slack folds away what follows many lines of a block, whoever wrote them: it must not
// be approved by one click then.
func TestNoBlockOfACardIsSoTallThatSlackFoldsIt(t *testing.T) {
	script := strings.Repeat(`ok\n`, 19) + "rm -rf /srv/data"
	args := func(n int) string {
		fields := make([]string, n)
		for i := range fields {
			fields[i] = fmt.Sprintf(`"step_%d":"%s"`, i, script)
		}
		return "{" + strings.Join(fields, ",") + "}"
	}
	for _, shape := range [][2]int{{8, 2}, {6, 3}, {1, 12}, {8, 12}} {
		c := drawn(t, many(shape[0], args(shape[1])))
		for i := range c.Batch.Approvals { // so that the calls are not drawn as one
			c.Batch.Approvals[i].Why = fmt.Sprint("Reason ", i)
		}
		require.False(t, c.Message(noon).Whole, "%d calls with %d scripts", shape[0], shape[1])
	}
	one := call("c1", "run", args(1), sre)
	require.True(t, drawn(t, []approvals.Deferral{one}).Message(noon).Whole)
	one.GateReason = approvals.Quote{Text: "fine" + strings.Repeat("\n.", 140)}
	for _, block := range card.Render(drawn(t, []approvals.Deferral{one}), noon) {
		raw, err := json.Marshal(block)
		require.NoError(t, err)
		require.LessOrEqual(t, strings.Count(string(raw), `\n`), 40, "%s", raw)
	}
}

// What became of a call is said from what is recorded, and nothing is promised
// before that.
func TestACardSaysWhatBecameOfEveryCall(t *testing.T) {
	text := shownText(t, becameOf(t))
	for _, words := range []string{
		"Ran", "in 1.2 s", "refund re_1", "Failed", "after 20 s", "the ledger is closed", "may or may not have taken effect", "Didn't run",
		"limit of 5 calls", "Refused by the policy when it was about to run", "Asked again", "Running or about to run.",
	} {
		require.Contains(t, text, words)
	}
	require.NotContains(t, text, "continues")
}

func TestSeveralCallsAreApprovedByOneButtonOnlyWhereNoneNeedsMore(t *testing.T) {
	pair := func(f func(d *approvals.Deferral)) card.Card {
		d := refund("c2", "500")
		f(&d)
		return drawn(t, []approvals.Deferral{refund("c1", "12900"), d})
	}
	has := func(c card.Card) bool { return spokenBy(c, noon)["countersign.all.0"] != "" }
	require.True(t, has(pair(func(*approvals.Deferral) {})))
	require.True(t, has(undestructive(pair(func(d *approvals.Deferral) { d.Severity = "" }))), "its tool denies that it destroys anything")
	for name, c := range map[string]card.Card{
		"irreversible":        pair(func(d *approvals.Deferral) { d.Severity = approvals.SeverityIrreversible }),
		"an unknown severity": pair(func(d *approvals.Deferral) { d.Severity = "new" }),
		"nobody stated it":    pair(func(d *approvals.Deferral) { d.Severity = "" }),
		"a reason is needed":  pair(func(d *approvals.Deferral) { d.Ask.Requirement.ReasonNeeded = true }),
		"nobody can approve":  pair(func(d *approvals.Deferral) { d.Ask.Requirement.Quorums = nil }),
		"not shown whole":     pair(func(d *approvals.Deferral) { d.Call.Args = []byte(`{"x":"` + strings.Repeat("y", 5000) + `"}`) }),
		"one call":            drawn(t, []approvals.Deferral{refund("c1", "12900")}),
		"one is expired":      pair(func(d *approvals.Deferral) { d.Ask.Requirement.Deadline = noon.Add(-time.Second) }),
	} {
		require.False(t, has(c), name)
	}
	lost := pair(func(*approvals.Deferral) {})
	delete(lost.Calls, "c2")
	require.False(t, has(lost), "what is not loaded is not shown")
}

// A call that ran under a version that stored no outcomes has none for good.
func TestACallWithoutAnOutcomeIsNotSaidToRunForever(t *testing.T) {
	c := golden(t)["approved"]
	require.Contains(t, shownTextAt(t, c, noon.Add(5*time.Minute)), "Running or about to run.")
	text := shownTextAt(t, c, noon.Add(24*time.Hour))
	require.Contains(t, text, "No record yet of whether it ran. Check before you repeat it.")
	require.NotContains(t, text, "Running")
}

// A card says that the world has moved on only where that is why people are asked
// again, and not once more when the tool itself asks for one more approval.
func TestACardSaysWhyPeopleAreAskedAgain(t *testing.T) {
	c := asked(t)
	require.Contains(t, textOf(c), "Asked again")
	for i := range c.Batch.Approvals {
		c.Batch.Approvals[i].Preview.Before = approvals.Before{}
	}
	require.NotContains(t, textOf(c), "Asked again")
}

func textOf(c card.Card) string {
	raw, err := json.Marshal(card.Render(c, noon))
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
