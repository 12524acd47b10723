package policy

import (
	"context"
	"errors"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/strictyaml"
)

// A Question is what the check of a rule is asked: about a call that the rule
// would permit or ask about.
type Question struct {
	Check    string             // its name
	Rule     string             // that names it, as name@version
	Would    Kind               // what the rule does with the call: [KindAllow] or [KindAsk]
	Severity approvals.Severity // what the tool states
	Call     approvals.Proposal
}

// An Answer is what a check says about a call. Reason is text of the service and is not
// trusted.
type Answer struct {
	Answer approvals.CheckAnswer
	Reason string
}

// A Checker asks a check. It returns an error unless there is a valid answer in time.
type Checker func(ctx context.Context, q Question) (Answer, error)

var errNoChecker = errors.New("nothing here can ask checks")

// checker returns the function that asks checks. Without one, every check fails.
func (p *Policy) checker() Checker {
	if p.options.AskCheck != nil {
		return p.options.AskCheck
	}
	return func(context.Context, Question) (Answer, error) { return Answer{}, errNoChecker }
}

// check returns the name of the check that must be asked before the verdict is
// followed. It is empty if there is none, and if some rule could not be judged: then it
// is not known which rule decides, and people are asked anyway.
func (v verdict) check() string {
	if v.by == nil || len(v.broken) > 0 {
		return ""
	}
	return v.by.check
}

// checked asks the check of the rule and returns the verdict that follows. An answer can
// only make it stricter: ok leaves the verdict, ask keeps every allow from deciding, and
// deny refuses the call. Without an answer the rule counts as one that could not be
// judged.
func (p *Policy) checked(f *facts, pl *plan, v verdict, ask Checker) verdict {
	name := v.check()
	if name == "" {
		return v
	}
	a, err := ask(f.ctx, Question{Check: name, Rule: v.by.full, Would: v.by.kind, Severity: pl.hints.severity, Call: f.q})
	if err != nil {
		a = Answer{Answer: approvals.CheckFailed}
	}
	switch a.Answer {
	case approvals.CheckOK:
		return v.with(approvals.Checked{Check: name, Answer: a.Answer}) // people need not read its reason
	case approvals.CheckAsk:
		if v.by.kind == KindAllow {
			f.held = true
			v = p.checked(f, pl, p.judge(f, pl, nil), ask)
		}
		return v.with(approvals.Checked{Check: name, Answer: a.Answer, Said: approvals.QuoteOf(a.Reason)})
	case approvals.CheckDeny:
		reason := "The check " + name + " denies this call."
		if said := approvals.QuoteOf(a.Reason).Text; said != "" {
			reason = "The check " + name + " denies this call: " + sentence(said)
		}
		v.ruling = approvals.Refuse{Reason: reason, Rule: v.by.full}
		return v
	case approvals.CheckFailed:
	}
	v.broken = []broken{{v.by, errCheck}}
	v.ruling = p.unjudged(f, pl.asks, v.broken)
	return v.with(approvals.Checked{Check: name, Answer: approvals.CheckFailed})
}

// heldBy returns why no allow decides about the call, for explanations.
func (f *facts) heldBy() string {
	if f.held {
		return "a check asks for approval"
	}
	return ToolAsks
}

// with adds the answer of a check to a verdict that asks people. It never replaces the
// answer that a check failed.
func (v verdict) with(c approvals.Checked) verdict {
	if ask, ok := v.ruling.(approvals.Ask); ok && ask.Checked.Answer != approvals.CheckFailed {
		ask.Checked = c
		v.ruling = ask
	}
	return v
}

// readCheck reads which check the rule names.
func (b *builder) readCheck(r *rule, f text) {
	known := b.p.options.Checks
	switch {
	case !f.Written() || f.Value == "":
		return
	case r.kind == KindDeny:
		b.Wrong(f.Mark, "has no effect, because nothing is stricter than deny; remove it")
		return
	case !b.names.name(f, "a check"):
	case known != nil && !slices.Contains(known, f.Value):
		b.Wrong(f.Mark, "there is no check %q%s; checks are in the bot's configuration", f.Value, strictyaml.Hint(f.Value, known))
	}
	r.check = f.Value
}

// Checks are the names of the checks that rules of the file name.
func (p *Policy) Checks() []string {
	var all []string
	for _, r := range p.rules[:p.own] {
		if r.check != "" && !slices.Contains(all, r.check) {
			all = append(all, r.check)
		}
	}
	return all
}
