package slacksim

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/slacksim/blockkit"
)

// chatAPI is chat.*, but for what is scheduled.
type chatAPI struct {
	*world

	payloads *payloads
	events   *events
	messages *messages
}

const (
	maxPostText   = 40_000 // longer text is cut, with a warning
	maxUpdateText = 4_000  // longer text is refused
	maxBlocksText = 13_200 // of all blocks, where msg_blocks_too_long was seen
	maxMetadata   = 8_000  // bytes; Slack does not publish its figure
)

// content is what a message says, checked.
type content struct {
	text        string
	blocks      []any // nil: not given
	attachments []any
	metadata    object
	gave        struct{ text, blocks, attachments, metadata bool }
}

// contentOf reads and checks the arguments of the chat methods.
func (c *call) contentOf() (content, *failure) {
	var k content
	k.text, k.gave.text = c.str("text"), c.has("text")
	var f *failure
	if k.blocks, k.gave.blocks, f = c.array("blocks", "invalid_blocks_format"); f != nil {
		return k, f
	}
	if k.attachments, k.gave.attachments, f = c.array("attachments", "invalid_attachments"); f != nil {
		return k, f
	}
	if len(k.attachments) > 100 {
		return k, fail("too_many_attachments")
	}
	if md := c.str("markdown_text"); md != "" {
		if k.text != "" || len(k.blocks) > 0 {
			return k, fail("markdown_text_conflict")
		}
		if utf8.RuneCountInString(md) > blockkit.MaxMarkdown {
			return k, fail("msg_too_long")
		}
		k.blocks, k.gave.blocks = []any{object{"type": "markdown", "text": md}}, true
	}
	if k.metadata, k.gave.metadata, f = c.metadata(); f != nil {
		return k, f
	}
	return k, checkBlocks(k.blocks, k.attachments)
}

func (c *call) array(name, wrong string) ([]any, bool, *failure) {
	if !c.has(name) || c.values[name] == "" {
		return nil, false, nil
	}
	v, ok := c.value(name)
	list, isList := v.([]any)
	if !ok || !isList {
		return nil, false, fail(wrong)
	}
	return list, true, nil
}

// metadata is {event_type, event_payload}; an empty object removes it.
func (c *call) metadata() (object, bool, *failure) {
	if !c.has("metadata") || c.values["metadata"] == "" {
		return nil, false, nil
	}
	v, ok := c.value("metadata")
	o, isObject := v.(object)
	if !ok || !isObject {
		return nil, false, fail("invalid_metadata_format")
	}
	if len(o) == 0 {
		return nil, true, nil
	}
	kind, _ := o["event_type"].(string)
	if _, isObject := o["event_payload"].(object); kind == "" || !isObject || len(o) > 2 { // nothing but these two
		return nil, false, fail("invalid_metadata_schema")
	}
	if len(encodeJSON(o)) > maxMetadata {
		return nil, false, fail("metadata_too_large")
	}
	return o, true, nil
}

// checkBlocks checks the blocks of a message and of its attachments, and
// gives ids to those without.
func checkBlocks(list, attachments []any) *failure {
	c := blockkit.NewChecker(blockkit.OnMessage)
	c.Blocks(list, "/blocks")
	for i, a := range attachments {
		o, ok := a.(object)
		if !ok {
			return fail("invalid_attachments")
		}
		if inner, has := o["blocks"]; has {
			c.Blocks(inner, "/attachments/"+itoa(i)+"/blocks")
		}
	}
	switch {
	case len(c.Problems()) > 0:
		return &failure{code: "invalid_blocks", problems: c.Problems()}
	case c.Tables() > 1:
		return &failure{code: "invalid_attachments", problems: []string{"only_one_table_allowed"}}
	case c.Text() > maxBlocksText:
		return fail("msg_blocks_too_long")
	}
	blockkit.AssignIDs(list, shortID)
	for _, a := range attachments {
		inner, _ := a.(object)["blocks"].([]any)
		blockkit.AssignIDs(inner, shortID)
	}
	return nil
}

// target finds the channel that the bot wants to write to.
func (s *chatAPI) target(c *call, ref string) (*channel, *failure) {
	ch := s.named(c.in, ref)
	switch {
	case ch == nil && c.in.org() && s.channel(ref) != nil && s.channel(ref).ID != ref:
		return nil, fail("team_not_found") // a name says nothing without its workspace
	case ch == nil || (ch.Private && !ch.has(c.in.botUser)):
		return nil, fail("channel_not_found")
	case ch.Archived:
		return nil, fail("is_archived")
	case !ch.has(c.in.botUser):
		return nil, fail("not_in_channel")
	case ch.IM && s.cfg.NoMessages:
		return nil, fail("messages_tab_disabled")
	}
	return ch, nil
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

// joined finds a channel that the bot is in, by id.
func (s *world) joined(c *call, id string) *channel {
	if ch := s.named(c.in, id); ch != nil && ch.has(c.in.botUser) {
		return ch
	}
	return nil
}

var timestamp = regexp.MustCompile(`^\d{1,12}\.\d{1,6}$`)

// replyTo checks a thread_ts and returns the root of that thread.
func (c *channel) replyTo(ts string) (string, *failure) {
	if ts == "" {
		return "", nil
	}
	if !timestamp.MatchString(ts) {
		return "", &failure{code: "invalid_thread_ts", problems: []string{ts + " is not a valid thread_ts"}, quiet: true}
	}
	root := c.find(ts)
	if root == nil || root.visibleTo != "" {
		return "", fail("cannot_reply_to_message")
	}
	return cmp.Or(root.threadTS, root.ts), nil
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
	if ch, f = s.target(c, c.str("channel")); f != nil {
		return k, nil, "", f
	}
	if k.text == "" && len(k.blocks) == 0 && len(k.attachments) == 0 {
		return k, nil, "", fail("no_text")
	}
	root, f = ch.replyTo(c.str("thread_ts"))
	return k, ch, root, f
}

func (s *chatAPI) chatPostMessage(c *call) (object, *failure) {
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

// message is a new message of the app, not stored yet.
func (c *call) message(k content, root string) *message {
	return &message{
		threadTS: root, user: c.in.botUser, app: c.in, text: k.text, username: c.str("username"),
		blocks: k.blocks, attachments: k.attachments, metadata: k.metadata,
		broadcast: root != "" && c.bool("reply_broadcast"),
	}
}

func (s *chatAPI) chatUpdate(c *call) (object, *failure) {
	k, f := c.contentOf()
	if f != nil {
		return nil, f
	}
	if utf8.RuneCountInString(k.text) > maxUpdateText {
		return nil, fail("msg_too_long")
	}
	ch := s.joined(c, c.str("channel"))
	if ch == nil {
		return nil, fail("channel_not_found")
	}
	m := ch.find(c.str("ts"))
	switch {
	case m == nil || m.visibleTo != "" || m.subtype == "tombstone":
		return nil, fail("message_not_found")
	case m.stream != nil && m.stream.state == streaming:
		return nil, fail("streaming_state_conflict")
	case m.app != c.in:
		return nil, fail("cant_update_message")
	case !k.gave.text && !k.gave.blocks && !k.gave.attachments && !k.gave.metadata:
		return nil, fail("no_text")
	}
	next := *m
	if k.gave.text {
		next.text = k.text
	}
	if k.gave.blocks {
		next.earlier = append(slices.Clone(next.earlier), next.blocks)
		next.blocks = k.blocks
	}
	if k.gave.attachments {
		next.attachments = k.attachments
	}
	if k.gave.metadata {
		next.metadata = k.metadata
	}
	if next.text == "" && len(next.blocks) == 0 && len(next.attachments) == 0 {
		return nil, fail("no_text")
	}
	next.edited = object{"user": c.in.botUser, "ts": s.nextTS()}
	before := s.payloads.messageJSON(ch, m, true)
	*m = next
	s.changed()
	s.events.tellOfApp(ch, m, "message_changed", before)
	return object{"channel": ch.ID, "ts": m.ts, "text": m.text, "message": s.payloads.messageJSON(ch, m, true)}, nil
}

func (s *chatAPI) chatDelete(c *call) (object, *failure) {
	ch := s.joined(c, c.str("channel"))
	if ch == nil {
		return nil, fail("channel_not_found")
	}
	m := ch.find(c.str("ts"))
	switch {
	case m == nil || m.visibleTo != "" || m.subtype == "tombstone":
		return nil, fail("message_not_found")
	case m.app != c.in:
		return nil, fail("cant_delete_message")
	}
	before, deleted := s.payloads.messageJSON(ch, m, true), *m
	ch.drop(m)
	s.changed()
	s.events.tellOfApp(ch, &deleted, "message_deleted", before)
	return object{"channel": ch.ID, "ts": c.str("ts")}, nil
}

// drop deletes a message; a thread keeps a tombstone as its root.
func (c *channel) drop(m *message) {
	if len(c.thread(m.ts)) == 0 {
		c.remove(m)
		return
	}
	*m = message{ts: m.ts, threadTS: m.ts, user: "USLACKBOT", subtype: "tombstone", text: "This message was deleted."}
}

func (s *chatAPI) chatPostEphemeral(c *call) (object, *failure) {
	k, f := c.contentOf()
	if f != nil {
		return nil, f
	}
	ch, f := s.target(c, c.str("channel"))
	if f != nil {
		return nil, f
	}
	p := s.known(c, c.str("user"))
	if p == nil || !ch.has(p.ID) || p.Deleted {
		return nil, fail("user_not_in_channel")
	}
	if k.text == "" && len(k.blocks) == 0 && len(k.attachments) == 0 {
		return nil, fail("no_text")
	}
	root, f := ch.replyTo(c.str("thread_ts"))
	if f != nil {
		return nil, f
	}
	m := s.messages.store(ch, &message{
		threadTS: root, user: c.in.botUser, app: c.in, text: k.text, username: c.str("username"),
		blocks: k.blocks, attachments: k.attachments, visibleTo: p.ID,
	})
	return object{"message_ts": m.ts}, nil
}

func (s *chatAPI) chatGetPermalink(c *call) (object, *failure) {
	ch := s.named(c.in, c.str("channel"))
	if ch == nil || (ch.Private && !ch.has(c.in.botUser)) {
		return nil, fail("channel_not_found")
	}
	m := ch.find(c.str("message_ts"))
	if m == nil || m.visibleTo != "" {
		return nil, fail("message_not_found")
	}
	return object{"channel": ch.ID, "permalink": s.payloads.permalink(ch, m)}, nil
}

func (s *payloads) permalink(ch *channel, m *message) string {
	link := "https://" + s.workspace(ch.Team).Domain + ".slack.com/archives/" + ch.ID + "/p" + strings.ReplaceAll(m.ts, ".", "")
	if m.threadTS != "" && m.threadTS != m.ts {
		link += "?thread_ts=" + m.threadTS + "&cid=" + ch.ID
	}
	return link
}
