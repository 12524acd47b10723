package gateway

import (
	"fmt"

	"github.com/countersign/countersign/internal/approvals"
)

// What a client is told. A model reads it.
const (
	instructions = "Some calls wait until people have approved them. If a result says that a call is pending, " +
		"make the same call again with exactly the same arguments to keep waiting."
	goneWords  = "the caller stopped waiting"
	bugWords   = "something is wrong with Countersign; its log says more"
	drainWords = "the gateway is stopping; call again with the same arguments"
	emptyWords = "The tool gave no result."

	askedWords = "People are asked what to do. Call again with exactly the same arguments to hear what they say; nothing runs twice by that."

	changedWords = "The call ran and succeeded, so do not repeat it. It is given as an error only because some clients would hide the next sentence otherwise."

	tooLargeWords = "The call ran and succeeded. Its result is too large, or of a kind that cannot be passed on, so this is a description of it:"
)

func pendingWords(id approvals.RunID) string {
	return fmt.Sprintf("Pending: nobody has decided this call yet, and it was not run. Request %s. "+
		"Call again with exactly the same arguments to keep waiting.", id)
}

func runningWords(id approvals.RunID) string {
	return fmt.Sprintf("The call may run, and it has no result yet. Request %s. "+
		"Call again with exactly the same arguments to get its result; it is not run twice.", id)
}

func unfinishedWords(id approvals.RunID) string {
	return fmt.Sprintf("The call has no result. It changes nothing, so make it again. Request %s.", id)
}

func lostWords(id approvals.RunID) string {
	return fmt.Sprintf("The call may have run, and Countersign cannot say so now. Request %s. "+
		"The same call may run once more, so ask a person before you repeat it.", id)
}

func doubtWords(id approvals.RunID) string {
	return fmt.Sprintf("The call began, and it is not known whether it took effect, so it is not repeated. Request %s.", id)
}
