package policy

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// Ids as the chat service mints them, of people, user groups and channels, see
// https://docs.slack.dev/reference/objects.
var (
	userID    = regexp.MustCompile(`^[UW][A-Z0-9]{4,}$`)
	groupID   = regexp.MustCompile(`^S[A-Z0-9]{3,}$`)
	channelID = regexp.MustCompile(`^[CG][A-Z0-9]{3,}$`)
	aName     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
)

// The roles that are not in the file.
const roleManager = "manager"

// names is what the words of a file stand for.
type names struct {
	*problems
	groups    map[string]approvals.GroupID // user groups and channels
	people    map[string]approvals.UserID
	managers  map[approvals.UserID]approvals.UserID
	roles     map[string]from
	calendars map[string]*calendar

	userAt  map[approvals.UserID]mark
	groupAt map[approvals.GroupID]mark
	called  map[string]string // the name of an id

	// What is used otherwise than by who signs, and where.
	looked     map[string]mark // ids
	roleAt     map[string]mark
	calendarAt map[string]mark
	usedRoles  map[string]bool
}

// from is who may fill a place: those who are known now, and those whom only
// the call names.
type from struct {
	approvals.From
	manager bool // of the requester
	here    bool // members of the channel where it was asked
}

func (f from) depends() bool { return f.manager || f.here }

func newNames(p *problems) *names {
	return &names{
		problems: p, groups: map[string]approvals.GroupID{}, people: map[string]approvals.UserID{},
		managers: map[approvals.UserID]approvals.UserID{}, roles: map[string]from{}, calendars: map[string]*calendar{},
		userAt: map[approvals.UserID]mark{}, groupAt: map[approvals.GroupID]mark{}, called: map[string]string{},
		looked: map[string]mark{}, roleAt: map[string]mark{}, calendarAt: map[string]mark{}, usedRoles: map[string]bool{},
	}
}

// learn takes the names of one file; what refers to others comes later, in
// [names.resolve].
func (n *names) learn(f *fileForm) {
	for _, e := range f.Groups.entries {
		id := e.val.s
		switch {
		case !n.name(e.key, "groups"):
		case !e.val.set() || id == "":
		case !groupID.MatchString(id) && !channelID.MatchString(id):
			n.wrong(e.val.mark, "%q is not the id of a user group such as S0123456789, nor of a channel such as C0123456789", id)
		case n.taken(e.val, id):
		case has(n.groups, e.key.s):
			n.wrong(e.key.mark, "is there twice")
		default:
			n.groups[e.key.s], n.groupAt[approvals.GroupID(id)], n.called[id] = approvals.GroupID(id), e.val.mark, e.key.s
		}
	}
	for _, e := range f.People.entries {
		id := e.val.s
		switch {
		case !n.name(e.key, "people"):
		case !e.val.set() || id == "":
		case !userID.MatchString(id):
			n.wrong(e.val.mark, "%q is not a user id such as U0123456789", id)
		case n.taken(e.val, id):
		case has(n.people, e.key.s):
			n.wrong(e.key.mark, "is there twice")
		default:
			n.people[e.key.s], n.userAt[approvals.UserID(id)], n.called[id] = approvals.UserID(id), e.val.mark, e.key.s
		}
	}
	for _, e := range f.Calendars.entries {
		if !n.name(e.key, "calendars") {
			continue
		}
		if has(n.calendars, e.key.s) {
			n.wrong(e.key.mark, "is there twice")
			continue
		}
		n.calendarAt[e.key.s] = e.key.mark
		n.calendars[e.key.s] = newCalendar(e.val, n.problems)
	}
}

// resolve takes what refers to names of any file.
func (n *names) resolve(f *fileForm) {
	for _, e := range f.Managers.entries {
		who, ok := n.person(e.key)
		boss, known := n.person(e.val)
		switch {
		case !ok || !known:
		case who == boss:
			n.wrong(e.val.mark, "nobody is their own manager")
		case n.managers[who] != "":
			n.wrong(e.key.mark, "is there twice")
		default:
			n.managers[who] = boss
		}
	}
	for _, e := range f.Roles.entries {
		switch {
		case !n.name(e.key, "roles"):
		case e.key.s == roleManager:
			n.wrong(e.key.mark, "is the manager of whoever asks, see managers; choose another name")
		case has(n.roles, e.key.s):
			n.wrong(e.key.mark, "is there twice")
		default:
			n.roleAt[e.key.s] = e.key.mark
			n.roles[e.key.s] = n.from(&fromForm{mark: e.val.mark, People: e.val.People, Groups: e.val.Groups, Channels: e.val.Channels}, mark{})
		}
	}
}

func has[V any](m map[string]V, name string) bool { _, ok := m[name]; return ok }

func (n *names) name(t text, of string) bool {
	if aName.MatchString(t.s) {
		return true
	}
	n.wrong(t.mark, "%q is no name for %s: letters, digits, - _ and . are, at most 64", t.s, of)
	return false
}

func (n *names) taken(t text, id string) bool {
	if other := n.called[id]; other != "" {
		n.wrong(t.mark, "%s has a name already, %s", id, other)
		return true
	}
	return false
}

// unknown says that a name stands for nothing here.
func unknown[V any](n *names, t text, kind, where string, known map[string]V) {
	if t.s == "" {
		return // said before
	}
	n.wrong(t.mark, "there is no %s %q under %s%s", kind, t.s, where, hint(t.s, slices.Sorted(maps.Keys(known))))
}

func (n *names) person(t text) (approvals.UserID, bool) {
	id, ok := n.people[t.s]
	if !ok {
		unknown(n, t, "person", "people", n.people)
	}
	return id, ok
}

func (n *names) group(t text, channel bool) (approvals.GroupID, bool) {
	id, ok := n.groups[t.s]
	switch {
	case !ok && channel:
		unknown(n, t, "channel", "groups", n.groups)
	case !ok:
		unknown(n, t, "group", "groups", n.groups)
	case channel && !channelID.MatchString(string(id)):
		n.wrong(t.mark, "%s is a user group, not a channel", t.s)
		return "", false
	}
	return id, ok
}

// from resolves who may fill a place. A place without a from is said at owner.
func (n *names) from(f *fromForm, owner mark) from {
	var r from
	if f == nil {
		n.wrong(owner.key("from"), "is missing; say who")
		return r
	}
	add := func(o from) {
		r.Users, r.Groups, r.manager = append(r.Users, o.Users...), append(r.Groups, o.Groups...), r.manager || o.manager
	}
	for _, t := range f.People.items {
		if id, ok := n.person(t); ok {
			add(from{From: approvals.From{Users: []approvals.UserID{id}}})
		}
	}
	for _, l := range []struct {
		items   []text
		channel bool
	}{{f.Groups.items, false}, {f.Channels.items, true}} {
		for _, t := range l.items {
			if id, ok := n.group(t, l.channel); ok {
				add(from{From: approvals.From{Groups: []approvals.GroupID{id}}})
			}
		}
	}
	for _, t := range f.Roles.items {
		role, ok := n.roles[t.s]
		n.usedRoles[t.s] = true
		switch {
		case t.s == roleManager && len(n.managers) == 0:
			n.wrong(t.mark, "nobody has a manager: write managers")
			role.manager = true
		case t.s == roleManager:
			role.manager = true
		case !ok:
			known := maps.Clone(n.roles)
			known[roleManager] = from{}
			unknown(n, t, "role", "roles", known)
		}
		add(role)
	}
	if f.Channel.set() {
		if r.here = f.Channel.s == "here"; !r.here && f.Channel.s != "" {
			n.wrong(f.Channel.mark, "is %q, must be here: the channel where it was asked; write others under channels", f.Channel.s)
		}
	}
	slices.Sort(r.Users)
	slices.Sort(r.Groups)
	r.Users, r.Groups = slices.Compact(r.Users), slices.Compact(r.Groups)
	return r
}

// say is who may fill a place, in the words of the file.
func (n *names) say(f approvals.From) string {
	var all []string
	for _, g := range f.Groups {
		all = append(all, n.callOf(string(g)))
	}
	for _, u := range f.Users {
		all = append(all, n.callOf(string(u)))
	}
	if len(all) == 0 {
		return "nobody"
	}
	return strings.Join(all, ", ")
}

func (n *names) callOf(id string) string {
	if name := n.called[id]; name != "" {
		return name
	}
	return id
}

// look notes that something is looked for that is not a signer, so that a
// roster can say whether there is such a person, group or channel.
func (n *names) look(of, s string, at mark) {
	id := s
	switch of {
	case "requester.groups", "channel.name":
		id = string(n.groups[s])
	case "requester.name":
		id = string(n.people[s])
	case "requester.id", "channel.id":
	default:
		return
	}
	if _, named := n.called[id]; named {
		n.looked[id] = at
	}
}
