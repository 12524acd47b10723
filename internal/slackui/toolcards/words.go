package toolcards

// The sentences of the cards, and of the answers to those who press.
const (
	sayChanged      = " has changed its tools."
	sayAsks         = "The agent can't use these tools until an owner accepts them. Its other tools still work."
	sayOwners       = "Owners: "
	sayNoOwners     = "Nobody can accept them here, because the agent has no owners. Set agents[].owners, or run bot mcp pins accept."
	sayLocked       = "The accepted tools are in the lock file. To accept these, run bot mcp pins accept, commit the file and restart the bot. The digests to commit:"
	sayTooLong      = "The difference is too long for a message, so it can't be accepted here. Run bot mcp pins to read it, and bot mcp pins accept."
	sayAcceptTitle  = "Accept these tools?"
	sayAcceptText   = "The agent gets them as the server describes them now. Which calls need approval doesn't change. A server can do something other than its description says."
	sayBlockTitle   = "Keep these tools blocked?"
	sayBlockText    = "The agent can't use them as they are now. If the server changes them again, the owners are asked again."
	sayReverted     = "The server lists what was accepted again, so there is nothing to decide."
	sayAnOperator   = "an operator"
	saySpokenAccept = "Accept the changed tools of "
	saySpokenBlock  = "Keep the changed tools of %s blocked"
	sayUnusable     = "This tool can't be used, whatever is decided: "

	toldNotOwner = "Only the owners of this agent can decide this. Nothing changed."
	toldAccepted = "Already accepted by %s (%s). Nothing changed."
	toldBlocked  = "Already kept blocked by %s (%s). Nothing changed."
	toldStale    = "The server has changed its tools since this card was shown. Nothing changed. The card shows the new difference soon."
	toldLocked   = "The accepted tools are in the lock file, so they can't be accepted here. Nothing changed."
	toldMisfit   = "The configuration or the policy doesn't fit these tools, so the bot wouldn't start with them. Nothing changed. The bot's log says why."
	toldGone     = "This card is no longer in use. Nothing changed."
	toldBusy     = "Someone else is deciding this right now. Nothing changed. Try again."
)
