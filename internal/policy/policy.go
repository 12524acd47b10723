package policy

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// DefaultWithin is the deadline of an ask that names none.
const DefaultWithin = 24 * time.Hour

// MaxWithin is the longest deadline that is accepted. A longer one is taken for
// a typing error.
const MaxWithin = 90 * 24 * time.Hour

// nameDefault is what the ask of calls is called that no rule names.
const nameDefault = "default"

// A Policy rules by one file, or by one directory of them. It is immutable and
// safe for concurrent use.
type Policy struct {
	version string
	content [sha256.Size]byte
	options Options
	names   *names
	zone    *time.Location // its midnight begins what conditions call today
	shadow  bool           // nothing of the file is enforced but its default
	rules   []*rule        // of the file, then of the settings
	own     int            // so many are of the file

	fallback    *ask
	defaultName string
	asks        []*ask             // that are enforced
	wholeAsks   []*ask             // that would be if the file were
	strictest   []approvals.Quorum // of the asks, those that every call has

	warnings []string

	tools []*tool
	plans map[[2]string]*plan
}

// Rule implements [approvals.Policy]. It never returns an error: what cannot be
// judged asks with every quorum of the file, for the requester and the channel
// of the call.
func (p *Policy) Rule(ctx context.Context, q approvals.Proposal) (approvals.Ruling, error) {
	return p.rule(p.facts(ctx, q)), nil
}

func (p *Policy) facts(ctx context.Context, q approvals.Proposal) *facts {
	return &facts{p: p, q: q, ctx: ctx, directory: p.options.Directory, ledger: p.options.Ledger}
}

// CountsToday reports whether a condition counts the calls of a day, so that the
// caller has to keep the [Ledger].
func (p *Policy) CountsToday() bool { return p.names.today }

// Midnight is when the day of a moment began in the zone of the policy.
func (p *Policy) Midnight(at time.Time) time.Time { return clockOf(at.In(p.zone), 0, p.zone) }

// Stated returns what a tool states about how bad its calls are.
func (p *Policy) Stated(agent, tool string) approvals.Severity {
	return p.plan(agent, tool).hints.severity
}

// Options returns what the policy was read against.
func (p *Policy) Options() Options { return p.options }

// Version is the beginning of the SHA-256 over the files, 8 hex digits. With it
// every ruling names the rules that made it.
func (p *Policy) Version() string { return p.version }

// Rules returns the names of the rules in the order of the file.
func (p *Policy) Rules() []string {
	var all []string
	for _, r := range p.rules[:p.own] {
		all = append(all, r.name)
	}
	return all
}

// Warnings are what the file permits and its author may not have meant, each with
// its place. The policy is in force with them.
func (p *Policy) Warnings() []string { return slices.Clone(p.warnings) }

// Named returns the people, groups and channels that the file names, each with
// the place (file:line:column) where its id is written. A [Roster] should hold
// them.
func (p *Policy) Named() (people map[approvals.UserID]string, groups map[approvals.GroupID]string) {
	people, groups = map[approvals.UserID]string{}, map[approvals.GroupID]string{}
	for id, at := range p.names.userAt {
		people[id] = at.String()
	}
	for id, at := range p.names.groupAt {
		groups[id] = at.String()
	}
	return people, groups
}

// settings are the rules behind those of the file.
func (p *Policy) settings() []*rule { return p.rules[p.own:] }

// short is a rule's name without the version of its policy.
func short(full string) string {
	name, _, _ := strings.Cut(full, "@")
	return name
}
