package verdict

// Superseded is the outcome of a call that a newer message ended.
const Superseded = "Superseded"

const (
	sayApprovedToo   = "Also approved by "
	sayExpiredAlone  = ": it wasn't denied, but the time to approve it ran out. It won't run."
	sayMoreQuorums   = "More approvals are needed: the policy names "
	sayNeverMet      = ", which can never be met"
	sayNoApprovers   = "Nobody can approve this: the policy names no approvers."
	sayNoPlace       = ", which doesn't count toward what is missing."
	sayNobodyCan     = "nobody who can approve, so it can't be approved"
	saySuperseded    = " sent a newer message before it was decided. It won't run."
	sayUnknownStatus = "This version doesn't know its status."
)

// Calls in doubt.
const (
	sayApprovedBy     = ", approved by "
	saySays           = ", says "
	sayPersonsWords   = ". The agent reads that as a person's words."
	sayDoubtExpired   = ": nobody decided in time. It won't run again, and whether it took effect isn't known."
	sayDoubtWithdrawn = ". It won't run again, and whether it took effect isn't known."
)
