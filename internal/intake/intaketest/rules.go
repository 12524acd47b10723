// Package intaketest has a policy for the tests of the doors that ask package intake.
package intaketest

import (
	"context"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// Rules is a policy with a ruling for each tool. A call of any other tool needs the
// approval of bob or dora. It is safe for concurrent use.
type Rules struct {
	mu sync.Mutex
	by map[string]approvals.Ruling
}

// NewRules returns a policy with these rulings, by the names of tools.
func NewRules(by map[string]approvals.Ruling) *Rules { return &Rules{by: by} }

// Rule implements [approvals.Policy].
func (r *Rules) Rule(_ context.Context, p approvals.Proposal) (approvals.Ruling, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ruling, ok := r.by[p.Call.Name]; ok {
		return ruling, nil
	}
	return approvals.Ask{Requirement: Needs(1), Why: "it writes", Rule: "writes@1"}, nil
}

// Strictest implements [approvals.Policy].
func (*Rules) Strictest(time.Time) approvals.Requirement { return Needs(1) }

// Set replaces the ruling for a tool.
func (r *Rules) Set(tool string, ruling approvals.Ruling) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by[tool] = ruling
}

// Needs is a requirement of n approvals from bob and dora.
func Needs(n int) approvals.Requirement {
	return approvals.Requirement{Separation: true, Quorums: []approvals.Quorum{{Need: n, From: approvals.From{Users: []approvals.UserID{"bob", "dora"}}}}}
}
