package outbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/outbox"
)

func (w *world) port() int {
	w.Helper()
	u, err := url.Parse(w.hook.URL)
	require.NoError(w, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(w, err)
	return port
}

// exhaust makes every attempt of the schedule.
func (w *world) exhaust(id string) (attempts int) {
	w.Helper()
	began := w.clock.Now()
	for {
		before := len(w.hook.arrivals())
		err := w.Reconcile(w.Context(), id)
		if len(w.hook.arrivals()) == before {
			return attempts
		}
		attempts++
		wait := w.waitOf(err)
		if w.clock.Now().Sub(began) > 60*time.Hour && wait == time.Hour {
			return attempts
		}
		w.clock.Advance(wait)
	}
}

func TestAnEndpointThatTakesNothingFor75HoursIsDisabledAndPeopleAreToldOnce(t *testing.T) {
	w := newWorld(t)
	w.hook.answers(http.StatusInternalServerError, "")
	id := w.put("a", "ci")
	began := w.clock.Now()
	require.Equal(t, 10, w.exhaust(id))
	require.InDelta(t, 75, w.clock.Now().Sub(began).Hours(), 8)

	require.NoError(t, w.Reconcile(t.Context(), endpointsID))
	require.NoError(t, w.Reconcile(t.Context(), endpointsID))
	require.Equal(t, []outbox.Disabled{{
		Agent: "claude", Endpoint: "ci", Reason: "The receiver answered 500.",
	}}, w.told)
	require.Zero(t, w.due(endpointsID))
	require.Equal(t, 1, strings.Count(w.log.String(), `msg="a webhook is disabled; bot admin enable sends what waits for it" agent=claude webhook=ci reason="The receiver answered 500."`))

	// What is new waits as well, and nothing is sent.
	sent := len(w.hook.arrivals())
	other := w.put("b", "ci")
	require.Equal(t, time.Hour, w.waitOf(w.Reconcile(t.Context(), other)))
	require.Len(t, w.hook.arrivals(), sent)
	list, err := w.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, 2, list[0].Waiting)
	require.False(t, list[0].DisabledAt.IsZero())

	// Enabled again, both are sent at once.
	w.hook.answers(http.StatusOK, "")
	waiting, err := w.Enable(t.Context(), "claude", "ci")
	require.NoError(t, err)
	require.Equal(t, 2, waiting)
	require.NoError(t, w.Reconcile(t.Context(), id))
	require.NoError(t, w.Reconcile(t.Context(), other))
	require.Len(t, w.hook.arrivals(), sent+2)

	// The next time people are told again.
	w.hook.answers(http.StatusGone, "")
	third := w.put("c", "ci")
	require.Error(t, w.Reconcile(t.Context(), third))
	require.NoError(t, w.Reconcile(t.Context(), endpointsID))
	require.Len(t, w.told, 2)
	require.Contains(t, w.told[1].Reason, "410")
}

// An endpoint that is told of calls of other agents gets messages about several
// partitions. The operator has one webhook.
func TestAnEndpointIsListedOnceForAllPartitions(t *testing.T) {
	w := newWorld(t)
	first, second := approvals.NewID("run", 3, "a"), approvals.NewID("run", 9, "b")
	for _, id := range []string{first, second} {
		require.NoError(t, w.Put(t.Context(), id, message("ci")))
	}
	require.NoError(t, w.Reconcile(t.Context(), first))
	delivered := w.clock.Now()
	w.clock.Advance(time.Minute)
	w.hook.answers(http.StatusGone, "")
	require.Error(t, w.Reconcile(t.Context(), second))

	list, err := w.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.True(t, delivered.Equal(list[0].Delivered))
	require.True(t, w.clock.Now().Equal(list[0].DisabledAt))
	require.Contains(t, list[0].Reason, "410")
	require.Equal(t, 1, list[0].Waiting)
}

// everywhere puts a message about a request in each partition, and returns the ids of both.
func (w *world) everywhere(unique string) (requests, memos []string) {
	w.Helper()
	for n := range approvals.Partitions {
		requests = append(requests, approvals.NewID("run", n, unique))
		memos = append(memos, approvals.NewID("webhooks", n, "endpoints"))
		require.NoError(w, w.Put(w.Context(), requests[n], message("ci")))
	}
	return requests, memos
}

// Calls of other agents are in every partition, and so are messages about them. People
// have one webhook.
func TestPeopleAreToldOnceOfAnEndpointThatIsDisabledInEveryPartition(t *testing.T) {
	w := newWorld(t)
	w.hook.answers(http.StatusGone, "")
	requests, memos := w.everywhere("a")
	fail := func(n int) {
		require.Error(t, w.Reconcile(t.Context(), requests[n]))
		require.NoError(t, w.Reconcile(t.Context(), memos[n]))
		require.Zero(t, w.due(memos[n]))
	}
	for n := range requests {
		fail(n)
	}
	require.Len(t, w.hook.arrivals(), 64)
	require.Len(t, w.told, 1)

	_, err := w.Enable(t.Context(), "claude", "ci")
	require.NoError(t, err)
	for n := range requests {
		fail(len(requests) - 1 - n)
	}
	require.Len(t, w.told, 2, "and of the next time")
}

// Whoever else finds the endpoint disabled while someone is telling people waits for how
// that ends.
func TestPeopleAreToldByAnotherPartitionIfTheFirstOneCouldNot(t *testing.T) {
	w := newWorld(t)
	w.hook.answers(http.StatusGone, "")
	requests, memos := w.everywhere("a")
	for _, id := range requests {
		require.Error(t, w.Reconcile(t.Context(), id))
	}
	w.tellErr = errors.New("slack is away")
	require.ErrorIs(t, w.Reconcile(t.Context(), memos[3]), w.tellErr)
	w.tellErr = nil
	for n := range memos {
		require.Equal(t, 30*time.Second, w.waitOf(w.Reconcile(t.Context(), memos[n])), n)
	}
	require.Empty(t, w.told)
	w.clock.Advance(30 * time.Second)
	for n := range memos {
		require.NoError(t, w.Reconcile(t.Context(), memos[len(memos)-1-n]))
	}
	require.Len(t, w.told, 1)
}

// People are told again at worst, and never not at all.
func TestPeopleAreToldWhereverTheProcessDies(t *testing.T) {
	w := newWorld(t)
	w.hook.answers(http.StatusGone, "")
	requests, memos := w.everywhere("a")
	for n := range requests {
		require.Error(t, w.Reconcile(t.Context(), requests[n]))
	}
	for commits := range int64(6) {
		dying := &dyingStore{Store: w.store}
		dying.left.Store(commits)
		before := len(w.told)
		err := w.open(dying, w.sender).Reconcile(t.Context(), memos[3])
		if commits < 5 {
			require.ErrorIs(t, err, errKilled)
		} else {
			require.NoError(t, err)
		}
		w.clock.Advance(time.Minute)
		for n := range memos {
			require.NoError(t, w.Reconcile(t.Context(), memos[n]))
		}
		told := len(w.told) - before
		require.GreaterOrEqual(t, told, 1, "killed after %d commits", commits)
		require.LessOrEqual(t, told, 2)
		_, err = w.Enable(t.Context(), "claude", "ci")
		require.NoError(t, err)
		for n := range requests {
			require.Error(t, w.Reconcile(t.Context(), requests[n]))
		}
	}
}

// It works, and one message is refused by it: the message is given up, and the
// operator can have it sent again.
func TestAMessageThatAWorkingEndpointNeverTakesIsGivenUp(t *testing.T) {
	w := newWorld(t)
	w.hook.answers(http.StatusBadRequest, "")
	id := w.put("a", "ci")
	require.Error(t, w.Reconcile(t.Context(), id))
	w.clock.Advance(time.Minute)
	w.hook.answers(http.StatusOK, "")
	require.NoError(t, w.Reconcile(t.Context(), w.put("b", "ci")))
	w.hook.answers(http.StatusBadRequest, "")
	for !w.due(id).IsZero() {
		w.clock.Advance(max(0, w.due(id).Sub(w.clock.Now())) + time.Millisecond)
		_ = w.Reconcile(t.Context(), id)
	}
	require.Zero(t, w.due(endpointsID), "the endpoint works")
	list, err := w.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{id}, list[0].GivenUp)
	require.Zero(t, list[0].DisabledAt)

	w.hook.answers(http.StatusOK, "")
	before := w.hook.arrivals()
	due, held, err := w.Redeliver(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, []int{1, 0}, []int{due, held})
	require.NoError(t, w.Reconcile(t.Context(), id))
	after := w.hook.arrivals()
	require.Len(t, after, len(before)+1)
	require.Equal(t, before[0].id, after[len(after)-1].id)
}

// Messages for a disabled endpoint are not sent before it is enabled, and an operator is told.
func TestWhatIsSentAgainWaitsForItsEndpoint(t *testing.T) {
	w := newWorld(t)
	w.hook.answers(http.StatusGone, "")
	id := w.put("a", "ci")
	require.Error(t, w.Reconcile(t.Context(), id))
	w.hook.answers(http.StatusOK, "")
	due, held, err := w.Redeliver(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, []int{due, held})
	require.Positive(t, w.waitOf(w.Reconcile(t.Context(), id)))
	require.Len(t, w.hook.arrivals(), 1)
}

// A message that can never be sent does not disable the endpoint.
func TestAnUnsendableMessageIsGivenUpAlone(t *testing.T) {
	w := newWorld(t)
	m := message("ci")
	m.Data = json.RawMessage(`[]`)
	require.NoError(t, w.Put(t.Context(), about("a"), m))
	require.NoError(t, w.Reconcile(t.Context(), about("a")))
	require.NoError(t, w.Reconcile(t.Context(), w.put("b", "ci")))
	require.Len(t, w.hook.arrivals(), 1)
	list, err := w.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{about("a")}, list[0].GivenUp)
}

// During a rolling change of the configuration, a process may not know an endpoint
// that another one knows.
func TestAMessageForAnEndpointThatIsNotConfiguredIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	id := w.put("a", "later")
	require.Positive(t, w.waitOf(w.Reconcile(t.Context(), id)))
	list, err := w.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, "The webhook is not in the configuration.", list[0].LastError)
	w.urls["later"] = w.hook.URL
	w.clock.Advance(10 * time.Second)
	require.NoError(t, w.Reconcile(t.Context(), id))
	require.Len(t, w.hook.arrivals(), 1)
}

// Slack is away: people are told later, and nothing else waits for it.
func TestPeopleAreToldOnceSlackIsBack(t *testing.T) {
	w := newWorld(t)
	w.hook.answers(http.StatusGone, "")
	require.Error(t, w.Reconcile(t.Context(), w.put("a", "ci")))
	w.tellErr = errors.New("slack is away")
	require.ErrorIs(t, w.Reconcile(t.Context(), endpointsID), w.tellErr)
	require.Positive(t, w.waitOf(w.Reconcile(t.Context(), endpointsID)), "there is a pause")
	w.tellErr = nil
	w.clock.Advance(time.Minute)
	require.NoError(t, w.Reconcile(t.Context(), endpointsID))
	require.Len(t, w.told, 1)
}

// A receiver that was never reached, such as one with a wrong certificate, need not have its
// messages wait for the schedule once it is repaired.
func TestWhatWaitsForAnEndpointThatTookNothingYetCanBeSentAtOnce(t *testing.T) {
	w := newWorld(t)
	w.hook.answers(http.StatusInternalServerError, "")
	for _, id := range []string{w.put("a", "ci"), w.put("b", "ci")} {
		require.Error(t, w.Reconcile(t.Context(), id))
	}
	w.hook.answers(http.StatusOK, "")
	waiting, err := w.Enable(t.Context(), "claude", "ci")
	require.NoError(t, err)
	require.Equal(t, 2, waiting)
	before := len(w.hook.arrivals())
	for _, id := range []string{about("a"), about("b")} {
		require.NoError(t, w.Reconcile(t.Context(), id))
	}
	require.Len(t, w.hook.arrivals(), before+2)
}

// A request is listed as given up only until its messages are sent again.
func TestWhatIsSentAgainIsNotGivenUp(t *testing.T) {
	w := newWorld(t)
	id := w.put("a", "ci")
	givenUp := func() []string {
		list, err := w.List(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
		return list[0].GivenUp
	}
	delete(w.urls, "ci")
	for range 10 {
		if err := w.Reconcile(t.Context(), id); err != nil {
			w.clock.Advance(w.waitOf(err))
		}
	}
	require.Equal(t, []string{id}, givenUp())
	w.urls["ci"] = w.hook.URL
	_, _, err := w.Redeliver(t.Context(), id)
	require.NoError(t, err)
	require.NoError(t, w.Reconcile(t.Context(), id))
	require.Len(t, w.hook.arrivals(), 1)
	require.Empty(t, givenUp())
}

func TestWhatIsNotThereCannotBeEnabledOrSentAgain(t *testing.T) {
	w := newWorld(t)
	_, err := w.Enable(t.Context(), "claude", "ci")
	require.ErrorIs(t, err, approvals.ErrNotFound)
	_, _, err = w.Redeliver(t.Context(), about("a"))
	require.ErrorIs(t, err, approvals.ErrNotFound)
	_, _, err = w.Redeliver(t.Context(), "nonsense")
	require.ErrorIs(t, err, approvals.ErrNotFound)
}

// at is a store that does something else right after a commit.
type at struct {
	outbox.Store

	after func()
}

func (s *at) CommitTimed(ctx context.Context, id, surface string, data []byte, version int64, due time.Time) error {
	err := s.Store.CommitTimed(ctx, id, surface, data, version, due)
	if f := s.after; f != nil {
		s.after = nil
		f()
	}
	return err
}

// A message can be given up again before the operator's command has ended.
func TestAMessageThatIsGivenUpAgainMeanwhileStaysListed(t *testing.T) {
	w := newWorld(t)
	id := w.put("a", "ci")
	w.hook.answers(http.StatusOK, "")
	delete(w.urls, "ci")
	for range 10 {
		if err := w.Reconcile(t.Context(), id); err != nil {
			w.clock.Advance(w.waitOf(err))
		}
	}
	operator := w.open(&at{w.store, func() {
		for range 10 {
			if err := w.Reconcile(t.Context(), id); err != nil {
				w.clock.Advance(w.waitOf(err))
			}
		}
	}}, w.sender)
	_, _, err := operator.Redeliver(t.Context(), id)
	require.NoError(t, err)
	list, err := w.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{id}, list[0].GivenUp)
}

// before is a store that does something else before a commit.
type before struct {
	outbox.Store

	commit func(data []byte)
}

func (s before) CommitTimed(ctx context.Context, id, surface string, data []byte, version int64, due time.Time) error {
	s.commit(data)
	return s.Store.CommitTimed(ctx, id, surface, data, version, due)
}

// Nor does it matter which of the two ends first.
func TestAMessageThatIsGivenUpRightAfterItWasTakenOffTheListIsListed(t *testing.T) {
	w := newWorld(t)
	id := w.put("a", "ci")
	delete(w.urls, "ci")
	giveUp := func(o *outbox.Outbox) {
		for range 10 {
			if err := o.Reconcile(t.Context(), id); err != nil {
				w.clock.Advance(w.waitOf(err))
			}
		}
	}
	giveUp(w.Outbox)
	reached, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	wait := sync.OnceFunc(func() { close(reached); <-goOn })
	worker := w.open(before{w.store, func(data []byte) {
		if bytes.Contains(data, []byte(`"undelivered"`)) {
			wait()
		}
	}}, w.sender)
	operator := w.open(&at{w.store, func() {
		go func() { defer close(done); giveUp(worker) }()
		<-reached
	}}, w.sender)
	_, _, err := operator.Redeliver(t.Context(), id)
	close(goOn)
	<-done
	require.NoError(t, err)
	list, err := w.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{id}, list[0].GivenUp)
}
