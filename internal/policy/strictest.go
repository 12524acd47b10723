package policy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// Strictest implements [approvals.Policy], for a call of which nothing is known:
// see [Policy.Rule] for one that is. It needs every quorum of the file, with all
// alternatives, has the shortest deadline and time to claim, and one denial settles it. The
// requester, the participants, editors and delegates may not approve. Rules in
// shadow mode do not count.
func (p *Policy) Strictest(at time.Time) approvals.Requirement {
	return p.together(approvals.Proposal{At: at}, p.asks)
}

// together is the requirement for a call that no rule could judge: people
// who meet it meet each of the asks. The manager and the channel are those of the
// call; see [from.standIns] for a call that has none.
func (p *Policy) together(q approvals.Proposal, asks []*ask) approvals.Requirement {
	r := approvals.Requirement{Deny: 1, Separation: true}
	for i, a := range asks {
		if i == 0 {
			r.Direct = a.dm
		}
		r.Quorums = union(r.Quorums, a.resolved(a.quorums, q, p.names))
		r.Vetoes = anyOf(r.Vetoes, a.resolved(a.vetoes, q, p.names))
		if d := a.hours.add(q.At, a.within); r.Deadline.IsZero() || d.Before(r.Deadline) {
			r.Deadline = d
		}
		if a.claim > 0 && (r.ClaimWithin == 0 || a.claim < r.ClaimWithin) {
			r.ClaimWithin = a.claim
		}
		r.ReasonNeeded = r.ReasonNeeded || a.reason
		r.Direct = r.Direct.Wider(a.dm)
	}
	return r
}

// resolved returns the quorums for a call, even if it lacks what they depend on.
func (a *ask) resolved(quorums []quorum, q approvals.Proposal, n *names) []approvals.Quorum {
	all := make([]approvals.Quorum, len(quorums))
	for i, of := range quorums {
		all[i] = of.Quorum
		who, err := of.from.of(q, n)
		if err != nil {
			who = of.from.standIns(q, n)
			if of.from.manager && !of.from.here && len(of.from.Users)+len(of.from.Groups) == 0 {
				all[i].Need = 1
			}
		}
		all[i].From = who
	}
	return all
}

// standIns are who may fill a place of a call that lacks what the place depends
// on. If the requester has no manager, every manager of the file may; if
// the call has no channel, no channel may.
func (f from) standIns(q approvals.Proposal, n *names) approvals.From {
	who := f
	who.here = f.here && channelID.MatchString(q.Channel)
	if f.manager && n.managers[q.Requester] == "" {
		who.manager = false
		who.Users = slices.Concat(f.Users, slices.Collect(maps.Values(n.managers)))
		slices.Sort(who.Users)
		who.Users = slices.Compact(who.Users)
	}
	standing, _ := who.of(q, n) // it depends on nothing that is missing
	return standing
}

// union adds the quorums of one ask: each once for the same people, with the
// most places that any ask has for them. Within an ask the places for the same
// people add up.
func union(all, of []approvals.Quorum) []approvals.Quorum {
	for i, q := range of {
		if indexOf(of[:i], q.From) >= 0 {
			continue // counted
		}
		need := places(of, q.From)
		if i := indexOf(all, q.From); i >= 0 {
			all[i].Need = max(all[i].Need, need)
			continue
		}
		all = append(all, approvals.Quorum{Name: freeName(all, q.Name), Need: need, From: q.From, Stage: 1})
	}
	return all
}

// places counts those of an ask for the same people: all that are needed
// always, and of every choice those of the option with the most.
func places(of []approvals.Quorum, from approvals.From) int {
	options := map[[2]int]int{}
	for _, q := range of {
		if sameFrom(q.From, from) {
			options[[2]int{q.Choice, q.Option}] += q.Need
		}
	}
	most, sum := map[int]int{}, 0
	for o, n := range options {
		most[o[0]] = max(most[o[0]], n)
	}
	for _, n := range most {
		sum += n
	}
	return sum
}

// anyOf adds the vetoes of one ask: each once for the same people, with the
// fewest denials that are enough in any ask.
func anyOf(all, of []approvals.Quorum) []approvals.Quorum {
	for _, q := range of {
		if q.From.Empty() {
			continue // it names nobody
		}
		if i := indexOf(all, q.From); i >= 0 {
			all[i].Need = min(all[i].Need, q.Need)
			continue
		}
		all = append(all, approvals.Quorum{Name: freeName(all, q.Name), Need: q.Need, From: q.From, Stage: q.Stage})
	}
	return all
}

func indexOf(all []approvals.Quorum, from approvals.From) int {
	return slices.IndexFunc(all, func(q approvals.Quorum) bool { return sameFrom(q.From, from) })
}

// freeName is a name that no quorum has: a batch has no two of one name.
func freeName(all []approvals.Quorum, name string) string {
	for slices.ContainsFunc(all, func(q approvals.Quorum) bool { return q.Name == name }) {
		name += "+"
	}
	return name
}

// maxBroken is how many rules that could not be judged are named to people.
const maxBroken = 5

// unjudged asks for what the asks need together, and says which rules could not
// be judged, without the arguments why, and what they are there for.
func (p *Policy) unjudged(f *facts, asks []*ask, all []broken) approvals.Ask {
	ask := approvals.Ask{Requirement: p.together(f.q, asks), Rule: all[0].rule.full}
	unstated := false
	for _, a := range asks {
		ask.Severity = ask.Severity.Worse(a.severity)
		unstated = unstated || a.severity.Worse(f.hints.severity) == approvals.SeverityUnset
	}
	if unstated && ask.Severity == approvals.SeverityLow {
		ask.Severity = approvals.SeverityUnset // what some rules say of other calls is no promise about this one
	}
	var why []string
	for i, b := range all {
		ask.Unjudged = ask.Unjudged || b.rule.kind == KindDeny || errors.Is(b.err, errCheck)
		if i < maxBroken {
			why = append(why, "The rule "+b.rule.name+" could not be judged for this call: "+b.err.Error()+".", b.rule.purpose(p.fallback))
		}
	}
	if more := len(all) - maxBroken; more > 0 {
		why = append(why, fmt.Sprintf("%d more rules could not be judged either.", more))
	}
	why = append(why, "So it needs every approval that the policy can ask for.")
	for _, q := range ask.Requirement.Quorums {
		if q.From.Empty() {
			why = append(why, "Nobody can approve for "+q.Name+" here, so the call can't run.")
		}
	}
	why = slices.DeleteFunc(why, func(s string) bool { return s == "" })
	ask.Why = strings.Join(why, " ")
	return ask
}

// purpose returns the rule's own wording of why it denies or asks; fallback has
// that of asks without one.
func (r *rule) purpose(fallback *ask) string {
	switch {
	case r.kind == KindDeny:
		return "That rule denies: " + sentence(r.reason)
	case r.kind == KindAsk && cmp.Or(r.ask.why, fallback.why) != "":
		return "That rule asks: " + sentence(cmp.Or(r.ask.why, fallback.why))
	}
	return ""
}

// sentence ends with a stop.
func sentence(s string) string {
	if s = strings.TrimSpace(s); s == "" || strings.ContainsAny(s[len(s)-1:], ".!?") {
		return s
	}
	return s + "."
}
