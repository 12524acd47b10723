package slacksim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// world holds the people, channels and messages of the workspaces.
type world struct {
	*installations

	people   []*Person
	channels []*channel
	groups   []*Group
}

// newWorld makes what the config asks for.
func newWorld(e *engine) *world {
	w := &world{installations: &installations{engine: e}}
	for _, p := range e.cfg.People {
		p.Team = cmp.Or(p.Team, TeamID)
		w.people = append(w.people, &p)
	}
	for _, c := range e.cfg.Channels {
		c.Members, c.Team = append([]string(nil), c.Members...), cmp.Or(c.Team, TeamID)
		w.channels = append(w.channels, &channel{Channel: c})
	}
	for _, g := range e.cfg.Groups {
		g.Users, g.Team = append([]string(nil), g.Users...), cmp.Or(g.Team, TeamID)
		w.groups = append(w.groups, &g)
	}
	w.install()
	return w
}

type channel struct {
	Channel
	creator  string // empty: Alice, long ago
	created  int64
	messages []*message // in order of ts; add and remove change them
	byTS     map[string]*message
	threads  map[string][]*message // those with this threadTS, in order of ts
}

func (c *channel) has(user string) bool { return slices.Contains(c.Members, user) }

// payloadName is the name that interaction payloads carry.
func (c *channel) payloadName() string {
	switch {
	case c.IM:
		return "directmessage"
	case c.Private, c.MPIM:
		return "privategroup"
	}
	return c.Name
}

// kind is the channel_type of events.
func (c *channel) kind() string {
	switch {
	case c.IM:
		return "im"
	case c.MPIM:
		return "mpim"
	case c.Private:
		return "group"
	}
	return "channel"
}

// filteredAs is what the filter of a menu of conversations calls it.
func (c *channel) filteredAs() string {
	switch kind := c.kind(); kind {
	case "group":
		return "private"
	case "channel":
		return "public"
	default:
		return kind
	}
}

func (c *channel) find(ts string) *message { return c.byTS[ts] }

// thread returns the replies to the message root that everyone sees.
func (c *channel) thread(root string) []*message {
	var replies []*message
	for _, m := range c.threads[root] {
		if m.ts != root && m.visibleTo == "" {
			replies = append(replies, m)
		}
	}
	return replies
}

// add appends a message, whose ts and threadTS do not change any more.
func (c *channel) add(m *message) {
	if c.byTS == nil {
		c.byTS, c.threads = make(map[string]*message), make(map[string][]*message)
	}
	c.messages, c.byTS[m.ts] = append(c.messages, m), m
	if m.threadTS != "" {
		c.threads[m.threadTS] = append(c.threads[m.threadTS], m)
	}
}

// remove removes the messages for which gone is true.
func (c *channel) remove(gone func(m *message) bool) {
	c.messages = slices.DeleteFunc(c.messages, func(m *message) bool {
		if !gone(m) {
			return false
		}
		delete(c.byTS, m.ts)
		if rest := slices.DeleteFunc(c.threads[m.threadTS], func(o *message) bool { return o == m }); len(rest) > 0 {
			c.threads[m.threadTS] = rest
		} else {
			delete(c.threads, m.threadTS)
		}
		return true
	})
}

// message is a stored message. Its JSON values are never changed once they
// are stored, so that answers may share them.
type message struct {
	ts, threadTS string
	user         string
	app          *installation // whose bot wrote it; nil: a person
	subtype      string
	text         string
	username     string
	blocks       json.RawMessage   // see storedBlocks
	earlier      []json.RawMessage // what blocks were before edits, for screens that have not caught up
	attachments  []any
	metadata     object
	edited       object
	reactions    []object
	clientID     string
	visibleTo    string // an ephemeral message: the one person who sees it
	broadcast    bool
	entered      map[string]map[string]map[string]object // by person, block_id and action_id
	stream       *streamed                               // a message that is, or was, streamed
}

// redraw replaces the blocks and keeps the old ones for screens that have not caught up.
func (m *message) redraw(blocks []any) {
	m.earlier = append(slices.Clone(m.earlier), m.blocks)
	m.blocks = storedBlocks(blocks)
}

// enter keeps what a person chose or typed in the message.
func (m *message) enter(person, blockID, actionID string, state object) {
	if m.entered == nil {
		m.entered = map[string]map[string]map[string]object{}
	}
	if m.entered[person] == nil {
		m.entered[person] = map[string]map[string]object{}
	}
	if m.entered[person][blockID] == nil {
		m.entered[person][blockID] = map[string]object{}
	}
	m.entered[person][blockID][actionID] = state
}

// person finds a person by id or name. The caller holds mu.
func (s *world) person(ref string) *Person { return s.personNear(TeamID, ref) }

// personNear finds a person by id or name; names are looked for in the
// workspace first.
func (s *world) personNear(team, ref string) *Person {
	var found *Person
	for _, p := range s.people {
		switch name := strings.TrimPrefix(ref, "@"); {
		case p.ID == name, p.Name == name && p.Team == team:
			return p
		case p.Name == name && found == nil:
			found = p
		}
	}
	return found
}

// userByID finds a person as the Web API does. The caller holds mu.
func (s *world) userByID(id string) *Person {
	for _, p := range s.people {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// channel finds a channel by id or name. The caller holds mu.
func (s *world) channel(ref string) *channel {
	name := strings.TrimPrefix(ref, "#")
	for _, c := range s.channels {
		if c.ID == ref || (!c.IM && c.Name == name) {
			return c
		}
	}
	return nil
}

func (s *world) group(id string) *Group {
	for _, g := range s.groups {
		if g.ID == id {
			return g
		}
	}
	return nil
}

// direct returns the direct message between a bot and a person, and
// whether it was there already. The caller holds mu.
func (s *world) direct(in *installation, p *Person) (c *channel, existed bool) {
	if c := s.directWith(in, p); c != nil {
		return c, true
	}
	id := "D" + strings.TrimPrefix(p.ID, "U")
	if in != s.installs[0] {
		id = s.nextID("D")
	}
	c = &channel{Channel: Channel{ID: id, Members: []string{p.ID, in.botUser}, IM: true, Team: p.Team}}
	s.channels = append(s.channels, c)
	return c, false
}

func (s *world) directWith(in *installation, p *Person) *channel {
	for _, c := range s.channels {
		if c.IM && c.Members[0] == p.ID && c.has(in.botUser) {
			return c
		}
	}
	return nil
}

// several returns the group message between a bot and these people.
func (s *world) several(in *installation, people []*Person) (c *channel, existed bool) {
	members := []string{in.botUser}
	names := []string{BotName}
	for _, p := range people {
		if !slices.Contains(members, p.ID) {
			members, names = append(members, p.ID), append(names, p.Name)
		}
	}
	slices.Sort(members)
	for _, c := range s.channels {
		if c.MPIM && slices.Equal(c.Members, members) {
			return c, true
		}
	}
	slices.Sort(names)
	c = &channel{Channel: Channel{
		ID: s.nextID("G"), Name: "mpdm-" + strings.Join(names, "--") + "-1", Members: members, MPIM: true, Private: true,
		Team: s.home(in).ID,
	}}
	s.channels = append(s.channels, c)
	return c, false
}

// tombstone is the subtype of what stays of a deleted message with replies.
const tombstone = "tombstone"

// drop deletes a message; a thread keeps a tombstone as its root.
func (c *channel) drop(m *message) {
	if len(c.thread(m.ts)) == 0 {
		c.remove(func(o *message) bool { return o == m })
		return
	}
	*m = message{ts: m.ts, threadTS: m.ts, user: "USLACKBOT", subtype: tombstone, text: "This message was deleted."}
}

// named finds a channel that an installation can look at, by id, or by name
// in its own workspace.
func (s *world) named(in *installation, ref string) *channel {
	name := strings.TrimPrefix(ref, "#")
	for _, ch := range s.channels {
		if (ch.ID == ref || (!ch.IM && !ch.MPIM && ch.Name == name && ch.Team == in.team)) && s.sees(in, ch) {
			return ch
		}
	}
	return nil
}

// identified finds a channel that an installation can look at, by id. Only the methods
// that post something new take names as well.
func (s *world) identified(in *installation, id string) *channel {
	if ch := s.named(in, id); ch != nil && ch.ID == id {
		return ch
	}
	return nil
}

// active finds a person who can act. The caller holds mu.
func (s *world) active(user string) (*Person, error) {
	p := s.person(user)
	switch {
	case p == nil:
		return nil, noSuch("person", user)
	case p.Deleted:
		return nil, fmt.Errorf("%w: %s is deactivated", ErrForbidden, p.Name)
	case p.Bot:
		return nil, fmt.Errorf("%w: %s is a bot", ErrForbidden, p.Name)
	}
	return p, nil
}

// actor finds a person who can act and the channel they act in. The caller
// holds mu.
func (s *world) actor(user, channel string) (*Person, *channel, error) {
	p, err := s.active(user)
	if err != nil {
		return nil, nil, err
	}
	c := s.channel(channel)
	if bot := s.personNear(p.Team, channel); c == nil && bot != nil && s.ofBot(bot.ID) != nil {
		c, _ = s.direct(s.ofBot(bot.ID), p)
	}
	switch {
	case c == nil:
		return nil, nil, noSuch("channel", channel)
	case !c.has(p.ID):
		return nil, nil, fmt.Errorf("%w: %s is not in %s", ErrForbidden, p.Name, c.ID)
	}
	return p, c, nil
}

// eventTeam is the workspace that an event in a channel is of, to an
// installation: its own, where it has one.
func (s *world) eventTeam(in *installation, c *channel) string {
	if in.org() {
		return c.Team
	}
	return in.team
}

// knows reports whether an installation can look up a person: one of its
// workspaces, or of a channel that they share.
func (s *world) knows(in *installation, p *Person) bool {
	if s.owns(in, p.Team) {
		return true
	}
	return slices.ContainsFunc(s.channels, func(c *channel) bool { return c.has(p.ID) && s.sees(in, c) })
}

// install makes the installations that the config asks for, and the bot
// users of all but the first, which is among the people.
func (s *world) install() {
	s.teams = append([]Workspace{{ID: TeamID, Name: TeamName, Domain: TeamDomain, Org: true}}, s.cfg.Workspaces...)
	first := &installation{team: TeamID, token: s.cfg.BotToken, botUser: BotUser, botID: BotID}
	if e := s.cfg.Enterprise; e != nil && e.Installed {
		first.team = ""
	}
	s.installs = []*installation{first}
	for i, w := range s.cfg.Workspaces {
		if w.Token == "" || (first.org() && w.Org) {
			continue
		}
		in := &installation{team: w.ID, token: w.Token, botUser: BotUser + strconv.Itoa(i+2), botID: BotID + strconv.Itoa(i+2)}
		s.installs = append(s.installs, in)
		s.people = append(s.people, &Person{ID: in.botUser, Name: BotName, RealName: "Countersign", Bot: true, Team: w.ID})
		for _, c := range s.channels {
			if c.Team == w.ID && !c.has(in.botUser) {
				c.Members = append(c.Members, in.botUser)
			}
		}
	}
}

// sees reports whether an installation can look at a channel: one of its
// workspaces has it or shares it.
func (s *world) sees(in *installation, c *channel) bool {
	if c.IM || c.MPIM {
		return c.has(in.botUser)
	}
	return s.owns(in, c.Team) || slices.ContainsFunc(c.Shared, func(t string) bool { return s.owns(in, t) })
}

// external reports whether a channel is shared with another organization.
func (s *world) external(c *channel) bool {
	return slices.ContainsFunc(c.Shared, func(t string) bool { return !s.inOrg(t) || !s.inOrg(c.Team) })
}
