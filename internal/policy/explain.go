package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// An Explanation is how a call was judged: every rule in order, and the ruling.
type Explanation struct {
	Agent  string
	Tool   string
	Steps  []Step
	Ruling approvals.Ruling // nil if no rule is asked

	// Severity is the worst that the tool and the ruling state, as an approver
	// reads it. It means nothing unless people are asked.
	Severity approvals.Severity

	By string // the rule that decided, name@version

	// Check is the check of that rule, if it was not asked: it may make the ruling
	// stricter.
	Check string

	// Unknown says that the agent has no such tool, and Misfits why the arguments
	// do not fit it. No rule is asked then: the call goes back to the model. It is
	// said of no remote agent: its tools are not known. An external tool has no Misfits,
	// because the policy is asked about any arguments of it.
	Unknown bool
	Misfits []string

	names *names
}

// A Step is one rule and why it decided or did not.
type Step struct {
	Rule    string // name
	At      string // file:line:column, or the place of a setting; empty of the default
	Kind    Kind
	Shadow  bool
	Check   string // that the rule names
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

// ToolAsks is why an allow did not match a call about which the code of its tool asks.
const ToolAsks = "the tool itself asks for approval"

// Outcome says what a rule did about a call.
type Outcome string

// The outcomes.
const (
	Decided   Outcome = "decided"     // it matched, and made the ruling
	Matched   Outcome = "matched"     // it matched, and another rule made the ruling
	Unmatched Outcome = "not matched" // see Why
	Broken    Outcome = "not judged"  // see Why
	Skipped   Outcome = "skipped"     // not looked at: the ruling was made before it
)

func (p *Policy) explain(f *facts) Explanation {
	pl := p.plan(f.q.Agent, f.q.Call.Name)
	f.planned(pl)
	steps := map[*rule]Step{}
	said := func(r *rule, o Outcome, why string) { steps[r] = Step{Outcome: o, Why: why} }
	v := p.judge(f, pl, said)
	e := Explanation{Agent: f.q.Agent, Tool: f.q.Call.Name, names: p.names}
	if e.Check = v.check(); e.Check != "" && p.options.AskCheck != nil {
		if v, e.Check = p.checked(f, pl, v, p.options.AskCheck), ""; f.held {
			p.judge(f, pl, said)
		}
	}
	e.Ruling, e.By = v.ruling, p.defaultName
	if v.by != nil {
		e.By = v.by.full
	}
	if ask, ok := v.ruling.(approvals.Ask); ok {
		e.Severity = pl.hints.severity.Worse(ask.Severity)
	}
	e.Unknown = len(p.tools) > 0 && !slices.Contains(p.options.Remote, e.Agent) && !slices.ContainsFunc(p.tools, func(t *tool) bool { return t.Name == e.Tool && t.Agent == e.Agent })
	for i, r := range p.rules {
		s, seen := steps[r]
		shadow := r.shadow || p.shadow && i < p.own
		switch {
		case !r.forAgent(f.q.Agent):
			if i >= p.own {
				continue // settings of other agents are left out
			}
			s = Step{Outcome: Unmatched, Why: "another agent"}
		case !r.concerns(f.q.Agent, f.q.Call.Name):
			if i >= p.own {
				continue
			}
			s = Step{Outcome: Unmatched, Why: "another tool"}
		case shadow:
			s = r.shadowStep(f)
		case !seen:
			s = Step{Outcome: Skipped}
		}
		s.Rule, s.Kind, s.Shadow, s.Check, s.At = r.name, r.kind, shadow, r.check, r.mark.Place()
		e.Steps = append(e.Steps, s)
	}
	last := Step{Rule: nameDefault, Kind: KindAsk, Outcome: Skipped}
	if v.by == nil {
		last.Outcome = Decided
	}
	e.Steps = append(e.Steps, last)
	return e
}

// Explain judges a call that a model would make now and says why. The code of a tool
// that asks about every call asks about this one; what other code asks about, the
// proposal says. It does not report shadow rules. Steps say what the rules would do, even if the call would
// not reach the policy. Without a [Ledger], no call counts as executed today.
func (p *Policy) Explain(ctx context.Context, q approvals.Proposal) Explanation {
	f := p.facts(ctx, q)
	if f.ledger == nil {
		f.today = map[string]int{}
	}
	return p.explainNew(f)
}

// ExplainCall is [Policy.Explain] of a call in the form of a recorded one, with the groups
// and the counts of the day that it says. Without counts, none was executed.
func (p *Policy) ExplainCall(ctx context.Context, r Recorded) Explanation {
	f := p.recalled(ctx, r)
	if f.today == nil {
		f.today = map[string]int{}
	}
	return p.explainNew(f)
}

func (p *Policy) explainNew(f *facts) Explanation {
	i := slices.IndexFunc(p.tools, func(t *tool) bool { return t.Name == f.q.Call.Name && t.Agent == f.q.Agent })
	if i >= 0 && p.tools[i].Asks == AsksAlways {
		f.q.Gate = cmp.Or(f.q.Gate, approvals.GateDeclared)
	}
	e := p.explain(f)
	if i >= 0 && p.tools[i].Asks != AsksExternal {
		e.Misfits, _ = p.tools[i].misfits(f.q.Call.Args) // an unreadable schema finds nothing
	}
	if e.Unknown || len(e.Misfits) > 0 {
		e.Ruling, e.By, e.Check = nil, "", ""
	}
	return e
}

// shadowStep says what the rule would do in shadow mode.
func (r *rule) shadowStep(f *facts) Step {
	if r.kind == KindAllow && f.q.Gate != approvals.GateNone {
		return Step{Outcome: Unmatched, Why: ToolAsks}
	}
	switch ok, why, err := r.matches(f); {
	case err != nil:
		return Step{Outcome: Broken, Why: err.Error()}
	case ok:
		return Step{Outcome: Matched}
	default:
		return Step{Outcome: Unmatched, Why: why}
	}
}

// Text renders the explanation for people, with the names of the file. It holds
// no arguments but the names of programs and flags in a command.
func (e Explanation) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, by %s\n", approvals.VisibleLine(e.Tool), orNobody(e.Agent))
	if e.Unknown {
		fmt.Fprintf(&b, "-> does not run: %s has no tool of this name, so the call goes back to the model and never reaches the policy\n", orNobody(e.Agent))
		return b.String()
	}
	if len(e.Misfits) > 0 {
		fmt.Fprintf(&b, "-> does not run: the arguments don't fit the tool's schema, so the call goes back to the model and never reaches the policy\n")
		for _, wrong := range e.Misfits {
			fmt.Fprintf(&b, "   %s\n", approvals.Visible(wrong))
		}
		return b.String()
	}
	wide := 0
	for _, s := range e.Steps {
		wide = max(wide, len(s.Rule))
	}
	for _, s := range e.Steps {
		line := fmt.Sprintf("  %-*s  %-5s  %s", wide, s.Rule, s.Kind, s.Outcome)
		if s.Why != "" {
			line += ": " + s.Why
		}
		if s.Shadow {
			line += " (shadow: not enforced)"
		}
		fmt.Fprintln(&b, line)
	}
	for _, line := range append(e.names.ruling(e.Shown(), short(e.By)), checkLine(e.Check)...) {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

// checkLine says that a check would be asked.
func checkLine(name string) []string {
	if name == "" {
		return nil
	}
	return []string{"   if the check " + name + " agrees, which was not asked here; it may ask for approval or deny"}
}

// Shown is the ruling with the severity that an approver would read.
func (e Explanation) Shown() approvals.Ruling {
	ask, ok := e.Ruling.(approvals.Ask)
	if !ok {
		return e.Ruling
	}
	ask.Severity = e.Severity
	return ask
}

func orNobody(s string) string {
	if s == "" {
		return "no agent"
	}
	return approvals.VisibleLine(s)
}

// ruling says a ruling in words, a line each.
func (n *names) ruling(r approvals.Ruling, by string) []string {
	switch r := r.(type) {
	case approvals.Permit:
		return []string{"-> runs without approval (" + by + ")"}
	case approvals.Refuse:
		return []string{"-> is refused (" + by + "): " + approvals.Visible(r.Reason)} // a check may have written it
	case approvals.Ask:
		lines := []string{"-> needs approval (" + by + "): " + r.Why}
		if r.Checked.Check != "" {
			lines = append(lines, "   the check "+r.Checked.Check+" says: "+string(r.Checked.Answer)+" "+approvals.Visible(r.Checked.Said.Text))
		}
		if r.Summary != "" {
			lines = append(lines, "   summary: "+r.Summary)
		}
		if r.Severity != approvals.SeverityUnset {
			lines = append(lines, "   severity: "+string(r.Severity))
		}
		for _, s := range n.requirement(r.Requirement) {
			lines = append(lines, "   "+s)
		}
		return lines
	}
	return nil
}

// requirement lists what is needed, a line each, without what is the default.
func (n *names) requirement(r approvals.Requirement) []string {
	var lines []string
	for i, q := range r.Quorums {
		line := "needs "
		switch {
		case q.Choice != 0 && i > 0 && r.Quorums[i-1].Choice == q.Choice && r.Quorums[i-1].Option == q.Option:
			line = "  and "
		case q.Choice != 0 && i > 0 && r.Quorums[i-1].Choice == q.Choice:
			line = "or "
		case q.Choice != 0:
			line = "needs either "
		}
		line += fmt.Sprintf("%s: %d of %s", q.Name, q.Need, n.say(q.From))
		if q.Stage > 1 {
			line += fmt.Sprintf(", asked in stage %d", q.Stage)
		}
		lines = append(lines, line)
	}
	for _, q := range r.Vetoes {
		lines = append(lines, fmt.Sprintf("veto by %s: %d of %s", q.Name, q.Need, n.say(q.From)))
	}
	lines = append(lines, fmt.Sprintf("until %s", when(r.Deadline)))
	for _, s := range r.Ladder {
		line := when(s.At) + " " + string(s.Kind)
		if !slices.Equal(s.Add.Users, nil) || len(s.Add.Groups) > 0 {
			line += fmt.Sprintf(": %s may approve for %s too", n.say(s.Add), s.Quorum)
		}
		if s.Channel != "" {
			line += ", shown in " + n.callOf(s.Channel)
		}
		lines = append(lines, line)
	}
	if r.Deny > 1 {
		lines = append(lines, fmt.Sprintf("denied by %d denials", r.Deny))
	}
	if r.ClaimWithin > 0 {
		lines = append(lines, "a remote agent has "+hours(r.ClaimWithin)+" to use the decision")
	}
	for _, o := range []struct {
		on   bool
		what string
	}{
		{!r.Separation, "the requester may approve"},
		{r.Separation && r.ParticipantsMaySign, "participants may approve"},
		{r.EditorMaySign, "a person who edits the arguments may approve"},
		{r.Delegation, "delegates may approve"},
		{r.ReasonNeeded, "an approval needs a reason"},
		{r.Direct == approvals.DirectEveryone, "everyone who can help gets a direct message"},
		{r.Direct == approvals.DirectNobody, "nobody gets a direct message"},
	} {
		if o.on {
			lines = append(lines, o.what)
		}
	}
	return lines
}

func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }
