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
}

// put adds an entry, or moves the one with its id, and reports whether there is room.
func (a *awaited) put(e seen) bool {
	if a.ids[e.id] {
		i := slices.IndexFunc(a.entries, func(x seen) bool { return x.id == e.id })
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
	return slices.ContainsFunc(a.entries, func(e seen) bool { return e.at <= at && may(e.entry) })
}

// next is when the first of them that is not due will be, and 0 if there is none.
func (a *awaited) next(now time.Time) score {
	var first score
	for _, e := range a.entries {
		if e.at > scoreOf(now) && (first == 0 || e.at < first) {
			first = e.at
		}
	}
	return first
}

// take removes the first of them that is due and may begin.
func (a *awaited) take(now time.Time, may func(e entry) bool) (entry, bool) {
	at := scoreOf(now)
	i := slices.IndexFunc(a.entries, func(e seen) bool { return e.at <= at && may(e.entry) })
	if i < 0 {
		return entry{}, false
	}
	e := a.entries[i].entry
	a.entries = slices.Delete(a.entries, i, i+1)
	delete(a.ids, e.id)
	return e, true
}

// told takes up the awaited entries of hints.
func (l *loop) told(all []entry) {
	now := l.d.store.now()
	for _, e := range all {
		n := e.partition
		l.rests[n].until = time.Time{}
		told := seen{e, now}
		if !l.idle(e) || slices.Contains(l.ended[:], e) {
			told.last = time.Time{} // what is under way may do it, or a look was faster and it is done
		}
		if !l.awaited.put(told) || l.rests[n].times > 0 {
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
	next := l.workers * l.task.Together
	for i, e := range l.awaited.entries {
		if next == 0 {
			break
		}
		if e.at > scoreOf(now) || !l.idle(e.entry) {
			continue
		}
		next--
		if since := now.Sub(e.last); since < 0 || since > awaitedKnown {
			doubtful = append(doubtful, i)
		}
	}
	if len(doubtful) == 0 {
		return nil
	}
	pipe, at := l.d.store.client.Pipeline(), make(map[string]*redis.FloatCmd)
	for _, i := range doubtful {
		e := l.awaited.entries[i]
		at[e.id] = pipe.ZScore(ctx, string(l.d.store.partition(e.partition).due(l.task.Kind)), e.id)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	for _, i := range doubtful {
		l.awaited.entries[i].last = now
	}
	l.awaited.drop(func(e entry) bool {
		asked := at[e.id]
		if asked == nil {
			return false
		}
		is := score(asked.Val())
		l.dirty[e.partition] = l.dirty[e.partition] || is != 0 && is != e.at
		return is != e.at
	})
	return nil
}
