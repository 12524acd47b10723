package verdict

// Superseded is the outcome of a call that a newer message ended.
const Superseded = "Superseded"

const (
	sayExpiredAlone  = ": nobody denied it, but the time to approve it ran out. It won't run."
	sayMoreQuorums   = "More approvals are needed: the policy names "
	sayNeverMet      = ", which can never be met"
	sayNoApprovers   = "Nobody can approve this: the policy names no approvers."
	sayNobodyCan     = "nobody who can approve, so it can't be approved"
	saySuperseded    = " sent a newer message before it was decided. It won't run."
	sayUnknownStatus = "This version doesn't know its status."
)
