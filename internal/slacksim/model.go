package slacksim

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// world is who and what there is in the workspaces.
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
	messages []*message // in order of ts
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

func (c *channel) find(ts string) *message {
	for _, m := range c.messages {
		if m.ts == ts {
			return m
		}
	}
	return nil
}

// thread returns the replies to the message root that everybody sees.
func (c *channel) thread(root string) []*message {
	var replies []*message
	for _, m := range c.messages {
		if m.threadTS == root && m.ts != root && m.visibleTo == "" {
			replies = append(replies, m)
		}
	}
	return replies
}

func (c *channel) remove(m *message) {
	c.messages = slices.DeleteFunc(c.messages, func(o *message) bool { return o == m })
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
	blocks       []any
	earlier      [][]any // what blocks were before edits, for screens that have not caught up
	attachments  []any
	metadata     object
	edited       object
	reactions    []object
	clientID     string
	visibleTo    string // an ephemeral message: the one person who sees it
	broadcast    bool
	stream       *streamed // a message that is, or was, streamed
}

// payloads writes what there is as the Web API and events show it.
type payloads struct{ *world }

// messageJSON is a message as the Web API and payloads show it.
func (s *payloads) messageJSON(c *channel, m *message, metadata bool) object {
	o := object{"type": "message", "user": m.user, "text": m.text, "ts": m.ts, "team": s.teamOf(c, m.user)}
	if m.app != nil {
		o["bot_id"], o["app_id"], o["team"] = m.app.botID, AppID, s.home(m.app).ID
		o["bot_profile"] = object{
			"id": m.app.botID, "app_id": AppID, "user_id": m.app.botUser, "name": BotName, "deleted": false,
			"updated": 1700000000, "team_id": s.home(m.app).ID, "icons": object{},
		}
	}
	set := func(name, value string) {
		if value != "" {
			o[name] = value
		}
	}
	set("subtype", m.subtype)
	set("username", m.username)
	set("client_msg_id", m.clientID)
	set("thread_ts", m.threadTS)
	if m.blocks != nil {
		o["blocks"] = m.blocks
	}
	if m.attachments != nil {
		o["attachments"] = m.attachments
	}
	if m.edited != nil {
		o["edited"] = m.edited
	}
	if m.reactions != nil {
		o["reactions"] = slices.Clone(m.reactions)
	}
	if m.metadata != nil {
		if metadata {
			o["metadata"] = m.metadata
		} else {
			o["metadata"] = object{"event_type": m.metadata["event_type"]}
		}
	}
	if m.threadTS != "" && m.threadTS != m.ts {
		if root := c.find(m.threadTS); root != nil {
			o["parent_user_id"] = root.user
		}
	}
	if replies := c.thread(m.ts); len(replies) > 0 {
		var users []string
		for _, r := range replies {
			if !slices.Contains(users, r.user) {
				users = append(users, r.user)
			}
		}
		o["thread_ts"] = m.ts
		o["reply_count"], o["reply_users"], o["reply_users_count"] = len(replies), users, len(users)
		o["latest_reply"] = replies[len(replies)-1].ts
	}
	return o
}

// teamOf is the workspace that a message's author belongs to.
func (s *payloads) teamOf(c *channel, user string) string {
	if p := s.userByID(user); p != nil {
		return p.Team
	}
	return cmp.Or(c.Team, TeamID)
}

// userJSON is a person as an installation sees them.
func (s *payloads) userJSON(in *installation, p *Person) object {
	u := object{
		"id": p.ID, "team_id": p.Team, "name": p.Name, "real_name": p.RealName, "deleted": p.Deleted,
		"color": "9f69e7", "is_bot": p.Bot, "is_app_user": false, "updated": 1700000000,
		"is_restricted": p.Guest, "is_ultra_restricted": false, "is_stranger": s.stranger(in, p),
		"tz": p.TZ, "tz_label": p.TZ, "tz_offset": p.TZOffset,
		"profile": object{
			"real_name": p.RealName, "real_name_normalized": p.RealName,
			"display_name": p.Name, "display_name_normalized": p.Name, "team": p.Team,
		},
	}
	if !p.Deleted && !p.Bot {
		u["is_admin"], u["is_owner"], u["is_primary_owner"] = false, false, false
	}
	profile, _ := u["profile"].(object)
	if p.Email != "" && s.owns(in, p.Team) && slices.Contains(s.cfg.Scopes, "users:read.email") {
		profile["email"] = p.Email
	}
	if bot := s.ofBot(p.ID); bot != nil {
		profile["bot_id"], profile["api_app_id"] = bot.botID, AppID
	}
	if e, ok := s.enterpriseOf(p.Team).(object); ok {
		u["enterprise_user"] = object{
			"id": p.ID, "enterprise_id": e["id"], "enterprise_name": e["name"], "teams": []string{p.Team},
			"is_admin": false, "is_owner": false,
		}
	}
	return u
}

// channelJSON is a channel as an installation sees it.
func (s *payloads) channelJSON(in *installation, c *channel) object {
	o := object{
		"id": c.ID, "created": max(c.created, 1700000000), "is_archived": c.Archived, "is_im": c.IM, "is_mpim": c.MPIM,
		"context_team_id": s.home(in).ID, "updated": 1700000000000, "is_org_shared": false,
	}
	if c.IM {
		o["user"], o["is_open"] = c.Members[0], true
		return o
	}
	o["name"], o["name_normalized"] = c.Name, c.Name
	o["is_channel"], o["is_group"], o["is_private"] = !c.Private, c.Private, c.Private
	o["is_general"], o["is_shared"], o["is_ext_shared"] = c.ID == "C0GENERAL", len(c.Shared) > 0, s.external(c)
	o["is_org_shared"] = len(c.Shared) > 0 && !s.external(c)
	if len(c.Shared) > 0 {
		o["shared_team_ids"], o["conversation_host_id"] = append([]string{c.Team}, c.Shared...), c.Team
	}
	o["is_member"], o["creator"] = c.has(in.botUser), cmp.Or(c.creator, "U0ALICE")
	o["topic"] = object{"value": "", "creator": "", "last_set": 0}
	o["purpose"] = object{"value": "", "creator": "", "last_set": 0}
	o["num_members"] = len(c.Members)
	return o
}

// person finds somebody by id or name. The caller holds mu.
func (s *world) person(ref string) *Person { return s.personNear(TeamID, ref) }

// personNear finds somebody by id or name; names are looked for in the
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

// userByID finds somebody as the Web API does. The caller holds mu.
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

// messages is where messages are written, and what the app shows beside them.
type messages struct {
	*world

	events    *events
	assisting map[string]*assistance // by channel and thread
}

// store appends a new message and returns it. The caller holds mu.
func (s *messages) store(c *channel, m *message) *message {
	m.ts = s.nextTS()
	c.messages = append(c.messages, m)
	s.settle(c, m)
	s.changed()
	if m.app != nil {
		s.events.tellOfApp(c, m, "", nil)
	}
	return m
}

func unix(t time.Time) int64 { return t.Unix() }
