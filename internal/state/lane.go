package state

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// laneWorkers is how many items of the kinds that share a lane are handled at
	// the same time, besides one of each kind. It is less than a kind has workers, so
	// that a kind with much work always waits for the lane, and keeps its place.
	laneWorkers = 12
	// laneQuick of these are never given to kinds that wait for others than the
	// store.
	laneQuick = 4
	// urgentFor is how long an urgent item holds other kinds up at most: a run may wait
	// for a model, or work on a call, for minutes.
	urgentFor = 50 * time.Millisecond
	// attendedFor is how long a person who waits holds kinds up at most: their answer may
	// wait for a lookup in Slack, which takes no CPU.
	attendedFor = 250 * time.Millisecond
)

// A lane is shared by the loops of kinds with a rank. It bounds how many items are
// handled at the same time, so that work of which there is much at once leaves the
// CPU and the connections to Redis to the requests of people. Each kind may always
// handle one item. The others are given to the kind with the lowest rank first: while
// it has more than it may handle, those behind it handle one at a time. Kinds that
// wait for others than the store hold nobody up once they have all they may have.
//
// While something urgent is handled, the slow kinds begin one item each: a run that
// resumes makes a dozen round trips to Redis, and at each of them it would wait for the
// CPU that a dozen cards take. So they do while more people wait for an answer than the
// machine can answer at once.
type lane struct {
	mu      sync.Mutex
	members []*member // by rank
	urgent  int       // items, each of them for at most urgentFor
	people  int       // who wait for an answer, each of them for at most attendedFor
}

// crowd is how many people may wait for an answer before those that draw make room.
var crowd = 4 * runtime.GOMAXPROCS(0)

// A member is a loop in a lane. A nil one is in none, and is never held up.
type member struct {
	lane *lane
	task Task
	room chan struct{} // ready when there may be room after [member.take] found none

	held  int  // items that are handled
	wants bool // it takes items, or waits for room, until it is done
}

// join adds a loop, which leaves when it has ended.
func (a *lane) join(t Task) *member {
	if t.Rank == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &member{lane: a, task: t, room: make(chan struct{}, 1)}
	at := slices.IndexFunc(a.members, func(x *member) bool { return x.task.Rank > t.Rank })
	if at < 0 {
		at = len(a.members)
	}
	a.members = slices.Insert(a.members, at, m)
	return m
}

// hurry says that an urgent item is handled, until over is called.
func (a *lane) hurry() (over func()) { return a.count(&a.urgent, 0, urgentFor) }

// attend says that a person waits for an answer, until over is called.
func (a *lane) attend() (over func()) { return a.count(&a.people, crowd, attendedFor) }

// count counts one more of n, until over is called and for no longer than limit. When n
// falls to low, there may be room for a member that waits.
func (a *lane) count(n *int, low int, limit time.Duration) (over func()) {
	a.mu.Lock()
	*n++
	a.mu.Unlock()
	end := sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if *n--; *n == low {
			a.tell()
		}
	})
	timer := time.AfterFunc(limit, end)
	return func() {
		timer.Stop()
		end()
	}
}

// pressed reports whether the slow kinds make room. The caller holds mu.
func (a *lane) pressed() bool { return a.urgent > 0 || a.people > crowd }

// ready is when take may find room again.
func (m *member) ready() <-chan struct{} {
	if m == nil {
		return nil
	}
	return m.room
}

// take reports whether one more item may be handled now. If not, the member is told
// when there is room, unless it is done by then. Who takes says so when it is done:
// the room that it leaves is for those behind it.
func (m *member) take() bool {
	if m == nil {
		return true
	}
	m.lane.mu.Lock()
	defer m.lane.mu.Unlock()
	m.wants = true
	for _, first := range m.lane.members {
		if first == m {
			break
		}
		if first.wants && m.held > 0 && (!first.task.Slow || m.lane.fits(first)) {
			return false
		}
	}
	if !m.lane.fits(m) {
		return false
	}
	m.held++
	return true
}

// give says that an item that was taken is done.
func (m *member) give() {
	if m == nil {
		return
	}
	m.lane.mu.Lock()
	defer m.lane.mu.Unlock()
	m.held--
	m.lane.tell()
}

// done says that the member takes nothing more for now.
func (m *member) done() {
	if m == nil {
		return
	}
	m.lane.mu.Lock()
	defer m.lane.mu.Unlock()
	if m.wants {
		m.wants = false
		m.lane.tell()
	}
}

// leave takes the member out of the lane: nothing of it is handled any more.
func (m *member) leave() {
	if m == nil {
		return
	}
	m.lane.mu.Lock()
	defer m.lane.mu.Unlock()
	m.lane.members = slices.DeleteFunc(m.lane.members, func(x *member) bool { return x == m })
	m.lane.tell()
}

// fits reports whether the member may handle one more item. The caller holds mu.
func (a *lane) fits(m *member) bool {
	if m.held == 0 {
		return true
	}
	if m.task.Slow && a.pressed() {
		return false
	}
	shared, slow := 0, 0
	for _, x := range a.members {
		n := max(0, x.held-1)
		shared += n
		if x.task.Slow {
			slow += n
		}
	}
	return shared < laneWorkers && (!m.task.Slow || slow < laneWorkers-laneQuick)
}

// tell tells the first member that waits and for which there is room. The caller
// holds mu.
func (a *lane) tell() {
	for _, m := range a.members {
		if m.wants && a.fits(m) {
			select {
			case m.room <- struct{}{}:
			default: // it is about to look
			}
			return
		}
	}
}
