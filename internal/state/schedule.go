package state

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

const (
	// longestSweep is the longest time until a partition is due to be asked again while
	// wake-ups arrive. The next round asks it.
	longestSweep = 25 * time.Second
	// shortSweep is the time between two rounds, give or take a quarter, each of which
	// asks every partition while wake-ups do not arrive.
	shortSweep = 2 * time.Second
)

// A schedule says when a process asks which partitions for work. It asks all of them
// again and again until it has received a message from each since it asked, so that a
// wake-up that is lost delays no work for long. From then on each partition is asked at
// times of its own. If no message follows one of these by the next round, that round asks
// all of them again.
type schedule struct {
	longest time.Duration

	mu     sync.Mutex
	anew   bool      // the next round is for all partitions
	asked  time.Time // the last round
	wasAll bool      // it was for all partitions
	next   [approvals.Partitions]time.Time
}

func newSchedule(longest time.Duration) *schedule { return &schedule{longest: longest, anew: true} }

// reset has the next round ask every partition.
func (s *schedule) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.anew = true
}

// round returns the partitions that are to be asked now. Each is expected to answer with
// a message, too, see heard.
func (s *schedule) round(now time.Time) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.anew || slices.ContainsFunc(s.next[:], time.Time.IsZero)
	s.anew, s.asked, s.wasAll = false, now, all
	var due []int
	for n, at := range s.next {
		if all || !at.After(now) {
			s.next[n] = time.Time{}
			due = append(due, n)
		}
	}
	return due
}

// heard notes that a message from the partition has arrived. After a round for all
// partitions their times are spread evenly.
func (s *schedule) heard(partition int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.anew || !s.next[partition].IsZero() {
		return
	}
	wait := s.longest - rand.N(s.longest/4+1) //nolint:gosec // jitter is no secret
	if s.wasAll {
		wait = rand.N(s.longest) + 1 //nolint:gosec // as above
	}
	s.next[partition] = s.asked.Add(wait)
}
