package bench

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// answering is a server that answers with what the request says.
func answering(t *testing.T, seen *atomic.Int64) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func requests(n int, body string) []request {
	all := make([]request, n)
	for i := range all {
		all[i] = newRequest("/", nil, []byte(body))
	}
	return all
}

func TestEveryRequestIsSentOnceAndConnectionsTakeTurnsAmongReplicas(t *testing.T) {
	var first, second atomic.Int64
	l := load{addrs: []string{answering(t, &first), answering(t, &second)}, conns: 4, want: "yes", every: time.Millisecond, now: time.Now}
	took, err := l.send(t.Context(), requests(100, "yes"))
	require.NoError(t, err)
	require.Len(t, took.each, 100)
	require.Zero(t, took.failed)
	require.EqualValues(t, 100, first.Load()+second.Load())
	require.IsNonDecreasing(t, took.each)
	require.LessOrEqual(t, took.at(0.5), took.at(0.99))
}

func TestAnAnswerWithoutWhatIsWantedHasFailed(t *testing.T) {
	var seen atomic.Int64
	l := load{addrs: []string{answering(t, &seen)}, conns: 1, want: "yes", now: time.Now}
	took, err := l.send(t.Context(), append(requests(1, "no"), requests(9, "yes")...))
	require.NoError(t, err)
	require.Equal(t, 1, took.failed)
	_, err = l.send(t.Context(), requests(10, "no"))
	require.ErrorContains(t, err, "the answer is 200 OK: no", "what most answer is no measurement")
}

// What is measured may be over before the load begins, on a slow machine or a fast bot.
func TestALoadThatIsOverAtOnceSendsOneRequest(t *testing.T) {
	over := make(chan struct{})
	close(over)
	for name, l := range map[string]load{"over": {over: over}, "no time": {most: 1}} {
		var seen atomic.Int64
		l.addrs, l.conns, l.every, l.now = []string{answering(t, &seen)}, 4, time.Millisecond, time.Now
		took, err := l.send(t.Context(), requests(10, "yes"))
		require.NoError(t, err, name)
		require.Len(t, took.each, 1, name)
		require.EqualValues(t, 1, seen.Load(), name)
	}
}
