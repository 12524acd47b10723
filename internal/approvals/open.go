package approvals

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Open returns the batch of a run that deferred these calls, version 1, and
// the facts that follow. b says whose batch it is; its version and calls are
// not looked at. It is an error to open a batch without calls, with two calls
// of the same id, with an id or name that is empty, with arguments that
// [CheckArgs] refuses, with metadata that is not a JSON object, and to ask for
// what cannot be followed: separation from a requester who is not named, more
// than [MaxWays] ways, more than [MaxNamed] people and groups, a ladder out of order.
func Open(b Batch, approvals, calls []Deferral) (Batch, []Event, error) {
	if b.ID == "" || b.Run == "" {
		return Batch{}, nil, fmt.Errorf("%w: a batch needs an id and a run", ErrInvalid)
	}
	if len(approvals)+len(calls) == 0 {
		return Batch{}, nil, fmt.Errorf("%w: batch %s has no calls", ErrInvalid, b.ID)
	}
	b.Version, b.OpenedAt = 1, plain(b.OpenedAt)
	b.Approvals, b.Calls, b.SoFar = nil, nil, b.SoFar.clone()
	b.Participants = b.others(b.Participants)
	opened := Opened{
		Batch: b.ID, Run: b.Run, Agent: b.Agent, Requester: b.Requester, Participants: slices.Clone(b.Participants), At: b.OpenedAt,
	}
	var rules []string
	seen := make(map[ToolCallID]bool, len(approvals)+len(calls))
	for _, d := range approvals {
		if err := d.check(seen); err != nil {
			return Batch{}, nil, err
		}
		if err := b.checkRequirement(d.Ask.Requirement); err != nil {
			return Batch{}, nil, err
		}
		ref := d.Call.Ref(b.ID)
		opened.Approvals = append(opened.Approvals, ref)
		rules = append(rules, d.Ask.Rule)
		if !d.Doubt.Began.IsZero() {
			opened.Doubts = append(opened.Doubts, ref.ID)
		}
		if c := d.Ask.Checked; c.Check != "" {
			opened.Checked = append(opened.Checked, CheckedCall{ref.ID, c.Check, c.Answer})
		}
		b.Approvals = append(b.Approvals, Approval{
			Call:        ref,
			Proposed:    ref.Digest,
			Why:         d.Ask.Why,
			Rule:        d.Ask.Rule,
			Unjudged:    d.Ask.Unjudged,
			Checked:     d.Ask.Checked,
			Severity:    d.Severity.Worse(d.Ask.Severity),
			Gate:        d.Gate,
			GateReason:  d.GateReason,
			Preview:     d.Preview.clone(),
			Place:       d.Place,
			Hosted:      d.Hosted,
			Definition:  d.Definition,
			Metadata:    slices.Clone(d.Metadata),
			WriteOnly:   slices.Clone(d.WriteOnly),
			Summary:     cmp.Or(d.Ask.Summary, d.Summary),
			EditedBy:    slices.Clone(d.EditedBy),
			Doubt:       d.Doubt.plain(),
			Requirement: d.Ask.Requirement.clone(),
			Status:      Pending,
		})
	}
	if strings.Join(rules, "") != "" {
		opened.Rules = rules
	}
	if err := b.checkNamed(); err != nil {
		return Batch{}, nil, err
	}
	for _, d := range calls {
		if err := d.check(seen); err != nil {
			return Batch{}, nil, err
		}
		ref := d.Call.Ref(b.ID)
		opened.Calls = append(opened.Calls, ref)
		b.Calls = append(b.Calls, External{
			Call: ref, Metadata: slices.Clone(d.Metadata), WriteOnly: slices.Clone(d.WriteOnly), Summary: d.Summary, Place: d.Place,
		})
	}
	return b, []Event{opened}, nil
}

// others returns these people without the requester, each once.
func (b Batch) others(people []UserID) []UserID {
	var others []UserID
	for _, u := range people {
		if u != "" && u != b.Requester && !slices.Contains(others, u) {
			others = append(others, u)
		}
	}
	return others
}

func (s SoFar) clone() SoFar {
	s.Executed, s.Failed, s.Denied = maps.Clone(s.Executed), maps.Clone(s.Failed), maps.Clone(s.Denied)
	return s
}

// check refuses a deferral that could not be answered unambiguously later.
func (d Deferral) check(seen map[ToolCallID]bool) error {
	c := d.Call
	switch {
	case c.ID == "" || !utf8.ValidString(string(c.ID)):
		return fmt.Errorf("%w: a call of %q has no usable id", ErrInvalid, c.Name)
	case c.Name == "" || !utf8.ValidString(c.Name):
		return fmt.Errorf("%w: call %q names no tool", ErrInvalid, string(c.ID))
	case seen[c.ID]:
		return fmt.Errorf("%w: two calls have the id %q", ErrInvalid, string(c.ID))
	}
	seen[c.ID] = true
	if err := CheckArgs(c.Args); err != nil {
		return fmt.Errorf("call %q: %w", string(c.ID), err)
	}
	if err := checkMetadata(d.Metadata); err != nil {
		return fmt.Errorf("call %q: %w", string(c.ID), err)
	}
	return nil
}

// checkMetadata refuses what is neither nil nor one JSON object.
func checkMetadata(m json.RawMessage) error {
	if m == nil {
		return nil
	}
	if len(m) == 0 || checkObject(m, maxDepth) != nil {
		return fmt.Errorf("%w: metadata must be a JSON object", ErrInvalid)
	}
	return nil
}
