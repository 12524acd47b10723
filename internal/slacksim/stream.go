package slacksim

import (
	"slices"

	"github.com/countersign/countersign/internal/slacksim/blockkit"
)

const (
	streaming     = "streaming"
	streamStopped = "stopped"
	stoppedByUser = "stopped_by_user"
)

// pieces reads markdown_text and chunks and adds them to a stream.
func (c *call) pieces(st *streamed, needed bool) *failure {
	md := c.str("markdown_text")
	if len([]rune(md)) > blockkit.MaxMarkdown {
		return fail("msg_blocks_too_long")
	}
	chunks, _, f := c.array("chunks", "invalid_chunks")
	if f != nil {
		return f
	}
	if needed && md == "" && len(chunks) == 0 {
		return fail("no_text")
	}
	check := blockkit.NewChecker(blockkit.OnMessage)
	check.Chunks(chunks, "/chunks")
	if len(check.Problems()) > 0 {
		return &failure{code: "invalid_chunks", problems: check.Problems()}
	}
	st.text += md
	for _, piece := range chunks {
		o, _ := piece.(object)
		st.add(o)
	}
	return nil
}

func (s *chatAPI) chatStartStream(c *call) (object, *failure) {
	if s.identified(c.in, c.str("channel")) == nil {
		return nil, fail("channel_not_found")
	}
	ch, f := s.target(c, c.str("channel"))
	if f != nil {
		return nil, f
	}
	if !ch.IM {
		switch {
		case c.str("recipient_user_id") == "":
			return nil, fail("missing_recipient_user_id")
		case c.str("recipient_team_id") == "":
			return nil, fail("missing_recipient_team_id")
		case s.known(c, c.str("recipient_user_id")) == nil:
			return nil, fail("user_not_found")
		}
	}
	mode := c.str("task_display_mode")
	if mode != "" && mode != "plan" && mode != "timeline" {
		return nil, invalid("must be a valid enum value [json-pointer:/task_display_mode]")
	}
	root, f := ch.replyTo(c.str("thread_ts"))
	if f != nil {
		return nil, f
	}
	st := &streamed{state: streaming, plan: mode == "plan"}
	if f := c.pieces(st, false); f != nil {
		return nil, f
	}
	m := &message{threadTS: root, user: c.in.botUser, app: c.in, username: c.str("username"), stream: st}
	m.draw()
	s.messages.store(ch, m)
	return object{"channel": ch.ID, "ts": m.ts}, nil
}

// streamOf finds the message that is being streamed.
func (s *chatAPI) streamOf(c *call) (*channel, *message, *failure) {
	ch := s.joined(c, c.str("channel"))
	if ch == nil {
		return nil, nil, fail("channel_not_found")
	}
	m := ch.find(c.str("ts"))
	switch {
	case m == nil || m.visibleTo != "":
		return nil, nil, fail("message_not_found")
	case m.app != c.in:
		return nil, nil, fail("message_not_owned_by_app")
	case m.stream != nil && m.stream.state == stoppedByUser:
		return ch, m, fail("stopped_by_user")
	case m.stream == nil || m.stream.state != streaming:
		return nil, nil, fail("message_not_in_streaming_state")
	}
	return ch, m, nil
}

func (s *chatAPI) chatAppendStream(c *call) (object, *failure) {
	ch, m, f := s.streamOf(c)
	if f != nil {
		return nil, f
	}
	if f := c.pieces(m.stream, true); f != nil {
		return nil, f
	}
	m.draw()
	s.changed()
	return object{"channel": ch.ID, "ts": m.ts}, nil
}

func (s *chatAPI) chatStopStream(c *call) (object, *failure) {
	ch, m, f := s.streamOf(c)
	if f != nil && f.code == stoppedByUser {
		f = fail("message_not_in_streaming_state")
	}
	if f != nil {
		return nil, f
	}
	last, _, f := c.array("blocks", "invalid_blocks_format")
	if f != nil {
		return nil, f
	}
	metadata, gave, f := c.metadata()
	if f != nil {
		return nil, f
	}
	if f := checkBlocks(last, nil); f != nil {
		return nil, f
	}
	if f := c.pieces(m.stream, false); f != nil {
		return nil, f
	}
	m.stream.blocks = append(slices.Clone(m.stream.blocks), last...)
	m.stream.state = streamStopped
	if gave {
		m.metadata = metadata
	}
	m.draw()
	s.changed()
	return object{"channel": ch.ID, "ts": m.ts, "message": s.payloads.messageJSON(ch, m, true)}, nil
}

func (m *message) draw() {
	m.text, m.blocks = m.stream.text, storedBlocks(m.stream.shown())
}
