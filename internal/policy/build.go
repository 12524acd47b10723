package policy

import (
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/strictyaml"
)

// A source is one file of a policy.
type source struct {
	path string // as it is said in messages
	name string
	src  []byte
}

// digest is over the names and bytes of the files, each with its length in
// front.
func digest(files []source) approvals.Digest {
	var parts [][]byte
	for _, f := range files {
		parts = append(parts, []byte(f.name), f.src)
	}
	return approvals.TupleDigest(parts...)
}

// A builder makes a policy of its files: it reads them, checks them and reports
// what is wrong. A policy does not change once it is built.
type builder struct {
	*checker
	p *Policy
}

// compile reads the files as one.
func compile(files []source, o Options) (*Policy, error) {
	var found strictyaml.Problems
	n := newNames(&found)
	forms, err := readForms(files, n)
	if err != nil {
		return nil, err
	}
	sum := digest(files)
	p := &Policy{content: sum, version: hex.EncodeToString(sum[:4]), options: o, names: n, plans: map[[2]string]*plan{}}
	p.defaultName = nameDefault + "@" + p.version
	b := &builder{checker: &checker{Problems: &found, names: n, remote: o.Remote, envs: map[string]*typed{}}, p: p}
	b.build(forms)
	if err := found.Err(); err != nil {
		return nil, err
	}
	b.learnPlans()
	x := &examiner{Problems: &found, p: p}
	for _, f := range forms {
		x.check(f)
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// readForms reads the files, and what they name. If some cannot be
// read, it returns only their errors: the others would follow from what is missing.
func readForms(files []source, n *names) ([]*fileForm, error) {
	forms := make([]*fileForm, len(files))
	whole := true
	for i, f := range files {
		forms[i] = &fileForm{}
		whole = strictyaml.Decode(f.path, f.src, n.Problems, forms[i]) && whole
		forms[i].Mark = strictyaml.Mark{File: f.path, Line: max(1, forms[i].Line), Col: max(1, forms[i].Col)}
		n.learn(forms[i])
	}
	if !whole {
		return nil, n.Err()
	}
	for _, f := range forms {
		n.resolve(f)
	}
	return forms, nil
}

// build fills the policy, and says everything that is wrong with it.
func (b *builder) build(forms []*fileForm) {
	b.learnTools()
	b.readMode(forms)
	zone := b.readZone(forms)
	b.readDefault(forms)
	for _, f := range forms {
		for _, r := range f.Rules.Items {
			b.add(b.newRule(r))
		}
	}
	b.p.own = len(b.p.rules)
	b.addSettings()
	for i, r := range b.p.rules {
		r.pos = i
	}
	if zone.Written() && !b.names.today && b.Count() == 0 {
		b.Wrong(zone, "has no effect, because no condition uses today; remove it")
	}
	b.lint()
	b.collect(forms[0].Mark)
	newReach(b.p, b.Problems).check()
}

// learnPlans keeps the plans of the known tools.
func (b *builder) learnPlans() {
	for _, t := range b.p.tools {
		pl := b.p.newPlan(t.Agent, t.Name)
		pl.shape, pl.hints = t.shape, t.hints
		if t.Asks == AsksExternal {
			pl.unheld = t
		}
		if pl.would != nil {
			pl.would.shape, pl.would.hints, pl.would.unheld = t.shape, t.hints, pl.unheld
		}
		b.p.plans[[2]string{t.Agent, t.Name}] = pl
	}
}

func (b *builder) learnTools() {
	shapes := map[string]*shape{}
	for _, t := range b.p.options.Tools {
		key := string(t.Schema)
		if shapes[key] == nil {
			shapes[key] = nothing
			if len(t.Schema) > 0 {
				shapes[key] = shapeOf(t.Schema)
			}
		}
		known := &tool{Tool: t, shape: shapes[key], hints: t.Annotations.hints()}
		known.hints.severity = t.Severity
		b.p.tools = append(b.p.tools, known)
	}
	b.tools = b.p.tools
}

func (b *builder) readMode(forms []*fileForm) {
	var first strictyaml.Mark
	for _, f := range forms {
		if !f.Mode.Written() {
			continue
		}
		if first.Written() {
			b.Wrong(f.Mode.Mark, "is already set at %s; set it in one file only", first)
			continue
		}
		first = f.Mode.Mark
		b.p.shadow = isShadow(f.Mode, b.Problems)
	}
}

// readZone reads in which zone days begin, and returns where that is written.
func (b *builder) readZone(forms []*fileForm) (first strictyaml.Mark) {
	b.p.zone = time.UTC
	for _, f := range forms {
		if !f.Zone.Written() {
			continue
		}
		if first.Written() {
			b.Wrong(f.Zone.Mark, "is already set at %s; set it in one file only", first)
			continue
		}
		first = f.Zone.Mark
		zone, err := time.LoadLocation(f.Zone.Value)
		switch {
		case f.Zone.Value == "":
		case err != nil || f.Zone.Value == "Local":
			b.Wrong(f.Zone.Mark, "%q is not a time zone such as Europe/Berlin", f.Zone.Value)
		default:
			b.p.zone = zone
		}
	}
	return first
}

func isShadow(mode text, found *strictyaml.Problems) bool {
	switch mode.Value {
	case "", "enforce":
	case "shadow":
		return true
	default:
		found.Wrong(mode.Mark, "is %q, must be enforce or shadow", mode.Value)
	}
	return false
}

func (b *builder) readDefault(forms []*fileForm) {
	for _, f := range forms {
		switch {
		case f.Default == nil:
		case b.p.fallback != nil:
			b.Wrong(f.Default.Mark, "is already set at %s; set it in one file only", b.p.fallback.Mark)
		default:
			b.p.fallback = newAsk(f.Default, b.names, nil)
		}
	}
	if b.p.fallback == nil {
		b.Wrong(forms[0].Key("default"), "is missing; say who approves calls that match no rule")
		b.p.fallback = &ask{within: DefaultWithin}
	}
	for i, q := range b.p.fallback.quorums {
		if q.from.depends() && i == 0 && !slices.ContainsFunc(b.p.fallback.quorums, func(q quorum) bool { return !q.from.depends() }) {
			b.Wrong(q.mark, "depends on who asks, but default must work for everyone; add a quorum of people or groups")
		}
	}
}

func (b *builder) add(r *rule) {
	r.full = r.name + "@" + b.p.version
	b.p.rules = append(b.p.rules, r)
}

// collect gathers the asks that [Policy.Strictest] puts together: those that
// are enforced, and those that would be if the file were.
func (b *builder) collect(at strictyaml.Mark) {
	b.p.asks, b.p.wholeAsks = []*ask{b.p.fallback}, []*ask{b.p.fallback}
	for _, r := range b.p.rules[:b.p.own] {
		if r.kind != KindAsk || r.shadow || r.ask == nil {
			continue
		}
		b.p.wholeAsks = append(b.p.wholeAsks, r.ask)
		if !b.p.shadow {
			b.p.asks = append(b.p.asks, r.ask)
		}
	}
	if count := namedBy(b.p.asks...); count > approvals.MaxNamed {
		b.warn(strictyaml.Mark{File: at.File, Line: at.Line, Col: at.Col, Path: "rules"}, fmt.Sprintf("all rules together name %d people and groups, with their vetoes and escalations, "+
			"and at most %d can be asked at once: where the calls of one request name more, nobody is asked and none of them runs; name groups of people instead", count, approvals.MaxNamed))
	}
	for _, a := range b.p.asks {
		always := slices.DeleteFunc(slices.Clone(a.quorums), func(q quorum) bool { return q.from.depends() })
		b.p.strictest = union(b.p.strictest, a.resolved(always, approvals.Proposal{}, b.p.names))
	}
	if len(b.p.strictest) == 0 && b.Count() == 0 {
		b.Wrong(at, "every quorum depends on who asks, so nobody could approve a call for which a condition can't be evaluated; add a quorum of people or groups")
	}
}
