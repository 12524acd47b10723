package slacksim

import "time"

// messages is where messages are written, and what the app shows beside them.
type messages struct {
	*world

	events    *events
	assisting map[string]*assistance // by channel and thread
}

// store appends a new message and returns it. The caller holds mu.
func (s *messages) store(c *channel, m *message) *message {
	m.ts = s.nextTS()
	c.add(m)
	s.settle(c, m)
	s.changed()
	if m.app != nil {
		s.events.tellOfApp(c, m, "", nil)
	}
	return m
}

// remove deletes a message of the app and tells the app: that it was deleted, or of one
// with replies, that it was changed to a tombstone. The caller holds mu.
//
// https://github.com/42wim/matterbridge/issues/600
// https://github.com/openclaw/openclaw/pull/22035
func (s *messages) remove(c *channel, m *message) {
	before := s.events.payloads.messageJSON(c, m, true)
	c.drop(m)
	s.changed()
	kind := "message_deleted"
	if m.subtype == tombstone {
		kind = "message_changed"
	}
	s.events.tellOfApp(c, m, kind, before)
}

// settle clears the status of a thread in which the app wrote something.
func (s *messages) settle(c *channel, m *message) {
	if m.app == nil {
		return
	}
	if a := s.assisting[c.ID+"/"+m.threadTS]; a != nil {
		a.Status, a.Loading, a.until = "", nil, time.Time{}
	}
}

// assistance is stored by channel and thread.
type assistance struct {
	Assistant
	until time.Time // of the status
}

// assistant returns what a person sees in a thread beside the messages.
func (s *messages) assistant(channel, thread string) *Assistant {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channel(channel)
	if c == nil {
		return nil
	}
	a := s.assisting[c.ID+"/"+thread]
	if a == nil {
		return nil
	}
	shown := a.Assistant
	if !s.clock.now().Before(a.until) {
		shown.Status, shown.Loading = "", nil
	}
	return &shown
}
