package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// newRule reads one rule. It always returns one; what is wrong is said.
func (p *Policy) newRule(f ruleForm, c *checker) *rule {
	before := len(c.all)
	r := &rule{name: f.Name.s, mark: f.mark, shadow: isShadow(f.Mode, c.problems)}
	switch {
	case !f.Name.set():
		c.wrong(f.key("name"), "is missing; rulings name their rule")
	case f.Name.s == "" || !c.names.name(f.Name, "a rule"):
	case f.Name.s == nameDefault:
		c.wrong(f.Name.mark, "is the ask of calls that no rule names; choose another")
	case slices.ContainsFunc(p.rules, func(o *rule) bool { return o.name == r.name }):
		c.wrong(f.Name.mark, "another rule is called %s too", r.name)
	}
	p.readScope(r, f, c)
	p.readEffect(r, f, c)
	if f.When.set() {
		r.isWhen = true
		if f.When.s != "" {
			c.condition(f.When, p.concerned(r), true).of(r)
		}
	}
	r.unsound = len(c.all) > before
	return r
}

// readScope reads which calls the rule is for, but for its condition.
func (p *Policy) readScope(r *rule, f ruleForm, c *checker) {
	var tools, agents []string
	for _, t := range p.tools {
		tools, agents = append(tools, t.Name), append(agents, t.Agent)
	}
	for _, g := range f.Tools.items {
		_, err := path.Match(g.s, "")
		matches := func(name string) bool { ok, _ := path.Match(g.s, name); return ok }
		switch {
		case g.s == "":
		case strings.Contains(g.s, "[!"):
			c.wrong(g.mark, "%q: [!a] is ! or a here; write [^a] for all but a", g.s)
		case err != nil:
			c.wrong(g.mark, "%q is no pattern: * is any letters, ? is one, [ab] one of some", g.s)
		case len(tools) > 0 && !slices.ContainsFunc(tools, matches):
			c.wrong(g.mark, "no agent has a tool %q, so the rule would guard nothing%s", g.s, hint(g.s, tools))
		case slices.Contains(r.tools, g.s):
			c.wrong(g.mark, "is there twice")
		default:
			r.tools = append(r.tools, g.s)
		}
	}
	for _, a := range f.Agents.items {
		switch {
		case a.s == "":
		case len(agents) > 0 && !slices.Contains(agents, a.s):
			c.wrong(a.mark, "there is no agent %q%s", a.s, hint(a.s, agents))
		case slices.Contains(r.agents, a.s):
			c.wrong(a.mark, "is there twice")
		default:
			r.agents = append(r.agents, a.s)
		}
	}
	for _, ch := range f.Channels.items {
		if id, ok := c.names.group(ch, true); ok {
			r.channels = append(r.channels, string(id))
			c.names.looked[string(id)] = ch.mark
		}
	}
	if f.Requesters != nil {
		who := c.names.from(&fromForm{mark: f.Requesters.mark, People: f.Requesters.People, Groups: f.Requesters.Groups}, f.mark)
		r.requesters = &approvals.From{Users: who.Users, Groups: who.Groups}
		for _, t := range f.Requesters.People.items {
			c.names.look("requester.name", t.s, t.mark)
		}
		for _, t := range f.Requesters.Groups.items {
			c.names.look("requester.groups", t.s, t.mark)
		}
	}
}

// readEffect reads what the rule does.
func (p *Policy) readEffect(r *rule, f ruleForm, c *checker) {
	effects := 0
	if f.Deny.set() {
		effects++
		r.kind, r.reason = KindDeny, f.Deny.s
	}
	if f.Allow.set() {
		effects++
		r.kind = KindAllow
		if !f.Allow.b {
			c.wrong(f.Allow.mark, "is false; write deny and why, or ask")
		}
	}
	if f.Ask != nil {
		effects++
		r.kind, r.ask = KindAsk, newAsk(f.Ask, c.names, p.fallback)
		if !f.Channels.set() {
			f.Ask.here(c.problems)
		}
	}
	switch effects {
	case 0:
		c.wrong(f.mark, "does nothing; write deny, allow or ask")
	case 1:
	default:
		c.wrong(f.mark, "does several things; write one of deny, allow and ask")
	}
}

// concerned returns the known tools that the rule is for.
func (p *Policy) concerned(r *rule) []*tool {
	var all []*tool
	for _, t := range p.tools {
		if r.concerns(t.Agent, t.Name) {
			all = append(all, t)
		}
	}
	return all
}

// addSettings adds the rules behind those of the file, for each tool: its
// setting, else that of its agent, else what its code says. A tool of which
// none says anything asks with the default.
func (p *Policy) addSettings(c *checker) {
	conditions := map[string]map[string]condition{}
	for _, t := range p.tools {
		s := t.Setting
		if s.Approval == ApprovalUnset {
			s = t.AgentSetting
		}
		at := mark{path: s.Place}
		r := &rule{
			name: cmp.Or(s.Place, "approval of "+t.Name), tools: []string{quoteGlob(t.Name)}, agents: []string{t.Agent}, mark: at,
			kind: KindAsk, ask: p.fallback,
		}
		switch s.Approval {
		case ApprovalTrue:
		case ApprovalFalse:
			if r.kind = KindAllow; t.Asks == AsksAlways && t.Setting.Approval != ApprovalUnset {
				c.wrong(at, "is false, and %s always asks for a signature; leave it out", t.Name)
			}
		case ApprovalWhen:
			asks := *r
			if conditions[s.Place] == nil {
				conditions[s.Place] = map[string]condition{}
			}
			key := s.When + "\x00" + string(t.Schema)
			if _, known := conditions[s.Place][key]; !known {
				conditions[s.Place][key] = c.condition(text{mark: at, s: s.When, from: -1}, []*tool{t}, false)
			}
			conditions[s.Place][key].of(&asks)
			p.add(&asks)
			r.kind = KindAllow
		case ApprovalUnset:
			if t.Asks != AsksNever && t.Asks != AsksWhen && t.Asks != AsksExternal {
				continue
			}
			r.name, r.kind = "what "+t.Name+" says of itself", KindAllow
		default:
			c.wrong(at, "is %q, must be true, false or a condition", string(s.Approval))
		}
		p.add(r)
	}
}

// quoteGlob is a pattern that matches the name and nothing else.
func quoteGlob(name string) string {
	return strings.NewReplacer("*", "\\*", "?", "\\?", "[", "\\[", "\\", "\\\\").Replace(name)
}

// lint refuses rules of the file that never match, or never decide.
func (p *Policy) lint(found *problems) {
	for i, r := range p.rules[:p.own] {
		tools := p.concerned(r)
		switch {
		case r.unsound:
			continue
		case len(p.tools) > 0 && len(tools) == 0:
			found.wrong(r.mark, "never matches: none of these agents has such a tool")
			continue
		case r.kind == KindAllow && len(tools) > 0 && !slices.ContainsFunc(tools, func(t *tool) bool { return t.Asks != AsksAlways }):
			found.wrong(r.mark, "never decides: what it allows always asks for a signature itself, and an allow does not lift that")
			continue
		}
		if !r.shadow {
			p.lintCovered(i, r, tools, found)
		}
	}
}

func (p *Policy) lintCovered(i int, r *rule, tools []*tool, found *problems) {
	var by *rule
	if len(p.tools) == 0 {
		by = p.coverUnknown(i, r)
	}
	for _, t := range tools {
		if by = p.coverOf(i, r, t); by == nil {
			return
		}
	}
	if by != nil {
		found.wrong(r.mark, "never decides: %s (%s) %s every call that it could match%s", by.name, by.mark, verb(by.kind), covered(by, r))
	}
}

func covered(by, r *rule) string {
	if by.kind == KindDeny && r.kind != KindDeny {
		return ", and a deny wins wherever it stands"
	}
	return " before it; put it above, or narrow the other"
}

func verb(k Kind) string {
	return map[Kind]string{KindDeny: "denies", KindAllow: "allows", KindAsk: "asks about"}[k]
}

// covers reports whether r, if it matches, leaves nothing for o to decide.
func (r *rule) covers(o *rule, before, mayAsk bool) bool {
	switch {
	case r.shadow, r.unsound, r == o, !r.asWide(o):
		return false
	case r.kind == KindDeny:
		return before || o.kind != KindDeny
	case o.kind == KindDeny || !before:
		return false
	}
	return r.kind == KindAsk || o.kind == KindAllow || !mayAsk
}

// asWide reports whether r matches what o matches, but for tools and agents: by
// what is written the same, or left out.
func (r *rule) asWide(o *rule) bool {
	switch {
	case r.isWhen && r.written != o.written, !part(r.channels, o.channels):
		return false
	case r.requesters == nil:
		return true
	}
	return o.requesters != nil && all(r.requesters.Users, o.requesters.Users) && all(r.requesters.Groups, o.requesters.Groups)
}

// part reports whether some is within all, where nothing stands for everything.
func part(of, some []string) bool { return len(of) == 0 || len(some) > 0 && all(of, some) }

func all[T comparable](of, some []T) bool {
	return !slices.ContainsFunc(some, func(s T) bool { return !slices.Contains(of, s) })
}

func (p *Policy) coverOf(i int, r *rule, t *tool) *rule {
	mayAsk := t.Asks != AsksNever && t.Asks != AsksExternal
	for j, o := range p.rules[:p.own] {
		if o.concerns(t.Agent, t.Name) && o.covers(r, j < i, mayAsk) {
			return o
		}
	}
	return nil
}

// coverUnknown is for a file that is read without tools: then only what is
// written the same, or left out, is known to cover.
func (p *Policy) coverUnknown(i int, r *rule) *rule {
	for j, o := range p.rules[:p.own] {
		if part(o.tools, r.tools) && part(o.agents, r.agents) && o.covers(r, j < i, true) {
			return o
		}
	}
	return nil
}
