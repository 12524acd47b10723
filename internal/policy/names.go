package policy

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/strictyaml"
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
	*strictyaml.Problems
	groups    map[string]approvals.GroupID // user groups and channels
	people    map[string]approvals.UserID
	managers  map[approvals.UserID]approvals.UserID
	roles     map[string]from
	calendars map[string]*calendar

	userAt  map[approvals.UserID]strictyaml.Mark
	groupAt map[approvals.GroupID]strictyaml.Mark
	called  map[string]string // the name of an id
	refused map[string]bool   // names under groups and people that have no usable id, as in "people: ann"

	// What is used otherwise than by who approves, and where.
	looked     map[string]strictyaml.Mark // ids
	roleAt     map[string]strictyaml.Mark
	calendarAt map[string]strictyaml.Mark
	usedRoles  map[string]bool
	usedHours  map[string]bool // calendars that a condition looks at
	today      bool            // a condition counts the calls of a day
}

// from is who may fill a place: those who are known now, and those whom only
// the call names.
type from struct {
	approvals.From
	manager bool // of the requester
	here    bool // members of the channel where it was asked
}

func (f from) depends() bool { return f.manager || f.here }

func newNames(p *strictyaml.Problems) *names {
	return &names{
		Problems: p, groups: map[string]approvals.GroupID{}, people: map[string]approvals.UserID{},
		managers: map[approvals.UserID]approvals.UserID{}, roles: map[string]from{}, calendars: map[string]*calendar{},
		userAt: map[approvals.UserID]strictyaml.Mark{}, groupAt: map[approvals.GroupID]strictyaml.Mark{}, called: map[string]string{}, refused: map[string]bool{},
		looked: map[string]strictyaml.Mark{}, roleAt: map[string]strictyaml.Mark{}, calendarAt: map[string]strictyaml.Mark{}, usedRoles: map[string]bool{}, usedHours: map[string]bool{},
	}
}

// learn takes the names of one file; what refers to others comes later, in
// [names.resolve].
func (n *names) learn(f *fileForm) {
	for _, e := range f.Groups.Entries {
		is := groupID.MatchString(e.Value.Value) || channelID.MatchString(e.Value.Value)
		if learnID(n, "groups", e.Key, e.Value, n.groups, is, "the id of a user group such as S0123456789, nor of a channel such as C0123456789") {
			n.groupAt[n.groups[e.Key.Value]] = e.Value.Mark
		}
	}
	for _, e := range f.People.Entries {
		if learnID(n, "people", e.Key, e.Value, n.people, userID.MatchString(e.Value.Value), "a user id such as U0123456789") {
			n.userAt[n.people[e.Key.Value]] = e.Value.Mark
		}
	}
	for _, e := range f.Calendars.Entries {
		if !n.name(e.Key, "calendars") {
			continue
		}
		if has(n.calendars, e.Key.Value) {
			n.Wrong(e.Key.Mark, "is listed twice")
			continue
		}
		n.calendarAt[e.Key.Value] = e.Key.Mark
		n.calendars[e.Key.Value] = newCalendar(e.Value, n.Problems)
	}
}

// resolve takes what refers to names of any file.
func (n *names) resolve(f *fileForm) {
	for _, e := range f.Managers.Entries {
		who, ok := n.person(e.Key)
		boss, known := n.person(e.Value)
		switch {
		case !ok || !known:
		case who == boss:
			n.Wrong(e.Value.Mark, "a person can't be their own manager")
		case n.managers[who] != "":
			n.Wrong(e.Key.Mark, "is listed twice")
		default:
			n.managers[who] = boss
		}
	}
	for _, e := range f.Roles.Entries {
		switch {
		case !n.name(e.Key, "roles"):
		case e.Key.Value == roleManager:
			n.Wrong(e.Key.Mark, "is reserved for the requester's manager; choose another name")
		case has(n.roles, e.Key.Value):
			n.Wrong(e.Key.Mark, "is listed twice")
		default:
			n.roleAt[e.Key.Value] = e.Key.Mark
			n.roles[e.Key.Value] = n.from(&fromForm{Mark: e.Value.Mark, People: e.Value.People, Groups: e.Value.Groups, Channels: e.Value.Channels}, strictyaml.Mark{})
		}
	}
}

func has[V any](m map[string]V, name string) bool { _, ok := m[name]; return ok }

func (n *names) name(t text, of string) bool {
	if aName.MatchString(t.Value) {
		return true
	}
	n.Wrong(t.Mark, "%q is not a valid name for %s; use at most 64 letters, digits, - _ and .", t.Value, of)
	return false
}

// learnID gives the id a name in ids, and reports whether it did: is says whether the id
// is what has to be there.
func learnID[ID ~string](n *names, of string, key, id text, ids map[string]ID, is bool, what string) bool {
	switch {
	case !n.name(key, of):
	case !id.Written() || id.Value == "":
	case !is:
		n.refused[of+": "+key.Value] = true
		n.Wrong(id.Mark, "%q is not %s", id.Value, what)
	case n.called[id.Value] != "":
		n.Wrong(id.Mark, "%s is already named %s", id.Value, n.called[id.Value])
	case has(ids, key.Value):
		n.Wrong(key.Mark, "is listed twice")
	default:
		ids[key.Value], n.called[id.Value] = ID(id.Value), key.Value
		return true
	}
	return false
}

// unknown reports a name that is not defined.
func unknown[V any](n *names, t text, kind, where string, known map[string]V) {
	if t.Value == "" || n.refused[where+": "+t.Value] {
		return // said before
	}
	hint := strictyaml.Hint(t.Value, slices.Sorted(maps.Keys(known)))
	if where == "people" && userID.MatchString(t.Value) || where == "groups" && (groupID.MatchString(t.Value) || channelID.MatchString(t.Value)) {
		hint = "; give this id a name under " + where + ", and write the name here"
	}
	n.Wrong(t.Mark, "there is no %s %q under %s%s", kind, t.Value, where, hint)
}

func (n *names) person(t text) (approvals.UserID, bool) {
	id, ok := n.people[t.Value]
	if !ok {
		unknown(n, t, "person", "people", n.people)
	}
	return id, ok
}

func (n *names) group(t text, channel bool) (approvals.GroupID, bool) {
	id, ok := n.groups[t.Value]
	switch {
	case !ok && channel:
		unknown(n, t, "channel", "groups", n.groups)
	case !ok:
		unknown(n, t, "group", "groups", n.groups)
	case channel && !channelID.MatchString(string(id)):
		n.Wrong(t.Mark, "%s is a user group, not a channel", t.Value)
		return "", false
	}
	return id, ok
}

// from resolves who may fill a place. A place without a from is said at owner.
func (n *names) from(f *fromForm, owner strictyaml.Mark) from {
	var r from
	if f == nil {
		n.Wrong(owner.Key("from"), "is missing; say who approves")
		return r
	}
	add := func(o from) {
		r.Users, r.Groups, r.manager = append(r.Users, o.Users...), append(r.Groups, o.Groups...), r.manager || o.manager
	}
	for _, t := range f.People.Items {
		if id, ok := n.person(t); ok {
			add(from{From: approvals.From{Users: []approvals.UserID{id}}})
		}
	}
	for _, l := range []struct {
		items   []text
		channel bool
	}{{f.Groups.Items, false}, {f.Channels.Items, true}} {
		for _, t := range l.items {
			if id, ok := n.group(t, l.channel); ok {
				add(from{From: approvals.From{Groups: []approvals.GroupID{id}}})
			}
		}
	}
	for _, t := range f.Roles.Items {
		role, ok := n.roles[t.Value]
		n.usedRoles[t.Value] = true
		switch {
		case t.Value == roleManager && len(n.managers) == 0:
			n.Wrong(t.Mark, "no managers are set; write managers")
			role.manager = true
		case t.Value == roleManager:
			role.manager = true
		case !ok:
			known := maps.Clone(n.roles)
			known[roleManager] = from{}
			unknown(n, t, "role", "roles", known)
		}
		add(role)
	}
	if f.Channel.Written() {
		if r.here = f.Channel.Value == "here"; !r.here && f.Channel.Value != "" {
			n.Wrong(f.Channel.Mark, "is %q, must be here (the channel where the agent was asked); write other channels under channels", f.Channel.Value)
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

// look notes that something is looked for that is not an approver, so that a
// roster can say whether there is such a person, group or channel.
func (n *names) look(of, s string, at strictyaml.Mark) {
	id := s
	switch of {
	case "requester.groups", "channel.name":
		id = string(n.groups[s])
	case "requester.name":
		id = string(n.people[s])
	case "requester.id", "channel.id":
	case "hours":
		n.usedHours[s] = true
		return
	default:
		return
	}
	if _, named := n.called[id]; named {
		n.looked[id] = at
	}
}
