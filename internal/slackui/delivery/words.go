package delivery

// The words of direct messages and of the status line. Those of cards are in
// package card, those of replies in package reply.

// Reminders and other direct messages.
const (
	sayReadAndDecide  = "Read the exact arguments and decide on the card. Nothing is decided here."
	sayInDoubt        = "In doubt: "
	sayCardShows      = "The card shows the exact arguments. Nothing is decided here."
	sayStillUndecided = ". It is still undecided, so now you can approve it too"
	sayNoLongerCounts = " of your decisions no longer "
	sayEdited         = "%s edited the arguments: "
	sayDecideBy       = "Decide by %s. "
	sayEditedAfter    = ": the arguments were edited after you read them."
	sayDecideAgain    = ". Read the new ones and decide again"
	sayDecidedWithout = ". It was decided without you since"
	sayAwayUntil      = ", who is away until "
)

// To a requester whose calls nobody was asked about, or nobody can approve.
const (
	sayNobodyWasAsked  = "Nobody was asked to approve "
	sayNobodyElse      = "No one else was asked to approve "
	sayTooFewCan       = "Too few people can approve "
	sayMoreOrAgain     = "It can be approved once more of them can, such as after someone joins a user group. An open request keeps its rule, so after a change of the policy, ask the agent again."
	sayShowTheCard     = "Show the card to an approver. If there is none, ask the person who maintains the policy."
	sayYouAskedFor     = " that you asked for"
	sayWrote           = " wrote to the agent "
	sayWroteToo        = " in the same thread, and people who ask for a call can't approve it."
	sayMayHaveAsked    = " may have asked the agent "
	sayMayHaveAskedToo = " for it too, and people who ask for a call can't approve it."
	sayNewThread       = "To get it approved now, start a new thread: mention the agent in a new message in the channel, and include everything it needs to know."
	sayOtherMustAsk    = "Where a call needs your own approval, someone else must ask the agent for it in a new thread."
	sayMoreFrom        = ": more people can approve it from "
)

// To the channel of an agent whose webhook is disabled.
const (
	sayTheWebhook     = "The webhook "
	sayOfTheAgent     = " of the agent "
	sayNoLongerGets   = " no longer gets messages. "
	sayMessagesWait   = " Its messages wait. Once the receiver works again, an admin of Countersign can enable it with "
	sayEnableCommand  = "bot admin enable "
	sayEnableFinished = "."
)

// The status line.
const (
	statusWaiting   = "is waiting for approvals"
	statusWaitingOf = "is waiting for %d of %s"
)
