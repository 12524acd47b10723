package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/strictyaml"
)

// newRule reads one rule and reports what is wrong with it. It always returns a
// rule.
func (b *builder) newRule(f ruleForm) *rule {
	before := b.Count()
	r := &rule{name: f.Name.Value, mark: f.Mark, shadow: isShadow(f.Mode, b.Problems)}
	switch {
	case !f.Name.Written():
		b.Wrong(f.Key("name"), "is missing; every rule needs a name")
	case f.Name.Value == "" || !b.names.name(f.Name, "a rule"):
	case f.Name.Value == nameDefault:
		b.Wrong(f.Name.Mark, "is reserved for calls that match no rule; choose another name")
	case slices.ContainsFunc(b.p.rules, func(o *rule) bool { return o.name == r.name }):
		b.Wrong(f.Name.Mark, "another rule is already called %s", r.name)
	}
	b.readScope(r, f)
	b.readEffect(r, f)
	b.readSummary(r, f.Summary)
	b.readCheck(r, f.Check)
	b.readCommand(r, f.Command)
	if f.When.Written() {
		r.isWhen = true
		if f.When.Value != "" {
			b.condition(f.When, b.concerned(r), !b.remote(r)).of(r)
		}
	}
	r.unsound = b.Count() > before
	return r
}

// readScope reads which calls the rule is for, but for its condition.
func (b *builder) readScope(r *rule, f ruleForm) {
	var tools, agents []string
	for _, t := range b.p.tools {
		tools, agents = append(tools, t.Name), append(agents, t.Agent)
	}
	if len(agents) > 0 {
		agents = append(agents, b.p.options.Remote...)
	}
	for _, a := range f.Agents.Items {
		switch {
		case a.Value == "":
		case len(agents) > 0 && !slices.Contains(agents, a.Value):
			b.Wrong(a.Mark, "there is no agent %q%s", a.Value, strictyaml.Hint(a.Value, agents))
		case slices.Contains(r.agents, a.Value):
			b.Wrong(a.Mark, "is listed twice")
		default:
			r.agents = append(r.agents, a.Value)
		}
	}
	for _, g := range f.Tools.Items {
		_, err := approvals.MatchTool(g.Value, "")
		matches := func(name string) bool { ok, _ := approvals.MatchTool(g.Value, name); return ok }
		switch {
		case g.Value == "":
		case strings.Contains(g.Value, "[!"):
			b.Wrong(g.Mark, "%q: [!a] matches ! or a; write [^a] for anything but a", g.Value)
		case err != nil:
			b.Wrong(g.Mark, "%q is not a valid pattern; use * for any text, ? for one character, [ab] for one of several", g.Value)
		case len(tools) > 0 && !slices.ContainsFunc(tools, matches) && !b.remote(r):
			b.Wrong(g.Mark, "no agent has a tool %q, so the rule would match nothing%s", g.Value, strictyaml.Hint(g.Value, tools))
		case slices.Contains(r.tools, g.Value):
			b.Wrong(g.Mark, "is listed twice")
		default:
			r.tools = append(r.tools, g.Value)
			if hint := strictyaml.Hint(g.Value, tools); hint != "" && len(r.agents) == 0 && !slices.ContainsFunc(tools, matches) {
				b.warn(g.Mark, fmt.Sprintf("no agent of this program has a tool %q, so it is taken for one of a remote agent%s", g.Value, hint))
			}
		}
	}
	for _, ch := range f.Channels.Items {
		if id, ok := b.names.group(ch, true); ok {
			r.channels = append(r.channels, string(id))
			b.names.looked[string(id)] = ch.Mark
		}
	}
	if f.Requesters != nil {
		who := b.names.from(&fromForm{Mark: f.Requesters.Mark, People: f.Requesters.People, Groups: f.Requesters.Groups}, f.Mark)
		r.requesters = &approvals.From{Users: who.Users, Groups: who.Groups}
		for _, t := range f.Requesters.People.Items {
			b.names.look("requester.name", t.Value, t.Mark)
		}
		for _, t := range f.Requesters.Groups.Items {
			b.names.look("requester.groups", t.Value, t.Mark)
		}
	}
}

// remote reports whether the rule may apply to calls of a remote agent, whose tools are
// not known.
func (b *builder) remote(r *rule) bool {
	return slices.ContainsFunc(b.p.options.Remote, r.forAgent)
}

// readEffect reads what the rule does.
func (b *builder) readEffect(r *rule, f ruleForm) {
	effects := 0
	if f.Deny.Written() {
		effects++
		r.kind, r.reason = KindDeny, f.Deny.Value
	}
	if f.Allow.Written() {
		effects++
		r.kind = KindAllow
		if !f.Allow.Value {
			b.Wrong(f.Allow.Mark, "is false; write deny with a reason, or ask")
		}
	}
	if f.Ask != nil {
		effects++
		r.kind, r.ask = KindAsk, newAsk(f.Ask, b.names, b.p.fallback)
		if !f.Channels.Written() {
			f.Ask.here(b.Problems)
		}
	}
	switch effects {
	case 0:
		b.Wrong(f.Mark, "has no effect; write deny, allow or ask")
	case 1:
	default:
		b.Wrong(f.Mark, "has several of deny, allow and ask; keep one")
	}
}

// concerned returns the known tools that the rule is for.
func (b *builder) concerned(r *rule) []*tool {
	var all []*tool
	for _, t := range b.p.tools {
		if r.concerns(t.Agent, t.Name) {
			all = append(all, t)
		}
	}
	return all
}

// addSettings adds the rules behind those of the file, for each tool: its
// setting, else that of its agent, else what its code says. A tool of which
// none says anything asks with the default.
func (b *builder) addSettings() {
	conditions := map[string]map[string]condition{}
	for _, t := range b.p.tools {
		s := t.Setting
		if s.Approval == ApprovalUnset {
			s = t.AgentSetting
		}
		at := strictyaml.Mark{Path: s.Place}
		r := &rule{
			name: cmp.Or(s.Place, "approval of "+t.Name), tools: []string{quoteGlob(t.Name)}, agents: []string{t.Agent}, mark: at,
			kind: KindAsk, ask: b.p.fallback,
		}
		switch s.Approval {
		case ApprovalTrue:
		case ApprovalFalse:
			if r.kind = KindAllow; t.Asks == AsksAlways && t.Setting.Approval != ApprovalUnset {
				b.Wrong(at, "is false, but %s always needs approval; remove it", t.Name)
			}
		case ApprovalWhen:
			asks := *r
			if conditions[s.Place] == nil {
				conditions[s.Place] = map[string]condition{}
			}
			key := s.When + "\x00" + string(t.Schema)
			if _, known := conditions[s.Place][key]; !known {
				conditions[s.Place][key] = b.condition(text{Mark: at, Value: s.When, Offset: -1}, []*tool{t}, false)
			}
			conditions[s.Place][key].of(&asks)
			b.add(&asks)
			r.kind = KindAllow
		case ApprovalUnset:
			if t.Asks != AsksNever && t.Asks != AsksWhen && t.Asks != AsksExternal {
				continue
			}
			r.name, r.kind = "what "+t.Name+" says of itself", KindAllow
		default:
			b.Wrong(at, "is %q, must be true, false or a condition", string(s.Approval))
		}
		b.add(r)
	}
}

// quoteGlob is a pattern that matches the name and nothing else.
func quoteGlob(name string) string {
	return strings.NewReplacer("*", "\\*", "?", "\\?", "[", "\\[", "\\", "\\\\").Replace(name)
}

// lint refuses rules of the file that never match, or never decide. It only warns of one
// that a deny outranks: a deny that is added in an emergency has to take effect at once,
// whatever else the file has.
func (b *builder) lint() {
	for i, r := range b.p.rules[:b.p.own] {
		tools := b.concerned(r)
		switch {
		case r.unsound:
			continue
		case len(b.p.tools) > 0 && len(tools) == 0 && !b.remote(r):
			b.Wrong(r.mark, "never matches: none of these agents has this tool")
			continue
		case r.kind == KindAllow && len(tools) > 0 && !b.remote(r) && !slices.ContainsFunc(tools, func(t *tool) bool { return t.Asks != AsksAlways }):
			b.Wrong(r.mark, "has no effect: the code of this tool always asks for approval, and allow does not override that")
			continue
		}
		if !r.shadow {
			b.lintCovered(i, r, tools)
			b.lintDenied(r, tools)
		}
	}
}

func (b *builder) lintCovered(i int, r *rule, tools []*tool) {
	var by *rule
	if len(b.p.tools) == 0 || b.remote(r) {
		if by = b.coverUnknown(i, r); by == nil {
			return
		}
	}
	for _, t := range tools {
		if by = b.coverOf(i, r, t); by == nil {
			return
		}
	}
	switch {
	case by == nil:
	case by.kind == KindDeny:
		b.warn(r.mark, fmt.Sprintf("never decides: %s (%s) denies every call that it could match%s", by.name, by.mark, covered(by, r)))
	default:
		b.Wrong(r.mark, "never decides: %s (%s) %s every call that it could match%s", by.name, by.mark, verb(by.kind), covered(by, r))
	}
}

// lintDenied warns of a form of a command that a deny notices always.
func (b *builder) lintDenied(r *rule, tools []*tool) {
	if r.command == nil || r.kind == KindDeny {
		return
	}
	for _, o := range b.p.rules[:b.p.own] {
		if o.kind != KindDeny || o.shadow || o.unsound || o.command == nil || o.isWhen || !part(o.channels, r.channels) || o.requesters != nil {
			continue
		}
		run, denied := o.command.denies(r.command)
		for _, t := range tools {
			denied = denied && o.concerns(t.Agent, t.Name)
		}
		if denied && (len(tools) > 0 && !b.remote(r) || part(o.tools, r.tools) && part(o.agents, r.agents)) {
			b.warn(r.mark, fmt.Sprintf("lists %s, which %s (%s) denies, and a deny always wins; remove the form, or narrow the deny", run, o.name, o.mark))
			return
		}
	}
}

func covered(by, r *rule) string {
	if by.kind == KindDeny && r.kind != KindDeny {
		return ", and a deny always wins"
	}
	return " and comes first; move this rule up, or narrow the other"
}

func verb(k Kind) string {
	return map[Kind]string{KindDeny: "denies", KindAllow: "allows", KindAsk: "asks about"}[k]
}

// covers reports whether r, if it matches, leaves nothing for o to decide.
func (r *rule) covers(o *rule, before, mayAsk bool) bool {
	switch {
	case r.shadow, r.unsound, r == o, !r.asWide(o):
		return false
	case r.kind == KindAllow && r.check != "" && o.kind == KindAsk: // its check can make o decide
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
	case r.isWhen && r.written != o.written, !r.command.asWideAs(o.command), !part(r.channels, o.channels):
		return false
	case r.requesters == nil:
		return true
	}
	return o.requesters != nil && all(r.requesters.Users, o.requesters.Users) && all(r.requesters.Groups, o.requesters.Groups)
}

// part reports whether some is within of, where an empty list means everything.
func part(of, some []string) bool { return len(of) == 0 || len(some) > 0 && all(of, some) }

func all[T comparable](of, some []T) bool {
	return !slices.ContainsFunc(some, func(s T) bool { return !slices.Contains(of, s) })
}

func (b *builder) coverOf(i int, r *rule, t *tool) *rule {
	mayAsk := t.Asks != AsksNever && t.Asks != AsksExternal
	for j, o := range b.p.rules[:b.p.own] {
		if o.concerns(t.Agent, t.Name) && o.covers(r, j < i, mayAsk) {
			return o
		}
	}
	return nil
}

// coverUnknown is for calls of tools that are not known: then only what is
// written the same, or left out, is known to cover.
func (b *builder) coverUnknown(i int, r *rule) *rule {
	for j, o := range b.p.rules[:b.p.own] {
		if part(o.tools, r.tools) && part(o.agents, r.agents) && o.covers(r, j < i, true) {
			return o
		}
	}
	return nil
}
