package slackui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// cabinet is many memos, as the store of several replicas keeps them.
type cabinet struct {
	mu     sync.Mutex
	boards map[string]*board
}

func (c *cabinet) board(id, surface string) *board {
	if c.boards == nil {
		c.boards = map[string]*board{}
	}
	if c.boards[id+surface] == nil {
		c.boards[id+surface] = &board{}
	}
	return c.boards[id+surface]
}

func (c *cabinet) Memo(ctx context.Context, id, surface string) ([]byte, int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.board(id, surface).Memo(ctx, id, surface)
}

func (c *cabinet) CommitMemo(ctx context.Context, id, surface string, raw []byte, version, drawn int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.board(id, surface).CommitMemo(ctx, id, surface, raw, version, drawn)
}

func (*cabinet) Confirm(context.Context, string) error { return nil }

// A slowSlack answers questions about a group after some time, in a bubble.
type slowSlack struct {
	takes time.Duration
	asked atomic.Int64
	fails atomic.Bool
}

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
func replica(c *cabinet) *directory {
	return &directory{api: &api{now: time.Now}, memos: c, team: "T1", age: time.Minute, now: time.Now}
}

func (s *slowSlack) members(ctx context.Context, d *directory) (roster, error) {
	return remembered(ctx, d, "group", "group", "S1", s.ask)
}

func TestReplicasAskTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, slack := &cabinet{}, &slowSlack{takes: 700 * time.Millisecond}
		one, two := replica(c), replica(c)
		for round := range 3 {
			var all sync.WaitGroup
			for i := range 128 {
				all.Go(func() {
					r, err := slack.members(t.Context(), []*directory{one, two}[i%2])
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
		slack, d := &slowSlack{takes: 2 * time.Second}, replica(&cabinet{})
		impatient, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		began := time.Now()
		var others sync.WaitGroup
		others.Go(func() {
			time.Sleep(100 * time.Millisecond)
			_, err := slack.members(t.Context(), d)
			require.NoError(t, err)
		})
		_, err := slack.members(impatient, d)
		require.ErrorIs(t, err, errLookup)
		require.ErrorIs(t, err, errSlow)
		require.Equal(t, patience-spared, time.Since(began), "there is time left to answer")
		require.True(t, isTryAgain(err))
		others.Wait()
		_, err = slack.members(impatient, d)
		require.NoError(t, err, "it is remembered by now")
		require.EqualValues(t, 1, slack.asked.Load())
	})
}

// An error is no membership: whoever asks next, asks Slack, wherever they are.
func TestAFailedLookupIsNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, slack := &cabinet{}, &slowSlack{takes: 100 * time.Millisecond}
		one, two := replica(c), replica(c)
		slack.fails.Store(true)
		_, err := slack.members(t.Context(), one)
		require.ErrorIs(t, err, errSlack)
		require.ErrorIs(t, err, errLookup)
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
		c, slack := &cabinet{}, &slowSlack{takes: 100 * time.Millisecond}
		d := replica(c)
		dead := subject[roster]{directory: replica(c), kind: "group", id: "S1"}
		_, _, err := dead.claim(t.Context(), time.Minute)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), patience+spared)
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
		c, slack := &cabinet{}, &slowSlack{}
		ahead := subject[roster]{directory: replica(c), kind: "group", id: "S1"}
		ahead.now = func() time.Time { return time.Now().Add(time.Hour) }
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
		slack, d := &slowSlack{takes: time.Second}, replica(&cabinet{})
		before := time.Now()
		var all sync.WaitGroup
		all.Go(func() {
			r, err := slack.members(t.Context(), d)
			require.NoError(t, err)
			require.Equal(t, before, r.At)
		})
		time.Sleep(500 * time.Millisecond)
		require.NoError(t, d.forget(t.Context(), "group", "S1"))
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
		slack, d := &slowSlack{}, replica(&cabinet{})
		d.ahead = 15 * time.Second
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
		d.api.asks.wait()
		require.Equal(t, time.Second, time.Since(began))
		require.EqualValues(t, len(ids)+maxRenewals, slack.asked.Load())
	})
}

// A store that is away costs a question each time, and no more.
func TestPeopleAreKnownWithoutTheStore(t *testing.T) {
	d := replica(nil)
	d.memos = brokenMemos{}
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

func (brokenMemos) CommitMemo(context.Context, string, string, []byte, int64, int64) error {
	return errSlack
}

func (brokenMemos) Confirm(context.Context, string) error { return errSlack }

// A defect in one question ends neither the process nor what waits for it.
func TestADefectInAQuestionIsAnError(t *testing.T) {
	d := replica(&cabinet{})
	_, err := remembered(t.Context(), d, "group", "group", "S1", func(context.Context, roster) (roster, error) { panic("a bug") })
	require.ErrorIs(t, err, errLookup)
	require.ErrorContains(t, err, "a bug")
}

// Nobody waits for the answer to who we are but those who need it.
func TestWhoWeAreIsAskedWithoutALock(t *testing.T) {
	arrived, open := make(chan struct{}, 1), make(chan struct{})
	slack := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-open
		_, _ = fmt.Fprint(w, `{"ok":true,"user_id":"U0BOT","url":"https://acme.slack.com/"}`)
	}))
	t.Cleanup(slack.Close)
	a := newAPI(func() string { return "xoxb" }, slack.URL)
	a.dms = map[string]string{"U1": "D1"}
	var all sync.WaitGroup
	all.Go(func() {
		self, err := a.whoami(t.Context())
		require.NoError(t, err)
		require.Equal(t, "U0BOT", self.UserID)
	})
	<-arrived
	im, err := a.openDirect(t.Context(), "U1")
	require.NoError(t, err)
	require.Equal(t, "D1", im)
	close(open)
	all.Wait()
	require.Equal(t, "https://acme.slack.com/archives/C1/p11", a.permalink(t.Context(), "C1", "1.1", ""))
}

// A mention that does not say whom it is for is delivered again while Slack does
// not say who we are.
func TestAMentionOfWeDoNotKnowWhomComesAgain(t *testing.T) {
	s := &Server{api: newAPI(func() string { return "xoxb" }, "http://127.0.0.1:1/")}
	_, err := s.botOf(t.Context(), envelope{})
	require.Error(t, err)
}
