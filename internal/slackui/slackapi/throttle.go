package slackapi

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/slack-go/slack"
)

// PostUpdate is the method that replaces a message.
const PostUpdate = "chat.update"

const (
	postMessage = "chat.postMessage"
	publishView = "views.publish"

	lowPriorityUpdates = "low-priority updates"

	// maxUpdates is how many messages change in a minute before those of low
	// priority wait. Slack allows fifty; the others are for what was decided.
	maxUpdates = 35
	// turnKept is how long a turn is kept for a caller that does not come back.
	turnKept = 10 * time.Second
)

// A throttle knows which kinds of calls Slack has limited, and until when: the
// posts to one channel, or all updates in the workspace. Other calls go on
// meanwhile. Each caller that has to wait gets a turn of its own, so that they do
// not all come back at once, and calls of a higher rank get the first turns. Each
// process has its own throttle.
type throttle struct {
	mu      sync.Mutex
	queues  map[string]*queue
	updates []time.Time // the newest of the last minute, at most maxUpdates
	failed  []string    // different calls that Slack did not answer since it answered one, up to [awayAfter]
	row     int         // calls that Slack did not answer since it answered one
	rounds  int         // of calls that were tried while Slack was away
	told    bool        // by news: that no call succeeds
}

// A rank says which calls are made first.
type rank int

const (
	low     rank = iota // of what still waits for people
	usual               // of what was decided
	awaited             // of what follows from something that people have just done
)

// A queue holds the turns of the calls of one kind after Slack has limited it. Those
// of a call that is awaited are at most three in four, so that the others have theirs
// in the end: each that is made moves the others back by one place.
type queue struct {
	until   time.Time     // no call before
	next    [3]time.Time  // when the next turns begin, by rank
	moved   time.Duration // by how much the turns of calls that are not awaited were moved
	turns   map[string]turn
	cleaned time.Time // when expired turns were dropped last
}

type turn struct {
	at    time.Time
	rank  rank
	moved time.Duration // of its queue, when the turn was given
}

// begins is when the turn is now.
func (l *queue) begins(t turn) time.Time {
	if t.rank == awaited {
		return t.at
	}
	return t.at.Add(l.moved - t.moved)
}

var errPaused = errors.New("it is limited by Slack")

// limitOf names the calls that Slack limits together with this one, and how far
// apart they are made while they are limited.
func limitOf(method, channel string) (string, time.Duration) {
	if method == PostUpdate {
		return method, 1200 * time.Millisecond
	}
	return method + " " + channel, time.Second
}

// wait returns nil if the call with this key may be made now, and otherwise a
// [*LaterError] with its turn.
func (p *throttle) wait(method, channel, key string, r rank, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.turn(method, channel, key, r, now); err != nil {
		return err
	}
	if l := p.queues[lowPriorityUpdates]; l != nil && method == PostUpdate && r == low {
		if delete(l.turns, key); l.idle(now) {
			delete(p.queues, lowPriorityUpdates)
		}
	}
	return nil
}

// may is wait for a call that is made later: a turn that has come is kept for it.
func (p *throttle) may(method, channel, key string, r rank, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turn(method, channel, key, r, now)
}

// turn returns nil if it is the turn of the call in every queue in which it waits.
func (p *throttle) turn(method, channel, key string, r rank, now time.Time) error {
	what, apart := limitOf(method, channel)
	if err := p.turnInOutage(what, key, r, now); err != nil {
		return err
	}
	if l := p.queues[what]; l != nil {
		if err := l.turn(key, r, apart, now); err != nil {
			return err
		}
		if l.idle(now) {
			delete(p.queues, what)
		}
	}
	if method != PostUpdate || r != low {
		return nil
	}
	l, wait := p.queues[lowPriorityUpdates], p.untilRoom(now)
	if wait > 0 {
		if l = p.queue(lowPriorityUpdates); l.until.Before(now.Add(wait)) {
			l.until = now.Add(wait)
		}
	}
	if l == nil {
		return nil
	}
	return l.turn(key, low, BudgetSpan/maxUpdates, now)
}

func (p *throttle) queue(what string) *queue {
	if p.queues == nil {
		p.queues = map[string]*queue{}
	}
	if p.queues[what] == nil {
		p.queues[what] = &queue{turns: map[string]turn{}}
	}
	return p.queues[what]
}

// turn returns nil when it is the caller's turn, and otherwise a [*LaterError]. It
// gives a turn to a caller that has none, and to one whose call has a higher rank now.
func (l *queue) turn(key string, r rank, apart time.Duration, now time.Time) error {
	l.clean(key, now)
	if l.idle(now) {
		return nil
	}
	if mine, known := l.turns[key]; known && !l.begins(mine).Before(l.until) && mine.rank >= r {
		if left := l.begins(mine).Sub(now); left > 0 {
			return &LaterError{After: left, Err: errPaused}
		}
		if mine.rank > low || !l.higherBefore(now.Add(apart)) {
			return nil
		}
	}
	at := l.give(key, r, apart, now)
	if left := at.Sub(now); left > 0 {
		return &LaterError{After: left, Err: errPaused}
	}
	return nil
}

// clean drops the turns of callers that did not come back, except the caller's own. It
// runs at most once a second: there may be tens of thousands of turns after an outage,
// and every caller of the process waits while it runs.
func (l *queue) clean(key string, now time.Time) {
	if since := now.Sub(l.cleaned); since >= 0 && since < time.Second {
		return
	}
	l.cleaned = now
	for k, t := range l.turns {
		if k != key && now.Sub(l.begins(t)) > turnKept {
			delete(l.turns, k)
		}
	}
}

func (l *queue) idle(now time.Time) bool { return !now.Before(l.until) && len(l.turns) == 0 }

// higherBefore reports whether a call of a rank that is not low has its turn by then.
func (l *queue) higherBefore(until time.Time) bool {
	for _, t := range l.turns {
		if t.rank > low && !l.begins(t).After(until) {
			return true
		}
	}
	return false
}

// give gives the call the next turn of its rank.
func (l *queue) give(key string, r rank, apart time.Duration, now time.Time) time.Time {
	at := latest(l.until, l.next[r], now)
	l.turns[key] = turn{at: at, rank: r, moved: l.moved}
	if r == awaited {
		if others := latest(l.next[low], l.next[usual]); others.After(now) {
			apart = apart * 4 / 3 // one in four is theirs
		}
		l.next[r] = at.Add(apart)
		return at
	}
	l.next[r] = at.Add(apart)
	if r == usual {
		l.next[low] = latest(l.next[low], l.next[usual])
	}
	return at
}

// made takes the turn of a call that was made.
func (l *queue) made(key string, apart time.Duration) {
	if l.turns[key].rank == awaited {
		l.moved += apart
		l.next[low], l.next[usual] = l.next[low].Add(apart), l.next[usual].Add(apart)
	}
	delete(l.turns, key)
}

func latest(all ...time.Time) time.Time {
	return slices.MaxFunc(all, time.Time.Compare)
}

// record remembers that the call was made, and for how long Slack has limited it
// if it did.
func (p *throttle) record(method, channel, key string, r rank, now time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	what, apart := limitOf(method, channel)
	limited, ok := errors.AsType[*slack.RateLimitedError](err)
	if !ok {
		if l := p.queues[what]; l != nil {
			l.made(key, apart)
		}
		if method == PostUpdate {
			p.updates = append(p.lastMinute(now), now)
			p.updates = p.updates[max(0, len(p.updates)-maxUpdates):]
		}
		return
	}
	l := p.queue(what)
	l.until = latest(l.until, now.Add(RetryAfter(limited)))
	l.give(key, r, apart, now)
}

func (p *throttle) lastMinute(now time.Time) []time.Time {
	p.updates = slices.DeleteFunc(p.updates, func(at time.Time) bool { return now.Sub(at) >= BudgetSpan })
	return p.updates
}

// untilRoom is how long updates of low priority have to wait, so that there is room
// for what was decided.
func (p *throttle) untilRoom(now time.Time) time.Duration {
	over := len(p.lastMinute(now)) - maxUpdates
	if over < 0 {
		return 0
	}
	return p.updates[over].Add(BudgetSpan).Sub(now)
}

// Busy reports whether Slack limits such calls now, or so many messages change that
// an update for every single step is too much.
func (p *throttle) Busy(method, channel string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	what, _ := limitOf(method, channel)
	l := p.queues[what]
	return l != nil && !l.idle(now) || method == PostUpdate && len(p.lastMinute(now)) >= maxUpdates/2
}

// BudgetSpan is the time over which messages are counted.
const BudgetSpan = time.Minute
