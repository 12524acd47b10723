package state

import (
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

type storedRequirement struct {
	Quorums       []storedQuorum `json:"quorums,omitempty"`
	Deny          int            `json:"deny,omitempty"`
	Vetoes        []storedQuorum `json:"vetoes,omitempty"`
	Separation    bool           `json:"separation,omitempty"`
	EditorMaySign bool           `json:"editor_may_sign,omitempty"`
	Delegation    bool           `json:"delegation,omitempty"`
	ReasonNeeded  bool           `json:"reason_needed,omitempty"`
	Direct        bool           `json:"direct,omitempty"` // everyone: older documents have only this
	Deadline      time.Time      `json:"deadline,omitzero"`
	Ladder        []storedRung   `json:"ladder,omitempty"`

	ParticipantsMaySign bool                     `json:"participants_may_sign,omitempty"`
	DirectTo            approvals.DirectMessages `json:"direct_to,omitempty"` // if not everyone
	ClaimWithin         time.Duration            `json:"claim_within_ns,omitempty"`
}

type storedQuorum struct {
	Name   string              `json:"name,omitempty"`
	Need   int                 `json:"need"`
	Users  []approvals.UserID  `json:"users,omitempty"`
	Groups []approvals.GroupID `json:"groups,omitempty"`
	Stage  int                 `json:"stage,omitempty"`
	Choice int                 `json:"choice,omitempty"`
	Option int                 `json:"option,omitempty"`
}

type storedRung struct {
	At      time.Time           `json:"at,omitzero"`
	Kind    approvals.RungKind  `json:"kind"`
	Quorum  string              `json:"quorum,omitempty"`
	Users   []approvals.UserID  `json:"users,omitempty"`
	Groups  []approvals.GroupID `json:"groups,omitempty"`
	Channel string              `json:"channel,omitempty"`
}

func storeRequirement(r approvals.Requirement) storedRequirement {
	out := storedRequirement{
		Quorums: storeQuorums(r.Quorums), Deny: r.Deny, Vetoes: storeQuorums(r.Vetoes), Separation: r.Separation,
		ParticipantsMaySign: r.ParticipantsMaySign, EditorMaySign: r.EditorMaySign, Delegation: r.Delegation, ReasonNeeded: r.ReasonNeeded,
		Direct: r.Direct == approvals.DirectEveryone, Deadline: r.Deadline.UTC(), ClaimWithin: r.ClaimWithin,
	}
	if !out.Direct {
		out.DirectTo = r.Direct
	}
	for _, g := range r.Ladder {
		out.Ladder = append(out.Ladder, storedRung{g.At.UTC(), g.Kind, g.Quorum, g.Add.Users, g.Add.Groups, g.Channel})
	}
	return out
}

func storeQuorums(quorums []approvals.Quorum) []storedQuorum {
	var out []storedQuorum
	for _, q := range quorums {
		out = append(out, storedQuorum{q.Name, q.Need, q.From.Users, q.From.Groups, q.Stage, q.Choice, q.Option})
	}
	return out
}

func requirement(s storedRequirement) approvals.Requirement {
	out := approvals.Requirement{
		Quorums: quorums(s.Quorums), Deny: s.Deny, Vetoes: quorums(s.Vetoes), Separation: s.Separation,
		ParticipantsMaySign: s.ParticipantsMaySign, EditorMaySign: s.EditorMaySign, Delegation: s.Delegation, ReasonNeeded: s.ReasonNeeded,
		Direct: s.DirectTo, Deadline: s.Deadline, ClaimWithin: s.ClaimWithin,
	}
	if s.Direct {
		out.Direct = approvals.DirectEveryone
	}
	for _, g := range s.Ladder {
		out.Ladder = append(out.Ladder, approvals.Rung{
			At: g.At, Kind: g.Kind, Quorum: g.Quorum, Add: approvals.From{Users: g.Users, Groups: g.Groups}, Channel: g.Channel,
		})
	}
	return out
}

func quorums(stored []storedQuorum) []approvals.Quorum {
	var out []approvals.Quorum
	for _, q := range stored {
		out = append(out, approvals.Quorum{
			Name: q.Name, Need: q.Need, From: approvals.From{Users: q.Users, Groups: q.Groups},
			Stage: q.Stage, Choice: q.Choice, Option: q.Option,
		})
	}
	return out
}
