package policy

import (
	"context"
	"errors"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// DefaultWithin is the deadline of an ask that names none.
const DefaultWithin = 24 * time.Hour

// MaxWithin is the longest deadline that is accepted: a longer one is a slip.
const MaxWithin = 90 * 24 * time.Hour

// A Policy rules by one file. It is immutable and safe for concurrent use.
type Policy struct {
	version string
}

// Load reads a policy from a file, or from all *.yaml of a directory in the
// order of their names. All problems are reported at once, joined, each with
// file, line and column.
func Load(path string, o Options) (*Policy, error) {
	return nil, errNotRead
}

// Parse reads a policy from memory. Name stands for the file in messages.
func Parse(name string, src []byte, o Options) (*Policy, error) {
	return nil, errNotRead
}

var errNotRead = errors.New("policies are not read yet")

// Rule implements [approvals.Policy]. It never returns an error: what cannot be
// judged asks with [Policy.Strictest].
func (p *Policy) Rule(ctx context.Context, q approvals.Proposal) (approvals.Ruling, error) {
	return approvals.Ask{Requirement: p.Strictest(q.At)}, nil
}

// Strictest implements [approvals.Policy]: every quorum of the file whose
// people do not depend on the call, the shortest deadline, and neither the
// requester nor an editor nor a delegate signs.
func (p *Policy) Strictest(at time.Time) approvals.Requirement {
	return approvals.Requirement{}
}

// Version is the beginning of the SHA-256 over the files, 8 hex digits.
func (p *Policy) Version() string { return p.version }

// Rules returns the names of the rules in the order of the file.
func (p *Policy) Rules() []string { return nil }

// Named returns the people, groups and channels that the file names, each with
// the place (file:line:column) where its id is written. What signs, and what a
// [Roster] should hold, is among them.
func (p *Policy) Named() (people map[approvals.UserID]string, groups map[approvals.GroupID]string) {
	return nil, nil
}
