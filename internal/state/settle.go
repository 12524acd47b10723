package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

const (
	idle        = time.Second             // between two looks at an item that its handler left as it was
	shortest    = 10 * time.Millisecond   // the least that an error can ask to wait
	settling    = 5 * time.Second         // for writing down what became of an item
	housekeeper = approvals.RequestID("") // these changes are repeated by the client only
)

// A verdict is what the loop is to do about an item that was handled.
type verdict struct {
	again   bool   // look at its partition at once
	overdue string // it has failed too often: park it when it is met again, for this reason
	lost    error  // why the store did not take what became of it
	kept    bool   // the store did, or what the handler committed stands
	next    score  // when it is due again, if this is what the store was given
	asked   bool   // its handler said when
}

// settle writes down what became of an item. Every write is conditional on the
// score that the loop saw: what a newer commit says about the item stands.
func (d *Due) settle(ctx context.Context, t Task, e entry, err error) verdict {
	k := t.Kind
	stopping := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settling)
	defer cancel()
	var v verdict
	var failed error
	var later interface{ RetryAfter() time.Duration }
	switch {
	case err == nil:
		d.count(k, func(c *Counts) { c.Done++ })
		v, failed = d.unmoved(ctx, t, e)
	case errors.As(err, &later):
		d.count(k, func(c *Counts) { c.Delayed++ })
		wait := max(later.RetryAfter(), shortest)
		v, failed = d.move(ctx, k, e, wait)
		v.asked = failed == nil
	case stopping:
		return verdict{} // it may well have failed because of that
	default:
		d.count(k, func(c *Counts) { c.Failed++ })
		v, failed = d.fail(ctx, t, e, err)
	}
	if failed != nil && !errors.Is(failed, approvals.ErrConflict) {
		return verdict{lost: failed}
	}
	v.kept = true
	return v
}

// lost notes that the store did not take what became of an item, and says so if
// it took everything before.
func (d *Due) lost(k Kind, partition int, err error) {
	d.mu.Lock()
	first := len(d.unkept) == 0
	d.unkept[dueSet{k, partition}] = true
	d.mu.Unlock()
	if first {
		d.store.log.Warn("what became of work cannot be stored; it is tried again, less and less often",
			slog.String("kind", string(k)), slog.Any("err", err))
	}
}

// kept notes that the store takes what becomes of items in this place, and says
// so if it was the last one where it did not.
func (d *Due) kept(k Kind, partition int) {
	d.mu.Lock()
	was := len(d.unkept)
	delete(d.unkept, dueSet{k, partition})
	over := was > 0 && len(d.unkept) == 0
	d.mu.Unlock()
	if over {
		d.store.log.Info("what becomes of work is stored again")
	}
}

// unmoved deals with an item whose handler returned no error. Usually its
// commits have moved the item and this is one read.
func (d *Due) unmoved(ctx context.Context, t Task, e entry) (verdict, error) {
	k := t.Kind
	at, ok, err := d.store.scoreAt(ctx, k, e.id)
	if err != nil || !ok {
		return verdict{}, err
	}
	if at != e.at {
		return verdict{again: true}, nil
	}
	now := d.store.now()
	next, version, err := d.derive(ctx, k, e.id)
	if err != nil {
		return d.fail(ctx, t, e, err)
	}
	if version == 0 || (!next.IsZero() && !next.After(now)) {
		return d.move(ctx, k, e, idle)
	}
	p := d.store.partition(e.partition)
	doc, err := p.document(k, e.id)
	if err != nil {
		return verdict{}, err
	}
	ch := newRepeatable(p)
	ch.wantDue(p.due(k), e.id, e.at)
	ch.wantVersion(doc, fieldVersion, version)
	w := newDueChanges(d.store, p, ch)
	if next.IsZero() {
		w.done(k, e.id)
	} else {
		w.at(k, e.id, next)
	}
	w.finish()
	return verdict{}, d.store.apply(ctx, ch) // its wake-up tells this process, too
}

// derive returns when an item is due according to its document, zero for never,
// and the version of that document; version 0 if only its handler can know.
func (d *Due) derive(ctx context.Context, k Kind, id string) (at time.Time, version int64, err error) {
	switch k {
	case Runs:
		r, err := d.store.Run(ctx, approvals.RunID(id))
		if err != nil {
			return time.Time{}, 0, err
		}
		if at, ok := r.Due(); ok {
			return at, r.Version, nil
		}
		return time.Time{}, r.Version, nil
	case Deadlines:
		b, err := d.store.Batch(ctx, approvals.BatchID(id))
		if err != nil {
			return time.Time{}, 0, err
		}
		return b.Next(), b.Version, nil
	case Sheets:
		sheet, err := d.store.Sheet(ctx, approvals.SheetID(id))
		if err != nil {
			return time.Time{}, 0, err
		}
		at, _ := sheet.Due()
		return at, sheet.Version, nil
	default:
		return time.Time{}, 0, nil
	}
}

// move makes the item due after a while, if it has not been moved since it was seen.
func (d *Due) move(ctx context.Context, k Kind, e entry, wait time.Duration) (verdict, error) {
	p := d.store.partition(e.partition)
	ch := newRepeatable(p)
	ch.wantDue(p.due(k), e.id, e.at)
	next := d.putOff(ch, p, k, e, d.store.now(), wait)
	if err := d.store.apply(ctx, ch); err != nil {
		return verdict{again: true}, err
	}
	return verdict{next: next}, nil
}

// putOff makes the item due after a while and returns when that is. Other processes are
// told, in case this one dies until then. They are not told of a short while, which
// happens often: one of their sweeps finds the item if this process dies.
func (d *Due) putOff(ch *change, p partition, k Kind, e entry, now time.Time, wait time.Duration) score {
	e.at = scoreOf(now.Add(wait))
	ch.due(p.due(k), e.id, e.at)
	if w, ok := (wake{kind: k}).with(e, wait); ok && w.later != 0 {
		ch.publish(d.store.conn, w)
	}
	return e.at
}

// fail counts a failure and puts the item off, or parks it.
func (d *Due) fail(ctx context.Context, t Task, e entry, cause error) (verdict, error) {
	k := t.Kind
	p := d.store.partition(e.partition)
	pipe := d.store.client.Pipeline()
	score0 := p.due(k).score(ctx, pipe, e.id)
	counted := pipe.HGet(ctx, string(p.attempts()), item(k, e.id))
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return verdict{}, err
	}
	now := d.store.now()
	gone, at := errors.Is(score0.Err(), redis.Nil), p.due(k).at(score0.Val())
	if gone || (at != e.at && at <= scoreOf(now)) {
		return verdict{again: !gone}, nil // done, or made due again meanwhile
	}
	before, _ := counted.Int()
	n := before + 1
	log := []any{
		slog.String("kind", string(k)), slog.String("id", e.id), slog.Int("attempt", n), slog.Any("err", cause),
	}
	reason := reasonOf(cause)
	if n >= d.o.Attempts && at == e.at {
		return d.parkAfter(ctx, t, e, reason, n, counted.Val(), log)
	}
	ch := d.change(p)
	ch.wantDue(p.due(k), e.id, at)
	ch.wantField(p.attempts(), item(k, e.id), counted.Val())
	ch.hset(p.attempts(), item(k, e.id), n)
	v := verdict{}
	wait := d.o.Backoff(n)
	switch {
	case at == e.at:
		v.next = d.putOff(ch, p, k, e, now, wait)
	case n >= d.o.Attempts:
		v.overdue = reason // its own claim has moved it: park it when that is over
	case (k == Runs || k == Sheets) && scoreOf(now.Add(wait)) > at:
		v.next = d.putOff(ch, p, k, e, now, wait) // a claim that is over no sooner
	}
	if err := d.store.apply(ctx, ch); err != nil {
		return verdict{}, err
	}
	d.store.log.WarnContext(ctx, "work failed; it will be tried again", log...)
	return v, nil
}

// park parks an item that failed too often earlier, instead of handling it.
func (d *Due) park(ctx context.Context, t Task, e entry, reason string) verdict {
	k := t.Kind
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	counted, err := d.store.client.HGet(ctx, string(d.store.partition(e.partition).attempts()), item(k, e.id)).Result()
	if errors.Is(err, redis.Nil) {
		return verdict{again: true} // the count was reset: it is new work
	}
	var n int
	if err == nil {
		_, err = fmt.Sscan(counted, &n)
	}
	var v verdict
	if err == nil {
		v, err = d.parkAfter(ctx, t, e, reason, n, counted, []any{
			slog.String("kind", string(k)), slog.String("id", e.id), slog.Int("attempt", n), slog.String("reason", reason),
		})
	}
	if err != nil && !errors.Is(err, approvals.ErrConflict) {
		return verdict{overdue: reason, lost: err}
	}
	v.kept = err == nil
	return v
}

func (d *Due) change(p partition) *change {
	return newChange(p, p.request("due", newRequest(housekeeper)), time.Minute)
}

// reasonOf is a word for an error, for records that must hold no text of it.
func reasonOf(err error) string {
	var classed interface{ Class() string }
	var network net.Error
	switch {
	case errors.As(err, &classed):
		return classed.Class()
	case errors.As(err, new(*panicked)):
		return "panic"
	case errors.Is(err, approvals.ErrNotFound):
		return "not found"
	case errors.Is(err, approvals.ErrConflict):
		return "conflict"
	case errors.Is(err, approvals.ErrInvalid):
		return "invalid"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errTooLong):
		return "timeout"
	case errors.As(err, &network):
		return "network"
	default:
		return "error"
	}
}
