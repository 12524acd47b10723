package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/strictyaml"
)

// reach finds requirements that nobody could meet. Without a roster it knows the
// people who are named, and assumes that every group is as large as needed.
type reach struct {
	*strictyaml.Problems
	p      *Policy
	n      *names
	roster *Roster
	at     time.Time
}

func newReach(p *Policy, found *strictyaml.Problems) *reach {
	return &reach{found, p, p.names, p.options.Roster, time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
}

func (r *reach) check() {
	if r.Count() > 0 {
		return // what is not understood cannot be weighed
	}
	r.unused()
	r.vetoes()
	r.members()
	if r.Count() > 0 {
		return
	}
	for _, a := range r.asks() {
		r.ask(a)
	}
	if r.Count() > 0 {
		return
	}
	if _, err := r.open(r.p.strictest); err != nil {
		if many, ok := errors.AsType[*approvals.TooManyNamedError](err); ok {
			r.Wrong(r.p.fallback.Mark, "a call for which a condition can't be evaluated needs every quorum in the file, and together they name %d people and groups, but at most %d can be asked at once; "+
				"name groups of people instead", many.Named, approvals.MaxNamed)
			return
		}
	}
	people, _ := r.people(r.p.strictest)
	if !r.fill(r.p.strictest, people) {
		r.Wrong(r.p.fallback.Mark, "a call for which a condition can't be evaluated needs every quorum in the file, but they can't all be met, because one person counts once; name more people")
	}
}

func sameQuorums(a, b *ask) bool {
	return len(a.quorums) == len(b.quorums) && &a.quorums[0] == &b.quorums[0]
}

// vetoes reports vetoes without effect: one denial of anyone who may approve
// settles the call already.
func (r *reach) vetoes() {
	for _, a := range r.asks() {
		var may from
		for _, q := range a.quorums {
			may.Users, may.Groups = slices.Concat(may.Users, q.from.Users), slices.Concat(may.Groups, q.from.Groups)
			may.manager, may.here = may.manager || q.from.manager, may.here || q.from.here
		}
		for _, v := range a.vetoes {
			switch {
			case a.denials == 1 && within(v.from, may):
				r.Wrong(v.mark, "does nothing: these people are approvers, so one denial is already enough; write denials: 2 or more, or remove the veto")
			case v.Need >= a.denials && within(v.from, may):
				r.Wrong(v.mark, "does nothing: these people are approvers, so %d denials are already enough; lower its need, or remove the veto", a.denials)
			}
		}
	}
}

// asks are the default and those of the rules, each once.
func (r *reach) asks() []*ask {
	all := []*ask{r.p.fallback}
	for _, rule := range r.p.rules[:r.p.own] {
		if rule.ask != nil && len(rule.ask.quorums) > 0 && !sameQuorums(rule.ask, r.p.fallback) {
			all = append(all, rule.ask)
		}
	}
	return all
}

// ask checks one ask for every requester, in every way in which it can be met.
func (r *reach) ask(a *ask) {
	before := r.Count()
	fragile, all := "", true
	for _, requester := range r.requesters(a) {
		q := approvals.Proposal{Requester: requester, Channel: "C0HERE"}
		for _, way := range a.ways() {
			quorums := r.quorums(way, q)
			people, complete := r.people(quorums)
			all = all && complete
			if a.separation {
				people = without(people, requester)
			}
			if !r.fill(quorums, people) {
				r.Wrong(at(way, a), "%s", r.short(way, quorums, people, requester))
				return
			}
			if fragile == "" {
				fragile = r.fragile(a, way, q)
			}
		}
	}
	r.denials(a, all)
	r.widens(a)
	if r.Count() > before {
		return
	}
	// A fragile that is not needed today is no mistake: a group that grows must
	// not stop the next start.
	if fragile != "" && !a.fragile.Value {
		r.Wrong(a.Mark, "%s; name more people, or say fragile: true", fragile)
	}
}

// at is where a problem with a way is said: at its only quorum, or at the ask.
func at(way []quorum, a *ask) strictyaml.Mark {
	if len(way) == 1 {
		return way[0].mark
	}
	return a.Mark
}

// requesters are those for whom the ask differs: anyone, or everyone who has
// a manager.
func (r *reach) requesters(a *ask) []approvals.UserID {
	if !slices.ContainsFunc(slices.Concat(a.quorums, a.vetoes), func(q quorum) bool { return q.from.manager }) {
		return []approvals.UserID{stranger}
	}
	return slices.Sorted(maps.Keys(r.n.managers))
}

// stranger asks and is in no group; no id looks like it.
const stranger approvals.UserID = "?"

// quorums are those of a way for one call, all of them needed.
func (r *reach) quorums(way []quorum, q approvals.Proposal) []approvals.Quorum {
	var all []approvals.Quorum
	for _, of := range way {
		who, err := of.from.of(q, r.n)
		if err != nil {
			continue // requesters have managers, and the channel is one
		}
		all = append(all, approvals.Quorum{Name: of.Name, Need: of.Need, From: who, Stage: 1})
	}
	return all
}

// people are those who could approve, as they would be found. Complete is whether
// these are all: no group is a guess.
func (r *reach) people(quorums []approvals.Quorum) (people []approvals.Principal, complete bool) {
	need, complete := 1, true
	var users []approvals.UserID
	groups := map[approvals.GroupID]bool{}
	for _, q := range quorums {
		need += q.Need
		users = append(users, q.From.Users...)
		for _, g := range q.From.Groups {
			groups[g] = true
		}
	}
	found := map[approvals.UserID][]approvals.GroupID{}
	for _, u := range users {
		found[u] = nil
	}
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		known := false
		if r.roster != nil {
			_, known = r.roster.Groups[g]
		}
		if !known {
			complete = false
			for i := range min(need, 1000) + 1 {
				u := approvals.UserID(fmt.Sprintf("?%s/%d", g, i))
				found[u] = append(found[u], g)
			}
			continue
		}
		for _, u := range r.in(g) {
			found[u] = append(found[u], g)
		}
	}
	alike := map[string]int{} // people who can do the same are as good as each other
	for _, u := range slices.Sorted(maps.Keys(found)) {
		key := fmt.Sprint(found[u])
		if slices.Contains(users, u) {
			key += string(u)
		}
		if alike[key]++; alike[key] <= need+1 {
			people = append(people, approvals.Principal{User: u, Groups: found[u], GroupsAt: r.at})
		}
	}
	return people, complete
}

func without(people []approvals.Principal, u approvals.UserID) []approvals.Principal {
	return slices.DeleteFunc(slices.Clone(people), func(p approvals.Principal) bool { return p.User == u })
}

// fill reports whether the quorums are met if everyone approves. It asks the code
// that counts approvals.
func (r *reach) fill(quorums []approvals.Quorum, people []approvals.Principal) bool {
	b, err := r.open(quorums)
	if err != nil {
		return false
	}
	for _, by := range people {
		next, _, err := b.Apply(approvals.Decide{Decision: approvals.Decision{
			Call: weighed.ID, By: by, Verdict: approvals.Approve, Digest: approvals.DigestOf(b.ID, weighed), At: r.at,
		}})
		if err == nil {
			b = next
		}
	}
	return b.Approvals[0].Status == approvals.Approved
}

// weighed is the call that quorums are weighed with.
var weighed = approvals.ToolCall{ID: "call", Name: "tool"}

// open returns a batch that needs all of these quorums.
func (r *reach) open(quorums []approvals.Quorum) (approvals.Batch, error) {
	b, _, err := approvals.Open(approvals.Batch{ID: "batch", Run: "run", Requester: stranger, OpenedAt: r.at},
		[]approvals.Deferral{{Call: weighed, Ask: approvals.Ask{Requirement: approvals.Requirement{Quorums: quorums, Deny: 1, Separation: true}}}}, nil)
	return b, err
}

// short says why a way cannot be met.
func (r *reach) short(way []quorum, quorums []approvals.Quorum, people []approvals.Principal, requester approvals.UserID) string {
	of := ""
	if requester != stranger {
		of = " when " + r.n.callOf(string(requester)) + " asks"
	}
	for _, q := range quorums {
		if r.fill([]approvals.Quorum{q}, people) {
			continue
		}
		one := q
		one.Need = 1
		count := 0
		for _, p := range people {
			if r.fill([]approvals.Quorum{one}, []approvals.Principal{p}) {
				count++
			}
		}
		return fmt.Sprintf("%s needs %d of %s, and only %d could approve%s; name more people, or lower its need", q.Name, q.Need, r.n.say(q.From), count, of)
	}
	var all []string
	for _, q := range way {
		all = append(all, q.places(r.n))
	}
	return fmt.Sprintf("can't be met even if everyone approves%s, because one person counts once: %s; name more people, or lower its need", of, strings.Join(all, " and "))
}

// fragile says who must not be missing, with everyone who is added in time.
func (r *reach) fragile(a *ask, way []quorum, q approvals.Proposal) string {
	wide := slices.Clone(way)
	for _, s := range a.rungs {
		for i := range wide {
			if wide[i].Name == s.quorum {
				f := &wide[i].from
				f.Users, f.Groups = slices.Concat(f.Users, s.add.Users), slices.Concat(f.Groups, s.add.Groups)
				f.manager, f.here = f.manager || s.add.manager, f.here || s.add.here
			}
		}
	}
	quorums := r.quorums(wide, q)
	people, _ := r.people(quorums)
	if a.separation {
		people = without(people, q.Requester)
	}
	for _, p := range people {
		if strings.HasPrefix(string(p.User), "?") || r.fill(quorums, without(people, p.User)) {
			continue
		}
		name := r.n.callOf(string(p.User))
		if a.separation {
			return fmt.Sprintf("if %s is away, or asks, no one else can approve", name)
		}
		return fmt.Sprintf("if %s is away, no one else can approve", name)
	}
	return ""
}

// denials checks that those who may deny are as many as must, and that a veto
// can be used.
func (r *reach) denials(a *ask, complete bool) {
	q := approvals.Proposal{Requester: r.requesters(a)[0], Channel: "C0HERE"}
	all := r.quorums(slices.Concat(a.quorums, a.vetoes), q)
	all[0].Need = max(all[0].Need, a.denials) // so that as many are counted
	people, known := r.people(all)
	if complete && known && a.denials > len(people) {
		only := fmt.Sprintf("%d people", len(people))
		if len(people) == 1 {
			only = "one person"
		}
		r.Wrong(a.denialsAt, "needs %d denials, and only %s may approve; lower denials", a.denials, only)
	}
	for _, v := range a.vetoes {
		quorums := r.quorums([]quorum{v}, q)
		people, _ := r.people(quorums)
		if !r.fill(quorums, people) {
			r.Wrong(v.mark, "%s", r.short([]quorum{v}, quorums, people, stranger))
		}
	}
}

// widens checks that an escalation adds someone who is not there already.
func (r *reach) widens(a *ask) {
	if r.roster == nil {
		return
	}
	q := approvals.Proposal{Requester: r.requesters(a)[0], Channel: "C0HERE"}
	for _, s := range a.rungs {
		i := slices.IndexFunc(a.quorums, func(o quorum) bool { return o.Name == s.quorum })
		if i < 0 || s.kind != approvals.Escalate {
			continue
		}
		added := quorum{from: s.add, Quorum: approvals.Quorum{Need: 1_000}}
		there := quorum{from: a.quorums[i].from, Quorum: approvals.Quorum{Need: 1_000}}
		more, known := r.people(r.quorums([]quorum{added}, q))
		before, all := r.people(r.quorums([]quorum{there}, q))
		fresh := slices.ContainsFunc(more, func(p approvals.Principal) bool {
			return !slices.ContainsFunc(before, func(o approvals.Principal) bool { return o.User == p.User })
		})
		if known && all && !fresh {
			r.Wrong(s.mark, "adds no one new to %s: all of them are in it already", s.quorum)
		}
	}
}
