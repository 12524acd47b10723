package state_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// drawing is a handler of cards that takes one at a time, in the order that it keeps.
type drawing struct {
	begun chan string   // has each before it is drawn
	next  chan struct{} // lets one be drawn
	mu    sync.Mutex
	order []string
	wait  map[string]bool // whether each was awaited
}

func newDrawing() *drawing {
	return &drawing{begun: make(chan string, 10_000), next: make(chan struct{}), wait: map[string]bool{}}
}

func (d *drawing) of(s *state.Store) func(ctx context.Context, id string) error {
	return func(ctx context.Context, id string) error {
		d.mu.Lock()
		d.order, d.wait[id] = append(d.order, id), state.Awaited(ctx)
		d.mu.Unlock()
		d.begun <- id
		<-d.next
		return draw(ctx, s, id)
	}
}

// changes commits a new version of a batch, as a person does who decides.
func changes(t *testing.T, s *state.Store, id approvals.BatchID) {
	t.Helper()
	before, err := s.Batch(t.Context(), id)
	require.NoError(t, err)
	b := before
	b.Version++
	require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Before: before, Batch: b}))
}

// subscribed returns once loops receive the wake-ups of cards.
func subscribed(t *testing.T, s *state.Store, n int64) {
	t.Helper()
	c := s.Client()
	channel := s.WakeChannel()
	statetest.Await(t, "the subscription", func() bool {
		return c.PubSubNumSub(t.Context(), channel).Val()[channel] == n
	})
}

// A card on which someone has just clicked is drawn next, however many others are due,
// and the others are all drawn.
func TestWhatPeopleWaitForIsDoneBeforeAStorm(t *testing.T) {
	t.Parallel()
	s := openStore(t, statetest.Miniredis(t), time.Now)
	const storm = 5 * 60
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		openMany(t, s, storm/5, name, false)
	}
	openMany(t, s, 1, "fresh", false)
	fresh := ids{0}.batch("fresh")
	require.NoError(t, draw(t.Context(), s, string(fresh)))
	cards, told := newDrawing(), make(chan struct{}, 1)
	workOn(t, state.NewDue(s, state.DueOptions{Workers: 1, Sweep: never, Grace: grace}),
		state.Task{Kind: state.Cards, Limit: time.Minute, Reconcile: cards.of(s)},
		state.Task{Kind: state.Homes, Limit: time.Minute, Reconcile: func(ctx context.Context, id string) error {
			if id == string(fresh) && state.Awaited(ctx) {
				told <- struct{}{} // that of the card came first
			}
			return later(time.Hour)
		}})
	subscribed(t, s, 1)
	first := wait(t, "the first card", cards.begun)
	require.NotEqual(t, string(fresh), first)
	changes(t, s, fresh)
	wait(t, "the wake-up", told)
	places := map[string]int{first: 0}
	for n := 1; n <= storm; n++ {
		cards.next <- struct{}{}
		places[wait(t, "the cards", cards.begun)] = n
	}
	close(cards.next)
	require.Len(t, places, storm+1)
	require.LessOrEqual(t, places[string(fresh)], 2) // one may be begun before the loop takes the wake-up
	cards.mu.Lock()
	defer cards.mu.Unlock()
	for id, awaited := range cards.wait {
		require.Equal(t, id == string(fresh), awaited, id)
	}
}

// What follows from a deadline is no more awaited than the deadline, and what follows
// from what people did is.
func TestWorkIsAwaitedIfThatWhichItFollowsFromIs(t *testing.T) {
	t.Parallel()
	s := openStore(t, statetest.Miniredis(t), time.Now)
	openMany(t, s, 1, "late", true)
	openMany(t, s, 1, "fresh", false)
	late, fresh := string(ids{0}.batch("late")), string(ids{0}.batch("fresh"))
	for _, id := range []string{late, fresh} {
		require.NoError(t, draw(t.Context(), s, id))
	}
	desk, cards := newDesk(s, time.Now), newDrawing()
	close(cards.next)
	settle := make(chan struct{})
	workOn(t, state.NewDue(s, state.DueOptions{Grace: grace}),
		state.Task{Kind: state.Deadlines, Limit: time.Minute, Reconcile: func(ctx context.Context, id string) error {
			<-settle
			return desk.Tick(ctx, approvals.BatchID(id))
		}},
		state.Task{Kind: state.Cards, Limit: time.Minute, Reconcile: cards.of(s)})
	subscribed(t, s, 1)
	close(settle)
	require.Equal(t, late, wait(t, "the card of the deadline", cards.begun))
	changes(t, s, approvals.BatchID(fresh))
	require.Equal(t, fresh, wait(t, "the card of the click", cards.begun))
	cards.mu.Lock()
	defer cards.mu.Unlock()
	require.Equal(t, map[string]bool{late: false, fresh: true}, cards.wait)
}
