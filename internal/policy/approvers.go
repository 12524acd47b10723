package policy

import (
	"slices"

	"github.com/countersign/countersign/internal/approvals"
)

// Approvers are the people and groups that a call may wait for.
type Approvers struct {
	Rule   string // its name; empty: the default
	From   approvals.From
	Direct approvals.DirectMessages
}

// Approvers returns the people and groups that calls of the tool in the channel
// may wait for: those of every ask that may rule there, for any requester and
// arguments, in the order in which the rules decide. Rules in shadow mode and
// escalations do not count.
func (p *Policy) Approvers(t Tool, channel string) []Approvers {
	var all []Approvers
	add := func(name string, a *ask) {
		found := Approvers{Rule: name, Direct: a.dm}
		for _, q := range a.resolved(a.quorums, approvals.Proposal{Agent: t.Agent, Channel: channel}, p.names) {
			found.From.Users = append(found.From.Users, q.From.Users...)
			found.From.Groups = append(found.From.Groups, q.From.Groups...)
		}
		slices.Sort(found.From.Users)
		slices.Sort(found.From.Groups)
		found.From.Users, found.From.Groups = slices.Compact(found.From.Users), slices.Compact(found.From.Groups)
		all = append(all, found)
	}
	here := func(r *rule) bool { return len(r.channels) == 0 || slices.Contains(r.channels, channel) }
	always := func(r *rule) bool { return here(r) && r.requesters == nil && !r.isWhen && r.command == nil }
	itself := t.Asks == AsksWhen || t.Asks == AsksAlways // then it is not allowed to run
	pl := p.plan(t.Agent, t.Name)
	if slices.ContainsFunc(pl.deny, always) {
		return nil
	}
	for _, r := range pl.flow {
		if !here(r) || r.kind == KindAllow && itself {
			continue
		}
		if r.kind == KindAsk {
			add(r.name, r.ask)
		}
		if always(r) && (r.kind != KindAllow || r.check == "") {
			return all
		}
	}
	add("", p.fallback)
	return all
}
