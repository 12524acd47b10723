package reply

// The words of the replies of a run in its thread. What a model says is never
// among them.

// While a run waits or works.
const (
	sayQueued          = "Queued: this starts when the agent finishes its current work in this thread."
	sayQueuedBehind    = "Queued behind %s in this thread."
	sayContinuesThen   = " The agent continues then."
	sayAboutToStart    = " is about to start."
	statusAboutToStart = " is about to start"
	sayCardInThread    = " The card is in this thread. "
	sayOnList          = " A list of waiting requests shows it instead of a card."
	sayReviewSpoken    = "Review the request of this thread"
	sayContinuesLater  = "The agent continues when everything is decided."
	sayWaits           = "The agent waits for this decision."
	sayContinuesBoth   = "The agent continues when both calls are decided."
	sayContinuesAll    = "The agent continues when all "
	sayNewerMessage    = " Then a newer message arrived."
	sayRequestGone     = "The agent stopped for approval, but the request is gone. Ask again."
)

// What was written in this thread on the web.
const (
	sayWroteOnTheWeb = "%s wrote on the web. "
	sayOnTheWeb      = " wrote in this thread on the web:"
	sayOpenOnTheWeb  = "Open this thread on the web"
)

// When it has ended.
const (
	sayNothingToAdd    = " is done and has nothing to add."
	sayByModel         = "Written by the agent's model"
	sayTooLong         = "The answer is too long and was cut here. About "
	sayAskForRest      = " Ask the agent for the rest in smaller parts."
	sayResultBelow     = "The result is below."
	sayNotFinished     = "The agent couldn't finish."
	sayNotFinishedMark = "⚠ The agent couldn't finish. "
	sayNotFinishedWhy  = "The agent couldn't finish: "
	sayNoRetry         = "It won't retry on its own. "
	sayTryHere         = "To try again, mention the agent in this thread."
	sayTryElsewhere    = "This thread can't continue. To try again, mention the agent in a new one."
	sayNotRepeated     = "Nothing is repeated automatically, and this thread waits. Check what really happened, then ask your Countersign admin to end run "
	sayMustCheckMark   = "⚠ The agent stopped, and someone must check. "
	sayMustCheckWhy    = "The agent stopped, and someone must check: "
	sayEffectUnknown   = "Countersign can't tell whether a call took effect."
	sayRanBefore       = "Before that, approved calls were executed. Check them before you repeat anything:"
	sayTookEffect      = "took effect, a person says"
	sayMayHaveRun      = "may or may not have taken effect"
)

// When a newer message replaces what waited.
const (
	sayReplaced        = "A newer message replaces the request that was waiting."
	sayContinuesWithIt = " The agent continues with it below."
	saySuperseded      = " superseded and won't run"
	sayNotAgain        = " and won't run again"
	sayNoLongerWaits   = "The agent no longer waits for "
	sayCannotTell      = " elsewhere, and can't tell whether "
	sayUnlessRefused   = ", unless the policy now refuses "
)
