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
	mu     sync.Mutex
	by     map[endpointKey]int
	failed map[endpointKey]bool // whose last attempt was not delivered
}

// An endpointKey is the agent and the name of an endpoint.
type endpointKey [2]string

// begin counts a message, unless its endpoint has as many as it may: not more than are
// free for others. Receivers that stop answering one after another hold 8, 4, 2, 1 and 1.
// Once that is known of them, they all together hold half of the workers, so that the
// messages for the others do not wait for them, however many they are.
func (s *sending) begin(m stored) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := endpointKey{m.Agent, m.Endpoint}
	free := maxTotal
	if s.failed[key] {
		free /= 2
	}
	for other, n := range s.by {
		if s.failed[other] || !s.failed[key] {
			free -= n
		}
	}
	if s.by[key] >= free {
		return false
	}
	if s.by == nil {
		s.by, s.failed = map[endpointKey]int{}, map[endpointKey]bool{}
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
	key := endpointKey{m.Agent, m.Endpoint}
	if s.by[key]--; s.by[key] <= 0 {
		delete(s.by, key)
	}
}

// attempted remembers whether the endpoint took a message.
func (s *sending) attempted(m stored, delivered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key := (endpointKey{m.Agent, m.Endpoint}); delivered {
		delete(s.failed, key)
	} else {
		s.failed[key] = true
	}
}
