package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/strictyaml"
)

// An examiner judges the examples of the files by the finished policy.
type examiner struct {
	*strictyaml.Problems
	p *Policy
}

// check judges the examples of a file, and says which are ruled
// otherwise than they say.
func (x *examiner) check(f *fileForm) {
	for _, e := range f.Examples.Items {
		before := x.Count()
		facts := x.facts(e)
		want := e.want(x.Problems)
		if !e.Name.Written() {
			x.Wrong(e.Key("name"), "is missing; say what the example shows")
		}
		if x.Count() > before {
			continue
		}
		pl := x.p.plan(facts.q.Agent, facts.q.Call.Name)
		if pl.would != nil {
			pl = pl.would // an example says what the file means, in force or not
		}
		facts.planned(pl)
		v := x.checked(facts, pl, x.p.judge(facts, pl, nil), e.Check)
		if x.Count() > before {
			continue
		}
		if got := x.saidBy(v); got != want {
			x.Wrong(e.Expect.Mark, "%s: expected %s, but it is %s", e.Name.Value, want, got)
		}
	}
}

// checked is what follows from the answer of the check that the example says, or ok.
func (x *examiner) checked(f *facts, pl *plan, v verdict, said text) verdict {
	answer := approvals.CheckAnswer(cmp.Or(said.Value, string(approvals.CheckOK)))
	if answer != approvals.CheckOK && answer != approvals.CheckAsk && answer != approvals.CheckDeny {
		x.Wrong(said.Mark, "is %q, must be ok, ask or deny", said.Value)
		return v
	}
	if said.Written() && v.check() == "" {
		x.Wrong(said.Mark, "has no effect: the rule that decides names no check")
	}
	return x.p.checked(f, pl, v, func(context.Context, Question) (Answer, error) { return Answer{Answer: answer}, nil })
}

// facts are what an example says of a call.
func (x *examiner) facts(e exampleForm) *facts {
	q, directory := x.call(e)
	f := &facts{p: x.p, q: q, ctx: context.Background(), directory: directory, today: map[string]int{}}
	if e.Today != nil {
		f.today = countsIn(e.Today.Executed)
	}
	return f
}

// An outcome in the words of an example.
type expected struct {
	kind Kind
	rule string
	why  string // it could not be judged
}

func (e expected) String() string {
	if e.why != "" {
		return "asked of everyone, because " + e.why
	}
	return string(e.kind) + ": " + e.rule
}

func (x *examiner) saidBy(v verdict) expected {
	e := expected{rule: nameDefault, kind: kindOf(v.ruling)}
	if v.by != nil {
		e.rule = v.by.name
	}
	if len(v.broken) > 0 {
		e.why = v.broken[0].rule.name + " could not be judged: " + v.broken[0].err.Error()
	}
	return e
}

func kindOf(r approvals.Ruling) Kind {
	switch r.(type) {
	case approvals.Permit:
		return KindAllow
	case approvals.Refuse:
		return KindDeny
	case approvals.Ask:
		return KindAsk
	}
	return KindAsk
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

func (e exampleForm) want(found *strictyaml.Problems) expected {
	if e.Expect == nil {
		found.Wrong(e.Key("expect"), "is missing; write {deny: rule}, {allow: rule} or {ask: rule}")
		return expected{}
	}
	var all []expected
	for _, o := range []struct {
		kind Kind
		t    text
	}{{KindDeny, e.Expect.Deny}, {KindAllow, e.Expect.Allow}, {KindAsk, e.Expect.Ask}} {
		if o.t.Written() {
			all = append(all, expected{kind: o.kind, rule: o.t.Value})
		}
	}
	if len(all) != 1 {
		found.Wrong(e.Expect.Mark, "must have exactly one of deny, allow and ask")
		return expected{}
	}
	return all[0]
}

func (x *examiner) call(e exampleForm) (approvals.Proposal, Directory) {
	q := approvals.Proposal{Agent: e.Agent.Value, At: x.p.options.now()}
	n := &names{Problems: x.Problems, people: x.p.names.people, groups: x.p.names.groups}
	if e.Call == nil || !e.Call.Tool.Written() {
		x.Wrong(e.Key("call"), "is missing; write {tool: name, args: {...}}")
		return q, nil
	}
	q.Call = approvals.ToolCall{ID: "example", Name: e.Call.Tool.Value, Args: e.Call.Args.JSON}
	q.Place = approvals.Place{Cwd: e.Call.Cwd.Value, Repository: e.Call.Repository.Value, Branch: e.Call.Branch.Value, Server: e.Call.Server.Value}
	t, known := x.tool(e)
	if known {
		q.Agent = cmp.Or(q.Agent, t.Agent)
		if t.Asks == AsksAlways {
			q.Gate = approvals.GateDeclared
		}
	}
	exampleFits(e, t, x.Problems)
	switch gate := approvals.Gate(e.Gate.Value); gate {
	case approvals.GateNone:
	case approvals.GateDeclared, approvals.GatePredicate, approvals.GateRaised:
		q.Gate = gate
	default:
		x.Wrong(e.Gate.Mark, "is %q, must be declared, predicate or raised", e.Gate.Value)
	}
	if e.Requester.Written() {
		q.Requester, _ = n.person(e.Requester)
	}
	if e.Channel.Written() {
		id, _ := n.group(e.Channel, true)
		q.Channel = string(id)
	}
	if e.At.Written() {
		at, err := time.Parse(time.RFC3339, e.At.Value)
		if err != nil {
			x.Wrong(e.At.Mark, "%q is not a time such as \"2026-03-02T09:30:00+01:00\"", e.At.Value)
		}
		q.At = at
	}
	if s := e.SoFar; s != nil {
		q.SoFar = approvals.SoFar{Steps: s.Steps.Value, Executed: countsIn(s.Executed), Failed: countsIn(s.Failed), Denied: countsIn(s.Denied)}
	}
	return q, x.groups(e, n)
}

func countsIn(t table[whole]) map[string]int {
	m := map[string]int{}
	for _, e := range t.Entries {
		m[e.Key.Value] = e.Value.Value
	}
	return m
}

// tool returns the known tool, of any agent that has it if none is named. An unknown tool
// is taken for one of a remote agent, if there are any.
func (x *examiner) tool(e exampleForm) (*tool, bool) {
	var tools []string
	for _, t := range x.p.tools {
		if t.Name == e.Call.Tool.Value && (!e.Agent.Written() || t.Agent == e.Agent.Value) {
			return t, true
		}
		if !e.Agent.Written() || t.Agent == e.Agent.Value {
			tools = append(tools, t.Name)
		}
	}
	if remote := x.p.options.Remote; len(remote) > 0 && (!e.Agent.Written() || slices.Contains(remote, e.Agent.Value)) {
		return &tool{Tool: Tool{Agent: cmp.Or(e.Agent.Value, remote[0])}, shape: nothing}, true
	}
	if len(x.p.tools) > 0 {
		x.Wrong(e.Call.Tool.Mark, "no agent %shas a tool %q%s", quoted(e.Agent.Value), e.Call.Tool.Value, strictyaml.Hint(e.Call.Tool.Value, tools))
	}
	return nil, false
}

// exampleFits says what is wrong with the arguments of an example, by the schema
// of its tool if that is known: a call that does not fit goes back to the model,
// so no rule says anything of it, unless its tool is external.
func exampleFits(e exampleForm, t *tool, found *strictyaml.Problems) {
	at := e.Call.Args.Mark
	switch {
	case !at.Written():
		at = e.Call.Tool.Mark
	case !isObject(e.Call.Args.JSON):
		found.Wrong(at, "must be a mapping, with keys")
		return
	}
	if t == nil || t.Asks == AsksExternal {
		return
	}
	wrong, err := t.misfits(e.Call.Args.JSON)
	switch {
	case err != nil:
		found.Wrong(at, "the arguments cannot be checked for the tool %s of %s: %s", t.Name, t.Agent, err)
	case len(wrong) > 0:
		found.Wrong(at, "the arguments don't fit the tool %s of %s, so such a call never reaches the policy: %s", t.Name, t.Agent, strings.Join(wrong, "; "))
	}
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return `"` + s + `" `
}

// groups are those that the example says, else those of the roster.
func (x *examiner) groups(e exampleForm, n *names) Directory {
	if !e.Groups.Written() {
		if x.p.options.Roster != nil {
			return inRoster{x.p.options.Roster}
		}
		return static{}
	}
	var in static
	for _, t := range e.Groups.Items {
		if id, ok := n.group(t, false); ok {
			in = append(in, id)
		}
	}
	return in
}
