package main

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/slacksim"
)

// scrape returns what the bot's second listener answers.
func scrape(t *testing.T, b *bot, profiles bool, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	b.operations(profiles).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

// series are the lines of a scrape that begin with the name.
func series(text, name string) string {
	return strings.Join(regexp.MustCompile(`(?m)^`+name+`[ {_].*$`).FindAllString(text, -1), "\n")
}

// One approval, from the mention to the effect, is in the metrics, and nothing of
// its arguments, people or ids is.
func TestOneApprovalIsInTheMetrics(t *testing.T) {
	t.Parallel()
	f := deferral(t, "metrics: {listen: \"127.0.0.1:9090\"}\n")
	_, text := scrape(t, f.b, false, "/metrics")
	require.Contains(t, text, "countersign_approvals_waiting 1\n")
	require.Contains(t, text, `countersign_approvals_opened_total{agent="ops",rule="default"} 1`)
	require.NotContains(t, text, "countersign_approvals_oldest_waiting_age_seconds 0\n")

	f.approves()
	_, text = scrape(t, f.b, false, "/metrics")
	for _, want := range []string{
		`countersign_approvals_settled_total{outcome="approved",rule="default"} 1`,
		`countersign_decisions_total{verdict="approve"} 1`,
		`countersign_approval_wait_seconds_count{outcome="approved"} 1`,
		`countersign_runs_total{agent="ops",status="deferred"} 1`,
		`countersign_runs_total{agent="ops",status="completed"} 1`,
		`countersign_tool_calls_total{outcome="failed",tool="delete_file"} 1`, // there is no such file
		`countersign_approved_calls_total{state="failed"} 1`,
		`countersign_model_requests_total{model="alpha",outcome="ok"} 2`,
		`countersign_slack_calls_total{code="ok",method="chat.postMessage"}`,
		`countersign_http_request_duration_seconds_count{code="200",listener="slack",route="/slack/interactivity"} 1`,
		`countersign_due_schedule_to_start_seconds_count{kind="cards"}`,
		`countersign_due_duration_seconds_count{kind="resumes",outcome="ok"}`,
		`countersign_due_items_total{kind="runs",outcome="done"}`,
		`countersign_due_parked{kind="cards"} 0`,
		`countersign_redis_command_duration_seconds_count{command="evalsha"}`,
		"countersign_store_up 1\n", "countersign_ready 1\n", "countersign_runs_parked 0\n",
		`countersign_build_info{goversion="go1.`,
		"go_goroutines ", "process_start_time_seconds ",
	} {
		require.Contains(t, text, want)
	}
	for _, foreign := range []string{"a.txt", string(f.id), bob, alice, f.root, "xoxb", "response_url"} {
		require.NotContains(t, text, foreign)
	}

	promtool, err := exec.LookPath("promtool")
	require.NoError(t, err, "install it with make deps")
	lint := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	lint.Stdin = strings.NewReader(text)
	said, err := lint.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Empty(t, string(said))
}

// Profiles tell what the process has in its memory, so they are served only if the
// configuration says so.
func TestProfilesAreServedOnlyIfTheFileSaysSo(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	i.text += "metrics: {listen: \"127.0.0.1:9090\"}\n"
	b := i.bot()
	code, _ := scrape(t, b, false, "/debug/pprof/")
	require.Equal(t, http.StatusNotFound, code)
	code, _ = scrape(t, b, true, "/debug/pprof/goroutine?debug=1")
	require.Equal(t, http.StatusOK, code)
	code, _ = scrape(t, b, true, "/readyz")
	require.Equal(t, http.StatusNotFound, code, "each listener has its own")
}

// A page of a browser on this machine could give its own name the address of the
// listener, and read what it serves.
func TestMetricsOnLoopbackAreServedOnlyUnderTheNamesOfTheListener(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	i.text += "metrics: {listen: \"127.0.0.1:9090\"}\n"
	b := i.bot()
	m, err := b.serveMetrics(t.Context(), config.Config{Metrics: config.Metrics{Listen: "127.0.0.1:0"}, HTTP: config.HTTP{Hosts: []string{"ops.example"}}})
	require.NoError(t, err)
	defer m.close()
	s := httptest.NewServer(m.Handler)
	defer s.Close()
	for host, want := range map[string]int{"": 200, "localhost:9090": 200, "ops.example": 200, "evil.example": 421} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/metrics", nil)
		require.NoError(t, err)
		r.Host = host
		got, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, got.Body.Close())
		require.Equal(t, want, got.StatusCode, host)
	}
}

// Without metrics.listen there is no listener and nothing is measured.
func TestNothingIsMeasuredUnlessTheFileSaysSo(t *testing.T) {
	t.Parallel()
	b := newInstallation(t, slacksim.Config{}).bot()
	require.Nil(t, b.metrics)
	s, err := b.serveMetrics(t.Context(), config.Config{})
	require.NoError(t, err)
	require.Nil(t, s)
	s.close()
}

// If Redis does not answer, the metrics of the process are there all the same.
func TestAScrapeSaysThatRedisIsAway(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	i.text += "metrics: {listen: \"127.0.0.1:9090\"}\n"
	b := i.bot()
	i.redis.SetError("LOADING away")
	code, text := scrape(t, b, false, "/metrics")
	i.redis.SetError("")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, text, "countersign_store_up 0\n")
	require.Contains(t, text, "countersign_ready 0\n")
	require.Empty(t, series(text, "countersign_approvals_waiting"), "an old number would look like a good one")
	require.Regexp(t, `countersign_redis_errors_total\{command="pipeline"\} [1-9]`, text)
}
