package main

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/state/statetest"
)

// get asks the bot itself, not Slack.
func (w *world) get(path string) (status int, body string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://"+w.addr+path, nil)
	require.NoError(w.t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(w.t, err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	return resp.StatusCode, strings.TrimSpace(string(b))
}

// pause makes Redis stop answering; the returned function ends that.
func (w *world) pause() (unpause func()) {
	w.t.Helper()
	info, err := w.redis.Info(w.t.Context(), "server").Result()
	require.NoError(w.t, err)
	m := regexp.MustCompile(`process_id:(\d+)`).FindStringSubmatch(info)
	require.NotNil(w.t, m)
	pid, err := strconv.Atoi(m[1])
	require.NoError(w.t, err)
	require.NoError(w.t, syscall.Kill(pid, syscall.SIGSTOP))
	once := sync.OnceFunc(func() { require.NoError(w.t, syscall.Kill(pid, syscall.SIGCONT)) })
	w.t.Cleanup(once)
	return once
}

// TestAClickWhileRedisIsAwayIsNotAcknowledged: Slack shows its warning, the
// same click counts once Redis is back, and it counts once.
func TestAClickWhileRedisIsAwayIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start()
	root := w.sim.ask(cleanUp, "")
	card := w.sim.await(bob, root, "the card", says("2023-q1-sales.txt", "delete_file"))
	status, body := w.get("/readyz")
	require.Equal(t, http.StatusOK, status, body)

	unpause := w.pause()
	require.NotEmpty(t, w.sim.click(bob, card, "2023-q1", "Approve").VisibleError, "an unstored click is not acknowledged")
	status, body = w.get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "redis does not answer", body)
	status, _ = w.get("/healthz")
	require.Equal(t, http.StatusOK, status, "a restart would not help")
	unpause()

	require.Empty(t, w.sim.click(bob, card, "2023-q1", "Approve").VisibleError)
	card = w.sim.await(bob, root, "one approved", func(m message) bool { return m.TS == card.TS && len(m.buttons("2023-q1")) < 3 })
	require.Equal(t, 1, strings.Count(card.words(), "Approved"))
	require.Contains(t, p.out.String(), "request failed")
}

// TestTheStartWaitsForRedis and says so, without the password.
func TestTheStartWaitsForRedis(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, v := range w.env {
		if strings.HasPrefix(v, "REDIS_URL=") {
			w.env[i] = "REDIS_URL=redis://:hush@127.0.0.1:1/0"
		}
	}
	p := w.launch()
	p.out.await(t, "Redis does not answer")
	status, _ := w.get("/healthz")
	require.Equal(t, http.StatusOK, status)
	status, body := w.get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "starting: it waits for Redis, and the log says why", body)
	_, body = w.get("/slack/events")
	require.Equal(t, "starting", body, "whom that does not concern")
	require.NoError(t, p.term(), "it can be stopped while it waits")
	require.NotContains(t, p.out.String(), "hush")
}

// While the start waits for a Redis that answers and takes no changes, the log does not say
// each time that its settings are right.
func TestTheStartSaysOnceThatTheSettingsOfRedisAreRight(t *testing.T) {
	t.Parallel()
	server := statetest.NewInstance(t)
	server.Set("maxmemory", "1")
	p, log := begun(t, "REDIS_URL=redis://"+server.Addr)
	log.await(t, `"wait":"2s"`)
	const right = "Redis keeps what redis.durability requires"
	require.NotContains(t, log.String(), right)
	server.Set("maxmemory", "0")
	log.await(t, `"msg":"listening"`)
	require.Equal(t, 1, strings.Count(log.String(), right))
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.Wait(), log.String())
}
