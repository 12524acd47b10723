package approvals

import "time"

// A Principal is a person as they were when they acted. Groups are those of
// the groups that matter to the batch in which the person was found; GroupsAt
// is when that was looked up. The adapter that received the click resolves
// them, and refuses when it cannot.
type Principal struct {
	User     UserID    `json:"user"`
	Groups   []GroupID `json:"groups,omitempty"`
	GroupsAt time.Time `json:"groups_at,omitzero"`
	For      []Absent  `json:"for,omitempty"` // people who are away and in whose place they may approve
}

// An Absent is a person who is away, in whose place someone approves. Groups are
// those in which the absent person was found.
type Absent struct {
	User   UserID    `json:"user"`
	Groups []GroupID `json:"groups,omitempty"`
	Until  time.Time `json:"until,omitzero"`
	Via    []UserID  `json:"via,omitempty"` // who passed it on, on the way to the one who approves
}

// Verdict is what a person says about a call.
type Verdict string

// The verdicts. The zero value is none of them.
const (
	Approve Verdict = "approve"
	Deny    Verdict = "deny"

	// Those about a call in doubt, see [Doubt].
	RunAgain Verdict = "run_again"
	Happened Verdict = "happened"
	GiveUp   Verdict = "give_up"
)

// A Decision is one person's word on one call. Digest is of the arguments
// they saw.
type Decision struct {
	Call    ToolCallID `json:"call"`
	By      Principal  `json:"by"`
	Verdict Verdict    `json:"verdict"`
	Digest  Digest     `json:"digest"`
	Reason  string     `json:"reason,omitempty"`
	At      time.Time  `json:"at,omitzero"`
}
