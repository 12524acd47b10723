package slacksim

import (
	"slices"
	"unicode/utf8"
)

// chatAPI is chat.*, but for what is scheduled.
type chatAPI struct {
	*world

	payloads *payloads
	events   *events
	messages *messages
}

const (
	maxPostText   = 40_000 // longer text is cut, with a warning; in an ephemeral message it is refused
	maxUpdateText = 4_000  // longer text is refused
)

// target finds the channel that the bot is in and wants to write to.
func (s *chatAPI) target(c *call, ref string) (*channel, *failure) {
	ch, f := s.open(c, ref)
	if f == nil && !ch.has(c.in.botUser) {
		return nil, fail("not_in_channel")
	}
	return ch, f
}

// open finds a channel that the bot could write to if it were in it.
func (s *chatAPI) open(c *call, ref string) (*channel, *failure) {
	ch := s.named(c.in, ref)
	switch {
	case ch == nil && c.in.org() && s.channel(ref) != nil && s.channel(ref).ID != ref:
		return nil, fail("team_not_found") // a name says nothing without its workspace
	case ch == nil || (ch.Private && !ch.has(c.in.botUser)):
		return nil, fail("channel_not_found")
	case ch.Archived:
		return nil, fail("is_archived")
	case ch.IM && s.cfg.NoMessages:
		return nil, fail("messages_tab_disabled")
	}
	return ch, nil
}

// posting reads and checks a new message: what it says, and the channel and
// thread that it goes to.
func (s *chatAPI) posting(c *call) (k content, ch *channel, root string, f *failure) {
	if k, f = c.contentOf(); f != nil {
		return k, nil, "", f
	}
	if p := s.known(c, c.str("channel")); p != nil && !p.Bot {
		dm, _ := s.direct(c.in, p)
		c.values["channel"] = dm.ID
	}
	switch ch, f = s.open(c, c.str("channel")); {
	case f != nil:
		return k, nil, "", f
	case !s.posts(c.in, ch):
		return k, nil, "", fail("not_in_channel")
	}
	if k.empty() {
		return k, nil, "", fail("no_text")
	}
	root, f = ch.replyTo(c.str("thread_ts"))
	return k, ch, root, f
}

// posts reports whether an installation may post to a channel: the bot is in
// it, or it is public and the app was granted chat:write.public.
func (s *chatAPI) posts(in *installation, ch *channel) bool {
	return ch.has(in.botUser) || (ch.kind() == "channel" && slices.Contains(s.cfg.Scopes, anywhere))
}

func (s *chatAPI) chatPostMessage(c *call) (object, *failure) {
	if f := c.takeEntities(); f != nil {
		return nil, f
	}
	k, ch, root, f := s.posting(c)
	if f != nil {
		return nil, f
	}
	if utf8.RuneCountInString(k.text) > maxPostText {
		k.text = string([]rune(k.text)[:maxPostText])
		c.warnings = append(c.warnings, "message_truncated")
	}
	m := s.messages.store(ch, c.message(k, root))
	return object{"channel": ch.ID, "ts": m.ts, "message": s.payloads.messageJSON(ch, m, true)}, nil
}

func (s *chatAPI) chatUpdate(c *call) (object, *failure) {
	k, f := c.contentOf()
	if f != nil {
		return nil, f
	}
	broadcast, gave := c.bool("reply_broadcast"), k.gave.text || k.gave.blocks || k.gave.attachments || k.gave.metadata
	switch {
	case utf8.RuneCountInString(k.text) > maxUpdateText:
		return nil, fail("msg_too_long")
	case broadcast && gave:
		return nil, fail("no_dual_broadcast_content_update")
	}
	ch := s.identified(c.in, c.str("channel"))
	if ch == nil || !s.posts(c.in, ch) {
		return nil, fail("channel_not_found")
	}
	m := ch.find(c.str("ts"))
	switch {
	case m == nil || m.visibleTo != "" || m.subtype == tombstone:
		return nil, fail("message_not_found")
	case ch.Archived:
		return nil, fail("is_inactive")
	case m.stream != nil && m.stream.state == streaming:
		return nil, fail("streaming_state_conflict")
	case m.app != c.in:
		return nil, fail("cant_update_message")
	case broadcast && (m.threadTS == "" || m.threadTS == m.ts):
		return nil, fail("cant_broadcast_message")
	case !broadcast && !gave:
		return nil, fail("no_text")
	}
	next := *m
	next.broadcast = m.broadcast || broadcast
	if k.gave.text {
		next.text = k.text
	}
	if k.gave.blocks || k.text != "" { // a text alone takes the place of the blocks
		next.redraw(k.blocks)
	}
	if k.gave.attachments {
		next.attachments = k.attachments
	}
	if k.gave.metadata {
		next.metadata = k.metadata
	}
	if blank(next.text) && !hasBlocks(next.blocks) && !attached(next.attachments) {
		return nil, fail("no_text")
	}
	if gave {
		next.edited = object{"user": c.in.botUser, "ts": s.nextTS()}
	}
	before := s.payloads.messageJSON(ch, m, true)
	*m = next
	s.changed()
	s.events.tellOfApp(ch, m, "message_changed", before)
	updated := s.payloads.messageJSON(ch, m, true)
	delete(updated, "ts") // it is beside the message only
	return object{"channel": ch.ID, "ts": m.ts, "text": m.text, "message": updated}, nil
}

func (s *chatAPI) chatDelete(c *call) (object, *failure) {
	ch := s.identified(c.in, c.str("channel"))
	if ch == nil || !s.posts(c.in, ch) {
		return nil, fail("channel_not_found")
	}
	m := ch.find(c.str("ts"))
	switch {
	case m == nil || m.visibleTo != "" || m.subtype == tombstone:
		return nil, fail("message_not_found")
	case m.app != c.in:
		return nil, fail("cant_delete_message")
	}
	s.messages.remove(ch, m)
	return object{"channel": ch.ID, "ts": c.str("ts")}, nil
}

// chatPostEphemeral shows a message to one person, in a thread only if there is one already.
//
// https://docs.slack.dev/reference/methods/chat.postEphemeral
func (s *chatAPI) chatPostEphemeral(c *call) (object, *failure) {
	k, f := c.contentOf()
	if f != nil {
		return nil, f
	}
	if utf8.RuneCountInString(k.text) > maxPostText {
		return nil, fail("msg_too_long")
	}
	ch, f := s.target(c, c.str("channel"))
	if f != nil {
		return nil, f
	}
	p := s.known(c, c.str("user"))
	if p == nil || !ch.has(p.ID) || p.Deleted {
		return nil, fail("user_not_in_channel")
	}
	if k.empty() {
		return nil, fail("no_text")
	}
	root, f := ch.replyTo(c.str("thread_ts"))
	switch {
	case f != nil:
		return nil, f
	case root != "" && len(ch.thread(root)) == 0: // taken, and shown nowhere
		return object{"message_ts": s.nextTS()}, nil
	}
	m := s.messages.store(ch, &message{
		threadTS: root, user: c.in.botUser, app: c.in, text: k.text, username: c.str("username"),
		blocks: storedBlocks(k.blocks), attachments: k.attachments, visibleTo: p.ID,
	})
	return object{"message_ts": m.ts}, nil
}

func (s *chatAPI) chatGetPermalink(c *call) (object, *failure) {
	ch := s.identified(c.in, c.str("channel"))
	if ch == nil || (ch.Private && !ch.has(c.in.botUser)) {
		return nil, fail("channel_not_found")
	}
	m := ch.find(c.str("message_ts"))
	if m == nil || m.visibleTo != "" {
		return nil, fail("message_not_found")
	}
	return object{"channel": ch.ID, "permalink": s.payloads.permalink(ch, m)}, nil
}
