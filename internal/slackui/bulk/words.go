package bulk

import "github.com/countersign/countersign/internal/approvals"

// The words of a list of calls that are approved or denied at once, and of its
// outcome.

// The list before it is sent.
const (
	titleApprove   = "Approve several calls"
	titleDeny      = "Deny several calls"
	collecting     = "Collecting the calls. This takes a moment."
	notCollected   = "The calls couldn't be collected. Nothing changed. Close this and try again in a moment."
	selectThose    = ". Select the calls that you want: "
	selectOthers   = ". %s applies to %s without a checkbox. Select the others that you want: %s"
	selectWhy      = "each may be irreversible, has an unknown tool, was edited, or has hidden values."
	appliesToAll   = " applies to all of them"
	listAsOf       = "This is the list as of "
	listUntil      = ". Later calls aren't on it, and calls that are edited meanwhile are skipped. You can send it until "
	turnPages      = " The buttons at the end turn the page and keep your selection."
	pageOfList     = "%s of the list: page %d of %d"
	whyNot         = "Why not?"
	whyNotHint     = "The agents and everyone who sees the cards can read it. If you give a reason, you can't approve what the agents do next in the threads of these calls, unless the policy allows it."
	whyApprove     = "Why do you approve?"
	whyApproveHint = "Some of these calls need a reason. Everyone who sees the cards can read it."
	reviewSpoken   = "Review the call %s, which isn't on this list"
	rowGone        = " is no longer there for you and will be skipped."
	rowEdited      = "It was edited after this list was made, so it will be skipped. These are its old arguments."
	rowSettled     = "It is no longer open, so it will be skipped."
	rowCut         = "Not everything is shown here."
	rowNoArguments = "No arguments."
)

// Nothing to list.
const (
	seeLists       = "`/countersign list` shows what is open, and `/countersign list mine` shows what waits for you."
	nothingMatches = "No open call that you can see matches this filter, so there is nothing to "
	noneThatMatch  = " any of the calls that match this filter."
	noneNow        = " any of these calls now."
	cannotList     = "This Countersign can't decide several calls at once. Use the buttons on the cards."
	idTooShort     = "`%s` matches %s. Use more characters of the id: the card shows it as the digest. Nothing changed."
	moreThanFit    = "There are more calls than one list holds."
	narrowFilter   = " Finish these and ask again, or narrow the filter."
	unsureGroups   = "Slack didn't list the members of every group, so calls that wait for your groups may be missing."
)

// Sending it.
const (
	needsReason      = "Enter a reason."
	nothingSelected  = "Nothing is selected. Select the calls that you want to approve, or press Cancel."
	notSentStore     = "Nothing was sent because the store didn't answer."
	perhapsSent      = "The store didn't answer, so your decision may or may not be stored. Sending it again is safe: no call is decided twice."
	pressAgain       = " Press the button below again."
	sent             = "%s %s… Your decision is stored, so you can close this. A direct message will tell you what was %s, what was skipped and why."
	sendCommandAgain = " Send the command again for a new list."
	sendAgain        = "Send again"
	backToList       = "Back to the list"
	backToPage       = "Back to page %d of the list"
	notYoursToSend   = "This list is someone else's, so you can't send it. Nothing changed."
	listOfOldVersion = "An earlier version of Countersign made this list and didn't show every call in full. Nothing changed."
	listTooOld       = "This list is too old: a list can be sent for %s minutes. Nothing changed."
	alreadySent      = "You already sent this list. Nothing changed. A direct message tells you the outcome."
	notStored        = "This list is no longer stored. Nothing changed."
	notAsShown       = "What was sent doesn't match the list that was shown. Nothing changed."
)

// What became of it.
const (
	notFinished      = "Your list of %s isn't finished: it kept failing, so the bot stopped trying. %s decided and %s still open. Ask your Countersign admin to look. You can decide the open calls on their cards."
	resultNotStored  = "This list is no longer stored: lists are kept for 30 days. The cards show what was decided."
	notYoursToRead   = "This list is someone else's, so you can't read it."
	wholeList        = "Show the whole list"
	wholeListSpoken  = "Show the whole list and what became of each call"
	resultTitle      = "Outcome of the list"
	pageOfResult     = "%s of the outcome: page %d of %d"
	sentAt           = " You sent the list "
	notSelected      = "not selected, so nothing changed"
	selectedCalls    = " selected calls"
	notSelectedCount = " not selected."
)

// leftWords say it, after "12 calls".
var leftWords = map[Reason]string{
	leftOwn:      "that you requested: someone else must approve",
	leftEdit:     "that you edited: someone else must approve",
	leftSpoke:    "made after your message to the agent: someone else must approve",
	leftApprover: "that you can't decide",
	leftDecided:  "that you already decided",
	leftContrary: "that you already decided otherwise: press Take back on the card first",
	leftNeed:     "that don't need your approval now: others already approved, or are asked first",
	leftRead:     "whose arguments can't be read now",
	leftGone:     "that you can't decide, because a group they ask no longer exists in Slack. Tell your Countersign admin",
	leftChanged:  "whose arguments were edited after the card was drawn: read it again",
	leftSettled:  "already decided, expired or withdrawn",
	leftCut:      "that a list can't show in full: review and approve each on its own",
	leftDoubt:    "in doubt: open each and decide it on its own",
	leftOther:    "that can't be decided here",
}

// whyWords say why calls were skipped, after "3 calls".
var whyWords = map[approvals.Why]string{
	approvals.WhySettled:     "were already decided or withdrawn",
	approvals.WhyExpired:     "had expired",
	approvals.WhyStale:       "were edited after the list was made",
	approvals.WhyNotEligible: "you can't decide",
	approvals.WhyOwnRequest:  "you requested",
	approvals.WhyOwnEdit:     "you edited",
	approvals.WhyOwnWords:    "follow your message to the agent",
	approvals.WhyDecided:     "you already decided otherwise: press Take back on the card first",
	approvals.WhyReason:      "need a reason to be approved",
	approvals.WhyGone:        "are no longer there",
	approvals.WhyTakenBack:   "you decided and then took back",
	approvals.WhyUnreadable:  "can't be read: tell your Countersign admin",
	approvals.WhyTooLate:     "kept failing for a day",
	approvals.WhyInvalid:     "couldn't be decided as asked",
	approvals.WhyOther:       "were refused",
}

// lineWhy says why one call was skipped.
var lineWhy = map[approvals.Why]string{
	approvals.WhySettled: "it was already decided or withdrawn", approvals.WhyExpired: "it had expired",
	approvals.WhyStale: "it was edited after the list was made", approvals.WhyNotEligible: "you can't decide it",
	approvals.WhyOwnRequest: "you requested it", approvals.WhyOwnEdit: "you edited it",
	approvals.WhyOwnWords: "it follows your message to the agent",
	approvals.WhyDecided:  "you already decided otherwise: press Take back on the card first", approvals.WhyReason: "it needs a reason to be approved",
	approvals.WhyGone: "it is no longer there", approvals.WhyTakenBack: "you decided it and then took that back",
	approvals.WhyUnreadable: "it can't be read", approvals.WhyTooLate: "it kept failing for a day",
	approvals.WhyInvalid: "it couldn't be decided as asked", approvals.WhyOther: "it was refused",
}
