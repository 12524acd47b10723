package approvals

// Superseded is the reason of a [Withdraw] by which a person who writes
// something new ends what still waits because of what they asked before.
const Superseded = "superseded by a newer message of the person who asked"

// Superseded reports whether the call was ended because the person who asked
// wrote something new.
func (a Approval) Superseded() bool {
	return a.Status == Withdrawn && a.Ending.Reason == Superseded
}

// Withdrawn reports whether the call was ended from outside, so that nobody gave its
// result.
func (c External) Withdrawn() bool {
	denied, ok := c.Result.(ToolDenied)
	return ok && (c.Ending.Reason != "" || denied.Message == UnansweredMessage)
}

// Superseded reports whether the result of the call is waited for no more
// because the person who asked wrote something new.
func (c External) Superseded() bool {
	_, denied := c.Result.(ToolDenied)
	return denied && c.Ending.Reason == Superseded
}
