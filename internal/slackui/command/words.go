package command

// The words of the slash command, by subcommand. Each %s stands for a name, a time
// or a number, which the code puts in; the names of commands stand in backticks.

// Help.
const (
	helpAll = "`%[1]s list` shows what waits for you and what is open in this channel.\n" +
		"`%[1]s approve FILTER` and `%[1]s deny FILTER REASON` decide many calls at once, from a list that you read first.\n" +
		"`%[1]s status` shows whether Countersign is working and how much waits.\n" +
		"`%[1]s away until friday, ask @ann` says that you are away and names a delegate; `%[1]s back` ends it.\n" +
		"`%[1]s help approve` explains one of these.\n" +
		"To ask an agent for something, mention me in a message. To decide one call, use the buttons on its card."
	helpList = "`%[1]s list` shows the open calls that you can see, the oldest first: what waits for you, what you asked for, and what is shown in this channel.\n" +
		"`%[1]s list mine` shows only the calls that need your approval, `%[1]s list channel` only those shown in this channel.\n" +
		"Each row has a short id, such as `a1b2c3`: `%[1]s approve a1b2c3` selects that call."
	helpApprove = "`%[1]s approve FILTER` opens a list of the calls that match, with what each would do. Nothing is approved until you press the button below it, and then only what is listed: calls that came later, or whose arguments changed, aren't included.\n" +
		"Calls that may be irreversible, have an unknown tool, were edited, or have hidden values have a checkbox each: select those you want. Calls that a list can't show in full are left out: review and approve each on its own.\n"
	helpApproveExample = "For example: `%[1]s approve tool:read_* older:2h`, or `%[1]s approve channel from:@ann`."
	helpDeny           = "`%[1]s deny FILTER REASON` opens a list of the calls that match, with the reason, which the agents and everyone who sees the cards will read. Nothing is denied until you press the button below it.\n"
	helpDenyExample    = "For example: `%[1]s deny thread:LINK the plan has changed`. If the reason starts like a filter, put it in quotes."
	helpStatus         = "`%[1]s status` shows whether Countersign reaches its store and Slack, how many requests wait for you and in this channel, and since when."
	helpAway           = "`%[1]s away until friday, ask @ann` says until when you are away and who your delegate is. You can also write `until tomorrow 3pm`, `until 2026-12-24 15:00` or `for 3 days`.\n" +
		"`%[1]s away` alone shows your absence."
	helpBack       = "`%[1]s back` ends your absence."
	noHelpFor      = "There is no help for "
	helpMore       = "`%s help %s` explains more."
	noCommand      = "There is no command "
	noCommandHelp  = "There is no such command. %s"
	takesNothing   = "`%s` takes nothing after it. Nothing changed.\n%s"
	nothingChanged = ". Nothing changed."
)

// list.
const (
	listUsage       = "Send `%s list`, followed by `mine`, `all`, `channel` or nothing."
	listUnknown     = "There is no list "
	listNothingMine = "Nothing waits for you."
	listNothingAll  = "Nothing waits for approval in this channel, and nothing waits for you elsewhere."
	listNothingHere = "Nothing waits for approval in this channel."
	listMine        = "waiting for you"
	listHere        = "waiting in this channel"
	listUnsure      = "Slack didn't say which groups you are in, so calls that wait for your groups may be missing. Try again in a moment."
	listNoMore      = "There is nothing more."
	listRange       = "Calls %d to %d of those %s, the oldest first"
	listOldest      = ", the oldest first"
	listNone        = "No call is "
	listAmong       = " among the "
	listChecked     = " checked so far, but there are more"
	listMore        = "Show the next"
	listMoreSpoken  = "Show the next calls "
	listWaits       = "waits for you"
	listOpen        = "Open the card"
)

// approve and deny.
const (
	sayWhich       = "Say which calls. "
	sayWhichAndWhy = "Say which calls, and why. "
	withoutChange  = "%sNothing changed.\n%s"
	filterUnclear  = "It isn't clear what "
	noFilter       = " isn't a filter. Nothing changed."
	filterHelp     = "Filters: an id such as `a1b2c3` from the list, `tool:delete_*`, `agent:ops`, `from:@ann`, `thread:LINK`, `older:2h`, `newer:1d`, `channel` for what is shown in this channel, `all`. A call must match every kind of filter, and any one of the same kind."
	filterNoValue  = "Add a value after the colon."
	filterNoPerson = "Mention the person with an @."
	filterNoLink   = "That isn't a link to a message. Use Copy link on any message in the thread."
	filterNoAge    = "Write an age as a number with m, h, d or w, such as `2h`."
	filterUnknown  = "There is no such filter."
	formTooLate    = "Slack didn't open the form in time. Nothing changed. Send the command again."
)

// status.
const (
	statusWell         = "*Countersign is working.*"
	statusProblem      = "*Countersign has a problem.* Tell your Countersign admin."
	statusNoStore      = "The store can't be used now. Nothing can be decided until it can."
	statusStopped      = "This process stopped updating cards and runs. They wait until another process takes over."
	statusNoSlack      = "The connection to Slack is down."
	statusNoCalls      = "No call to Slack succeeds, so cards don't appear or change. Each is tried again until one does."
	statusUnchecked    = "Countersign couldn't check for failed work."
	statusParked       = "%s of work failed repeatedly and stopped. Your Countersign admin can see more with `bot admin parked`."
	statusPolicy       = "Policy version: `%s`."
	statusMine         = "Waiting for you: %s%s."
	statusMineSince    = "Waiting for you: %s%s, the oldest since %s. `%s list mine` shows them."
	statusHere         = "Waiting in this channel: %s."
	statusUnsure       = "Slack couldn't tell who is in some groups, so there may be more."
	statusUnknown      = "Countersign couldn't check what waits for you. %s"
	statusUnknownStore = "Countersign couldn't check what waits for you, because the store can't be used now. Try again in a moment."
)

// away, of a person.
const (
	awayExamples    = "For example: `%s away until friday`, `until tomorrow 3pm`, `until 2026-12-24 15:00`, `for 3 days` or `for 2h`. Add `, ask @ann` to name a delegate, who is asked while you are away."
	awayHow         = "To change this, set it again. To end it, write `%s back`."
	awaySayWhen     = "Say until when you are away."
	awayUnclear     = "It isn't clear when that is. Nothing changed. %s"
	awayUnclearTime = "It isn't clear when "
	awayPast        = "That time has passed: it means until %s."
	awayTooLong     = "That is too long: it means until %s, and an absence lasts %s days at most. Choose an earlier day."
	awayOnlySelf    = "You can only set your own absence. To name a delegate, write `, ask @ann` at the end."
	notSaved        = "Countersign couldn't save this. Nothing changed. Try again in a moment."
	awaySet         = "You are away until %s. %s"
	awayNot         = "You aren't away. %s"
	awayNow         = "You are away until %s. %s\n%s"
	wasNotAway      = "You weren't away. Nothing changed."
	welcomeBack     = "Welcome back. Requests come to you again, and nobody approves for you."
)

// away, of a delegate.
const (
	oneDelegate         = "After `ask`, mention exactly one person with an @."
	delegateSelf        = "You can't delegate to yourself. Name someone else, or no one."
	delegateUnknown     = "Slack couldn't tell who %s is. Try again in a moment."
	delegateNobody      = "Slack doesn't know %s. Name someone else."
	delegateGuest       = "%s is a guest, and guests can't be delegates. Name a full member."
	delegateStranger    = "%s is from another organization and can't be a delegate. Name a full member of this workspace."
	delegateDeactivated = "The account of %s is deactivated. Name someone else."
	delegateBot         = "%s is a bot, and only people can be delegates. Name someone else."
	delegateCircle      = "%s will be away too, and their delegate leads back to you. Nothing changed. Name someone who will be there."
	noDelegate          = "You have no delegate."
	yourDelegate        = "%s is your delegate: they can approve for you where the policy allows delegates."
	delegateAwayToo     = "%s They are away too, until %s"
	delegateAwayAlone   = "%s, and have no delegate. You may want to name someone else."
	delegateAwayChain   = "%s, and their delegate is %s."
	delegateOf          = "%s\nYou are the delegate of %s until %s."
	delegateOfMore      = "%s\nYou are the delegate of %s more."
	notNotified         = "Countersign couldn't notify them. Please tell them yourself."
	tellDelegate        = "%s is away until %s and made you their delegate. Where the policy allows it, you are asked and can approve for them, and the card says so. If you can't, tell them: only they can change it."
	tellBack            = "%s is back, so you are no longer their delegate."
	tellChanged         = "%s changed their absence: you are no longer their delegate."
)
