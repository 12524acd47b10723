package httpapi_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/httpapi"
)

// many opens connections that are held, without a goroutine of their own.
func (w *world) many(n int, path string) []net.Conn {
	w.Helper()
	var all []net.Conn
	for range n {
		c, err := new(net.Dialer).DialContext(w.Context(), "tcp", w.server.Listener.Addr().String())
		require.NoError(w, err)
		w.Cleanup(func() { _ = c.Close() })
		_, err = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", path, claudeToken)
		require.NoError(w, err)
		all = append(all, c)
	}
	return all
}

// used is the memory of the heap and the stacks, after what is garbage is gone.
func used() (bytes, goroutines int) {
	for range 8 { // each halves the stacks that were deeper than they are
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapInuse + m.StackInuse), runtime.NumGoroutine()
}

// Long polls and streams cost the goroutines that net/http
// has for a connection, the handler's and the one that notices when the client
// leaves, and no subscription of their own. There are 100 of each in a test run;
// HELD=1000 measures.
func TestManyPollsAndStreamsAtOnce(t *testing.T) {
	n := 100
	if s := os.Getenv("HELD"); s != "" {
		var err error
		n, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	w := newWorld(t, func(h *httpapi.Config) { h.Holds = 2 * n })
	q := w.post(oneCall)
	memory, goroutines := used()
	polls := w.many(n, "/v1/approvals/"+string(q.ID)+"?wait=55s")
	w.held(n)
	afterPolls, _ := used()
	streams := w.many(n, "/v1/events")
	w.held(2 * n)
	afterStreams, all := used()
	t.Logf("memory of a long poll %.1f KiB, of a stream %.1f KiB; %.2f goroutines for each", float64(afterPolls-memory)/float64(n)/1024, float64(afterStreams-afterPolls)/float64(n)/1024, float64(all-goroutines)/2/float64(n))
	require.LessOrEqual(t, all-goroutines, 2*2*n+50)
	subscribed, err := redisServer.Do(t.Context(), "client", "list", "type", "pubsub").Text()
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(subscribed, "\n"), 20, "other tests have theirs")

	w.decide(q.ID, "c1", approvals.Approve, "")
	for _, c := range polls {
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.StatusCode)
		require.NoError(t, answer.Body.Close())
	}
	for _, c := range streams {
		found := false
		for lines := bufio.NewScanner(c); !found && lines.Scan(); {
			found = strings.Contains(lines.Text(), "approval.settled")
		}
		require.True(t, found)
	}
}
