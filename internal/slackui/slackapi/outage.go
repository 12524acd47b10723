package slackapi

import (
	"context"
	"errors"
	"slices"
	"time"
)

const (
	// everything is the queue in which all calls wait while Slack is away.
	everything = "everything"

	// awayAfter is how many different calls fail, and none succeeds, before the others
	// wait, too. Fewer may be the fault of what they send.
	awayAfter = 5
	// longestAway is how long no call is made at most.
	longestAway = 30 * time.Second
	// drainEvery is how far apart calls are made when Slack is back.
	drainEvery = 10 * time.Millisecond
)

var errAway = errors.New("no call to Slack succeeds")

// turnInOutage returns nil unless Slack is away, or was, and it is not the turn of the
// call yet. Turns are given by rank, so the first calls that Slack takes again are those
// that people wait for. A call that is awaited is tried at once the first time.
func (p *throttle) turnInOutage(what, key string, r rank, now time.Time) error {
	l := p.queues[everything]
	if l == nil {
		return nil
	}
	key = what + " " + key
	if _, waits := l.turns[key]; r == awaited && !waits {
		return nil
	}
	if later, ok := errors.AsType[*LaterError](l.turn(key, r, drainEvery, now)); ok {
		return &LaterError{After: later.After, Err: errAway}
	}
	if l.idle(now) {
		delete(p.queues, everything)
	}
	return nil
}

// heard notes what became of a call, and returns the error of the call. If Slack does
// not answer any call, all wait, and the error says when it is the turn of this one.
func (p *throttle) heard(method, channel, key string, r rank, now time.Time, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	what, _ := limitOf(method, channel)
	key = what + " " + key
	if errors.Is(err, context.Canceled) { // that is our doing, so only its turn is over
		if l := p.queues[everything]; l != nil {
			delete(l.turns, key)
		}
		return err
	}
	later, ok := errors.AsType[*LaterError](err)
	if p.row++; !ok || !later.Outage {
		p.row = 0
	}
	switch {
	case p.row == 0:
		p.failed, p.rounds = nil, 0
	case len(p.failed) < awayAfter && !slices.Contains(p.failed, key):
		p.failed = append(p.failed, key)
	}
	l := p.queues[everything]
	if len(p.failed) < awayAfter {
		if l != nil {
			l.made(key, drainEvery)
		}
		return err
	}
	if l == nil {
		l = p.queue(everything)
	}
	if !now.Before(l.until) {
		l.until = now.Add(min(WaitAfter(p.rounds), longestAway))
		p.rounds++
	}
	return &LaterError{After: l.give(key, r, drainEvery, now).Sub(now), Err: later.Err}
}

// news reports whether no call succeeds, and whether that has changed since news reported
// it last. It counts calls that are the same, too: where little happens, a few are all that
// there are.
func (p *throttle) news() (away, isNew bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	away = p.away()
	isNew = away != p.told
	p.told = away
	return away, isNew
}

// away reports whether no call succeeds. p must be locked.
func (p *throttle) away() bool { return p.row >= awayAfter }

// Away reports whether the last calls to Slack have all failed, because of Slack, the
// network or the token.
func (a *Client) Away() bool {
	a.Throttle.mu.Lock()
	defer a.Throttle.mu.Unlock()
	return a.Throttle.away()
}
