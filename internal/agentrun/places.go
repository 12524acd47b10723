package agentrun

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// places bound how many runs of one agent, and of one person, [Runner.Work] works on at
// the same time. Without them, a person or an agent with many slow runs would take all
// workers of the process, and everyone else would wait for these runs to end.
type places struct {
	agent, requester int // the bounds; 0 is none

	mu         sync.Mutex
	agents     map[string]*share
	requesters map[approvals.UserID]*share
}

// A share is what one agent or person has of the workers.
type share struct {
	held    int
	refused int   // since one last began
	putOff  int64 // in all
}

// firstWait and longestWait bound how long a run that found no place is put off. The
// wait grows with the number of runs that found none since the last one began, so that a
// large backlog does not keep the process busy with refusing places.
const (
	firstWait   = 200 * time.Millisecond
	longestWait = 30 * time.Second
)

// A BusyError says that this process has no place for a run yet. It is not a failure.
type BusyError struct {
	Run   approvals.RunID
	Of    string // whose runs are too many: "agent" or "requester"
	After time.Duration
}

// Error implements error. It names nobody.
func (e *BusyError) Error() string {
	return fmt.Sprintf("run %s has to wait: as many runs of its %s are worked on as may be", e.Run, e.Of)
}

// RetryAfter is when to try again.
func (e *BusyError) RetryAfter() time.Duration { return e.After }

func newPlaces(agent, requester int) *places {
	return &places{agent: agent, requester: requester, agents: map[string]*share{}, requesters: map[approvals.UserID]*share{}}
}

// take returns a function that gives the place of the run back, or a [*BusyError].
func (p *places) take(run Run) (give func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of, person := p.agents[run.Agent], p.requesters[run.Requester]
	if of == nil {
		of = &share{}
		p.agents[run.Agent] = of
	}
	if person == nil {
		person = &share{}
		p.requesters[run.Requester] = person
	}
	if after := of.full(p.agent); after > 0 {
		of.putOff++
		p.forget(run)
		return nil, &BusyError{run.ID, "agent", after}
	}
	if run.Requester != "" {
		if after := person.full(p.requester); after > 0 {
			of.putOff++
			return nil, &BusyError{run.ID, "requester", after}
		}
	}
	of.begin()
	person.begin()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		of.held--
		person.held--
		p.forget(run)
	}, nil
}

// forget removes the share of a person who has no place. Those of agents stay: they are
// few, and their counts are read by [Runner.Busy].
func (p *places) forget(run Run) {
	if s := p.requesters[run.Requester]; s != nil && s.held == 0 {
		delete(p.requesters, run.Requester)
	}
}

func (s *share) begin() {
	s.held++
	s.refused = 0
}

// full returns how long to put a run off, and 0 if there is a place for it.
func (s *share) full(bound int) time.Duration {
	if bound <= 0 || s.held < bound {
		return 0
	}
	s.refused++
	wait := min(firstWait*time.Duration(1+s.refused/bound), longestWait)
	return wait - rand.N(wait/4) //nolint:gosec // jitter is no secret
}

// Busy is how busy a [Runner] is with one agent.
type Busy struct {
	Agent  string
	Runs   int   // that are worked on now
	PutOff int64 // how often a run found no place, since the start
}

// Busy returns how busy the runner is with each agent of which it had a run.
func (r *Runner) Busy() []Busy {
	r.places.mu.Lock()
	defer r.places.mu.Unlock()
	var all []Busy
	for name, s := range r.places.agents {
		all = append(all, Busy{Agent: name, Runs: s.held, PutOff: s.putOff})
	}
	return all
}
