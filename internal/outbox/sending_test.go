package outbox_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/outbox"
	"github.com/countersign/countersign/internal/webhook"
)

// A stuck sender does not come back from the endpoints with this path until it is let go.
type stuck struct {
	outbox.Sender

	path  string
	sends chan struct{}
	until chan struct{}
}

func (s stuck) Send(ctx context.Context, e webhook.Endpoint, m webhook.Message) webhook.Outcome {
	if strings.HasSuffix(e.URL, s.path) {
		s.sends <- struct{}{}
		<-s.until
	}
	return s.Sender.Send(ctx, e, m)
}

// 16 workers send the messages for all endpoints. A receiver that takes its 20 s
// for each holds half of them.
func TestAReceiverThatDoesNotAnswerHoldsNobodyElseUp(t *testing.T) {
	w := newWorld(t)
	w.urls["slow"], w.urls["ci"] = w.hook.URL+"/slow", w.hook.URL
	s := stuck{w.sender, "/slow", make(chan struct{}, 32), make(chan struct{})}
	o := w.open(w.store, s)
	var working sync.WaitGroup
	for i := range 8 {
		id := w.put(fmt.Sprint("slow", i), "slow")
		working.Go(func() { _ = o.Reconcile(t.Context(), id) })
	}
	for range 8 {
		<-s.sends
	}
	late := w.put("late", "slow")
	require.Equal(t, time.Second, w.waitOf(o.Reconcile(t.Context(), late)), "it waits, and no worker with it")
	require.NoError(t, o.Reconcile(t.Context(), w.put("a", "ci")))
	require.Len(t, w.hook.arrivals(), 1)

	close(s.until)
	working.Wait()
	require.NoError(t, o.Reconcile(t.Context(), late))
	require.Len(t, w.hook.arrivals(), 10, "and none was lost")
}

// begins has a worker take up a message, and reports whether it is being sent, or waits
// because its endpoint has as many workers as it may.
func (w *world) begins(o *outbox.Outbox, s stuck, id string, working *sync.WaitGroup) bool {
	w.Helper()
	waits := make(chan error, 1)
	working.Go(func() { waits <- o.Reconcile(w.Context(), id) })
	select {
	case <-s.sends:
		return true
	case err := <-waits:
		require.Equal(w, time.Second, w.waitOf(err))
		return false
	}
}

func TestSeveralReceiversThatDoNotAnswerHoldNobodyElseUp(t *testing.T) {
	w := newWorld(t)
	s := stuck{w.sender, "/slow", make(chan struct{}), make(chan struct{})}
	o := w.open(w.store, s)
	var working sync.WaitGroup
	sending := 0
	for _, name := range []string{"a", "b", "c", "d"} {
		w.urls[name] = w.hook.URL + "/" + name + "/slow"
		for i := range 8 {
			if w.begins(o, s, w.put(fmt.Sprint(name, i), name), &working) {
				sending++
			}
		}
	}
	require.Less(t, sending, 16)
	require.NoError(t, o.Reconcile(t.Context(), w.put("late", "ci")))
	require.Len(t, w.hook.arrivals(), 1)
	close(s.until)
	working.Wait()
	require.Len(t, w.hook.arrivals(), 1+sending)
}

// However many receivers do not answer, once that is known of them, half of the workers are left
// for the others.
func TestReceiversThatDidNotAnswerLeaveWorkersForTheOthers(t *testing.T) {
	w := newWorld(t)
	s := stuck{w.sender, "/slow", make(chan struct{}), make(chan struct{})}
	o := w.open(w.store, s)
	w.hook.answers(500, "")
	for i := range 20 {
		name := fmt.Sprint("slow", i)
		w.urls[name] = w.hook.URL + "/fails"
		require.Error(t, o.Reconcile(t.Context(), w.put("first"+name, name)))
		w.urls[name] = w.hook.URL + "/slow"
	}
	var working sync.WaitGroup
	sending := 0
	for i := range 20 {
		if w.begins(o, s, w.put(fmt.Sprint("then", i), fmt.Sprint("slow", i)), &working) {
			sending++
		}
	}
	require.Equal(t, 8, sending)
	w.hook.answers(200, "")
	require.NoError(t, o.Reconcile(t.Context(), w.put("late", "ci")))
	close(s.until)
	working.Wait()
	w.urls["slow0"] = w.hook.URL
	require.NoError(t, o.Reconcile(t.Context(), w.put("again", "slow0")), "one that works again has its share again")
}

// What is counted is counted down, however an attempt ends.
func TestMessagesThatFailDoNotUseTheirEndpointUp(t *testing.T) {
	w := newWorld(t)
	w.hook.answers(500, "")
	for i := range 20 {
		require.NotEqual(t, time.Second, w.waitOf(w.Reconcile(t.Context(), w.put(fmt.Sprint("m", i), "ci"))))
	}
	dying := &dyingStore{Store: w.store}
	o := w.open(dying, w.sender)
	for i := range 20 {
		require.ErrorIs(t, o.Reconcile(t.Context(), w.put(fmt.Sprint("d", i), "ci")), errKilled)
	}
	dying.left.Store(100)
	w.hook.answers(200, "")
	require.NoError(t, o.Reconcile(t.Context(), w.put("e", "ci")))
}
