package slacksim

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

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
func (s *Server) PostAs(in Post) (ts string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, c, err := s.actor(in.User, in.Channel)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(in.Text) == "" {
		return "", fmt.Errorf("%w: the message is empty", ErrBadInput)
	}
	root := ""
	if in.ThreadTS != "" {
		m := c.find(in.ThreadTS)
		if m == nil || m.visibleTo != "" {
			return "", noSuch("message", in.ThreadTS)
		}
		root = cmpOr(m.threadTS, m.ts)
	}
	text := s.fromComposer(in.Text)
	m := s.store(c, &message{
		user: p.ID, text: text, threadTS: root, clientID: randomHex(16), blocks: s.typedBlocks(text),
	})
	event := object{
		"user": p.ID, "ts": m.ts, "client_msg_id": m.clientID, "text": text, "team": TeamID,
		"blocks": m.blocks, "channel": c.ID, "event_ts": m.ts,
	}
	if root != "" {
		event["thread_ts"] = root
		if first := c.find(root); first != nil {
			event["parent_user_id"] = first.user
		}
	}
	switch {
	case c.IM:
		event["type"], event["channel_type"] = "message", "im"
		s.emit(event)
	case strings.Contains(text, "<@"+BotUser+">") && c.has(BotUser):
		event["type"] = "app_mention"
		s.emit(event)
	}
	return m.ts, nil
}

// actor finds a person who can act and the channel they act in. The caller
// holds mu.
func (s *Server) actor(user, channel string) (*Person, *channel, error) {
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
	if c == nil && (channel == BotUser || channel == "@"+BotName) {
		c, _ = s.direct(p)
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
func (s *Server) fromComposer(typed string) string {
	var out strings.Builder
	for typed != "" {
		at := mention.FindStringIndex(typed)
		if at == nil {
			break
		}
		out.WriteString(escapeText(typed[:at[0]]))
		out.WriteString(s.entity(typed[at[0]:at[1]]))
		typed = typed[at[1]:]
	}
	return out.String() + escapeText(typed)
}

func (s *Server) entity(token string) string {
	if name, ok := strings.CutPrefix(token, "@"); ok {
		trimmed := strings.TrimRight(name, ".-")
		rest := name[len(trimmed):]
		if p := s.person(trimmed); p != nil && p.Name == trimmed {
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
func (s *Server) typedBlocks(text string) []any {
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
func (s *Server) OpenHome(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.person(user)
	if p == nil {
		return noSuch("person", user)
	}
	dm, _ := s.direct(p)
	event := object{"type": "app_home_opened", "user": p.ID, "channel": dm.ID, "tab": "home"}
	if v := s.homes[p.ID]; v != nil {
		event["view"] = s.viewJSON(v)
	}
	s.emit(event)
	return nil
}

// Leave takes a person out of a channel and tells the app.
func (s *Server) Leave(user, channel string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, c, err := s.actor(user, channel)
	if err != nil {
		return err
	}
	c.Members = slices.DeleteFunc(slices.Clone(c.Members), func(m string) bool { return m == p.ID })
	s.changed()
	s.emit(object{"type": "member_left_channel", "user": p.ID, "channel": c.ID, "channel_type": "C", "team": TeamID})
	return nil
}

// Reload is what a person's client forgets when it starts again: every
// ephemeral message they saw.
func (s *Server) Reload(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.person(user)
	if p == nil {
		return noSuch("person", user)
	}
	for _, c := range s.channels {
		c.messages = slices.DeleteFunc(c.messages, func(m *message) bool { return m.visibleTo == p.ID })
	}
	s.changed()
	return nil
}
