package slacksim

import (
	"cmp"
	"slices"

	"github.com/countersign/countersign/internal/slacksim/blockkit"
)

// streamed is a message that the app writes bit by bit.
type streamed struct {
	state  string // streaming, stopped, or stopped_by_user
	text   string
	plan   bool
	title  string
	tasks  []object
	blocks []any
}

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

func (st *streamed) add(o object) {
	switch o["type"] {
	case "markdown_text":
		st.text += str(o["text"])
	case "plan_update":
		st.title = str(o["title"])
	case "blocks":
		more, _ := o["blocks"].([]any)
		st.blocks = append(slices.Clone(st.blocks), more...)
	case "task_update":
		task := object{"type": "task_card", "task_id": o["id"], "title": o["title"], "status": cmp.Or(str(o["status"]), "pending")}
		for _, name := range []string{"details", "output"} {
			if t := str(o[name]); t != "" {
				task[name] = object{"type": "rich_text", "elements": []any{object{
					"type": "rich_text_section", "elements": []any{object{"type": "text", "text": t}},
				}}}
			}
		}
		if o["sources"] != nil {
			task["sources"] = o["sources"]
		}
		at := slices.IndexFunc(st.tasks, func(t object) bool { return t["task_id"] == o["id"] })
		st.tasks = slices.Clone(st.tasks)
		if at < 0 {
			st.tasks = append(st.tasks, task)
			return
		}
		st.tasks[at] = task
	}
}

// shown are the blocks that the stream makes.
func (st *streamed) shown() []any {
	var all []any
	if st.text != "" {
		all = append(all, object{"type": "markdown", "text": st.text})
	}
	var tasks []any
	for _, t := range st.tasks {
		tasks = append(tasks, t)
	}
	if st.plan && (len(tasks) > 0 || st.title != "") {
		tasks = []any{object{"type": "plan", "title": cmp.Or(st.title, "Plan"), "tasks": append([]any{}, tasks...)}}
	}
	all = append(append(all, tasks...), st.blocks...)
	blockkit.AssignIDs(all, shortID)
	return all
}

func (m *message) draw() {
	m.text, m.blocks = m.stream.text, m.stream.shown()
}

func (s *chatAPI) chatStartStream(c *call) (object, *failure) {
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
