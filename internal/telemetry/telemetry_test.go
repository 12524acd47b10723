package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/telemetry"
)

func newMetrics() *telemetry.Metrics {
	return telemetry.New(telemetry.Config{Version: "v1", Revision: "abc", Now: time.Now})
}

func scrape(t *testing.T, m *telemetry.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, w.Code)
	return w.Body.String()
}

// desk is a store that answers every commit with the same.
type desk struct {
	approvals.Store

	err error
}

func (d desk) CommitBatch(context.Context, approvals.BatchCommit) error { return d.err }

type runner struct {
	agentrun.Store

	err error
}

func (r runner) Commit(context.Context, agentrun.Commit) error { return r.err }

func settled(rule string) approvals.BatchCommit {
	at := time.Now()
	return approvals.BatchCommit{
		Batch:  approvals.Batch{OpenedAt: at.Add(-90 * time.Second), Approvals: []approvals.Approval{{Call: approvals.CallRef{ID: "c1"}, Rule: rule}}},
		Events: []approvals.Event{approvals.Settled{Call: "c1", Status: approvals.Denied, At: at}, approvals.Settled{Call: "external", Status: approvals.Withdrawn, At: at}},
	}
}

// What was not stored did not happen. What was stored and may be lost did.
func TestOnlyWhatIsStoredIsCounted(t *testing.T) {
	m := newMetrics()
	for _, err := range []error{approvals.ErrConflict, approvals.ErrAnswered, errors.New("redis is away"), nil, approvals.ErrNotDurable} {
		require.ErrorIs(t, m.Batches(desk{err: err}).CommitBatch(t.Context(), settled("refunds@1f2e")), err)
	}
	text := scrape(t, m)
	require.Contains(t, text, `countersign_approvals_settled_total{outcome="denied",rule="refunds"} 2`)
	require.Contains(t, text, `countersign_approval_wait_seconds_sum{outcome="denied"} 180`)
	require.NotContains(t, text, "withdrawn", "it was no approval")

	entry := agentrun.Commit{Entries: []agentrun.Entry{
		{Tool: "pay", State: agentrun.EntryStarted}, {Tool: "pay", State: agentrun.EntryFinished, Finish: agentrun.Finish{Unsure: true}},
	}}
	for _, err := range []error{approvals.ErrConflict, approvals.ErrNotDurable, nil} { // a runner repeats it until it is answered
		require.ErrorIs(t, m.Runs(runner{err: err}).Commit(t.Context(), entry), err)
	}
	require.Contains(t, scrape(t, m), `countersign_tool_calls_total{outcome="unsure",tool="pay"} 1`)
}

// However many names there are, a label has a bounded number of values: an edit of
// the policy names a new version, and a server of tools can name what it likes.
func TestLabelsAreBounded(t *testing.T) {
	m := newMetrics()
	store, calls := m.Batches(desk{}), m.Runs(runner{})
	for i := range 1000 {
		require.NoError(t, store.CommitBatch(t.Context(), settled(fmt.Sprintf("rule@%d", i))))
		require.NoError(t, calls.Commit(t.Context(), agentrun.Commit{Entries: []agentrun.Entry{{Tool: fmt.Sprintf("tool-%d", i), State: agentrun.EntryFinished}}}))
	}
	require.NoError(t, store.CommitBatch(t.Context(), settled(strings.Repeat("ü", 300)+"\xff@1")))
	text := scrape(t, m)
	require.Contains(t, text, `settled_total{outcome="denied",rule="rule"} 1000`)
	require.Contains(t, text, `rule="`+strings.Repeat("ü", 80)+`"`)
	require.Equal(t, 201, strings.Count(text, "countersign_tool_calls_total{"), "and one for all others")
	require.Contains(t, text, `countersign_tool_calls_total{outcome="unknown",tool="other"} 800`)
}

// Without metrics nothing is wrapped: what is not measured costs nothing.
func TestNothingIsWrappedWithoutMetrics(t *testing.T) {
	var m *telemetry.Metrics
	store, calls := approvals.Store(desk{}), agentrun.Store(runner{})
	require.Equal(t, store, m.Batches(store))
	require.Equal(t, calls, m.Runs(calls))
	require.Equal(t, http.DefaultTransport, m.Slack(http.DefaultTransport))
	require.Nil(t, m.Redis())
	require.NoError(t, m.Watch(telemetry.Source{}))
	m.Started("cards", time.Second)
	m.Webhook("delivered")
}

type slackAnswer func(*http.Request) (*http.Response, error)

func (s slackAnswer) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

// The code of a call is Slack's, and the client reads the same answer as without
// the metrics.
func TestCallsOfSlackAreCountedByTheirCode(t *testing.T) {
	const method = "/api/chat.update"
	for name, c := range map[string]struct {
		path, body, retry string
		status            int
		err               error
		want              string
	}{
		"a success":           {path: method, status: 200, body: `{"ok":true,"ts":"1.2"}`, want: `{code="ok",method="chat.update"} 1`},
		"spaced out":          {path: method, status: 200, body: `{ "channel": "C1", "ok": true }`, want: `{code="ok",method="chat.update"} 1`},
		"a refusal":           {path: method, status: 200, body: `{"ok":false,"error":"channel_not_found"}`, want: `{code="channel_not_found",method="chat.update"} 1`},
		"a code of another":   {path: method, status: 200, body: `{"ok":false,"error":"Oh No <script>"}`, want: `{code="other",method="chat.update"} 1`},
		"no JSON":             {path: method, status: 200, body: `<html>`, want: `{code="unreadable",method="chat.update"} 1`},
		"an outage":           {path: method, status: 503, body: `x`, want: `{code="http_503",method="chat.update"} 1`},
		"a limit":             {path: method, status: 429, retry: "30", want: `{code="ratelimited",method="chat.update"} 1`},
		"no answer":           {path: method, err: io.ErrUnexpectedEOF, want: `{code="unreachable",method="chat.update"} 1`},
		"a secret in the URL": {path: "/actions/T1/42/s3cr3t", status: 200, body: `{"ok":true}`, want: `{code="ok",method="other"} 1`},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMetrics()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://slack.com"+c.path, nil)
			resp, err := m.Slack(slackAnswer(func(*http.Request) (*http.Response, error) {
				if c.err != nil {
					return nil, c.err
				}
				return &http.Response{StatusCode: c.status, Header: http.Header{"Retry-After": {c.retry}}, Body: io.NopCloser(strings.NewReader(c.body))}, nil
			})).RoundTrip(r)
			require.ErrorIs(t, err, c.err)
			if err == nil {
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, c.body, string(body))
				require.NoError(t, resp.Body.Close())
			}
			text := scrape(t, m)
			require.Contains(t, text, "countersign_slack_calls_total"+c.want)
			require.NotContains(t, text, "s3cr3t")
			if c.retry != "" {
				require.Contains(t, text, `countersign_slack_throttled_seconds_total{method="chat.update"} 30`)
			}
		})
	}
}

// endless is a body that counts how much of it was read.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	if e.read += len(p); e.read > 64<<20 {
		return 0, errors.New("far too much was read")
	}
	copy(p, bytes.Repeat([]byte{' '}, len(p)))
	return len(p), nil
}

// A server that never stops answering is left to the client, which has a bound.
func TestAnAnswerOfSlackIsNotReadWithoutABound(t *testing.T) {
	m, body := newMetrics(), &endless{}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://slack.com/api/chat.update", nil)
	resp, err := m.Slack(slackAnswer(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body)}, nil
	})).RoundTrip(r)
	require.NoError(t, err)
	require.LessOrEqual(t, body.read, 17<<20)
	require.Contains(t, scrape(t, m), `countersign_slack_calls_total{code="unreadable",method="chat.update"} 1`)
	n, err := io.CopyN(io.Discard, resp.Body, 20<<20)
	require.NoError(t, err, "the client reads the same as without the metrics")
	require.EqualValues(t, 20<<20, n)
	require.NoError(t, resp.Body.Close())
}

// An answer that breaks off does so for the client, too.
func TestAnAnswerOfSlackThatBreaksOffIsCountedAsSuch(t *testing.T) {
	m := newMetrics()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://slack.com/api/chat.update", nil)
	resp, err := m.Slack(slackAnswer(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(io.MultiReader(strings.NewReader(`{"ok":true`), iotest.ErrReader(io.ErrUnexpectedEOF)))}, nil
	})).RoundTrip(r)
	require.NoError(t, err)
	require.Contains(t, scrape(t, m), `countersign_slack_calls_total{code="cut_off",method="chat.update"} 1`)
	got, err := io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, `{"ok":true`, string(got))
	require.NoError(t, resp.Body.Close())
}

// A handler can still stream and set deadlines, and a path that nobody serves is no
// label.
func TestRequestsAreCountedByTheirRoute(t *testing.T) {
	m := newMetrics()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/approvals/{id}", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		if err := http.NewResponseController(w).Flush(); err != nil {
			panic(err)
		}
	})
	h := m.HTTP("agents", mux)
	for _, path := range []string{"/v1/approvals/run-01-x", "/v1/approvals/run-02-y", "/wp-login.php", "/.env"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	}
	text := scrape(t, m)
	require.Contains(t, text, `_count{code="418",listener="agents",route="GET /v1/approvals/{id}"} 2`)
	require.Contains(t, text, `_count{code="404",listener="agents",route="other"} 2`)
	require.NotContains(t, text, "wp-login")
}

// A failed read is no old number, and many scrapes are one read.
func TestTheBacklogIsReadOnceForManyScrapes(t *testing.T) {
	now, reads := time.Unix(1000, 0), 0
	m := telemetry.New(telemetry.Config{Now: func() time.Time { return now }})
	err := error(nil)
	require.NoError(t, m.Watch(telemetry.Source{
		Kinds: []string{"cards"}, Ready: func(context.Context) error { return nil },
		Counts: func() map[string]map[string]int64 { return map[string]map[string]int64{"cards": {"done": 3}} },
		Weak:   func() int { return 2 },
		Busy:   func() []agentrun.Busy { return []agentrun.Busy{{Agent: "ops", Runs: 2, PutOff: 5}} },
		Backlog: func(context.Context) (telemetry.Backlog, error) {
			reads++
			return telemetry.Backlog{Waiting: 7, InDoubt: 2, OldestWaiting: time.Unix(400, 0), OldestDue: map[string]time.Time{"cards": time.Unix(990, 0)}}, err
		},
	}))
	require.Contains(t, scrape(t, m), "countersign_approvals_oldest_waiting_age_seconds 600\n")
	now = now.Add(9 * time.Second)
	text := scrape(t, m)
	require.Contains(t, text, "countersign_approvals_oldest_waiting_age_seconds 609\n", "the age is of now")
	require.Contains(t, text, `countersign_due_oldest_age_seconds{kind="cards"} 10`, "it may have begun since")
	require.Contains(t, text, `countersign_due_items_total{kind="cards",outcome="done"} 3`)
	require.Contains(t, text, "countersign_calls_in_doubt 2\n")
	require.Contains(t, text, `countersign_runs_working{agent="ops"} 2`)
	require.Contains(t, text, "countersign_redis_settings_weak 2\n")
	require.Contains(t, text, `countersign_runs_put_off_total{agent="ops"} 5`)
	require.Equal(t, 1, reads)
	now, err = now.Add(time.Second), errors.New("away")
	text = scrape(t, m)
	require.Equal(t, 2, reads)
	require.Contains(t, text, "countersign_store_up 0\n")
	require.NotContains(t, text, "countersign_approvals_waiting ")
}

// The hook passes on what Redis answers, and a missing key is no failure.
func TestAMissingKeyIsNoFailureOfRedis(t *testing.T) {
	m := newMetrics()
	for _, err := range []error{redis.Nil, errors.New("ERR broken")} {
		cmd := redis.NewStringCmd(t.Context(), "get", "secret-key")
		require.ErrorIs(t, m.Redis().ProcessHook(func(context.Context, redis.Cmder) error { return err })(t.Context(), cmd), err)
	}
	text := scrape(t, m)
	require.Contains(t, text, `countersign_redis_command_duration_seconds_count{command="get"} 2`)
	require.Contains(t, text, `countersign_redis_errors_total{command="get"} 1`)
	require.NotContains(t, text, "secret-key")
}

func TestTheNamesAreThoseThatPrometheusWants(t *testing.T) {
	m := newMetrics()
	require.NoError(t, m.Batches(desk{}).CommitBatch(t.Context(), settled("r@1")))
	m.Started("cards", 0)
	m.Webhook("delivered")
	problems, err := promlint.New(strings.NewReader(scrape(t, m))).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
}
