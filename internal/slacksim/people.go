package slacksim

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
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
		user: p.ID, text: text, threadTS: root, clientID: randomHex(16), blocks: s.inputs.typedBlocks(text),
	})
	s.events.tell(c, p, m)
	return m.ts, nil
}

// tell sends a person's message to the installations whose bot is there:
// as message to those that read along, as app_mention when it names the bot.
func (s *events) tell(c *channel, p *Person, m *message) {
	for _, in := range s.installs {
		if !c.has(in.botUser) {
			continue
		}
		event := object{
			"user": p.ID, "ts": m.ts, "client_msg_id": m.clientID, "text": m.text, "team": p.Team,
			"blocks": m.blocks, "channel": c.ID, "event_ts": m.ts,
		}
		if m.threadTS != "" {
			event["thread_ts"] = m.threadTS
			if first := c.find(m.threadTS); first != nil {
				event["parent_user_id"] = first.user
			}
		}
		if s.stranger(in, p) {
			event["user_team"], event["source_team"] = p.Team, p.Team
		}
		if !c.IM && strings.Contains(m.text, "<@"+in.botUser+">") {
			mentioned := maps.Clone(event)
			mentioned["type"] = "app_mention"
			s.emit(in, c, s.eventTeam(in, c), mentioned)
		}
		event["type"], event["channel_type"] = "message", c.kind()
		s.emit(in, c, s.eventTeam(in, c), event)
	}
}

// tellOfApp sends what an app did to a message to the installations that
// read along, itself among them: posted, message_changed or message_deleted.
// Nobody hears of ephemeral messages.
func (s *events) tellOfApp(c *channel, m *message, subtype string, before object) {
	if m.visibleTo != "" {
		return
	}
	for _, in := range s.installs {
		if !c.has(in.botUser) {
			continue
		}
		event := s.payloads.messageJSON(c, m, true)
		if subtype != "" {
			event = object{
				"type": "message", "subtype": subtype, "hidden": true, "ts": s.nextTS(), "previous_message": before,
			}
			if subtype == "message_deleted" {
				event["deleted_ts"] = before["ts"]
			} else {
				event["message"] = s.payloads.messageJSON(c, m, true)
			}
		}
		event["channel"], event["channel_type"], event["event_ts"] = c.ID, c.kind(), event["ts"]
		s.emit(in, c, s.eventTeam(in, c), event)
	}
}

// eventTeam is the workspace that an event in a channel is of, to an
// installation: its own, where it has one.
func (s *world) eventTeam(in *installation, c *channel) string {
	if in.org() {
		return c.Team
	}
	return in.team
}

// actor finds a person who can act and the channel they act in. The caller
// holds mu.
func (s *world) actor(user, channel string) (*Person, *channel, error) {
	p := s.person(user)
	switch {
	case p == nil:
		return nil, nil, noSuch("person", user)
	case p.Deleted:
		return nil, nil, fmt.Errorf("%w: %s is deactivated", ErrForbidden, p.Name)
	case p.Bot:
		return nil, nil, fmt.Errorf("%w: %s is a bot", ErrForbidden, p.Name)
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

var mention = regexp.MustCompile(`<@[UW][A-Z0-9]+>|<!subteam\^S[A-Z0-9]+>|<#C[A-Z0-9]+>|@[a-zA-Z0-9_.-]+`)

// fromComposer turns what was typed into message text: mentions of what
// exists become entities, the rest is escaped. The caller holds mu.
func (s *inputs) fromComposer(team, typed string) string {
	var out strings.Builder
	for typed != "" {
		at := mention.FindStringIndex(typed)
		if at == nil {
			break
		}
		out.WriteString(escapeText(typed[:at[0]]))
		out.WriteString(s.entity(team, typed[at[0]:at[1]]))
		typed = typed[at[1]:]
	}
	return out.String() + escapeText(typed)
}

func (s *inputs) entity(team, token string) string {
	if name, ok := strings.CutPrefix(token, "@"); ok {
		trimmed := strings.TrimRight(name, ".-")
		rest := name[len(trimmed):]
		if p := s.personNear(team, trimmed); p != nil && p.Name == trimmed {
			return "<@" + p.ID + ">" + rest
		}
		for _, g := range s.groups {
			if g.Handle == trimmed {
				return "<!subteam^" + g.ID + ">" + rest
			}
		}
		if slices.Contains([]string{"here", "channel", "everyone"}, trimmed) {
			return "<!" + trimmed + ">" + rest
		}
		return token
	}
	id := strings.Trim(token, "<>@#!")
	id = strings.TrimPrefix(id, "subteam^")
	if s.userByID(id) != nil || s.group(id) != nil || s.channel(id) != nil {
		return token
	}
	return escapeText(token)
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func escapeText(s string) string { return escaper.Replace(s) }

var unescaper = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

var entityInText = regexp.MustCompile(`<(@[UW][A-Z0-9]+|!subteam\^S[A-Z0-9]+|#C[A-Z0-9]+|!here|!channel|!everyone)>`)

// typedBlocks is the rich_text block that Slack's client sends with a text.
func (s *inputs) typedBlocks(text string) []any {
	var parts []any
	plain := func(t string) {
		if t != "" {
			parts = append(parts, object{"type": "text", "text": unescaper.Replace(t)})
		}
	}
	for {
		at := entityInText.FindStringIndex(text)
		if at == nil {
			break
		}
		plain(text[:at[0]])
		parts = append(parts, inlineEntity(text[at[0]+1:at[1]-1]))
		text = text[at[1]:]
	}
	plain(text)
	section := object{"type": "rich_text_section", "elements": parts}
	return []any{object{"type": "rich_text", "block_id": shortID(), "elements": []any{section}}}
}

func inlineEntity(token string) object {
	switch token[0] {
	case '@':
		return object{"type": "user", "user_id": token[1:]}
	case '#':
		return object{"type": "channel", "channel_id": token[1:]}
	}
	if id, ok := strings.CutPrefix(token, "!subteam^"); ok {
		return object{"type": "usergroup", "usergroup_id": id}
	}
	return object{"type": "broadcast", "range": token[1:]}
}

// OpenHome shows the app's Home tab to a person and tells the app.
func (s *persons) OpenHome(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.person(user)
	if p == nil {
		return noSuch("person", user)
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

// Leave takes a person out of a channel and tells the app.
func (s *persons) Leave(user, channel string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, c, err := s.actor(user, channel)
	if err != nil {
		return err
	}
	c.Members = slices.DeleteFunc(slices.Clone(c.Members), func(m string) bool { return m == p.ID })
	s.changed()
	s.events.membership("member_left_channel", p.ID, c)
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
	}
	c.Members = append(slices.Clone(c.Members), p.ID)
	s.changed()
	s.events.membership("member_joined_channel", p.ID, c)
	return nil
}

// membership tells the installations whose bot is in the channel.
func (s *events) membership(kind, user string, c *channel) {
	letter := "C"
	if c.Private {
		letter = "G"
	}
	for _, in := range s.installs {
		if c.has(in.botUser) {
			s.emit(in, c, s.eventTeam(in, c), object{
				"type": kind, "user": user, "channel": c.ID, "channel_type": letter, "team": c.Team,
			})
		}
	}
}

// SetActive deactivates a person's account or activates it again.
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
		s.events.emit(in, nil, p.Team, object{"type": "user_change", "user": s.payloads.userJSON(in, p), "cache_ts": unix(s.clock.now())})
	}
	return nil
}

// Reload is what a person's client forgets when it starts again: every
// ephemeral message they saw and every modal. The app hears of neither: no
// view_closed comes, even if the view asked for it.
func (s *persons) Reload(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.person(user)
	if p == nil {
		return noSuch("person", user)
	}
	for _, c := range s.channels {
		c.messages = slices.DeleteFunc(c.messages, func(m *message) bool { return m.visibleTo == p.ID })
	}
	s.screens.dropStack(p.ID)
	s.changed()
	return nil
}
