package card

import (
	"fmt"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// The words of a card, of the messages that lead to one, and of the Home tab, in
// the order in which a person meets them. What stands between names and times is
// put together where it is drawn.

// The opening of a card: why it is where it is, and what the agent waits for.
const (
	sayNotShownIn        = "This couldn't be shown in "
	sayComeHere          = ". Ask the people there to come here."
	sayShownLate         = ", and is shown here too because it wasn't decided in time"
	sayShownToYou        = ", and is shown to you because you can approve it"
	sayWasShownToYou     = ", and was shown to you when you could approve it"
	sayAskedDirectly     = "Asked in a direct message"
	sayArchived          = "the channel is archived"
	sayMayNotPost        = "the app isn't allowed to post there"
	sayNotInChannel      = "the app isn't in the channel"
	sayWaits             = "The agent waits for this decision."
	sayContinuesWhen     = "The agent continues when "
	sayContinuesWhenPart = ". The agent continues when "
	sayContinuesIn       = " The agent continues in "
	sayElsewhere         = " It also waits for "
	sayWaitsElsewhere    = "The agent waits for "
	sayAskerGetsIt       = " The agent that asked gets the answer."
)

// A call: its arguments and what would change.
const (
	sayExactly          = " with exactly these arguments:"
	sayCutArguments     = " with these arguments, which are cut here:"
	sayNoArgumentsShown = ": the arguments can't be shown, so this can't be approved here."
	sayViewFullShows    = "Not everything is shown. View full shows the rest."
	sayApproveOpens     = "Not everything is shown. Approve opens all of it, and you approve there."
	sayTooLongTogether  = "These are too long to approve together. Review one by one opens each."
	sayOneByOne         = "Decided one by one, from "
	sayAskedAgain       = ": what it would change is no longer what was approved"
	sayViewFullChange   = " View full shows the change."
	sayRestNotShown     = "The rest isn't shown here."
)

// Who must approve, and until when.
const (
	sayWhy                = "Why this needs approval: "
	sayExpires            = "Expires %s and then won't run"
	sayOneDenial          = "one denial stops it"
	sayNeedsReason        = "an approval needs a reason"
	sayEditedIt           = "%s edited it and can't approve"
	sayTheCalls           = "the calls that say so"
	sayAlsoWrote          = " also wrote to the agent in "
	sayMayHaveAsked       = " may have asked for it too, so "
	sayNoneCan            = "none of them can approve "
	sayUnaskedNoApprovers = "nobody can approve this: the policy names no approvers"
	sayUnaskedNone        = "nobody can approve this now. It needs "
	sayUnaskedUnsure      = "Slack doesn't say who can approve this. It needs "
	sayUnaskedTooMany     = "no approver sees the card in the channel, and there are too many of them for direct messages: "
	sayUnaskedUnreachable = "no approver sees the card in the channel, and these can't be sent a direct message: "
	sayUnaskedMuted       = "no approver sees the card in the channel, and the policy sends no direct messages to "
	sayUnaskedTooFew      = "it can't get all the approvals that it still needs from "
	sayUnlessTakenBack    = ", unless those who denied it take that back"
	sayTooFewCan          = "Too few people can approve"
	sayNobodyAsked        = "Nobody was asked yet"
	sayNobodyElseAsked    = "No one else was asked yet"
)

// Buttons and confirmations.
const (
	sayUnusable           = "This call can't be approved here: its ids aren't usable."
	sayUnusableCalls      = "These calls can't be approved here: their ids aren't usable."
	sayApproveExactly     = " You approve exactly the arguments on the card."
	sayApproveExactlyEach = " You approve exactly the arguments on the card for each of the "
	sayApproveAllSpoken   = "Approve all %d calls of this card"
	sayViewFullSpoken     = "View full arguments of"
	sayTakeBackSpoken     = "Take back your decision on"
	sayReviewEach         = "Review one by one"
	sayCannotUndo         = "This can't be undone."
	sayUnknownTool        = "Countersign doesn't know what this tool does: it may change or delete things permanently."
	sayMayDestroy         = "This tool may change or delete things permanently."
	sayLow                = "Rated low risk, but "
	sayLowUnknownTool     = sayLow + "Countersign doesn't know the tool"
	sayLowUnknownTools    = sayLow + "Countersign doesn't know every tool"
	sayLowMayDestroy      = sayLow + "this tool may change or delete things permanently."
	sayItMayDestroy       = ": it may change or delete things permanently."
	sayOneMayDestroy      = " At least one call may change or delete things permanently."
	sayNext               = "Next waiting for you"
	sayNextSpoken         = "Next waiting for you: review that request"
)

// What people decided, and what became of the call.
const (
	sayUnknownOutcome  = "This version doesn't know what became of it."
	sayInDoubt         = ": it may or may not have taken effect. Check before you repeat it."
	sayChangedSince    = ": it didn't run. A new card asks about it."
	sayNotRunUntil     = "Not run yet: the agent continues when "
	sayNotRun          = "Not run yet."
	sayNotRunElsewhere = "Not run yet: the agent also waits for calls that run elsewhere."
	sayNotUsedYet      = "The agent hasn't used the approval yet."
	sayNotUsedInTime   = "Not used in time: the agent has to ask again."
	sayNotReported     = ". It isn't known yet whether the call ran."
	sayReportedBy      = ", reported by "
	saySharers         = " this credential and may have asked for it, so they can't approve "
	sayRunning         = "Running or about to run."
	sayNoRecord        = "No record yet of whether it ran. Check before you repeat it."
)

// An edit.
const (
	sayMoreDifferences  = " of the arguments not shown here."
	sayChangeNotShown   = "What it changed can't be shown."
	sayNobodyDecided    = "Nobody had decided yet."
	sayOldDecisions     = " decided was about the old ones and no longer counts."
	sayMeansSame        = "They mean the same as before."
	sayChangedMeanwhile = "The arguments changed after the card was drawn. These are the new ones."
)

// View full.
const (
	sayTurnPages        = " The buttons at the end turn the page."
	sayPageSpoken       = "%s of the arguments: page %d of %d"
	sayAsToolSaw        = ", as the tool saw it "
	sayWouldHaveChanged = "What would have changed"
	sayAskedBefore      = " when this was asked before, "
)

// The text of the message, and a card that is taken away.
const (
	sayNobodyCanText = " Nobody can approve this."
	sayWaitingFor    = " Waiting for approval from %s."
	sayFirstExpires  = "%s The first expires %s."
	sayNoCardHere    = "*%s of this request* %s no card here"
	sayGone          = "You no longer need to look at this request"
	sayGoneWhy       = ": it was changed, or you are no longer one of those who can approve it. Ask "
	sayGoneAsk       = " if you have questions."
	sayNobodyCanRow  = "nobody can approve this"
)

// The review of a thread.
const (
	sayInThread    = "%s %s for approval in this thread."
	sayNotReadable = "%s %s here. You can't read %s, or Slack didn't say whether you can."
)

// A list in place of cards.
const (
	sayNoneForYou     = "None of these waits for you. This is the oldest."
	sayNoneWaits      = "Nothing listed here still waits"
	sayNoLonger       = " listed here no longer "
	sayOver           = " decided, withdrawn or expired."
	sayOutcomesThere  = " If a call was requested in a thread, its outcome is there."
	sayListedTogether = ". There were too many at once for a card each, so they are listed together."
	sayReviewSpoken   = "Review the oldest request that waits for you"
	sayReviewHint     = "Review opens the oldest request that waits for you. `/countersign list` and the Home tab of this app show all that wait for you."
)

// The Home tab.
const (
	homeOne           = "1 request waits for your approval."
	homeSome          = "%s wait for your approval, the most urgent first."
	homeMany          = "These are %s of many requests that wait for your approval, the most urgent of them first."
	homeNotYet        = "None of the requests checked so far waits for your approval. There are more."
	homeNoneKnown     = "As far as Slack could tell, nothing waits for you."
	homeNone          = "Nothing waits for your approval. New requests appear here and in their threads."
	homeUnsure        = "Slack didn't list the members of every group, so something may be missing here. Open this tab again in a moment."
	homeNoneElsewhere = "Nothing that you requested or decided is waiting for others."
	homeNoneDecided   = "Nothing recent. What you approve or deny appears here once it is decided."
	homeBoth          = "You approved %s and denied %s"
	homeNoDelegate    = "Nobody stands in for you."
	homeDelegate      = "%s stands in for you where the policy allows a delegate."
	homeAway          = "You are away until %s. %s"
	homeBackSpoken    = "I'm back: end my absence now"
	homeNotAway       = "You aren't away. To name a delegate while you are, send `/countersign away until friday, ask @ann`."
	homeStandsMore    = "You stand in for %s more."
	homeStands        = "You stand in for %s until %s. Only they can end it."
	homeSeveralSpoken = "Approve several of the calls that wait for you"
	homeListWaiting   = "requests that wait for you"
	homeListOthers    = "requests that wait for others"
	homeListDecided   = "requests that were decided"
	homeFirstPage     = "Back to the first page"
)

// statuses is each status of a call in one word, as a card and its headline say
// it.
var statuses = map[approvals.Status]string{
	approvals.Pending: "Waiting", approvals.Approved: "Approved", approvals.Denied: "Denied",
	approvals.Expired: "Expired", approvals.Withdrawn: "Withdrawn", approvals.Confirmed: "Happened",
}

// doubtStatuses are those words where they differ for a call in doubt.
var doubtStatuses = map[approvals.Status]string{approvals.Approved: "Run again", approvals.Denied: "Given up"}

const (
	doubtMark             = "⚠ "
	sayDoubtRow           = "In doubt: "
	sayThisMayOrMayNot    = "This call may or may not have taken effect. "
	sayDoubtCheck         = "Check in the tool's own system, then press one. The first decision counts."
	sayAgainDoes          = ": only if it didn't happen, or it happens twice. It needs all approvals above."
	sayHappenedName       = "It happened"
	sayHappenedDoes       = ": it doesn't run again, and the agent continues with what you write. One approver is enough."
	sayGiveUpName         = "Give up"
	sayGiveUpDoes         = ": it doesn't run again, and the agent reads that nobody knows. One approver is enough."
	sayNeitherRuns        = " don't run it again, and one approver is enough. "
	sayItReported         = "It reported:"
	sayMayOrMayNot        = " may or may not have taken effect. Check before you decide."
	sayBegan              = "It began "
	sayEndedSilent        = ", and its tool ended without saying whether it took effect."
	sayToolSays           = "The tool says:"
	sayCheckSays          = "The check %s asks for approval and says:"
	sayCheckAsks          = "The check %s asks for approval."
	sayStoppedBefore      = ", and Countersign stopped before it ended."
	sayReportedLate       = "Reported late: "
	sayDoubtExpires       = "Expires %s and then won't run again"
	sayNobodyDecides      = "nobody can decide it"
	sayDoubtOne           = "one approver can give it up"
	sayAgainOpens         = "Not everything is shown. Run it again opens all of it, and you approve there."
	sayWaitingForDecision = " Waiting for a decision from %s."
	sayAgain              = "Run it again"
	sayAgainSpoken        = "Run it again,"
	sayAgainLater         = "Run it again…"
	sayAgainSure          = "Run this call again?"
	sayAgainTwice         = ". If it happened the first time, it happens twice: check that first. "
	sayHappened           = "It happened…"
	sayHappenedSpoken     = "It happened,"
	sayGiveUp             = "Give up…"
	sayGiveUpSpoken       = "Give up,"
)

// reported is what a worker says late of a call in doubt.
var reported = map[approvals.ExecutionState]string{
	approvals.Ran: "it ran", approvals.RanFailed: "it ran and failed", approvals.InDoubt: "it ended without saying what it did",
	approvals.NotRun: "it didn't run",
}

// waiting says how many of the calls of a card wait for approval, or for a decision
// if some are in doubt.
func waiting(open, all int, doubt bool) string {
	what := "approval"
	if doubt {
		what = "a decision"
	}
	if open == all {
		return "Waiting for " + what + "."
	}
	return fmt.Sprintf("%d of %d calls %s for %s.", open, all, blockkit.PluralForm(open, "waits", "wait"), what)
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
// without a preview is not mentioned.
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
	approvals.Claimed:    "Approval used",
}

// executedMarks are before those words; each says what the words say.
var executedMarks = map[approvals.ExecutionState]string{
	approvals.Ran: "✅ ", approvals.RanFailed: "❌ ", approvals.InDoubt: "⚠ ", approvals.NotRun: "⏹ ", approvals.Refused: "⛔ ", approvals.AskedAgain: "↩ ",
	approvals.Claimed: "➡ ",
}

// counted is each status behind a number.
var counted = map[approvals.Status]blockkit.Mrkdwn{
	approvals.Pending: blockkit.Ours("waiting"), approvals.Approved: blockkit.Ours("approved"),
	approvals.Denied: blockkit.Ours("denied"), approvals.Expired: blockkit.Ours("expired"), approvals.Withdrawn: blockkit.Ours("withdrawn"),
	approvals.Confirmed: blockkit.Ours("happened"),
}
