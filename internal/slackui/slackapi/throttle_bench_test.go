package slackapi

import (
	"fmt"
	"testing"
	"time"

	"github.com/slack-go/slack"
)

// BenchmarkATurnAmongManyThatWait asks for a turn while 40,000 others wait, as
// after an outage of Slack: every post of the process waits for that.
func BenchmarkATurnAmongManyThatWait(b *testing.B) {
	var p throttle
	now := time.Now()
	p.record(PostUpdate, "C0OPS", "0", usual, now, &slack.RateLimitedError{RetryAfter: time.Hour})
	for n := range 40_000 {
		_ = p.wait(PostUpdate, "C0OPS", fmt.Sprint(n), usual, now)
	}
	for b.Loop() {
		_ = p.wait(PostUpdate, "C0OPS", "7", usual, now)
	}
}
