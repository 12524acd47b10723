package policy

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/strictyaml"
)

// DefaultWithin is the deadline of an ask that names none.
const DefaultWithin = 24 * time.Hour

// MaxWithin is the longest deadline that is accepted: a longer one is a slip.
const MaxWithin = 90 * 24 * time.Hour

// nameDefault is what the ask of calls is called that no rule names.
const nameDefault = "default"

// A Policy rules by one file, or by one directory of them. It is immutable and
// safe for concurrent use.
type Policy struct {
	version string
	content [sha256.Size]byte
	options Options
	names   *names
	shadow  bool    // nothing of the file is enforced but its default
	rules   []*rule // of the file, then of the settings
	own     int     // so many are of the file

	fallback    *ask
	defaultName string
	asks        []*ask             // that are enforced
	wholeAsks   []*ask             // that would be if the file were
	strictest   []approvals.Quorum // of the asks, those that every call has

	tools  []*tool
	plans  map[[2]string]*plan
	groups []approvals.GroupID
}

// Rule implements [approvals.Policy]. It never returns an error: what cannot be
// judged asks with every quorum of the file, for the requester and the channel
// of the call.
func (p *Policy) Rule(ctx context.Context, q approvals.Proposal) (approvals.Ruling, error) {
	f := p.facts(ctx, q)
	return p.rule(f, p.plan(q.Agent, q.Call.Name), p.options.Shadow), nil
}

func (p *Policy) facts(ctx context.Context, q approvals.Proposal) *facts {
	return &facts{p: p, q: q, ctx: ctx, directory: p.options.Directory}
}

// Version is the beginning of the SHA-256 over the files, 8 hex digits. With it
// every ruling names the rules that made it.
func (p *Policy) Version() string { return p.version }

// Rules returns the names of the rules in the order of the file.
func (p *Policy) Rules() []string {
	var all []string
	for _, r := range p.rules[:p.own] {
		all = append(all, r.name)
	}
	return all
}

// Named returns the people, groups and channels that the file names, each with
// the place (file:line:column) where its id is written. A [Roster] should hold
// them.
func (p *Policy) Named() (people map[approvals.UserID]string, groups map[approvals.GroupID]string) {
	people, groups = map[approvals.UserID]string{}, map[approvals.GroupID]string{}
	for id, at := range p.names.userAt {
		people[id] = at.String()
	}
	for id, at := range p.names.groupAt {
		groups[id] = at.String()
	}
	return people, groups
}

// settings are the rules behind those of the file.
func (p *Policy) settings() []*rule { return p.rules[p.own:] }

// A source is one file of a policy.
type source struct {
	path string // as it is said in messages
	name string
	src  []byte
}

// digest is over the names and bytes of the files, each with its length in
// front.
func digest(files []source) [sha256.Size]byte {
	h := sha256.New()
	for _, f := range files {
		for _, part := range [][]byte{[]byte(f.name), f.src} {
			var n [8]byte
			binary.BigEndian.PutUint64(n[:], uint64(len(part)))
			h.Write(n[:])
			h.Write(part)
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// compile reads the files as one.
func compile(files []source, o Options) (*Policy, error) {
	var found strictyaml.Problems
	forms := make([]*fileForm, len(files))
	n := newNames(&found)
	whole := true
	for i, f := range files {
		forms[i] = &fileForm{}
		whole = strictyaml.Decode(f.path, f.src, &found, forms[i]) && whole
		forms[i].Mark = strictyaml.Mark{File: f.path, Line: max(1, forms[i].Line), Col: max(1, forms[i].Col)}
		n.learn(forms[i])
	}
	if !whole {
		return nil, found.Err() // the rest would speak of what is missing
	}
	for _, f := range forms {
		n.resolve(f)
	}
	sum := digest(files)
	p := &Policy{content: sum, version: hex.EncodeToString(sum[:4]), options: o, names: n, plans: map[[2]string]*plan{}}
	p.defaultName = nameDefault + "@" + p.version
	p.groups = slices.Sorted(maps.Values(n.groups))
	c := &checker{Problems: &found, names: n, envs: map[string]*typed{}}
	p.learnTools(c)
	p.readMode(forms, &found)
	p.readDefault(forms, n)
	for _, f := range forms {
		for _, r := range f.Rules.Items {
			p.add(p.newRule(r, c))
		}
	}
	p.own = len(p.rules)
	p.addSettings(c)
	for i, r := range p.rules {
		r.pos = i
	}
	p.lint(&found)
	p.collect(&found, forms[0].Mark)
	newReach(p, &found).check()
	if err := found.Err(); err != nil {
		return nil, err
	}
	for _, t := range p.tools {
		pl := p.newPlan(t.Agent, t.Name)
		pl.shape, pl.hints = t.shape, t.hints
		if pl.would != nil {
			pl.would.shape, pl.would.hints = t.shape, t.hints
		}
		p.plans[[2]string{t.Agent, t.Name}] = pl
	}
	for _, f := range forms {
		p.checkExamples(f, &found)
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Policy) learnTools(c *checker) {
	shapes := map[string]*shape{}
	for _, t := range p.options.Tools {
		key := string(t.Schema)
		if shapes[key] == nil {
			shapes[key] = nothing
			if len(t.Schema) > 0 {
				shapes[key] = shapeOf(t.Schema)
			}
		}
		p.tools = append(p.tools, &tool{Tool: t, shape: shapes[key], hints: t.Annotations.hints()})
	}
	c.tools = p.tools
}

func (p *Policy) readMode(forms []*fileForm, found *strictyaml.Problems) {
	var first strictyaml.Mark
	for _, f := range forms {
		if !f.Mode.Written() {
			continue
		}
		if first.Written() {
			found.Wrong(f.Mode.Mark, "is written already at %s; one holds for all files", first)
			continue
		}
		first = f.Mode.Mark
		p.shadow = isShadow(f.Mode, found)
	}
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

func (p *Policy) readDefault(forms []*fileForm, n *names) {
	for _, f := range forms {
		switch {
		case f.Default == nil:
		case p.fallback != nil:
			n.Wrong(f.Default.Mark, "is written already at %s; one holds for all files", p.fallback.Mark)
		default:
			p.fallback = newAsk(f.Default, n, nil)
		}
	}
	if p.fallback == nil {
		n.Wrong(forms[0].Key("default"), "is missing; say who signs what no rule names")
		p.fallback = &ask{within: DefaultWithin}
	}
	for i, q := range p.fallback.quorums {
		if q.from.depends() && i == 0 && !slices.ContainsFunc(p.fallback.quorums, func(q quorum) bool { return !q.from.depends() }) {
			n.Wrong(q.mark, "depends on who asks, and default must hold for everybody; add a quorum of people or groups")
		}
	}
}

func (p *Policy) add(r *rule) {
	r.full = r.name + "@" + p.version
	p.rules = append(p.rules, r)
}

// collect gathers the asks that [Policy.Strictest] puts together: those that
// are enforced, and those that would be if the file were.
func (p *Policy) collect(found *strictyaml.Problems, at strictyaml.Mark) {
	p.asks, p.wholeAsks = []*ask{p.fallback}, []*ask{p.fallback}
	for _, r := range p.rules[:p.own] {
		if r.kind != KindAsk || r.shadow || r.ask == nil {
			continue
		}
		p.wholeAsks = append(p.wholeAsks, r.ask)
		if !p.shadow {
			p.asks = append(p.asks, r.ask)
		}
	}
	for _, a := range p.asks {
		always := slices.DeleteFunc(slices.Clone(a.quorums), func(q quorum) bool { return q.from.depends() })
		p.strictest = union(p.strictest, a.resolved(always, approvals.Proposal{}, p.names))
	}
	if len(p.strictest) == 0 && len(found.All) == 0 {
		found.Wrong(at, "every quorum depends on who asks, so a call that no rule can judge could not be signed; add one of people or groups")
	}
}

// short is a rule's name without the version of its policy.
func short(full string) string {
	name, _, _ := strings.Cut(full, "@")
	return name
}
