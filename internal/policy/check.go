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

// An Answer is what a check says about a call. Reason is in its own words, and not
// to be trusted.
type Answer struct {
	Answer approvals.CheckAnswer
	Reason string
}

// A Checker asks a check. What is not an answer is an error.
type Checker func(ctx context.Context, q Question) (Answer, error)

var errNoChecker = errors.New("nothing here can ask checks")

// checker is what asks the checks of the rules.
func (p *Policy) checker() Checker {
	if p.options.AskCheck != nil {
		return p.options.AskCheck
	}
	return func(context.Context, Question) (Answer, error) { return Answer{}, errNoChecker }
}

// check is the check that is to be asked before the verdict is followed, if there
// is one. If some rule could not be judged, it is not known which one decides.
func (v verdict) check() string {
	if v.by == nil || len(v.broken) > 0 {
		return ""
	}
	return v.by.check
}

// checked returns the verdict after the check of its rule was asked. An answer can
// only make it stricter: ok leaves it, ask keeps every allow from deciding, deny
// refuses the call. If there is no answer, the rule could not be judged.
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
		return v.with(approvals.Checked{Check: name, Answer: a.Answer}) // it has nothing to tell people
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

// heldBy says why no allow decides about the call.
func (f *facts) heldBy() string {
	if f.held {
		return "a check asks for approval"
	}
	return "the tool itself asks for approval"
}

// with adds what a check said to a verdict that asks people. That one failed is
// never replaced.
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
