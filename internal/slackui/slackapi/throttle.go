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

	calmUpdates = "calm updates"

	// updatesCalm is how many messages may change in a minute before what can
	// wait does: Slack lets fifty, and who decided something is to see it.
	updatesCalm = 35
	// lateSlot is for how long a turn is kept for who does not come.
	lateSlot = 10 * time.Second
)

// throttle are the kinds of calls that Slack wants to be left alone, and until
// when: the posts of one channel, or all updates of the workspace. Others go on
// meanwhile. Whoever has to wait gets a turn, so that they do not all come back
// at once, and who cannot wait gets theirs first. Each process learns it by
// itself.
type throttle struct {
	mu      sync.Mutex
	lines   map[string]*waitingLine
	updates []time.Time // of the last minute
}

// A waitingLine is what waits for one kind of call after a limit was met.
type waitingLine struct {
	until        time.Time // nobody before
	urgent, calm time.Time // when the next turns are
	turns        map[string]turn
}

type turn struct {
	at     time.Time
	urgent bool
}

var errPaused = errors.New("it is limited by Slack")

// limitedTogether is what Slack limits together, and how far apart calls of it are then.
func limitedTogether(method, channel string) (string, time.Duration) {
	if method == PostUpdate {
		return method, 1200 * time.Millisecond
	}
	return method + " " + channel, time.Second
}

// left is how long this call, known by its key, still waits.
func (p *throttle) left(method, channel, key string, calm bool, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	what, apart := limitedTogether(method, channel)
	if l := p.lines[what]; l != nil {
		if err := l.turn(key, calm, apart, now); err != nil {
			return err
		}
		if l.over(now) {
			delete(p.lines, what)
		}
	}
	if method != PostUpdate || !calm {
		return nil
	}
	l, wait := p.lines[calmUpdates], p.full(now)
	if wait > 0 {
		if l = p.line(calmUpdates); l.until.Before(now.Add(wait)) {
			l.until = now.Add(wait)
		}
	}
	if l == nil {
		return nil
	}
	if err := l.turn(key, calm, BudgetSpan/updatesCalm, now); err != nil {
		return err
	}
	if delete(l.turns, key); l.over(now) {
		delete(p.lines, calmUpdates)
	}
	return nil
}

func (p *throttle) line(what string) *waitingLine {
	if p.lines == nil {
		p.lines = map[string]*waitingLine{}
	}
	if p.lines[what] == nil {
		p.lines[what] = &waitingLine{turns: map[string]turn{}}
	}
	return p.lines[what]
}

// turn is how long until the caller's turn. It makes them one if they have none.
func (l *waitingLine) turn(key string, calm bool, apart time.Duration, now time.Time) error {
	for k, t := range l.turns {
		if k != key && now.Sub(t.at) > lateSlot {
			delete(l.turns, k)
		}
	}
	if l.over(now) {
		return nil
	}
	if mine, known := l.turns[key]; known && !mine.at.Before(l.until) && (mine.urgent || calm) {
		if left := mine.at.Sub(now); left > 0 {
			return &LaterError{After: left, Err: errPaused}
		}
		if mine.urgent || !l.hurries(now.Add(apart)) {
			return nil
		}
	}
	at := l.next(!calm, apart, now)
	l.turns[key] = turn{at: at, urgent: !calm}
	if left := at.Sub(now); left > 0 {
		return &LaterError{After: left, Err: errPaused}
	}
	return nil
}

func (l *waitingLine) over(now time.Time) bool { return !now.Before(l.until) && len(l.turns) == 0 }

// hurries reports whether somebody who cannot wait comes until then.
func (l *waitingLine) hurries(until time.Time) bool {
	for _, t := range l.turns {
		if t.urgent && !t.at.After(until) {
			return true
		}
	}
	return false
}

func (l *waitingLine) next(urgent bool, apart time.Duration, now time.Time) time.Time {
	at := latest(l.until, l.urgent, now)
	if !urgent {
		at = latest(at, l.calm)
		l.calm = at.Add(apart)
		return at
	}
	l.urgent = at.Add(apart)
	l.calm = latest(l.calm, l.urgent)
	return at
}

func latest(all ...time.Time) time.Time {
	return slices.MaxFunc(all, time.Time.Compare)
}

// note remembers that the call was made, and what Slack said if it was too soon.
func (p *throttle) note(method, channel, key string, calm bool, now time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	what, apart := limitedTogether(method, channel)
	limited, ok := errors.AsType[*slack.RateLimitedError](err)
	if !ok {
		if l := p.lines[what]; l != nil {
			delete(l.turns, key)
		}
		if method == PostUpdate {
			p.updates = append(p.lastMinute(now), now)
		}
		return
	}
	l := p.line(what)
	l.until = latest(l.until, now.Add(max(limited.RetryAfter, time.Second)))
	l.turns[key] = turn{at: l.next(!calm, apart, now), urgent: !calm}
}

func (p *throttle) lastMinute(now time.Time) []time.Time {
	p.updates = slices.DeleteFunc(p.updates, func(at time.Time) bool { return now.Sub(at) >= BudgetSpan })
	return p.updates
}

// full is how long what can wait should not change messages, so that there is
// room for what was decided.
func (p *throttle) full(now time.Time) time.Duration {
	over := len(p.lastMinute(now)) - updatesCalm
	if over < 0 {
		return 0
	}
	return p.updates[over].Add(BudgetSpan).Sub(now)
}

// Busy reports whether so much changes that not every step is worth a call.
func (p *throttle) Busy(method, channel string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	what, _ := limitedTogether(method, channel)
	l := p.lines[what]
	return l != nil && !l.over(now) || method == PostUpdate && len(p.lastMinute(now)) >= updatesCalm/2
}

// BudgetSpan is the time over which messages to one channel are counted.
const BudgetSpan = time.Minute
