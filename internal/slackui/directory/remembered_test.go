package directory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

var (
	server redis.UniversalClient // shared by the tests of the package
	stores atomic.Int64          // that were opened on it, each with a prefix of its own
)

func TestMain(m *testing.M) {
	statetest.Main(m, func(c redis.UniversalClient) { server = c })
}

// newMemos is the store of several replicas.
func newMemos(t *testing.T) *state.Store {
	t.Helper()
	s, err := state.Open(t.Context(), state.Options{Client: server, Prefix: fmt.Sprintf("t%d", stores.Add(1)), Now: time.Now})
	require.NoError(t, err)
	return s
}

// A slowSlack answers questions about a group after some time, in a bubble.
type slowSlack struct {
	takes time.Duration
	asked atomic.Int64
	fails atomic.Bool
}

// clickTime is how long a click may take.
const clickTime = 2500 * time.Millisecond

var errSlack = errors.New("no, says Slack")

func (s *slowSlack) ask(ctx context.Context, _ roster) (roster, error) {
	at := time.Now()
	s.asked.Add(1)
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return roster{}, ctx.Err()
	}
	if s.fails.Load() {
		return roster{}, errSlack
	}
	return roster{At: at, Users: []string{"U1"}}, nil
}

// replica is one process with the memos of all.
func replica(m memo.Store) *Directory {
	return &Directory{API: &slackapi.Client{Now: time.Now}, Memos: m, Team: "T1", Age: time.Minute, Now: time.Now}
}

func (s *slowSlack) members(ctx context.Context, d *Directory) (roster, error) {
	return remembered(ctx, d, "group", "group", "S1", s.ask)
}

func TestReplicasAskTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, slack := newMemos(t), &slowSlack{takes: 700 * time.Millisecond}
		one, two := replica(c), replica(c)
		for round := range 3 {
			var all sync.WaitGroup
			for i := range 128 {
				all.Go(func() {
					r, err := slack.members(t.Context(), []*Directory{one, two}[i%2])
					require.NoError(t, err)
					require.Equal(t, []string{"U1"}, r.Users)
				})
			}
			all.Wait()
			require.EqualValues(t, round+1, slack.asked.Load())
			time.Sleep(time.Minute)
		}
	})
}

// Whoever stops waiting stops nobody else, and the answer is there for the next.
func TestWhoStopsWaitingStopsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slack, d := &slowSlack{takes: 2 * time.Second}, replica(newMemos(t))
		impatient, cancel := context.WithTimeout(t.Context(), clickTime)
		defer cancel()
		began := time.Now()
		var others sync.WaitGroup
		others.Go(func() {
			time.Sleep(100 * time.Millisecond)
			_, err := slack.members(t.Context(), d)
			require.NoError(t, err)
		})
		_, err := slack.members(impatient, d)
		require.ErrorIs(t, err, ErrLookup)
		require.ErrorIs(t, err, slackapi.ErrSlow)
		require.Equal(t, clickTime-slackapi.Spared, time.Since(began), "there is time left to answer")
		require.ErrorIs(t, err, ErrLookup)
		others.Wait()
		_, err = slack.members(impatient, d)
		require.NoError(t, err, "it is remembered by now")
		require.EqualValues(t, 1, slack.asked.Load())
	})
}

// An error is no membership: whoever asks next, asks Slack, wherever they are.
func TestAFailedLookupIsNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, slack := newMemos(t), &slowSlack{takes: 100 * time.Millisecond}
		one, two := replica(c), replica(c)
		slack.fails.Store(true)
		_, err := slack.members(t.Context(), one)
		require.ErrorIs(t, err, errSlack)
		require.ErrorIs(t, err, ErrLookup)
		slack.fails.Store(false)
		began := time.Now()
		_, err = slack.members(t.Context(), two)
		require.NoError(t, err)
		require.Equal(t, slack.takes, time.Since(began), "nobody claims to ask any more")

		time.Sleep(time.Minute)
		slack.fails.Store(true)
		_, err = slack.members(t.Context(), one)
		require.ErrorIs(t, err, errSlack, "what was known is too old")
	})
}

// A replica that was killed while it asked holds the others up for a moment.
func TestAClaimOfADeadReplicaEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, slack := newMemos(t), &slowSlack{takes: 100 * time.Millisecond}
		d := replica(c)
		dead := subject[roster]{Directory: replica(c), kind: "group", id: "S1"}
		_, _, err := dead.claim(t.Context(), time.Minute)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), clickTime+slackapi.Spared)
		defer cancel()
		_, err = slack.members(ctx, d)
		require.NoError(t, err)
		_, err = slack.members(ctx, d)
		require.NoError(t, err)
		require.EqualValues(t, 1, slack.asked.Load(), "the answer is kept")
	})
}

// A claim by a clock that is far ahead is none.
func TestAClaimFromTheFutureHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, slack := newMemos(t), &slowSlack{}
		ahead := subject[roster]{Directory: replica(c), kind: "group", id: "S1"}
		ahead.Now = func() time.Time { return time.Now().Add(time.Hour) }
		_, _, err := ahead.claim(t.Context(), time.Minute)
		require.NoError(t, err)
		began := time.Now()
		_, err = slack.members(t.Context(), replica(c))
		require.NoError(t, err)
		require.Zero(t, time.Since(began))
	})
}

// An answer that is on its way when Slack tells of a change may be from before
// it. It is not kept, and whoever asks after the change does not get it.
func TestAnAnswerFromBeforeAChangeIsNotJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slack, d := &slowSlack{takes: time.Second}, replica(newMemos(t))
		before := time.Now()
		var all sync.WaitGroup
		all.Go(func() {
			r, err := slack.members(t.Context(), d)
			require.NoError(t, err)
			require.Equal(t, before, r.At)
		})
		time.Sleep(500 * time.Millisecond)
		require.NoError(t, d.Forget(t.Context(), "group", "S1"))
		after := time.Now()
		r, err := slack.members(t.Context(), d)
		require.NoError(t, err)
		require.Equal(t, after, r.At)
		all.Wait()
		r, err = slack.members(t.Context(), d)
		require.NoError(t, err)
		require.True(t, after.Equal(r.At), "the old answer did not replace the new one")
		require.EqualValues(t, 2, slack.asked.Load())
	})
}

// Renewals go on in the background, a few at a time, and an end waits for them.
func TestRenewalsAreFewAndAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slack, d := &slowSlack{}, replica(newMemos(t))
		d.Ahead = 15 * time.Second
		ids := []string{"S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "S10", "S11", "S12"}
		everybody := func() {
			for _, id := range ids {
				for range 3 {
					_, err := remembered(t.Context(), d, "group", "group", id, slack.ask)
					require.NoError(t, err)
				}
			}
		}
		everybody()
		require.EqualValues(t, len(ids), slack.asked.Load())
		time.Sleep(50 * time.Second)
		slack.takes = time.Second
		began := time.Now()
		everybody()
		require.Zero(t, time.Since(began), "nobody waits")
		d.API.Asks.Wait()
		require.Equal(t, time.Second, time.Since(began))
		require.EqualValues(t, len(ids)+slackapi.MaxRenewals, slack.asked.Load())
	})
}

// A store that is away costs a question each time, and no more.
func TestPeopleAreKnownWithoutTheStore(t *testing.T) {
	d := replica(brokenMemos{})
	slack := &slowSlack{}
	for range 2 {
		r, err := slack.members(t.Context(), d)
		require.NoError(t, err)
		require.Equal(t, []string{"U1"}, r.Users)
	}
	require.EqualValues(t, 2, slack.asked.Load())
}

type brokenMemos struct{}

func (brokenMemos) Memo(context.Context, string, string) ([]byte, int64, error) {
	return nil, 0, errSlack
}

func (brokenMemos) MemoVersion(context.Context, string, string) (int64, error) { return 0, errSlack }

func (brokenMemos) CommitMemo(context.Context, string, string, []byte, int64, int64) error {
	return errSlack
}

func (brokenMemos) KeepMemo(context.Context, string, string, []byte, int64) error { return errSlack }

func (brokenMemos) Redraw(context.Context, string, string, string, []byte, int64) error {
	return errSlack
}

func (brokenMemos) Prefetch(ctx context.Context, _ approvals.Reads) context.Context { return ctx }

func (brokenMemos) Time() time.Time { return time.Now() }

// A defect in one question ends neither the process nor what waits for it.
func TestADefectInAQuestionIsAnError(t *testing.T) {
	d := replica(newMemos(t))
	_, err := remembered(t.Context(), d, "group", "group", "S1", func(context.Context, roster) (roster, error) { panic("a bug") })
	require.ErrorIs(t, err, ErrLookup)
	require.ErrorContains(t, err, "a bug")
}

// A memo from the future is of no age: it is asked again.
func TestAMembershipFromTheFutureIsNotTrusted(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for age, asked := range map[time.Duration]bool{0: false, time.Minute: false, time.Minute + 1: true, -1: true, -time.Hour: true} {
		store := newMemos(t)
		d := &Directory{API: &slackapi.Client{}, Memos: store, Team: "T1", Age: time.Minute, Now: func() time.Time { return now }}
		raw, err := json.Marshal(roster{At: now.Add(-age), Users: []string{"U1"}})
		require.NoError(t, err)
		require.NoError(t, store.CommitMemo(t.Context(), d.Key("group", "S1"), "group", raw, 0, 0))
		again := false
		_, err = remembered(t.Context(), d, "group", "group", "S1", func(context.Context, roster) (roster, error) {
			again = true
			return roster{At: now}, nil
		})
		require.NoError(t, err)
		require.Equal(t, asked, again, "%s old", age)
	}
}
