package policy

import (
	"context"

	"github.com/countersign/countersign/internal/approvals"
)

// An Explanation is how a call was judged: every rule in order, and the ruling.
type Explanation struct {
	Agent    string
	Tool     string
	Steps    []Step
	Ruling   approvals.Ruling
	DecideBy string // the rule that decided, name@version
	names    map[string]string
}

// A Step is one rule and why it decided or did not.
type Step struct {
	Rule    string
	Kind    Kind
	Shadow  bool
	Outcome Outcome
	Why     string
}

// Kind says what a rule does with a call that it matches.
type Kind string

// The kinds of rules.
const (
	KindDeny  Kind = "deny"
	KindAllow Kind = "allow"
	KindAsk   Kind = "ask"
)

// Outcome says what became of a rule in judging a call.
type Outcome string

// The outcomes.
const (
	Decided   Outcome = "decided"     // it matched, and made the ruling
	Matched   Outcome = "matched"     // it matched, and another rule made the ruling
	Unmatched Outcome = "not matched" // see Why
	Broken    Outcome = "not judged"  // see Why
	Skipped   Outcome = "skipped"     // not looked at
)

// Explain judges a call and says why, without telling anybody of shadow rules.
func (p *Policy) Explain(ctx context.Context, q approvals.Proposal) Explanation {
	return Explanation{}
}

// Text renders the explanation for people, with the names of the file. It holds
// no arguments.
func (e Explanation) Text() string { return "" }
