package state

import (
	"context"
	"sync/atomic"
	"time"
)

// headStart is how long a process leaves what another has just committed to that one,
// if that works on what is due. Mostly it is done by then, and only looked up. Otherwise
// the other process is busy, or has died.
const headStart = 25 * time.Millisecond

// takeOver is after how long a process treats such work like its own. Until then its own
// goes first, so that processes that are all busy do not begin the same.
const takeOver = time.Second

// heardFor is for how long a process counts as at work after it was heard. Each asks every
// partition once within [longestSweep], and says so to all.
const heardFor = 2 * longestSweep

// works says whether the process works on what is due in the store, see [Due.Run], and
// whether others do.
type works struct {
	id    string // of the store, for other processes
	loops atomic.Int32
	heard atomic.Int64 // the nanosecond of Unix time at which another was heard the last time; 0: never
}

// hears notes that a message has arrived from a process that works: from the store of that
// name, or from one of an older version, which has no name.
func (w *works) hears(name string, now time.Time) {
	if name != w.id {
		w.heard.Store(now.UnixNano())
	}
}

// others reports whether other processes work too, as far as was heard.
func (w *works) others(now time.Time) bool {
	heard := w.heard.Load()
	return heard != 0 && now.Sub(time.Unix(0, heard)) < heardFor
}

// name names the store in what it publishes; it is empty if nobody works.
func (w *works) name() string {
	if w.loops.Load() == 0 {
		return ""
	}
	return w.id
}

// begin notes that work begins and goes on until ctx ends.
func (w *works) begin(ctx context.Context) {
	w.loops.Add(1)
	context.AfterFunc(ctx, func() { w.loops.Add(-1) })
}

// from is when this process may begin what the store of that name has committed: at once,
// which is 0, if it is this store or has no name.
func (w *works) from(name string, now time.Time) score {
	if name == "" || name == w.id {
		return 0
	}
	return scoreOf(now.Add(headStart))
}
