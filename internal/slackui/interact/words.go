package interact

// The words that answer what a person presses, sends or writes. Refusals that any
// surface can give are those of package respond; the words of a card are those of
// package card.

// Buttons, shortcuts and forms that no longer work.
const (
	oldButton       = "This button is from another version of Countersign and no longer works. Nothing changed. Open the request again with `/countersign list`."
	oldShortcut     = "This shortcut is from another version of Countersign and no longer works. Nothing changed."
	oldForm         = "This form is from another version of Countersign. Nothing changed. Open the request again with `/countersign list`."
	oldEditForm     = "This form is from another version of Countersign or of the tool. Nothing changed. Press Edit on the card to open it again."
	notSupported    = "This version of Countersign doesn't support that. Nothing changed."
	nextUnknown     = "Countersign couldn't look up what waits for you. Press the button again in a moment."
	reviewNotLoaded = "Countersign couldn't load this. Close it, and open it again in a moment."
	lostHead        = "Countersign no longer has this request"
	lostRest        = ". It ended long ago and was removed, or its record is lost, so nothing can be decided here. If you still need it, ask the agent again."
)

// Approving and denying.
const (
	approveTitle     = "Approve this call"
	approve          = "Approve"
	denyTitle        = "Deny this call"
	deny             = "Deny"
	cancel           = "Cancel"
	whyNot           = "Why not?"
	whyNotHint       = "The agent and everyone who sees the card will read it."
	reasonBars       = " If you give a reason, you can't approve what the agent does next in this thread, unless the policy allows it."
	wordsBar         = " If you write something, you can't approve what the agent does next in this thread, unless the policy allows it."
	whyApprove       = "Why do you approve it?"
	whyApproveHint   = "Everyone who sees the card will read it."
	exactlyAbove     = "You approve exactly the arguments above."
	exactlyOnPages   = "You approve exactly the arguments on these "
	readAllFirst     = "Read all pages first: Approve is on the last one."
	notAllRead       = "Nothing is approved yet: you haven't seen all pages of this call."
	readOn           = "Read on"
	backToArguments  = "Back to the arguments"
	pageOfArguments  = "%s: page %d of the arguments"
	unreasoned       = "The agent learns that it was denied, and can't be given a reason."
	notAllShown      = "Not all arguments are shown here."
	needsReason      = "Enter a reason."
	notDecidedYet    = "Not decided yet: Slack or the store didn't answer in time. Press the button below again."
	allDecided       = "All of these are decided. Nothing here is waiting."
	approvedTogether = "Approved %s."
	approvedNone     = "Nothing was approved."
	approvedNot      = "%s\nCall %s wasn't approved: %s"
	approveAlone     = "it has to be approved by itself"
	stopByMessage    = " To stop it, send a new message in the thread."
	stopByMention    = " To stop it, mention the agent in the thread in a new message."
)

// Calls in doubt.
const (
	againTitle        = "Run this call again"
	runAgain          = "Run it again"
	readAllFirstAgain = "Read all pages first: Run it again is on the last one."
	mayHaveHappened   = "If it happened the first time, it happens twice: check that first. "
	happenedTitle     = "This call happened"
	happened          = "It happened"
	whatHappened      = "What do you know about its result?"
	whatHappenedHint  = "The agent and everyone who sees the card will read it, as your words."
	giveUpTitle       = "Give up on this call"
	giveUp            = "Give up"
	whyGiveUp         = "Why?"
	whyGiveUpHint     = "The call won't run again. The agent and everyone who sees the card will read it."
)

// Editing.
const (
	nothingToSave       = "There is nothing to save yet. Change something, or cancel."
	notSavedYet         = "Not saved yet: Slack or the store didn't answer in time. Press Save changes again."
	toolRefuses         = "The tool doesn't accept these arguments. Nothing changed. Press Edit on the card to try others."
	policyRefuses       = "The policy refuses these arguments, so nobody can approve them."
	policySays          = " It says: "
	edited              = "The arguments were changed."
	editedRest          = " The card shows the new ones in a moment. The call is now:"
	editedTitle         = "Arguments changed"
	stillNeeded         = "Still needed:"
	editApproved        = "Your approval of the new arguments counts."
	editApprovalUnknown = "Countersign couldn't tell whether your approval counted. Check the card, and approve there if it didn't."
	editApproveOnCard   = "The new arguments aren't approved yet. Approve them on the card."
	editApproveHere     = "The new arguments aren't approved yet, because the card doesn't show all of them. Press Approve to read them all and approve there."
	approveLater        = "Approve…"
	approveLaterSpoken  = "Approve the new arguments, after reading all of them"
)

// The shortcut on a message.
const (
	nothingHere  = "Nothing waits for approval in this thread. To see all that waits for you, open the Home tab of this app or use `/countersign list`."
	nothingFound = "Countersign found no request in this thread. If there is a card here, use its buttons, or this shortcut on the card itself. To see all that waits for you, open the Home tab of this app or use `/countersign list`."
)

// Mentions and replies.
const (
	mentionOnlyFiles = "Nothing was started, because only the text of a message is read. Write what you need in words."
	mentionEmpty     = "Nothing was started. Write what you need in the same message that mentions me."
	mentionNoDirect  = "No agent answers direct messages, so nothing was started. Mention me in a channel that has an agent. Your Countersign admin knows which ones do."
	mentionElsewhere = "No agent takes messages here, so nothing was started. The agents that ask for approval in Slack run elsewhere."
	mentionNoAgent   = "No agent works in this channel, so nothing was started. Mention me in another channel, or ask your Countersign admin."
	mentionTooMany   = "%s requests already wait in this thread, so yours wasn't added. Ask again when some are done, or start a new thread."
	mentionEnded     = "This thread can't continue, so nothing was started. To ask again, start a new thread: mention me in a new message in the channel."
	notStarted       = "Not started: "
	notStartedBusy   = notStarted + busyThread
	busyThread       = "this agent takes no new messages while calls in this thread wait for a decision. "
	writeAgain       = " Write again when everything is decided."
)
