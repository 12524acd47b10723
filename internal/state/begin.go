package state

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
)

// launch begins handlers while there are workers and work.
func (l *loop) launch(ctx, work context.Context) {
	for l.busy < l.workers && ctx.Err() == nil && l.finds(ctx) {
		if !l.lane.take() {
			return
		}
		l.begin(ctx, work, l.group())
	}
	if len(l.queue) == 0 && !l.awaited.due(l.d.store.now(), l.idle) { // otherwise it takes more as soon as a worker is free
		l.lane.done()
	}
}

// finds reports whether there is something to begin, and looks for it if nothing is known.
func (l *loop) finds(ctx context.Context) bool {
	if l.awaited.row < awaitedFirst && l.findsAwaited(ctx) {
		return true
	}
	for {
		if i := slices.IndexFunc(l.queue, l.mayBegin); i >= 0 {
			l.queue = l.queue[i:]
			return true
		}
		l.queue = nil
		if l.resume != nil || !l.look(ctx) {
			return l.findsAwaited(ctx)
		}
	}
}

func (l *loop) mayBegin(e entry) bool { return l.idle(e) && !l.resting(e.partition) }

// idle reports whether nothing is done about the entry now.
func (l *loop) idle(e entry) bool {
	_, is := l.inflight[e.id]
	return !is
}

// group takes out what is begun next, at most as much as is handled together.
func (l *loop) group() []result {
	var all []result
	for len(all) < l.task.Together {
		r, ok := l.next()
		if !ok {
			break
		}
		l.inflight[r.id] = r.at
		all = append(all, r)
	}
	return all
}

// next takes out the entry that is begun next: one that is awaited, if there is one and
// it is not the turn of another.
func (l *loop) next() (result, bool) {
	if l.awaited.row < awaitedFirst || len(l.queue) == 0 {
		if e, ok := l.awaited.take(l.d.store.now(), l.mayBegin); ok {
			l.awaited.row++
			l.queue = slices.DeleteFunc(l.queue, func(x entry) bool { return x.id == e.id })
			return result{entry: e, awaited: true}, true
		}
	}
	l.awaited.row = 0
	for len(l.queue) > 0 {
		e := l.queue[0]
		l.queue = l.queue[1:]
		if l.mayBegin(e) {
			return result{entry: e}, true
		}
	}
	return result{}, false
}

// begin handles a group.
func (l *loop) begin(ctx, work context.Context, group []result) {
	l.busy++
	reasons := make([]string, len(group))
	for i, r := range group {
		reasons[i] = l.overdue[r.id]
	}
	over, leave := func() {}, func() {}
	if l.task.Urgent && slices.ContainsFunc(group, func(r result) bool { return r.awaited }) {
		over = l.shared.hurry()
	}
	if len(group) > 1 {
		pipe := l.d.store.sharePipe(len(group))
		leave = func() { pipe.leave(work) }
		ctx, work = pipe.with(ctx), pipe.with(work)
	}
	one := func(i int) {
		defer leave()
		group[i].verdict = l.one(ctx, work, group[i], reasons[i])
	}
	l.d.crew.run(func() {
		defer func() { // also when a handler ends its goroutine
			over()
			l.done <- group
		}()
		var others sync.WaitGroup
		defer others.Wait()
		for i := range group[1:] {
			others.Add(1)
			l.d.crew.run(func() {
				defer others.Done()
				one(i + 1)
			})
		}
		one(0)
	})
}

// one handles an item and writes down what became of it.
func (l *loop) one(ctx, work context.Context, r result, parked string) verdict {
	if parked != "" {
		return l.d.park(work, l.task, r.entry, parked)
	}
	l.d.o.Started(l.task.Kind, l.d.store.now().Sub(r.at.time()))
	h := &handled{item: item(l.task.Kind, r.id), awaited: r.awaited}
	err := l.handle(h.with(work), r.id)
	if err == nil && h.gone.Load() {
		l.d.count(l.task.Kind, func(c *Counts) { c.Done++ })
		return verdict{kept: true}
	}
	return l.d.settle(h.with(ctx), l.task, r.entry, err)
}

// handle calls f with a deadline, and turns a panic into an error.
func (l *loop) handle(ctx context.Context, id string) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.task.Limit, errTooLong)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			err = newPanicked(v)
		}
	}()
	err = l.task.Reconcile(ctx, id)
	if err != nil && errors.Is(context.Cause(ctx), errTooLong) {
		// What it says about another time is not wrapped: it had its time.
		return fmt.Errorf("%w: %s: %v", errTooLong, l.task.Limit, err) //nolint:errorlint // see above
	}
	return err
}

// errTooLong is of a handler that did not come to an end within its limit.
var errTooLong = errors.New("the work took too long")

// panicked keeps of a panic what cannot hold arguments: the place, and the
// words of the runtime.
type panicked struct{ words string }

func newPanicked(v any) *panicked {
	words := fmt.Sprintf("%T", v)
	var known runtime.Error
	if err, ok := v.(error); ok && errors.As(err, &known) {
		words = known.Error()
	}
	return &panicked{fmt.Sprintf("panic: %s\n%s", words, debug.Stack())}
}

func (p *panicked) Error() string { return p.words }
