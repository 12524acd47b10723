package telemetry

import (
	"net/http"
	"strconv"
	"time"
)

// HTTP measures a handler. The routes are the patterns of the multiplexers that the
// handler consists of; what no pattern matches is [Other].
func (m *Metrics) HTTP(listener string, h http.Handler) http.Handler {
	if m == nil {
		return h
	}
	inFlight := m.inFlight.WithLabelValues(listener)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inFlight.Inc()
		defer inFlight.Dec()
		began := m.now()
		a := &answered{ResponseWriter: w, code: http.StatusOK}
		defer func() {
			route := r.Pattern
			if route == "" || route == "/" {
				route = Other
			}
			m.http.WithLabelValues(listener, route, strconv.Itoa(a.code)).Observe(seconds(m.now().Sub(began)))
		}()
		h.ServeHTTP(a, r)
	})
}

// answered remembers the status of an answer.
type answered struct {
	http.ResponseWriter

	code int
}

// WriteHeader implements [http.ResponseWriter].
func (a *answered) WriteHeader(code int) {
	a.code = code
	a.ResponseWriter.WriteHeader(code)
}

// Unwrap is for [http.ResponseController].
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Envelope measures what came from Slack on a connection in Socket Mode, as the request
// that it would be over HTTP.
func (m *Metrics) Envelope(path string, code int, took time.Duration) {
	if m != nil {
		m.http.WithLabelValues("slack", path, strconv.Itoa(code)).Observe(seconds(took))
	}
}
