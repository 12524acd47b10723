package state_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// BenchmarkBulk signs 500 calls of 200 batches from one sheet. Its figures are
// in commits of one decision on the same server, which is what one click costs.
func BenchmarkBulk(b *testing.B) {
	servers(b, func(b *testing.B, c redis.UniversalClient) {
		b.Helper()
		var n, commits int64
		var submit, work, click time.Duration
		for b.Loop() {
			f := signInBulk(b, c)
			n, commits = n+1, commits+f.Commits
			submit, work, click = submit+f.Submit, work+f.Work, click+f.Click
		}
		b.ReportMetric(float64(commits)/float64(n), "commits/op")
		b.ReportMetric(float64(submit)/float64(click), "submit-in-clicks")
		b.ReportMetric(float64(work)/float64(click), "work-in-clicks")
		b.ReportMetric(float64(work.Milliseconds())/float64(n), "work-ms")
		b.ReportMetric(float64(submit.Microseconds())/float64(n), "submit-µs")
	})
}

// BenchmarkInbox reads the first page of the lists of someone with five
// groups, with few and with many open batches.
func BenchmarkInbox(b *testing.B) {
	servers(b, func(b *testing.B, c redis.UniversalClient) {
		b.Helper()
		for _, size := range []int{10, 2000, 10_000} {
			inboxPage(b, c, size)
		}
	})
}
