package slacksim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// persons is what people do among themselves, and what they see.
type persons struct {
	*world

	payloads *payloads
	events   *events
	messages *messages
	screens  *screens
	inputs   *inputs
}

// Post is what a person writes. Text may name people as @name and groups as
// @handle, or contain <@U…>; everything else is escaped as Slack's client
// escapes it.
type Post struct {
	User     string `json:"user"`    // id or name
	Channel  string `json:"channel"` // id or name; the bot's id or @name for a direct message
	Text     string `json:"text"`
	ThreadTS string `json:"thread_ts,omitempty"`
}

// PostAs stores a person's message and returns its ts. When it mentions the
// bot, or is in the direct message with it, the app gets the event.
func (s *persons) PostAs(in Post) (ts string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, c, err := s.actor(in.User, in.Channel)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(in.Text) == "" {
		return "", fmt.Errorf("%w: the message is empty", ErrBadInput)
	}
	if c.Archived {
		return "", fmt.Errorf("%w: %s is archived", ErrForbidden, c.ID)
	}
	if c.IM && (s.cfg.NoMessages || s.cfg.ReadMessages) {
		return "", fmt.Errorf("%w: the app takes no messages", ErrForbidden)
	}
	root := ""
	if in.ThreadTS != "" {
		m := c.find(in.ThreadTS)
		if m == nil || m.visibleTo != "" {
			return "", noSuch("message", in.ThreadTS)
		}
		root = cmp.Or(m.threadTS, m.ts)
	}
	text := s.inputs.fromComposer(p.Team, in.Text)
	m := s.messages.store(c, &message{
		user: p.ID, text: text, threadTS: root, clientID: randomUUID(), blocks: storedBlocks(s.inputs.typedBlocks(text)),
	})
	s.events.tell(c, p, m)
	return m.ts, nil
}

// OpenHome shows the app's Home tab to a person and tells the app.
func (s *persons) OpenHome(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.active(user)
	if err != nil {
		return err
	}
	in := s.installed(p.Team)
	if s.cfg.NoHome {
		return fmt.Errorf("%w: the app has no Home tab", ErrForbidden)
	}
	if in == nil {
		return fmt.Errorf("%w: the app is not installed in the workspace of %s", ErrForbidden, p.Name)
	}
	dm, _ := s.direct(in, p)
	event := object{"type": "app_home_opened", "user": p.ID, "channel": dm.ID, "tab": "home"}
	if v := s.screens.homes[p.ID]; v != nil {
		event["view"] = s.payloads.viewJSON(v)
	}
	s.events.emit(in, nil, p.Team, event)
	return nil
}

// Leave takes a person, or a bot of the app, out of a channel and tells the app: those who
// are still there get member_left_channel, and the bot that is not gets channel_left, or
// group_left for a private channel.
func (s *persons) Leave(user, channel string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, c := s.person(user), s.channel(channel)
	if p == nil || !p.Bot {
		var err error
		if p, c, err = s.actor(user, channel); err != nil {
			return err
		}
	}
	switch {
	case c == nil || (p.Bot && (c.IM || c.MPIM)):
		return noSuch("channel", channel)
	case !c.has(p.ID):
		return fmt.Errorf("%w: %s is not in %s", ErrForbidden, p.Name, c.ID)
	}
	c.Members = slices.DeleteFunc(slices.Clone(c.Members), func(m string) bool { return m == p.ID })
	s.changed()
	s.events.membership("member_left_channel", p.ID, "", c)
	if in := s.ofBot(p.ID); in != nil {
		kind := "channel_left"
		if c.Private {
			kind = "group_left"
		}
		s.events.emit(in, c, s.events.eventTeam(in, c), object{"type": kind, "channel": c.ID})
	}
	return nil
}

// Join puts a person, or a bot of the app, into a channel and tells the app.
func (s *persons) Join(user, channel string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, c := s.person(user), s.channel(channel)
	switch {
	case p == nil:
		return noSuch("person", user)
	case c == nil || c.IM || c.MPIM:
		return noSuch("channel", channel)
	case p.Deleted:
		return fmt.Errorf("%w: %s is deactivated", ErrForbidden, p.Name)
	case p.Team != c.Team && !slices.Contains(c.Shared, p.Team):
		return fmt.Errorf("%w: %s is of another workspace", ErrForbidden, p.Name)
	case c.has(p.ID):
		return nil
	case c.Archived:
		return fmt.Errorf("%w: %s is archived", ErrForbidden, c.ID)
	}
	c.Members = append(slices.Clone(c.Members), p.ID)
	s.changed()
	s.events.membership("member_joined_channel", p.ID, "", c)
	return nil
}

// Archive archives a channel, or opens it again, and tells the app: of public channels
// also when its bot is not there.
//
// https://docs.slack.dev/reference/events/channel_archive
func (s *persons) Archive(user, channel string, archived bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, c, err := s.actor(user, channel)
	switch {
	case err != nil:
		return err
	case c.IM || c.MPIM:
		return fmt.Errorf("%w: %s is a conversation, and not archived", ErrForbidden, c.ID)
	case c.Archived == archived:
		return nil
	}
	c.Archived = archived
	s.changed()
	kind := "channel_"
	if c.Private {
		kind = "group_"
	}
	verb := "unarchive"
	if archived {
		verb = "archive"
	}
	for _, in := range s.installs {
		if c.has(in.botUser) || (!c.Private && s.sees(in, c)) {
			s.events.emit(in, c, s.events.eventTeam(in, c), object{"type": kind + verb, "channel": c.ID, "user": p.ID})
		}
	}
	return nil
}

// SetActive deactivates a person's account or activates it again. Its event has more of the
// person than users.info.
//
// https://docs.slack.dev/reference/events/user_change
func (s *persons) SetActive(user string, active bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.person(user)
	if p == nil || p.Bot {
		return noSuch("person", user)
	}
	p.Deleted = !active
	s.changed()
	if in := s.installed(p.Team); in != nil {
		user := s.payloads.userJSON(in, p)
		user["locale"] = locale
		if profile, ok := user["profile"].(object); ok {
			profile["fields"] = object{}
		}
		s.events.emit(in, nil, p.Team, object{"type": "user_change", "user": user, "cache_ts": s.clock.now().Unix()})
	}
	return nil
}

// Reload restarts a person's client, which loses every ephemeral message and
// every modal. The app gets no event: view_closed is not sent, even if the view
// asked for it.
func (s *persons) Reload(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.person(user)
	if p == nil {
		return noSuch("person", user)
	}
	for _, c := range s.channels {
		c.remove(func(m *message) bool { return m.visibleTo == p.ID })
		for _, m := range c.messages {
			delete(m.entered, p.ID)
		}
	}
	s.screens.dropStack(p.ID)
	s.changed()
	return nil
}

// SetGroup replaces the members of a user group and tells the app with
// subteam_members_changed and subteam_updated.
func (s *persons) SetGroup(id string, users []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.group(id)
	if g == nil {
		return noSuch("user group", id)
	}
	for _, u := range users {
		if s.userByID(u) == nil {
			return noSuch("person", u)
		}
	}
	var added, removed []string
	for _, u := range users {
		if !slices.Contains(g.Users, u) {
			added = append(added, u)
		}
	}
	for _, u := range g.Users {
		if !slices.Contains(users, u) {
			removed = append(removed, u)
		}
	}
	g.Users = append([]string{}, users...)
	s.changed()
	now := s.clock.now().Unix()
	in := s.installed(g.Team)
	s.events.emit(in, nil, g.Team, object{
		"type": "subteam_members_changed", "subteam_id": g.ID, "team_id": g.Team,
		"date_previous_update": now, "date_update": now,
		"added_users": orEmpty(added), "added_users_count": len(added),
		"removed_users": orEmpty(removed), "removed_users_count": len(removed),
	})
	s.events.emit(in, nil, g.Team, object{"type": "subteam_updated", "subteam": s.payloads.groupJSON(g, true, true)})
	return nil
}

// StopStream is a person stopping a message that the app streams.
func (s *persons) StopStream(user, channel, ts string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, c, err := s.actor(user, channel)
	if err != nil {
		return err
	}
	m := c.find(ts)
	if m == nil || m.stream == nil || m.stream.state != streaming {
		return noSuch("streamed message", ts)
	}
	m.stream.state = stoppedByUser
	s.changed()
	return nil
}

// Messages returns what a person sees in a channel, oldest first, with
// replies and their own ephemeral messages. With thread it is the root and
// the replies of that thread only. The values must not be changed.
func (s *persons) Messages(user, channel, thread string) ([]Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, c, err := s.actor(user, channel)
	if err != nil {
		return nil, err
	}
	out := []Message{}
	for _, m := range c.messages {
		if m.visibleTo != "" && m.visibleTo != p.ID {
			continue
		}
		if thread == "" || m.ts == thread || m.threadTS == thread {
			out = append(out, c.seen(m))
		}
	}
	return out, nil
}

// Views returns the modals on a person's screen, the root first.
func (s *persons) Views(user string) []View {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []View{}
	if p := s.person(user); p != nil {
		for _, v := range s.screens.stacks[p.ID] {
			out = append(out, v.seen())
		}
	}
	return out
}

// exists reports whether a person is in one of the workspaces.
func (s *persons) exists(user string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.person(user) != nil
}

// Home returns what the app published to a person's Home tab.
func (s *persons) Home(user string) (View, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.person(user); p != nil {
		if v := s.screens.homes[p.ID]; v != nil {
			return v.seen(), true
		}
	}
	return View{}, false
}

// State is the workspace as the page shows it around the messages.
type State struct {
	Team        string      `json:"team"`
	Bot         Person      `json:"bot"`
	People      []Person    `json:"people"`
	Channels    []Channel   `json:"channels"`
	Groups      []Group     `json:"groups"`
	Workspaces  []Workspace `json:"workspaces,omitempty"` // when there is more than one
	Suggestions []string    `json:"suggestions"`
	Commands    []string    `json:"commands,omitempty"`
	Shortcuts   []MenuEntry `json:"shortcuts,omitempty"` // in the menu of a message
	Home        bool        `json:"home"`                // the app has a Home tab
	Messages    bool        `json:"messages"`            // people may write to the app
	Now         int64       `json:"now"`
}

// State returns the people, channels and groups.
func (s *persons) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := State{
		Team: TeamName, Suggestions: orEmpty(s.cfg.Suggestions), Commands: slices.Clone(s.cfg.Commands),
		Shortcuts: slices.Clone(s.cfg.Shortcuts),
		Home:      !s.cfg.NoHome, Messages: !s.cfg.NoMessages && !s.cfg.ReadMessages, Now: s.clock.now().Unix(),
	}
	if len(s.teams) > 1 {
		out.Workspaces = slices.Clone(s.teams)
	}
	for _, p := range s.people {
		if p.ID == s.installs[0].botUser {
			out.Bot = *p
		}
		out.People = append(out.People, *p)
	}
	for _, c := range s.channels {
		shown := c.Channel
		shown.Members = slices.Clone(c.Members)
		out.Channels = append(out.Channels, shown)
	}
	for _, g := range s.groups {
		shown := *g
		shown.Users = slices.Clone(g.Users)
		out.Groups = append(out.Groups, shown)
	}
	return out
}
