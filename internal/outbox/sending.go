package outbox

import (
	"sync"
	"time"
)

const (
	// maxTotal is how many messages a process sends at once, because it has as many
	// workers for them.
	maxTotal = 16
	// busyFor is the pause of a message whose endpoint has as many.
	busyFor = time.Second
)

// sending counts the messages that this process sends, by endpoint.
type sending struct {
	mu sync.Mutex
	by map[[2]string]int
}

// begin counts a message, unless its endpoint has as many as it may: not more than are
// free for others. Receivers that stop answering one after another hold 8, 4, 2, 1 and 1,
// so up to four of them do not delay the messages for all others.
func (s *sending) begin(m stored) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]string{m.Agent, m.Endpoint}
	free := maxTotal
	for _, n := range s.by {
		free -= n
	}
	if s.by[key] >= free {
		return false
	}
	if s.by == nil {
		s.by = map[[2]string]int{}
	}
	s.by[key]++
	return true
}

// end is called for each message that was counted; for the zero message it does
// nothing.
func (s *sending) end(m stored) {
	if m.ID == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]string{m.Agent, m.Endpoint}
	if s.by[key]--; s.by[key] <= 0 {
		delete(s.by, key)
	}
}
