package slacksim

import (
	"strings"
	"time"

	"github.com/countersign/countersign/internal/slacksim/blockkit"
)

// assistantAPI is assistant.threads.*.
type assistantAPI struct {
	*world

	messages *messages
}

// statusLife is how long a status stands without a message.
const statusLife = 2 * time.Minute

const maxLoading = 10

// threadOf finds the thread that an assistant method is about.
func (s *assistantAPI) threadOf(c *call, needed bool) (*assistance, *failure) {
	ch := s.joined(c, c.str("channel_id"))
	if ch == nil {
		return nil, fail("channel_not_found")
	}
	ts := c.str("thread_ts")
	if root := ch.find(ts); (needed || ts != "") && (root == nil || root.visibleTo != "") {
		return nil, fail("invalid_thread_ts")
	}
	key := ch.ID + "/" + ts
	if s.messages.assisting[key] == nil {
		s.messages.assisting[key] = &assistance{}
	}
	s.changed()
	return s.messages.assisting[key], nil
}

func (s *assistantAPI) assistantSetStatus(c *call) (object, *failure) {
	loading, f := c.loading()
	if f != nil {
		return nil, f
	}
	a, f := s.threadOf(c, true)
	if f != nil {
		return nil, f
	}
	a.Status, a.Loading, a.until = c.str("status"), loading, s.clock.now().Add(statusLife)
	return object{}, nil
}

// loading reads loading_messages, which forms carry as JSON or with commas.
func (c *call) loading() ([]string, *failure) {
	var all []string
	switch v, ok := c.value("loading_messages"); {
	case ok:
		all = blockkit.Texts(v)
	default:
		all = strings.FieldsFunc(c.str("loading_messages"), func(r rune) bool { return r == ',' })
	}
	if len(all) > maxLoading {
		return nil, invalid("no more than 10 items allowed [json-pointer:/loading_messages]")
	}
	return all, nil
}

func (s *assistantAPI) assistantSetTitle(c *call) (object, *failure) {
	a, f := s.threadOf(c, true)
	if f != nil {
		return nil, f
	}
	a.Title = c.str("title")
	return object{}, nil
}

func (s *assistantAPI) assistantSetPrompts(c *call) (object, *failure) {
	v, ok := c.value("prompts")
	if !ok {
		return nil, invalid("must provide an array [json-pointer:/prompts]")
	}
	check := blockkit.NewChecker(blockkit.OnMessage)
	check.Prompts(v, "/prompts")
	if len(check.Problems()) > 0 {
		return nil, &failure{code: "invalid_arguments", problems: check.Problems()}
	}
	a, f := s.threadOf(c, false)
	if f != nil {
		return nil, f
	}
	a.Prompts = nil
	prompts, _ := v.([]any)
	for _, p := range prompts {
		o, _ := p.(object)
		a.Prompts = append(a.Prompts, o)
	}
	return object{}, nil
}
