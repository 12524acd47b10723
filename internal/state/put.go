package state

import (
	"fmt"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

func putThread(ch *change, p partition, w *dueChanges, t agentrun.Thread) error {
	d, err := encodeThread(t)
	if err != nil {
		return fmt.Errorf("encode thread %s: %w", t.ID, err)
	}
	if isIdle(t) {
		putIdle(ch, p, string(t.ID), w.when, w.when)
	}
	return ch.put(p.thread(string(t.ID)), t.Version, t.Version+1, d)
}

func putRun(ch *change, p partition, w *dueChanges, r agentrun.Run, undrawn bool) error {
	d, err := encodeRun(r)
	if err != nil {
		return fmt.Errorf("encode run %s: %w", r.ID, err)
	}
	if err := ch.put(p.run(string(r.ID)), r.Version, r.Version+1, d, fieldOwner, string(r.Owner)); err != nil {
		return err
	}
	fresh := r.Version == 0
	if fresh {
		ch.hset(p.thread(string(r.Thread)), runField(string(r.ID)), "")
	}
	switch {
	case r.Executor != "" || r.CallsOnly: // nobody reads of it in its thread
	case undrawn:
		ch.publish(w.s.conn, wake{kind: undrawnSteps, entries: []entry{{partition: p.n, id: string(r.ID), at: scoreOf(w.when)}}})
	default:
		w.now(Replies, string(r.ID))
	}
	switch {
	case r.Status == agentrun.RunParked:
		ch.zadd(p.parkedRuns(), string(r.ID), scoreOf(w.when))
	case !fresh && mayLeaveParked(r):
		ch.zrem(p.parkedRuns(), string(r.ID))
	}
	at, ok := r.Due()
	switch {
	case !ok && (fresh || r.Executor != ""): // it was never there: no worker claims a run of another executor
		return nil
	case !ok:
		w.done(Runs, string(r.ID))
		return nil
	}
	// A claim, or its release, is an attempt and not its success: the count goes
	// on until the run is no longer due.
	w.later(Runs, string(r.ID), at)
	return nil
}

// undrawnSteps is no kind of work. Wake-ups name it for the listeners of a [Feed], when a
// run has changed and its reply is not to be drawn.
const undrawnSteps Kind = "steps"

// mayLeaveParked reports whether the run may have been parked until now: one that was is
// queued again or fails, see [agentrun.Runner.Retry] and [agentrun.Runner.Abandon].
func mayLeaveParked(r agentrun.Run) bool {
	return r.Executor == "" && (r.Status == agentrun.RunQueued || r.Status == agentrun.RunFailed)
}

func putEntry(ch *change, p partition, e agentrun.Entry) error {
	d, err := encodeEntry(e)
	if err != nil {
		return fmt.Errorf("encode journal entry of %s: %w", e.Run, err)
	}
	v, doc := fieldVersion+":"+string(e.Call), fieldDoc+":"+string(e.Call)
	return ch.putFields(p.journal(string(e.Run)), v, doc, e.Version, e.Version+1, d)
}

// put stores a document if it still has the version from.
func (c *change) put(k hashKey, from, to int64, doc []byte, more ...any) error {
	return c.putFields(k, fieldVersion, fieldDoc, from, to, doc, more...)
}

// stays changes nothing of the document that remembers the change, which must have this
// version.
func (c *change) stays(version int64) {
	c.document = []any{formatVersion(version), fieldVersion, version}
}

func (c *change) putFields(k hashKey, v, d string, from, to int64, doc []byte, more ...any) error {
	if from < 0 || to <= from {
		return fmt.Errorf("%w: version %d after %d", approvals.ErrInvalid, to, from)
	}
	// Both would be judged against the same stored version, and one be lost.
	if at := string(k) + " " + v; !c.once(at) {
		return fmt.Errorf("%w: a document twice in one commit", approvals.ErrInvalid)
	}
	fields := append([]any{v, to, d, doc}, more...)
	if c.inDocument() && c.keys.all[0] == string(k) {
		c.document = append([]any{formatVersion(from)}, fields...)
		return nil
	}
	c.wantVersion(k, v, from)
	c.hset(k, fields...)
	return nil
}
