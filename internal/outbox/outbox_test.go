package outbox_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/outbox"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
	"github.com/countersign/countersign/internal/webhook"
)

func TestAMessageIsSentOnceAndNotPutTwice(t *testing.T) {
	w := newWorld(t)
	id := w.put("a", "ci")
	w.put("a", "ci")
	require.NoError(t, w.Reconcile(t.Context(), id))
	w.put("a", "ci")
	require.NoError(t, w.Reconcile(t.Context(), id))
	got := w.hook.arrivals()
	require.Len(t, got, 1)
	require.JSONEq(t, `{"type":"approval.settled","timestamp":"2026-03-02T09:00:00Z","data":{"id":"run-07-a"}}`, got[0].body)
	require.Zero(t, w.due(id), "it is done")
}

func TestEveryAttemptHasTheSameIDAndBytes(t *testing.T) {
	w := newWorld(t)
	w.hook.answers(http.StatusInternalServerError, "")
	id := w.put("a", "ci")
	for range 3 {
		require.Error(t, w.Reconcile(t.Context(), id))
		w.clock.Advance(w.due(id).Sub(w.clock.Now()) + time.Millisecond)
	}
	got := w.hook.arrivals()
	require.Len(t, got, 3)
	for _, a := range got[1:] {
		require.Equal(t, got[0].id, a.id)
		require.Equal(t, got[0].body, a.body)
		require.NotEqual(t, got[0].at, a.at, "the time that is signed is that of the attempt")
	}
}

// The schedule is that of Standard Webhooks, and the receiver is back after hours.
func TestAReceiverThatIsDownForHoursGetsItsMessageAfterwards(t *testing.T) {
	w := newWorld(t)
	w.hook.answers(http.StatusServiceUnavailable, "")
	id := w.put("a", "ci")
	began := w.clock.Now()
	attempts := 0
	for ; w.clock.Now().Sub(began) < 12*time.Hour; attempts++ {
		require.Positive(t, w.waitOf(w.Reconcile(t.Context(), id)))
		w.clock.Advance(w.due(id).Sub(w.clock.Now()) + time.Millisecond) // as the index has it
	}
	require.Len(t, w.hook.arrivals(), attempts)
	w.hook.answers(http.StatusOK, "")
	require.NoError(t, w.Reconcile(t.Context(), id))
	require.Len(t, w.hook.arrivals(), attempts+1)
	require.Zero(t, w.due(id))
	require.Empty(t, w.told)
}

// lease is longer than that of a claim.
const lease = time.Minute

func TestARetryWaitsAsLongAsTheReceiverAsks(t *testing.T) {
	w := newWorld(t)
	w.hook.answers(http.StatusTooManyRequests, "600")
	id, other := w.put("a", "ci"), w.put("b", "ci")
	require.Equal(t, 10*time.Minute, w.waitOf(w.Reconcile(t.Context(), id)))
	require.Equal(t, 10*time.Minute, w.waitOf(w.Reconcile(t.Context(), other)), "the others for it wait, too")
	require.Len(t, w.hook.arrivals(), 1)

	w.clock.Advance(10 * time.Minute)
	w.hook.answers(http.StatusOK, "")
	require.NoError(t, w.Reconcile(t.Context(), other))
	require.NoError(t, w.Reconcile(t.Context(), id))
	require.Len(t, w.hook.arrivals(), 3)
}

// A dying store stores nothing any more from some commit on.
type dyingStore struct {
	*state.Store
	left atomic.Int64
}

var errKilled = errors.New("killed")

func (s *dyingStore) CommitTimed(ctx context.Context, id, surface string, data []byte, version int64, due time.Time) error {
	if s.left.Add(-1) < 0 {
		return errKilled
	}
	return s.Store.CommitTimed(ctx, id, surface, data, version, due)
}

// Killed after any of its commits, with the message sent or not: another process
// sends it, under the same id.
func TestAProcessThatIsKilledLosesNothing(t *testing.T) {
	for commits := range int64(4) {
		w := newWorld(t)
		id := w.put("a", "ci")
		dying := &dyingStore{Store: w.store}
		dying.left.Store(commits)
		err := w.open(dying, w.sender).Reconcile(t.Context(), id)
		if commits < 3 {
			require.ErrorIs(t, err, errKilled)
		}
		sent := len(w.hook.arrivals())
		require.Equal(t, commits > 0, sent == 1, "it was sent once the claim was stored")
		w.clock.Advance(lease)
		require.NoError(t, w.Reconcile(t.Context(), id))
		got := w.hook.arrivals()
		for _, a := range got {
			require.Equal(t, got[0].id, a.id)
		}
		want := 1
		if commits == 1 || commits == 2 {
			want = 2
		}
		require.Len(t, got, want, "killed after %d commits", commits)
		require.Zero(t, w.due(id))
	}
}

// While one process sends, another one waits for the end of its claim.
func TestTwoReplicasSendAMessageOnce(t *testing.T) {
	w := newWorld(t)
	var second error
	id := about("a")
	first := w.open(w.store, sending(func(ctx context.Context, e webhook.Endpoint, m webhook.Message) webhook.Outcome {
		second = w.Reconcile(ctx, id)
		return w.sender.Send(ctx, e, m)
	}))
	w.put("a", "ci")
	require.NoError(t, first.Reconcile(t.Context(), id))
	require.Positive(t, w.waitOf(second))
	require.Len(t, w.hook.arrivals(), 1)

	w.serve(w.Outbox)
	w.serve(w.open(w.store, w.sender))
	for unique := range strings.SplitSeq("bcdefghijklmnopqrstuvwxyz", "") {
		w.put(unique, "ci")
	}
	statetest.Await(t, "all messages", func() bool {
		w.clock.Advance(20 * time.Millisecond) // some wait, because the endpoint has many already
		all, err := w.store.Timed(t.Context(), outbox.Surface, 7)
		return err == nil && len(all) == 0
	})
	require.Len(t, w.hook.arrivals(), 26)
}

type sending func(ctx context.Context, e webhook.Endpoint, m webhook.Message) webhook.Outcome

func (f sending) Send(ctx context.Context, e webhook.Endpoint, m webhook.Message) webhook.Outcome {
	return f(ctx, e, m)
}

// An attempt that the end of the process cuts off does not count.
func TestAnInterruptedAttemptIsMadeAgainAtOnce(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	o := w.open(w.store, sending(func(context.Context, webhook.Endpoint, webhook.Message) webhook.Outcome {
		cancel()
		return webhook.Outcome{Kind: webhook.Interrupted}
	}))
	id := w.put("a", "ci")
	require.ErrorIs(t, o.Reconcile(ctx, id), context.Canceled)
	require.False(t, w.due(id).After(w.clock.Now().Add(time.Second)))
	require.NoError(t, w.Reconcile(t.Context(), id))
	require.Len(t, w.hook.arrivals(), 1)
}

// The keys are those of the configuration at the time of the attempt.
func TestAReplacedSecretSignsBesideTheOldOne(t *testing.T) {
	w := newWorld(t)
	w.keys = []webhook.Secret{secret(t, 2), secret(t, 1)}
	id := w.put("a", "ci")
	require.NoError(t, w.Reconcile(t.Context(), id))
	w.keys = w.keys[:1]
	id = w.put("b", "ci")
	require.NoError(t, w.Reconcile(t.Context(), id))
	got := w.hook.arrivals()
	require.Equal(t, sign(got[0], 2)+" "+sign(got[0], 1), got[0].signature)
	require.Equal(t, sign(got[1], 2), got[1].signature)
}

func sign(a arrival, key byte) string {
	h := hmac.New(sha256.New, []byte(strings.Repeat(string(rune(key+'a')), 32)))
	h.Write([]byte(a.id + "." + a.at + "." + a.body))
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// The host of an endpoint has another address than it had: nothing arrives there,
// and the operator reads why.
func TestAnAddressThatIsNotAllowedIsRefusedWhenItIsDialed(t *testing.T) {
	w := newWorld(t)
	guarded, err := webhook.New(webhook.Config{PlainHosts: []string{"localhost"}, Ports: []int{w.port()}, Now: w.clock.Now})
	require.NoError(t, err)
	w.urls["ci"] = strings.Replace(w.hook.URL, "127.0.0.1", "localhost", 1)
	require.NoError(t, guarded.Check(webhook.Endpoint{URL: w.urls["ci"], Secrets: w.keys}), "a name is not looked up before it is dialed")
	id := w.put("a", "ci")
	o := w.open(w.store, guarded)
	require.Positive(t, w.waitOf(o.Reconcile(t.Context(), id)))
	require.Empty(t, w.hook.arrivals())
	list, err := o.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Contains(t, list[0].LastError, "an address that is not allowed")
}
