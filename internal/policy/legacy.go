package policy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// File is a policy by tool, as the first releases wrote it. [Load] reads what
// takes its place.
type File struct {
	Default Rule            `yaml:"default"`
	Tools   map[string]Rule `yaml:"tools"`
}

// Rule is what holds for a call. A tool's rule stands alone: what it leaves
// out is not taken from the default, except Within.
type Rule struct {
	Quorums          []Quorum      `yaml:"quorums"`
	Deny             int           `yaml:"deny"` // so many denials settle a call; 1 if left out
	RequesterMaySign bool          `yaml:"requester_may_sign"`
	Within           time.Duration `yaml:"within"`
	Why              string        `yaml:"why"`    // read by the approvers
	Refuse           string        `yaml:"refuse"` // why the call never runs; read by the model
}

// Quorum is how many of whom.
type Quorum struct {
	Name string `yaml:"name"`
	Need int    `yaml:"need"`
	From From   `yaml:"from"`
}

// From names people and user groups by their ids.
type From struct {
	Users  []approvals.UserID  `yaml:"users"`
	Groups []approvals.GroupID `yaml:"groups"`
}

// byTool rules by a [File]. It is immutable and safe for concurrent use.
type byTool struct {
	fallback Rule
	tools    map[string]Rule
	all      []approvals.Quorum // every quorum of the file, each once
	shortest time.Duration
}

// New checks the file and returns its policy. All problems are reported at
// once, each with the place in the file where it is.
func New(f File) (approvals.Policy, error) {
	p := &byTool{fallback: f.Default, tools: maps.Clone(f.Tools), shortest: f.Default.within()}
	problems := []error{check("default", f.Default)}
	if f.Default.Refuse != "" {
		problems = append(problems, errors.New("default.refuse: a policy that refuses every signature is a mistake; refuse tools by name"))
	}
	p.add(f.Default)
	for _, name := range slices.Sorted(maps.Keys(f.Tools)) {
		rule := f.Tools[name]
		problems = append(problems, check("tools."+name, rule))
		if rule.Within == 0 {
			rule.Within = f.Default.Within
			p.tools[name] = rule
		}
		p.add(rule)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return p, nil
}

// Rule implements [approvals.Policy].
func (p *byTool) Rule(_ context.Context, q approvals.Proposal) (approvals.Ruling, error) {
	rule, named := p.tools[q.Call.Name]
	switch {
	case named && rule.Refuse != "":
		return approvals.Refuse{Reason: rule.Refuse}, nil
	case named:
		return approvals.Ask{Requirement: rule.requirement(q.At), Why: rule.Why}, nil
	case q.Gate != approvals.GateNone:
		return approvals.Ask{Requirement: p.fallback.requirement(q.At), Why: p.fallback.Why}, nil
	default:
		return approvals.Permit{}, nil
	}
}

// Strictest implements [approvals.Policy]: every quorum of the file, the
// shortest deadline, and the requester does not sign.
func (p *byTool) Strictest(at time.Time) approvals.Requirement {
	return approvals.Requirement{Quorums: slices.Clone(p.all), Deny: 1, Separation: true, Deadline: at.Add(p.shortest)}
}

func (p *byTool) add(r Rule) {
	if r.Refuse != "" {
		return
	}
	p.shortest = min(p.shortest, r.within())
	for _, q := range r.requirement(time.Time{}).Quorums {
		same := func(o approvals.Quorum) bool {
			return o.Need == q.Need && slices.Equal(o.From.Users, q.From.Users) && slices.Equal(o.From.Groups, q.From.Groups)
		}
		if !slices.ContainsFunc(p.all, same) {
			p.all = append(p.all, q)
		}
	}
}

func (r Rule) within() time.Duration {
	if r.Within == 0 {
		return DefaultWithin
	}
	return r.Within
}

func (r Rule) requirement(at time.Time) approvals.Requirement {
	req := approvals.Requirement{Deny: max(r.Deny, 1), Separation: !r.RequesterMaySign, Deadline: at.Add(r.within())}
	for _, q := range r.Quorums {
		req.Quorums = append(req.Quorums, approvals.Quorum{
			Name: q.Name, Need: q.Need,
			From: approvals.From{Users: slices.Clone(q.From.Users), Groups: slices.Clone(q.From.Groups)},
		})
	}
	return req
}
