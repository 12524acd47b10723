package approvals

import (
	"slices"
	"time"
)

// A Requirement is what a call needs before it may run. It is copied into the
// batch when that opens, so that a later edit of the policy does not change
// what people approved.
//
// The zero Requirement is never met: it has no quorum.
type Requirement struct {
	Quorums  []Quorum
	Deny     int      // so many denials settle the call; 0 counts as 1
	Vetoes   []Quorum // any one of them, met by denials, settles the call; its people may deny
	Deadline time.Time
	Ladder   []Rung // what happens while nobody decides, in the order of time

	// Separation keeps those who asked for a call from approving it: the requester
	// never counts, and no approval by one of the participants of the [Batch] does.
	// A participant may still deny.
	Separation bool
	// ParticipantsMaySign narrows Separation to the requester. It is false unless
	// the rule says so: with it, someone can write what the model is to do, have
	// another person trigger the run, and approve the call alone.
	ParticipantsMaySign bool

	// EditorMaySign lets the people who amended the arguments approve them. It is
	// false unless the rule says so: then others must approve what they wrote.
	EditorMaySign bool
	// Delegation lets someone approve in the place of a person who is away and
	// named them, see [Absence]. It is false unless the rule says so.
	Delegation bool
	// Direct is who is asked by a direct message too.
	Direct DirectMessages
	// ReasonNeeded refuses an approval that says no reason.
	ReasonNeeded bool
	// ClaimWithin is how long the decision on a call that is executed elsewhere
	// waits for its caller, once every call of the batch is decided. 0 is
	// [DefaultClaimWithin]. This program executes its own calls at once.
	ClaimWithin time.Duration
}

// DirectMessages says which of those who can help with a call are asked by a direct
// message, in addition to the conversation in which the call was asked for.
type DirectMessages string

// Whom direct messages ask.
const (
	DirectOutside  DirectMessages = ""         // those who are not in the conversation
	DirectEveryone DirectMessages = "everyone" // those who are in it as well
	DirectNobody   DirectMessages = "nobody"
)

// Wider returns which of the two asks more people.
func (d DirectMessages) Wider(other DirectMessages) DirectMessages {
	switch {
	case d == DirectEveryone, other == DirectEveryone:
		return DirectEveryone
	case d == DirectNobody:
		return other
	}
	return d
}

// A Quorum is met by Need different people from From. Need below 1 is never
// met.
//
// A quorum with a Choice is needed only if its Option is taken: of all the
// options of one choice, the quorums of one must be met. Choice 0 is needed
// always. Stage orders who is asked, lowest first: the quorums of a later stage
// are asked when those before are met, and an early approval counts then.
type Quorum struct {
	Name   string
	Need   int
	From   From
	Stage  int
	Choice int
	Option int
}

// A Rung is one step that time takes while a call is open.
type Rung struct {
	At   time.Time
	Kind RungKind

	// Of an escalation: the quorum that it widens, whom it adds, and where the
	// card is shown from now on too. Each may be empty, not both.
	Quorum  string
	Add     From
	Channel string
}

// RungKind says what a [Rung] does.
type RungKind string

// The kinds of rungs.
const (
	Remind   RungKind = "remind"   // those who still can make a difference are told
	Escalate RungKind = "escalate" // more people may approve, or it is shown in another channel
)

// From is who may fill a place in a quorum: the people named, and those who are
// in one of the groups when they decide. A group is anything with members that
// the adapter can look up: a user group, a channel.
type From struct {
	Users  []UserID  `json:"users,omitempty"`
	Groups []GroupID `json:"groups,omitempty"`
}

// Empty reports whether it names nobody.
func (f From) Empty() bool { return len(f.Users)+len(f.Groups) == 0 }

// Admits reports whether p may fill a place. An empty From admits nobody, and
// empty names and groups match nobody.
func (f From) Admits(p Principal) bool {
	if p.User == "" {
		return false
	}
	if slices.Contains(f.Users, p.User) {
		return true
	}
	return slices.ContainsFunc(f.Groups, func(g GroupID) bool {
		return g != "" && slices.Contains(p.Groups, g)
	})
}
