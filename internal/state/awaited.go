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

// Unawaited returns a context in which nobody waits for what is done, see [Awaited]. It is
// for work of which there may be much at once.
func Unawaited(ctx context.Context) context.Context { return (&handled{}).with(ctx) }

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
	// it was seen there, if other processes work. Then it is looked up before it is
	// begun: one of them may have done it.
	awaitedKnown = 50 * time.Millisecond
)

// awaited are the awaited entries that a loop has not begun, in the order in which it
// was told. There may be a thousand of them, and each step of the loop asks for the next.
type awaited struct {
	entries []seen         // those without an id are gone; the first is not
	at      map[string]int // the place of each: its index in entries plus gone
	gone    int            // how many were dropped from the beginning of entries
	row     int            // of them begun since the last other entry
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
	if known := a.find(e.id); known != nil {
		e.from = min(e.from, known.from)
		*known = e
		return true
	}
	if len(a.at) >= mostAwaited {
		return false
	}
	if a.at == nil {
		a.at = make(map[string]int)
	}
	if len(a.entries) >= 2*mostAwaited {
		a.compact()
	}
	a.at[e.id] = a.gone + len(a.entries)
	a.entries = append(a.entries, e)
	return true
}

// find returns the entry with this id, nil if there is none. It is valid until the next
// put or remove.
func (a *awaited) find(id string) *seen {
	at, ok := a.at[id]
	if !ok {
		return nil
	}
	return &a.entries[at-a.gone]
}

// compact removes the room that entries have left.
func (a *awaited) compact() {
	a.entries = slices.DeleteFunc(a.entries, func(e seen) bool { return e.id == "" })
	a.gone = 0
	for i, e := range a.entries {
		a.at[e.id] = i
	}
}

// found notes where an entry that is there is in the index now.
func (a *awaited) found(e entry, now time.Time) {
	known := a.find(e.id)
	known.entry, known.last = e, now
}

// remove removes the entry with this id.
func (a *awaited) remove(id string) {
	e := a.find(id)
	if e == nil {
		return
	}
	*e = seen{}
	delete(a.at, id)
	for len(a.entries) > 0 && a.entries[0].id == "" {
		a.entries, a.gone = a.entries[1:], a.gone+1
	}
}

// all are the entries in order. While they are read, only the current one may be removed.
func (a *awaited) all(yield func(e seen) bool) {
	for _, e := range a.entries {
		if e.id != "" && !yield(e) {
			return
		}
	}
}

// due reports whether one of them is due and may begin.
func (a *awaited) due(now time.Time, may func(e entry) bool) bool {
	at := scoreOf(now)
	for e := range a.all {
		if e.begins() <= at && may(e.entry) {
			return true
		}
	}
	return false
}

// next is when the first of them that is not due will be, and 0 if there is none.
func (a *awaited) next(now time.Time) score {
	var first score
	until := scoreOf(now)
	for e := range a.all {
		if at := e.begins(); at > until {
			first = earliest(first, at)
		}
	}
	return first
}

// take removes the first of them that is due and may begin: if there is one, one that is
// not left to another process.
func (a *awaited) take(now time.Time, may func(e entry) bool) (entry, bool) {
	at := scoreOf(now)
	var taken entry
	for e := range a.all {
		if e.begins() > at || (taken.id != "" && !e.first(at)) || !may(e.entry) {
			continue
		}
		first := e.first(at)
		if first || taken.id == "" {
			taken = e.entry
		}
		if first {
			break
		}
	}
	a.remove(taken.id)
	return taken, taken.id != ""
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
	if slices.ContainsFunc(l.rests[:], func(r rest) bool { return !r.until.IsZero() }) {
		for e := range l.awaited.all {
			if l.resting(e.partition) {
				l.dirty[e.partition] = true // a look sets the timer
				l.awaited.remove(e.id)
			}
		}
	}
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

// lookUp drops the entries that would be begun next but are no longer in the index as
// they were announced. Those that were moved are found by a look.
func (l *loop) lookUp(ctx context.Context, now time.Time) error {
	doubtful := l.doubtful(now)
	if len(doubtful) == 0 {
		return nil
	}
	pipe, asked := l.d.store.client.Pipeline(), make([]*redis.FloatCmd, len(doubtful))
	for i, e := range doubtful {
		asked[i] = l.due(e.partition).score(ctx, pipe, e.id)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	for i, e := range doubtful {
		err := asked[i].Err()
		is := l.due(e.partition).at(asked[i].Val())
		switch {
		case errors.Is(err, redis.Nil):
		case err != nil: // the pipeline says only what failed first
			l.dirty[e.partition] = true
		case is == e.at:
			l.awaited.found(e, now)
			continue
		case is > scoreOf(now):
			l.soon[e.partition] = earliest(l.soon[e.partition], is)
		default:
			l.dirty[e.partition] = true
		}
		l.awaited.remove(e.id)
	}
	return nil
}

// doubtful returns the entries that would be begun next but may no longer be in the index
// as they were announced.
func (l *loop) doubtful(now time.Time) []entry {
	var all []entry
	next, at, others := l.workers*l.task.Together, scoreOf(now), l.d.store.works.others(now)
	for _, first := range []bool{true, false} {
		for e := range l.awaited.all {
			if next == 0 {
				break
			}
			if e.first(at) != first || e.begins() > at || !l.idle(e.entry) {
				continue
			}
			next--
			since := now.Sub(e.last)
			if e.last.IsZero() || (others && (since < 0 || since > awaitedKnown)) {
				all = append(all, e.entry)
			}
		}
	}
	return all
}
