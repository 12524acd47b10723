package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

// DueOptions tune a [Due]; the zero value is right for production.
type DueOptions struct {
	Workers  int                             // reconcilers of one kind at the same time; 0 means 16
	Sweep    time.Duration                   // the longest time between two looks without a wake-up, while wake-ups arrive; 0 means 25 s
	Attempts int                             // failures before an item is parked; 0 means 12
	Grace    time.Duration                   // how long reconcilers may continue once Run is to end; 0 means 10 s
	Clock    *Clock                          // while it refuses, nothing is looked for; nil: the clock of the process is trusted
	Backoff  func(attempt int) time.Duration // after a failure, from 1; nil: 1 s, doubled up to 5 min, with jitter

	Started func(k Kind, late time.Duration) // called when work on an item begins, with how long it was due; nil: nothing
}

// short is the time between two looks, give or take a quarter, that are at every
// partition while wake-ups do not arrive.
func (o DueOptions) short() time.Duration { return min(o.Sweep, shortSweep) }

// Due hands out what is due. It is level-triggered: an item is handed out for
// as long as the state says that there is work, even if the wake-up was lost.
// Two processes may be handed the same item; the versions in their commits
// decide which one succeeds.
type Due struct {
	store *Store
	o     DueOptions
	lane  lane
	crew  crew

	mu     sync.Mutex
	looked map[Kind]time.Time // of the loops that run; zero: not yet
	counts map[Kind]Counts
	unkept map[dueSet]bool // where what became of work could not be stored at the last attempt
}

// A dueSet is the part of the index of a kind that lies in one partition.
type dueSet struct {
	kind      Kind
	partition int
}

// Counts is what became of the items that a process was handed.
type Counts struct {
	Done    int64
	Delayed int64 // by an error with RetryAfter
	Failed  int64
	Parked  int64
}

// NewDue returns a Due of the store.
func NewDue(s *Store, o DueOptions) *Due {
	if o.Workers <= 0 {
		o.Workers = 16
	}
	if o.Sweep <= 0 {
		o.Sweep = longestSweep
	}
	if o.Attempts <= 0 {
		o.Attempts = 12
	}
	if o.Grace <= 0 {
		o.Grace = 10 * time.Second
	}
	if o.Backoff == nil {
		o.Backoff = backoff
	}
	if o.Started == nil {
		o.Started = func(Kind, time.Duration) {}
	}
	return &Due{store: s, o: o, crew: newCrew(), looked: make(map[Kind]time.Time), counts: make(map[Kind]Counts), unkept: make(map[dueSet]bool)}
}

// Run works on every kind until ctx ends and every reconciler has returned. The
// zero Tasks are an error, and so is a kind that is already worked on.
//
// Run calls the reconciler of a kind with the id of every item that is due. It
// never calls it for one id twice at the same time. The reconciler does the
// work and commits; its commits move the item. What it returns decides about an
// item that they did not move:
//
//   - nil: the item is looked at again in a second, unless its document says
//     that there is nothing to do.
//   - an error that has a method RetryAfter() time.Duration: again after that.
//     This is no failure.
//   - any other error, or a panic: the failure is counted and the item waits,
//     longer each time. After so many failures it is parked: it is no longer
//     due, and [Due.Parked] lists it. A new state of its document, or
//     [Due.Unpark], makes it due again.
//
// What people wait for is done first: work that a commit outside of a reconciler has
// just made necessary, and what follows from it, see [Awaited]. One in
// four items that are begun is other work, the longest due first.
//
// The context of a reconciler ends after the limit of its task. A reconciler
// that returns an error after that has failed, whatever the error says. The
// context also ends when the grace period after the end of ctx is over. A
// failure after the end of ctx is not counted.
//
// It may be impossible to store what became of an item, because Redis is full,
// is a read-only replica, or is away. Then the items of its partition wait in
// memory, longer each time and at most half a minute, unless another commit in
// that partition succeeds. The beginning and the end of that are logged.
func (d *Due) Run(ctx context.Context, tasks Tasks) error {
	if len(tasks.all) == 0 {
		return errors.New("there are no tasks: they are made by NewTasks")
	}
	return d.run(ctx, tasks.all)
}

// run works on the kinds of the tasks, as [Due.Run] describes.
func (d *Due) run(ctx context.Context, tasks []Task) error {
	var problems []error
	var loops []*loop
	for _, t := range tasks {
		if err := d.begin(t.Kind); err != nil {
			problems = append(problems, err)
			continue
		}
		loops = append(loops, newLoop(d, t, &d.lane))
	}
	var all sync.WaitGroup
	for _, l := range loops {
		all.Go(func() {
			defer d.end(l.task.Kind)
			defer l.lane.leave()
			l.run(ctx)
		})
	}
	if len(loops) > 0 {
		d.store.works.begin(ctx)
		all.Go(func() { newSweeper(d, loops).run(ctx) })
	}
	all.Wait()
	return errors.Join(problems...)
}

// Attend says that a person waits for an answer of this process, until over is called,
// once. While there are many of them, the kinds that are [Task.Slow] handle one item each
// at a time, so that what is drawn does not take the CPU from the answers.
func (d *Due) Attend() (over func()) { return d.lane.attend() }

// begin notes that there is a loop for the kind.
func (d *Due) begin(k Kind) error {
	if _, err := (partition{}).document(k, ""); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, running := d.looked[k]; running {
		return fmt.Errorf("work on %s is already going on", k)
	}
	d.looked[k] = time.Time{}
	return nil
}

func (d *Due) end(k Kind) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.looked, k)
	maps.DeleteFunc(d.unkept, func(at dueSet, _ bool) bool { return at.kind == k })
}

// Healthy reports whether there are loops and for each of them Redis was looked at
// within the last few seconds.
func (d *Due) Healthy(now time.Time) bool {
	late := now.Add(-max(5*time.Second, 3*d.o.short()))
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range d.looked {
		if at.Before(late) {
			return false
		}
	}
	return len(d.looked) > 0
}

// Counts returns what this process has done so far, by kind.
func (d *Due) Counts() map[Kind]Counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.counts)
}

func (d *Due) count(k Kind, add func(c *Counts)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.counts[k]
	add(&c)
	d.counts[k] = c
}

// DueAt returns when work of the kind is to be done about a document, and the zero time
// if none is.
func (s *Store) DueAt(ctx context.Context, k Kind, id string) (time.Time, error) {
	at, ok, err := s.scoreAt(ctx, k, id)
	if err != nil || !ok {
		return time.Time{}, wrap(err, "read when %s of %s are due", k, id)
	}
	return at.time().UTC(), nil
}

// scoreAt reads where an item stands now.
func (s *Store) scoreAt(ctx context.Context, k Kind, id string) (at score, ok bool, err error) {
	if !isKind(k) {
		return 0, false, fmt.Errorf("%w: there is no kind of work %q", approvals.ErrInvalid, k)
	}
	p, err := s.partitionOf(id)
	if err != nil {
		return 0, false, err
	}
	due := p.due(k)
	f, err := ask(ctx, s.conn, func(c redis.Cmdable) *redis.FloatCmd { return due.score(ctx, c, id) }).Result()
	if errors.Is(err, redis.Nil) {
		return 0, false, nil
	}
	return due.at(f), err == nil, err
}

func (d *Due) alive(k Kind) {
	now := d.store.now()
	d.mu.Lock()
	d.looked[k] = now
	d.mu.Unlock()
}

func backoff(attempt int) time.Duration {
	const first, longest = time.Second, 5 * time.Minute
	wait := longest
	if attempt < 10 {
		wait = min(first<<max(attempt-1, 0), longest)
	}
	return min(wait+rand.N(wait/4), longest) //nolint:gosec // jitter is no secret
}
