package card

import (
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// The strings of a card that stand for a value. Sentences that are built around
// names and times are where they are built.

// Statuses is each status of a call in one word, as a card and its headline say
// it.
var Statuses = map[approvals.Status]string{
	approvals.Pending: "Waiting", approvals.Approved: "Approved", approvals.Denied: "Denied",
	approvals.Expired: "Expired", approvals.Withdrawn: "Withdrawn",
}

const superseded = "Superseded"

// riskOf says the worst severity of several calls, and how many have it if not
// all do.
func riskOf(s approvals.Severity, n, all int) string {
	if n == all {
		return blockkit.Risk(s) + "."
	}
	return fmt.Sprintf("%s: %d of %d calls.", blockkit.Risk(s), n, all)
}

// waiting says how many of the calls of a card wait for approval.
func waiting(open, all int) string {
	if open == all {
		return "Waiting for approval."
	}
	return fmt.Sprintf("%d of %d calls %s for approval.", open, all, blockkit.PluralForm(open, "waits", "wait"))
}

// everyCall is "this call", "both calls" or "all 4 calls".
func everyCall(n int) string {
	switch n {
	case 1:
		return "this call"
	case 2:
		return "both calls"
	}
	return "all " + blockkit.Number(n) + " calls"
}

// notPreviewed says why nothing is known of what a call would change. A tool
// without a preview is not spoken of.
var notPreviewed = map[approvals.PreviewStatus]string{
	approvals.PreviewReadAsks:     "Not previewed: reading the same needs an approval itself.",
	approvals.PreviewReadRefused:  "Not previewed: the agent isn't allowed to read the same.",
	approvals.PreviewReadUnjudged: "Not previewed: the policy couldn't judge whether the agent may read the same.",
	approvals.PreviewFailed:       "Not previewed: the tool couldn't say what would change.",
	approvals.PreviewEdited:       "Not previewed: the arguments were edited.",
}

// executed is the first words of what became of an approved call.
var executed = map[approvals.ExecutionState]string{
	approvals.Ran:        "Ran",
	approvals.RanFailed:  "Failed",
	approvals.InDoubt:    "In doubt",
	approvals.NotRun:     "Didn't run",
	approvals.Refused:    "Refused by the policy when it was about to run",
	approvals.AskedAgain: "Asked again",
}

// executedMarks are before those words; each says what the words say.
var executedMarks = map[approvals.ExecutionState]string{
	approvals.Ran: "✅ ", approvals.RanFailed: "❌ ", approvals.InDoubt: "❓ ", approvals.NotRun: "⏹ ", approvals.Refused: "⛔ ", approvals.AskedAgain: "↩ ",
}

// duration is how long a call took, as a person says it.
func duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return blockkit.Number(int(max(d.Milliseconds(), 1))) + " ms"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return blockkit.Number(int(d.Seconds())) + " s"
	}
	return blockkit.Number(int(d.Minutes())) + " min"
}

// counted is each status behind a number.
var counted = map[approvals.Status]blockkit.Mrkdwn{
	approvals.Pending: blockkit.Ours("waiting"), approvals.Approved: blockkit.Ours("approved"),
	approvals.Denied: blockkit.Ours("denied"), approvals.Expired: blockkit.Ours("expired"), approvals.Withdrawn: blockkit.Ours("withdrawn"),
}
