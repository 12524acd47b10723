package policy

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"cel.dev/cel-go/cel"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/strictyaml"
)

// A rule is one rule, of the file or of a setting of a tool.
type rule struct {
	name   string
	full   string // name@version
	kind   Kind
	shadow bool

	tools      []string // globs; empty: every tool
	agents     []string
	channels   []string // ids
	requesters *approvals.From
	command    *command // nil: the rule says nothing of one
	when       cel.Program
	isWhen     bool                // there is a condition, though it may not be sound
	written    string              // the condition, however it is spaced; empty if there is none
	wanted     []approvals.GroupID // the groups that it looks for
	looked     []lookup            // the arguments that it names

	reason  string // of a deny
	summary string // of an ask: the template that says what a call does
	check   string // of an allow or an ask: the check that is asked before it is followed
	ask     *ask   // of an ask

	unsound bool // something is wrong with it

	mark strictyaml.Mark
	pos  int // in the order in which rules decide
}

// concerns reports whether the rule may match calls of this tool at all.
func (r *rule) concerns(agent, tool string) bool {
	return r.forAgent(agent) && (len(r.tools) == 0 || slices.ContainsFunc(r.tools, func(glob string) bool {
		ok, err := approvals.MatchTool(glob, tool)
		return ok && err == nil
	}))
}

func (r *rule) forAgent(agent string) bool {
	return len(r.agents) == 0 || slices.Contains(r.agents, agent)
}

// matches reports whether the rule matches the call; a reason why not is for
// people. An error means that it could not be found out.
func (r *rule) matches(f *facts) (ok bool, why string, err error) {
	if len(r.channels) > 0 && !slices.Contains(r.channels, f.q.Channel) {
		return false, "another channel", nil
	}
	if r.requesters != nil && !slices.Contains(r.requesters.Users, f.q.Requester) {
		if len(r.requesters.Groups) == 0 {
			return false, "another requester", nil
		}
		in, err := f.inOneOf(r.requesters.Groups)
		if err != nil {
			return false, "", err
		}
		if !in {
			return false, "another requester", nil
		}
	}
	var unread error
	if r.command != nil {
		if ok, why, unread = r.command.matches(f); !ok && unread == nil {
			return false, why, nil
		}
	}
	if r.when == nil {
		return !r.isWhen && unread == nil, "", unread
	}
	if ok, err = f.judge(r); ok || err != nil {
		return ok && unread == nil, "", cmp.Or(err, unread)
	}
	return false, "the condition is false", nil
}

// A plan is the rules that may match calls of one tool of one agent.
type plan struct {
	deny    []*rule
	flow    []*rule // allow and ask
	shadows []*rule
	asks    []*ask // that a call needs together which nobody can judge
	would   *plan  // of a file in shadow mode: as if it were not
	shape   *shape
	unheld  *tool // that of the call, if nothing holds its arguments to its schema
	hints   hints
}

func planFor(rules []*rule, agent, tool string) *plan {
	pl := &plan{shape: nothing, hints: Annotations{}.hints()}
	for _, r := range rules {
		switch {
		case !r.concerns(agent, tool):
		case r.shadow:
			pl.shadows = append(pl.shadows, r)
		case r.kind == KindDeny:
			pl.deny = append(pl.deny, r)
		default:
			pl.flow = append(pl.flow, r)
		}
	}
	return pl
}

// plan returns the plan for a tool; one that is not known has no schema, and
// annotations that promise nothing.
func (p *Policy) plan(agent, tool string) *plan {
	if known := p.plans[[2]string{agent, tool}]; known != nil {
		return known
	}
	return p.newPlan(agent, tool)
}

func (p *Policy) newPlan(agent, tool string) *plan {
	rules := p.rules
	if p.shadow {
		rules = p.settings()
	}
	enforced := planFor(rules, agent, tool)
	enforced.asks = p.asks
	if p.shadow {
		enforced.would = planFor(p.rules, agent, tool)
		enforced.would.asks = p.wholeAsks
	}
	return enforced
}

// A verdict is a ruling, and what led to it.
type verdict struct {
	ruling approvals.Ruling
	by     *rule // nil: the default
	broken []broken
}

type broken struct {
	rule *rule
	err  error
}

// A note records what came of a rule. It is called for every rule that was
// looked at.
type note func(r *rule, o Outcome, why string)

// refuses reports whether a deny matches, and what it says then. A deny that
// runs out of its budget matches; otherwise padded arguments would get past it.
func (r *rule) refuses(f *facts) (reason string, ok bool, why string, err error) {
	ok, why, err = r.matches(f)
	if errors.Is(err, errCost) {
		return "The arguments are too large for the rule " + r.name + " to check in time, so the call is refused. Send smaller arguments. " + sentence(r.reason), true, "", nil
	}
	return r.reason, ok, why, err
}

// judge rules: any deny that matches; else, if a rule could not be judged, the
// strictest requirement; else the first allow or ask that matches; else the
// default.
func (p *Policy) judge(f *facts, pl *plan, said note) verdict {
	var v verdict
	for _, r := range pl.deny {
		reason, ok, why, err := r.refuses(f)
		switch {
		case err != nil:
			v.broken = append(v.broken, broken{r, err})
		case ok && v.by == nil:
			v.by, v.ruling = r, approvals.Refuse{Reason: reason, Rule: r.full}
			if said == nil {
				return v
			}
		}
		said.rule(r, v.by == r, ok, why, err)
	}
	if v.by != nil {
		v.broken = nil
		return v
	}
	for _, r := range pl.flow {
		if len(v.broken) > 0 {
			break
		}
		if r.kind == KindAllow && (f.q.Gate != approvals.GateNone || f.held) {
			if said != nil {
				said(r, Unmatched, f.heldBy())
			}
			continue
		}
		ok, why, err := r.matches(f)
		if ok && err == nil {
			v.by = r
			if v.ruling, err = p.ruling(r, f); err != nil {
				ok, v.by = false, nil
			}
		}
		said.rule(r, ok, ok, why, err)
		if err != nil {
			v.broken = append(v.broken, broken{r, err})
		}
		if ok {
			return v
		}
	}
	if len(v.broken) > 0 {
		ask := p.unjudged(f, pl.asks, v.broken)
		ask.Unjudged = ask.Unjudged || pl.mayCheck(f, v.broken[0].rule)
		v.by, v.ruling = v.broken[0].rule, ask
		return v
	}
	req, err := p.fallback.requirement(f.q, p.names)
	if err != nil {
		v.ruling = p.unjudged(f, pl.asks, []broken{{&rule{name: nameDefault, full: p.defaultName, kind: KindAsk, ask: p.fallback}, err}})
		return v
	}
	v.ruling = approvals.Ask{Requirement: req, Why: p.fallback.why, Rule: p.defaultName, Severity: p.fallback.severity}
	return v
}

// mayCheck reports whether the rule that decides may be one with a check, if all that is
// known is that it is this one, which could not be judged, or one below it.
func (pl *plan) mayCheck(f *facts, from *rule) bool {
	for _, r := range pl.flow[max(0, slices.Index(pl.flow, from)):] {
		if r.kind == KindAllow && (f.q.Gate != approvals.GateNone || f.held) {
			continue
		}
		ok, _, err := r.matches(f)
		switch {
		case (ok || err != nil) && r.check != "":
			return true
		case ok:
			return false
		}
	}
	return false
}

func (said note) rule(r *rule, decided, ok bool, why string, err error) {
	switch {
	case said == nil:
	case err != nil:
		said(r, Broken, err.Error())
	case decided:
		said(r, Decided, "")
	case ok:
		said(r, Matched, "")
	default:
		said(r, Unmatched, why)
	}
}

func (p *Policy) ruling(r *rule, f *facts) (approvals.Ruling, error) {
	if r.kind == KindAllow {
		return approvals.Permit{Rule: r.full}, nil
	}
	req, err := r.ask.requirement(f.q, p.names)
	return approvals.Ask{
		Requirement: req, Why: cmp.Or(r.ask.why, p.fallback.why), Rule: r.full, Severity: r.ask.severity, Summary: r.summary,
	}, err
}

// rule judges one call, asks the check of the rule that decides, and reports what
// shadow rules would have ruled. Those ask no checks.
func (p *Policy) rule(f *facts) approvals.Ruling {
	pl := p.plan(f.q.Agent, f.q.Call.Name)
	f.planned(pl)
	v := p.judge(f, pl, nil)
	ruling := p.checked(f, pl, v, p.checker()).ruling
	if report := p.options.Shadow; report != nil {
		p.reportShadows(f, pl, v, ruling, report)
	}
	return ruling
}

// reportShadows calls report with what shadow rules would have ruled.
func (p *Policy) reportShadows(f *facts, pl *plan, v verdict, was approvals.Ruling, report func(ctx context.Context, r ShadowRuling)) {
	shadow := ShadowRuling{Agent: f.q.Agent, Tool: f.q.Call.Name, Was: was}
	if pl.would != nil {
		would := p.judge(f, pl.would, nil)
		if would.by != nil {
			shadow.Rule, shadow.Would = would.by.full, would.ruling
		} else {
			shadow.Rule, shadow.Would = p.defaultName, would.ruling
		}
		report(f.ctx, shadow)
		return
	}
	for _, r := range pl.shadows {
		if would, matched := p.would(f, r, v); matched {
			shadow.Rule, shadow.Would = r.full, would
			report(f.ctx, shadow)
		}
	}
}

// would returns what would have been ruled if r were enforced, and whether r
// matches, or could not be judged.
func (p *Policy) would(f *facts, r *rule, v verdict) (approvals.Ruling, bool) {
	if r.kind == KindAllow && f.q.Gate != approvals.GateNone {
		return nil, false
	}
	reason, ok, _, err := r.refuses(f)
	if !ok && err == nil {
		return nil, false
	}
	_, refused := v.ruling.(approvals.Refuse)
	earlier := v.by != nil && v.by.pos < r.pos
	asks := p.asks
	if r.kind == KindAsk {
		asks = append(slices.Clip(asks), r.ask)
	}
	switch {
	case refused, r.kind != KindDeny && (earlier || len(v.broken) > 0):
		return v.ruling, true
	case err == nil && r.kind == KindDeny:
		return approvals.Refuse{Reason: reason, Rule: r.full}, true
	case err == nil:
		ruling, err := p.ruling(r, f)
		if err == nil {
			return ruling, true
		}
		return p.unjudged(f, asks, []broken{{r, err}}), true
	}
	return p.unjudged(f, asks, []broken{{r, err}}), true
}

// static is a directory that knows one person.
type static []approvals.GroupID

func (s static) GroupsOf(_ context.Context, _ approvals.UserID, of []approvals.GroupID) ([]approvals.GroupID, error) {
	return slices.DeleteFunc(of, func(g approvals.GroupID) bool { return !slices.Contains(s, g) }), nil
}

var errUnknownRequester = errors.New("not known")

// inRoster is a directory that knows what a roster knows.
type inRoster struct{ *Roster }

func (r inRoster) GroupsOf(_ context.Context, user approvals.UserID, of []approvals.GroupID) ([]approvals.GroupID, error) {
	if r.People[user] == "" {
		return nil, errUnknownRequester
	}
	return slices.DeleteFunc(of, func(g approvals.GroupID) bool { return !slices.Contains(r.Groups[g], user) }), nil
}
