package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const (
	// near is how far ahead of its time an entry wakes the loops.
	near = 5 * time.Second
	// horizon is how far ahead of its time an entry is announced, so that the loops
	// set a timer for it. Sweeps look as far ahead, and find in time what is due later
	// than that when it is committed: there is one between, even if it is a round late.
	horizon = longestSweep + 3*time.Second
)

// dueChanges collects the writes to the due index that belong to a change. A new
// state of a document is new work, so its item is no longer parked and the count
// of its attempts begins again.
type dueChanges struct {
	s        *Store
	p        partition
	ch       *change
	when     time.Time
	wakes    []wake // by kind
	attempts []any
	parked   []any
}

func newDueChanges(s *Store, p partition, ch *change) *dueChanges {
	return &dueChanges{s: s, p: p, ch: ch, when: s.now()}
}

// now makes the item due at once.
func (w *dueChanges) now(k Kind, id string) { w.at(k, id, w.when) }

// at makes the item due at a time.
func (w *dueChanges) at(k Kind, id string, t time.Time) {
	w.later(k, id, t)
	w.attempts = append(w.attempts, w.parked[len(w.parked)-1])
}

// later is at for a change that is itself an attempt: it keeps the count of the
// attempts.
func (w *dueChanges) later(k Kind, id string, t time.Time) {
	score := scoreOf(t)
	if t.After(w.when) {
		score = scoreAfter(t) // a deadline is not due before it is over
	}
	w.ch.due(w.p.due(k), id, score)
	w.moved(item(k, id), false)
	at, found := slices.BinarySearchFunc(w.wakes, k, func(x wake, k Kind) int { return cmp.Compare(x.kind, k) })
	x := wake{kind: k}
	if found {
		x = w.wakes[at]
	}
	x, ok := x.with(entry{w.p.n, id, score}, t.Sub(w.when))
	switch {
	case !ok:
	case found:
		w.wakes[at] = x
	default:
		w.wakes = slices.Insert(w.wakes, at, x)
	}
}

// done takes the item out of the index.
func (w *dueChanges) done(k Kind, id string) {
	w.ch.notDue(w.p.due(k), id)
	w.moved(item(k, id), true)
	w.attempts = append(w.attempts, w.parked[len(w.parked)-1])
}

func (w *dueChanges) moved(item string, gone bool) {
	w.ch.moves = append(w.ch.moves, move{item, gone})
	w.parked = append(w.parked, item)
}

// finish adds the writes that are made once for the whole change. The wake-ups
// come last, so that a loop that receives one finds the work.
func (w *dueChanges) finish() {
	if len(w.parked) > 0 {
		w.ch.ifAny(func() {
			for fields := range slices.Chunk(w.parked, chunk) {
				w.ch.hdel(w.p.parked(), fields...)
			}
			for fields := range slices.Chunk(w.attempts, chunk) {
				w.ch.hdel(w.p.attempts(), fields...)
			}
		}, w.p.parked(), w.p.attempts())
	}
	w.ch.publish(w.s.conn, w.wakes...)
}

// A Kind is a kind of work that follows from the state of a document. It is
// also the name of the surface whose memo says how far the work is.
type Kind string

// The kinds. The members of Runs and Replies are runs, those of Sheets and
// Answers sheets, those of Webhooks, ToolChanges and Removals memos of that name, those of
// the others batches.
const (
	Runs       Kind = "runs"       // a run is queued, or its worker's lease is over
	Replies    Kind = "replies"    // a run changed since its reply was drawn
	Resumes    Kind = "resumes"    // a batch is settled and its run not resumed
	Deliveries Kind = "deliveries" // a batch is settled whose run is executed elsewhere, and its answers not delivered
	Cards      Kind = "cards"      // a batch changed since its card was drawn
	Deadlines  Kind = "deadlines"  // the earliest deadline or rung of a batch, see [approvals.Batch.Next]
	Notices    Kind = "notices"    // people are to be notified of something that happened to a batch
	Homes      Kind = "homes"      // a batch changed since the pages of those whom it concerns were drawn
	Sheets     Kind = "sheets"     // a sheet is submitted and not finished, or its worker's lease is over
	Answers    Kind = "answers"    // a sheet is finished and the person not answered
	// Announcements: a batch with external calls, or of a remote agent that named an
	// endpoint, changed since endpoints were told.
	Announcements Kind = "announcements"
	Webhooks      Kind = "webhooks" // a message is to be sent, or someone is to be told of an endpoint; see [Store.CommitTimed]

	ToolChanges Kind = "toolchanges" // the owners of an agent are asked about what an MCP server changed, and it is not shown
	Removals    Kind = "removals"    // threads that ended long ago are to be removed, see [Retention]
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{Runs, Replies, Resumes, Deliveries, Cards, Deadlines, Notices, Homes, Sheets, Answers, Announcements, Webhooks, ToolChanges, Removals}
}

// document returns the key of the document that an item of this kind is about.
func (p partition) document(k Kind, id string) (hashKey, error) {
	switch k {
	case Runs, Replies:
		return p.run(id), nil
	case Resumes, Deliveries, Cards, Deadlines, Notices, Homes, Announcements:
		return p.batch(id), nil
	case Sheets, Answers:
		return p.sheet(id), nil
	case Webhooks, ToolChanges, Removals:
		return p.memo(string(k), id), nil
	default:
		return "", fmt.Errorf("there is no kind of work %q", k)
	}
}
