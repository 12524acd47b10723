package policy

import (
	"maps"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
)

// members reports people who are named and can never approve, and groups that
// are empty.
func (r *reach) members() {
	if r.roster == nil {
		return
	}
	r.others()
	users, groups := r.used()
	for _, u := range users {
		switch r.roster.People[u] {
		case Member, Guest:
		case Gone:
			r.Wrong(r.n.userAt[u], "%s is a bot or a deactivated account; name someone else", u)
		default:
			r.Wrong(r.n.userAt[u], "%s can't approve anything; correct the id, or name someone else", u)
		}
	}
	for _, g := range groups {
		_, known := r.roster.Groups[g]
		switch {
		case !known:
			r.Wrong(r.n.groupAt[g], "there is no group or channel %s; correct the id", g)
		case len(r.in(g)) == 0:
			r.Wrong(r.n.groupAt[g], "nobody in %s could approve; add people, or name another group", g)
		}
	}
}

// others reports unknown ids that are named for anything but approving: such a
// rule would never match or notify anyone. People who have left and groups that
// are empty are allowed here.
func (r *reach) others() {
	users, groups := r.used()
	looked := maps.Clone(r.n.looked)
	for u := range r.n.managers {
		looked[string(u)] = r.n.userAt[u]
	}
	for _, a := range r.asks() {
		for _, s := range a.rungs {
			if s.channel != "" {
				looked[s.channel] = s.mark
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(looked)) {
		u, g := approvals.UserID(id), approvals.GroupID(id)
		_, isUser := r.n.userAt[u]
		_, known := r.roster.Groups[g]
		switch {
		case isUser && r.roster.People[u] == "" && !slices.Contains(users, u):
			r.Wrong(r.n.userAt[u], "there is no person %s (used by %s); correct the id", u, looked[id])
		case !isUser && !known && !slices.Contains(groups, g):
			r.Wrong(r.n.groupAt[g], "there is no group or channel %s (used by %s); correct the id", g, looked[id])
		}
	}
}

// unused reports roles and calendars that no rule uses.
func (r *reach) unused() {
	for _, name := range slices.Sorted(maps.Keys(r.n.roles)) {
		if !r.n.usedRoles[name] {
			r.Wrong(r.n.roleAt[name], "this role is not used; name it under roles in a from, or remove it")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.n.calendars)) {
		if !r.n.usedHours[name] && !slices.ContainsFunc(r.asks(), func(a *ask) bool { return a.hours == r.n.calendars[name] }) {
			r.Wrong(r.n.calendarAt[name], "this calendar is not used; name it in hours or in a condition, or remove it")
		}
	}
}

// used returns who is named as an approver, sorted.
func (r *reach) used() ([]approvals.UserID, []approvals.GroupID) {
	users, groups := map[approvals.UserID]bool{}, map[approvals.GroupID]bool{}
	add := func(f from) {
		for _, u := range f.Users {
			users[u] = true
		}
		for _, g := range f.Groups {
			groups[g] = true
		}
		if f.manager {
			for _, u := range r.n.managers {
				users[u] = true
			}
		}
	}
	asks := []*ask{r.p.fallback}
	for _, rule := range r.p.rules {
		if rule.ask != nil {
			asks = append(asks, rule.ask)
		}
	}
	for _, a := range asks {
		for _, q := range slices.Concat(a.quorums, a.vetoes) {
			add(q.from)
		}
		for _, s := range a.rungs {
			add(s.add)
		}
	}
	return slices.Sorted(maps.Keys(users)), slices.Sorted(maps.Keys(groups))
}

// in returns the members of a group who can approve as its members.
func (r *reach) in(g approvals.GroupID) []approvals.UserID {
	return slices.DeleteFunc(slices.Clone(r.roster.Groups[g]), func(u approvals.UserID) bool { return r.roster.People[u] != Member })
}
