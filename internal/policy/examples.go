package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// checkExamples judges the examples of a file, and says which are ruled
// otherwise than they say.
func (p *Policy) checkExamples(f *fileForm, found *problems) {
	for _, e := range f.Examples.items {
		before := len(found.all)
		q, directory := p.exampleCall(e, found)
		want := e.want(found)
		if !e.Name.set() {
			found.wrong(e.key("name"), "is missing; say what it shows")
		}
		if len(found.all) > before {
			continue
		}
		facts := &facts{p: p, q: q, ctx: context.Background(), directory: directory}
		pl := p.plan(q.Agent, q.Call.Name)
		if pl.would != nil {
			pl = pl.would // an example says what the file means, in force or not
		}
		facts.shape, facts.hints = pl.shape, pl.hints
		v := p.judge(facts, pl, nil)
		if got := p.saidBy(v); got != want {
			found.wrong(e.Expect.mark, "%s: expected %s, and it is %s", e.Name.s, want, got)
		}
	}
}

// An outcome in the words of an example.
type expected struct {
	kind Kind
	rule string
	why  string // it could not be judged
}

func (e expected) String() string {
	if e.why != "" {
		return "asked of everybody, because " + e.why
	}
	return string(e.kind) + ": " + e.rule
}

func (p *Policy) saidBy(v verdict) expected {
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

func (e exampleForm) want(found *problems) expected {
	if e.Expect == nil {
		found.wrong(e.key("expect"), "is missing; write {deny: rule}, {allow: rule} or {ask: rule}")
		return expected{}
	}
	var all []expected
	for _, o := range []struct {
		kind Kind
		t    text
	}{{KindDeny, e.Expect.Deny}, {KindAllow, e.Expect.Allow}, {KindAsk, e.Expect.Ask}} {
		if o.t.set() {
			all = append(all, expected{kind: o.kind, rule: o.t.s})
		}
	}
	if len(all) != 1 {
		found.wrong(e.Expect.mark, "must hold one of deny, allow and ask")
		return expected{}
	}
	return all[0]
}

func (p *Policy) exampleCall(e exampleForm, found *problems) (approvals.Proposal, Directory) {
	q := approvals.Proposal{Agent: e.Agent.s, At: p.now()}
	n := &names{problems: found, people: p.names.people, groups: p.names.groups}
	if e.Call == nil || !e.Call.Tool.set() {
		found.wrong(e.key("call"), "is missing; write {tool: name, args: {...}}")
		return q, nil
	}
	q.Call = approvals.ToolCall{ID: "example", Name: e.Call.Tool.s, Args: e.Call.Args.json}
	t, known := p.exampleTool(e, found)
	if known {
		q.Agent = cmp.Or(q.Agent, t.Agent)
		if t.Asks == AsksAlways {
			q.Gate = approvals.GateDeclared
		}
	}
	exampleFits(e, t, found)
	switch gate := approvals.Gate(e.Gate.s); gate {
	case approvals.GateNone:
	case approvals.GateDeclared, approvals.GatePredicate, approvals.GateRaised:
		q.Gate = gate
	default:
		found.wrong(e.Gate.mark, "is %q, must be declared, predicate or raised", e.Gate.s)
	}
	if e.Requester.set() {
		q.Requester, _ = n.person(e.Requester)
	}
	if e.Channel.set() {
		id, _ := n.group(e.Channel, true)
		q.Channel = string(id)
	}
	if e.At.set() {
		at, err := time.Parse(time.RFC3339, e.At.s)
		if err != nil {
			found.wrong(e.At.mark, "%q is no time such as \"2026-03-02T09:30:00+01:00\"", e.At.s)
		}
		q.At = at
	}
	if s := e.SoFar; s != nil {
		q.SoFar = approvals.SoFar{Steps: s.Steps.n, Executed: s.Executed.counts(), Failed: s.Failed.counts(), Denied: s.Denied.counts()}
	}
	return q, p.exampleGroups(e, n)
}

func (t table[T]) counts() map[string]int {
	m := map[string]int{}
	for _, e := range t.entries {
		if w, ok := any(e.val).(whole); ok {
			m[e.key.s] = w.n
		}
	}
	return m
}

// exampleTool returns the known tool, of whichever agent has it if none is
// named.
func (p *Policy) exampleTool(e exampleForm, found *problems) (*tool, bool) {
	var tools []string
	for _, t := range p.tools {
		if t.Name == e.Call.Tool.s && (!e.Agent.set() || t.Agent == e.Agent.s) {
			return t, true
		}
		if !e.Agent.set() || t.Agent == e.Agent.s {
			tools = append(tools, t.Name)
		}
	}
	if len(p.tools) > 0 {
		found.wrong(e.Call.Tool.mark, "no agent %shas a tool %q%s", quoted(e.Agent.s), e.Call.Tool.s, hint(e.Call.Tool.s, tools))
	}
	return nil, false
}

// exampleFits says what is wrong with the arguments of an example, by the schema
// of its tool if that is known: a call that does not fit goes back to the model,
// so no rule says anything of it.
func exampleFits(e exampleForm, t *tool, found *problems) {
	at := e.Call.Args.mark
	switch {
	case !at.set():
		at = e.Call.Tool.mark
	case !isObject(e.Call.Args.json):
		found.wrong(at, "must be a mapping, with keys")
		return
	}
	if t == nil {
		return
	}
	wrong, err := t.misfits(e.Call.Args.json)
	switch {
	case err != nil:
		found.wrong(at, "the arguments cannot be checked for the tool %s of %s: %s", t.Name, t.Agent, err)
	case len(wrong) > 0:
		found.wrong(at, "the arguments do not fit the tool %s of %s, so such a call never reaches the policy: %s", t.Name, t.Agent, strings.Join(wrong, "; "))
	}
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return `"` + s + `" `
}

// exampleGroups are those that the example says, else those of the roster.
func (p *Policy) exampleGroups(e exampleForm, n *names) Directory {
	if !e.Groups.set() {
		if p.options.Roster != nil {
			return inRoster{p.options.Roster}
		}
		return static{}
	}
	var in static
	for _, t := range e.Groups.items {
		if id, ok := n.group(t, false); ok {
			in = append(in, id)
		}
	}
	return in
}

func (p *Policy) now() time.Time {
	if p.options.Now != nil {
		return p.options.Now()
	}
	return time.Now() //nolint:forbidigo // examples that name no time are judged now
}
