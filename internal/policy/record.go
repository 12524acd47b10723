package policy

import (
	"encoding/json"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// Recorded is a proposal as one line of JSON, for [Replay].
type Recorded struct {
	Call      string           `json:"call,omitempty"`
	Tool      string           `json:"tool"`
	Args      json.RawMessage  `json:"args,omitempty"`
	Gate      approvals.Gate   `json:"gate,omitempty"`
	Agent     string           `json:"agent,omitempty"`
	Requester approvals.UserID `json:"requester,omitempty"`
	Channel   string           `json:"channel,omitempty"`
	SoFar     RecordedSoFar    `json:"so_far,omitzero"`
	Today     *RecordedToday   `json:"today,omitempty"` // if it was known
	Place     *RecordedPlace   `json:"place,omitempty"` // of a call of a remote agent
	At        time.Time        `json:"at"`
	Groups    *RecordedGroups  `json:"groups,omitempty"` // those of the requester, if they were known
}

// RecordedGroups are the groups in which the requester was.
type RecordedGroups []approvals.GroupID

// RecordedPlace is [approvals.Place] in JSON.
type RecordedPlace struct {
	Cwd        string `json:"cwd,omitempty"`
	Repository string `json:"repository,omitempty"`
	Branch     string `json:"branch,omitempty"`
	Server     string `json:"server,omitempty"`
}

// RecordedToday is what had gone ahead for the requester on the day of the call,
// by tool.
type RecordedToday struct {
	Executed map[string]int `json:"executed,omitempty"`
}

// RecordedSoFar is [approvals.SoFar] in JSON.
type RecordedSoFar struct {
	Steps    int            `json:"steps,omitempty"`
	Executed map[string]int `json:"executed,omitempty"`
	Failed   map[string]int `json:"failed,omitempty"`
	Denied   map[string]int `json:"denied,omitempty"`
}

func (r RecordedToday) counts() map[string]int {
	if r.Executed == nil {
		return map[string]int{} // nothing was executed, and that is known
	}
	return r.Executed
}

// Record returns the proposal as it is recorded.
func Record(q approvals.Proposal) Recorded {
	r := Recorded{
		Call: string(q.Call.ID), Tool: q.Call.Name, Args: q.Call.Args, Gate: q.Gate, Agent: q.Agent,
		Requester: q.Requester, Channel: q.Channel, SoFar: RecordedSoFar(q.SoFar), At: q.At,
	}
	if place := RecordedPlace(q.Place); place != (RecordedPlace{}) {
		r.Place = &place
	}
	return r
}

// Proposal returns what was recorded.
func (r Recorded) Proposal() approvals.Proposal {
	q := approvals.Proposal{
		Call: approvals.ToolCall{ID: approvals.ToolCallID(r.Call), Name: r.Tool, Args: r.Args}, Gate: r.Gate, Agent: r.Agent,
		Requester: r.Requester, Channel: r.Channel, SoFar: approvals.SoFar(r.SoFar), At: r.At,
	}
	if r.Place != nil {
		q.Place = approvals.Place(*r.Place)
	}
	return q
}
