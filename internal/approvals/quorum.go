package approvals

import "time"

// A Requirement is what a call needs before it may run. It is copied into the
// batch when that opens, so that a later edit of the policy does not change
// what people signed.
//
// The zero Requirement is never met: nobody is in no quorum.
type Requirement struct {
	Quorums    []Quorum
	Deny       int  // so many denials settle the call; 0 counts as 1
	Separation bool // the requester never counts
	Deadline   time.Time
}

// A Quorum is met by Need different people from From. Need below 1 is never
// met.
type Quorum struct {
	Name string
	Need int
	From From
}

// From is who may fill a place in a quorum: the people named, and whoever is
// in one of the groups when they decide.
type From struct {
	Users  []UserID
	Groups []GroupID
}
