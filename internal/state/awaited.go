package state

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Work is awaited if it follows from what a person or an agent has just done, and not
// from time that has passed. A commit is of the same kind as the work that makes it, so
// all that follows a click is awaited and all that follows a deadline is not. Awaited
// work is done before other work of its kind, see [Due.Run]. Only its wake-up says
// that it is awaited: if that is lost, the work is done in its turn.

// Awaited reports whether people wait for what is done in the context: it is that of a
// handler of awaited work, or of no handler.
func Awaited(ctx context.Context) bool {
	h, ok := ctx.Value(handledKey{}).(*handled)
	return !ok || h.awaited
}

// Handled reports whether the context is that of a handler of due work. In any other,
// somebody waits for an answer.
func Handled(ctx context.Context) bool {
	_, ok := ctx.Value(handledKey{}).(*handled)
	return ok
}

type handledKey struct{}

// handled is an entry while its handler works on it.
type handled struct {
	item    string // see [item]
	awaited bool
	gone    atomic.Bool // the last commit of the handler that moved the entry removed it
}

func (h *handled) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, handledKey{}, h)
}

// A move is what a change does to an item of the due index.
type move struct {
	item string
	gone bool // it removes it
}

// noteMoves notes what an applied change did to the item of the handler whose context
// it is.
func (c *change) noteMoves(ctx context.Context, failed int, err error) {
	h, ok := ctx.Value(handledKey{}).(*handled)
	if !ok || err != nil || failed != 0 {
		return
	}
	for _, m := range c.moves {
		if m.item == h.item {
			h.gone.Store(m.gone)
		}
	}
}

const (
	// mostAwaited bounds the awaited entries that a loop holds. Others are done in
	// their turn.
	mostAwaited = 1000
	// awaitedFirst is how many awaited entries are begun before one of the others that
	// are due, so that those are done in the end however much is awaited.
	awaitedFirst = 3
	// awaitedKnown is how long an awaited entry is believed to be in the index after
	// it was seen there. Then it is looked up before it is begun: another process may
	// have done it.
	awaitedKnown = 50 * time.Millisecond
)

// awaited are the awaited entries that a loop has not begun, in the order in which it
// was told.
type awaited struct {
	entries []seen
	ids     map[string]bool
	row     int // of them begun since the last other entry
}

// seen is an entry with the time when it was in the index; zero if that is in doubt.
type seen struct {
	entry
	last time.Time
	from score // it is left to another process until then, see [headStart]; 0: to none
}

// begins is when it may be begun.
func (s seen) begins() score { return max(s.at, s.from) }

// first reports whether the entry goes before those that other processes have committed.
// After [takeOver] nothing is left to others.
func (s seen) first(now score) bool {
	return s.from == 0 || s.from+score(takeOver.Microseconds()) <= now
}

// put adds an entry, or moves the one with its id, and reports whether there is room.
// Another wake-up about an entry does not leave it to another process for longer.
func (a *awaited) put(e seen) bool {
	if a.ids[e.id] {
		i := a.index(e.id)
		e.from = min(e.from, a.entries[i].from)
		a.entries[i] = e
		return true
	}
	if len(a.entries) >= mostAwaited {
		return false
	}
	if a.ids == nil {
		a.ids = make(map[string]bool)
	}
	a.entries, a.ids[e.id] = append(a.entries, e), true
	return true
}

func (a *awaited) index(id string) int {
	return slices.IndexFunc(a.entries, func(x seen) bool { return x.id == id })
}

// found notes where the entry with this id is in the index now.
func (a *awaited) found(e entry, now time.Time) {
	i := a.index(e.id)
	a.entries[i].entry, a.entries[i].last = e, now
}

// drop removes the entries for which f is true.
func (a *awaited) drop(f func(e entry) bool) {
	a.entries = slices.DeleteFunc(a.entries, func(s seen) bool {
		e := s.entry
		if !f(e) {
			return false
		}
		delete(a.ids, e.id)
		return true
	})
}

// due reports whether one of them is due and may begin.
func (a *awaited) due(now time.Time, may func(e entry) bool) bool {
	at := scoreOf(now)
	return slices.ContainsFunc(a.entries, func(e seen) bool { return e.begins() <= at && may(e.entry) })
}

// next is when the first of them that is not due will be, and 0 if there is none.
func (a *awaited) next(now time.Time) score {
	var first score
	for _, e := range a.entries {
		if at := e.begins(); at > scoreOf(now) {
			first = earliest(first, at)
		}
	}
	return first
}

// take removes the first of them that is due and may begin: if there is one, one that is
// not left to another process.
func (a *awaited) take(now time.Time, may func(e entry) bool) (entry, bool) {
	at := scoreOf(now)
	begins := func(e seen) bool { return e.begins() <= at && may(e.entry) }
	i := slices.IndexFunc(a.entries, func(e seen) bool { return e.first(at) && begins(e) })
	if i < 0 {
		i = slices.IndexFunc(a.entries, begins)
	}
	if i < 0 {
		return entry{}, false
	}
	e := a.entries[i].entry
	a.entries = slices.Delete(a.entries, i, i+1)
	delete(a.ids, e.id)
	return e, true
}

// told takes up the awaited entries of hints.
func (l *loop) told(all []seen) {
	now := l.d.store.now()
	for _, e := range all {
		n := e.partition
		l.rests[n].until = time.Time{}
		// What is under way may do it, another process may have done it, or a look was
		// faster and it is done.
		if l.idle(e.entry) && e.from == 0 && !slices.Contains(l.ended[:], e.entry) {
			e.last = now
		}
		if !l.awaited.put(e) || l.rests[n].times > 0 {
			l.dirty[n] = true
		}
	}
}

// findsAwaited reports whether an awaited entry can be begun.
func (l *loop) findsAwaited(ctx context.Context) bool {
	if l.resume != nil {
		return false
	}
	l.awaited.drop(func(e entry) bool {
		resting := l.resting(e.partition)
		l.dirty[e.partition] = l.dirty[e.partition] || resting // a look sets the timer
		return resting
	})
	now := l.d.store.now()
	if !l.awaited.due(now, l.idle) || !l.agrees(ctx) {
		return false
	}
	if err := l.lookUp(ctx, now); err != nil {
		l.failed(ctx, err)
		return false
	}
	return l.awaited.due(now, l.idle)
}

// lookUp drops the entries that would be begun next and are not in the index any more as
// they were told of. Those that were moved are found by a look.
func (l *loop) lookUp(ctx context.Context, now time.Time) error {
	var doubtful []int
	next, at := l.workers*l.task.Together, scoreOf(now)
	for _, first := range []bool{true, false} {
		for i, e := range l.awaited.entries {
			if next == 0 {
				break
			}
			if e.first(at) != first || e.begins() > at || !l.idle(e.entry) {
				continue
			}
			next--
			if since := now.Sub(e.last); since < 0 || since > awaitedKnown {
				doubtful = append(doubtful, i)
			}
		}
	}
	if len(doubtful) == 0 {
		return nil
	}
	pipe, asked := l.d.store.client.Pipeline(), make(map[string]*redis.FloatCmd)
	for _, i := range doubtful {
		e := l.awaited.entries[i]
		asked[e.id] = pipe.ZScore(ctx, string(l.d.store.partition(e.partition).due(l.task.Kind)), e.id)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	for _, i := range doubtful {
		l.awaited.entries[i].last = now
	}
	l.awaited.drop(func(e entry) bool {
		cmd := asked[e.id]
		if cmd == nil {
			return false
		}
		if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) { // the pipeline says only what failed first
			l.dirty[e.partition] = true
			return true
		}
		is := score(cmd.Val())
		switch {
		case is == e.at:
			return false
		case is > at:
			l.soon[e.partition] = earliest(l.soon[e.partition], is)
		case is != 0:
			l.dirty[e.partition] = true
		}
		return true
	})
	return nil
}
