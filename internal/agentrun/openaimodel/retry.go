package openaimodel

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// How long to wait before the model is asked again.
const (
	maxRetryAfter = time.Minute // of what a server may ask for
	firstBackoff  = 500 * time.Millisecond
	maxBackoff    = 15 * time.Second
)

// pause returns how long to wait after the nth attempt: as long as the server
// asked for, otherwise twice as long each time, less up to half of it so that
// those who failed together do not come back together.
func (f *failure) pause(n int) time.Duration {
	if f.after > 0 {
		return min(f.after, maxRetryAfter)
	}
	d := maxBackoff
	if n <= 5 {
		d = min(d, firstBackoff<<(n-1))
	}
	return d - rand.N(d/2) //nolint:gosec // jitter is no secret
}

// retryAfter returns how long the server asks us to wait: a number of seconds
// or a date, or as some write it a number of milliseconds. 0 means that it does
// not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if d, ok := delay(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	text := h.Get("Retry-After")
	if d, ok := delay(text, time.Second); ok {
		return d
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, at.Sub(now)), maxRetryAfter)
	}
	return 0
}

func delay(text string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(n >= 0) { // which is true of NaN, too
		return 0, false
	}
	return time.Duration(min(n*float64(unit), float64(maxRetryAfter))), true
}
