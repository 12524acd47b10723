package approvals

import (
	"cmp"
	"strings"
	"time"
)

// Limits are what whoever executes the calls of a batch cannot take back to
// their agent. The zero value is none: this program, which resumes its own runs,
// takes everything.
type Limits struct {
	NoEdits   bool // arguments that people changed: an [Amend] is [ErrNoEdits]
	NoReasons bool // why a call was denied; a surface asks for none
}

// A Place is where a call would run, in the words of whoever executes it. It is
// part of what people are shown, foreign text, and for those who may read the
// arguments. Two servers may have a tool of one name, so the server is in it.
type Place struct {
	Cwd        string // the working directory
	Repository string
	Branch     string
	Server     string // that the tool is of; empty for the agent's own
}

// DefaultClaimWithin is how long a decision waits for whoever executes the call
// elsewhere, if the requirement does not say.
const DefaultClaimWithin = 15 * time.Minute

// service is what the id of a requester begins with that is no person. No chat
// service has such ids.
const service = "service:"

// ServiceUser returns the requester that stands for an agent whose credential
// several people share. It is nobody: those people are the participants of the
// batch, and none of them may approve if the rule separates.
func ServiceUser(name string) UserID { return UserID(service + name) }

// Service returns the name of the agent that this requester stands for, if it is
// no person.
func (u UserID) Service() (name string, ok bool) { return strings.CutPrefix(string(u), service) }

// UsableUntil is when the decision on a call that is executed elsewhere can be
// claimed no more: so long after the last call of the batch is decided as its
// requirement says. It is zero while a call is open.
func (b Batch) UsableUntil(a Approval) time.Time {
	if !b.Settled() {
		return time.Time{}
	}
	var last time.Time
	for _, of := range b.Approvals {
		last = later(last, of.Ending.At)
	}
	for _, of := range b.Calls {
		last = later(last, of.Ending.At)
	}
	return last.Add(cmp.Or(a.Requirement.ClaimWithin, DefaultClaimWithin))
}
