package telemetry

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"regexp"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// slackMetrics are about calls of the Web API.
type slackMetrics struct {
	calls, limited *prometheus.CounterVec
	took           *prometheus.HistogramVec

	codes *bounded
}

func newSlackMetrics() slackMetrics {
	return slackMetrics{
		calls:   counter("slack_calls_total", "Calls of Slack's Web API, by method and code: ok, Slack's error code, or what went wrong with the request.", "method", "code"),
		limited: counter("slack_throttled_seconds_total", "How long Slack told this process to wait (Retry-After), by method.", "method"),
		took:    histogram("slack_call_duration_seconds", "How long calls of Slack's Web API took, by method.", request, "method"),
		codes:   &bounded{},
	}
}

func (x slackMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{x.calls, x.limited, x.took}
}

// Slack measures the calls of the Web API that go through the transport.
func (m *Metrics) Slack(through http.RoundTripper) http.RoundTripper {
	if m == nil {
		return through
	}
	return &slackCalls{through, m}
}

type slackCalls struct {
	through http.RoundTripper
	m       *Metrics
}

var (
	methodForm = regexp.MustCompile(`^[a-z]+(\.[a-zA-Z]+){1,3}$`)
	codeForm   = regexp.MustCompile(`^[a-z][a-z_]{0,59}$`)
)

// longestAnswer bounds what is read of an answer to find its code. The longest are pages
// of users.list, of a few MiB.
const longestAnswer = 16 << 20

// RoundTrip implements [http.RoundTripper]. It reads what Slack answers, as the
// client would, because the code is in it. What is longer than any answer is left to
// the client.
func (s *slackCalls) RoundTrip(r *http.Request) (*http.Response, error) {
	method := path.Base(r.URL.Path)
	if !methodForm.MatchString(method) {
		method = Other // an address for one answer, with secrets in it
	}
	began := s.m.now()
	resp, err := s.through.RoundTrip(r)
	code := "unreachable"
	if err == nil {
		code = s.code(method, resp)
	} else if r.Context().Err() != nil {
		code = "timeout"
	}
	s.m.slack.took.WithLabelValues(method).Observe(seconds(s.m.now().Sub(began)))
	s.m.slack.calls.WithLabelValues(method, code).Inc()
	return resp, err
}

// code is how a call ended, and leaves the body to be read.
func (s *slackCalls) code(method string, resp *http.Response) string {
	if resp.StatusCode != http.StatusOK {
		if wait, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && resp.StatusCode == http.StatusTooManyRequests {
			s.m.slack.limited.WithLabelValues(method).Add(float64(max(0, wait)))
			return "ratelimited"
		}
		return "http_" + strconv.Itoa(resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, longestAnswer+1))
	if err != nil {
		resp.Body = rest{io.MultiReader(bytes.NewReader(body), failing{err}), resp.Body}
		return "cut_off"
	}
	resp.Body = rest{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}
	if len(body) > longestAnswer {
		return "unreadable"
	}
	if bytes.HasPrefix(body, []byte(`{"ok":true`)) {
		return "ok"
	}
	var answer struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	switch err := json.Unmarshal(body, &answer); {
	case err != nil:
		return "unreadable"
	case answer.OK:
		return "ok"
	case !codeForm.MatchString(answer.Error):
		return Other
	}
	return s.m.slack.codes.label(answer.Error)
}

// rest is a body that was read.
type rest struct {
	io.Reader
	io.Closer
}

// failing ends a body as it ended on the wire.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
