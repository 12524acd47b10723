package slackapi

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
)

// Calls that Slack limits wait and are no failures. Where one channel is limited for hours,
// the log is the only place that says why its cards do not appear.
func TestTheLogSaysOnceThatSlackLimitsCallsForLong(t *testing.T) {
	const post, look = "chat.postMessage C0OPS", "usergroups.users.list"
	for name, call := range map[string]func(*Client, error){
		post: func(a *Client, err error) {
			_ = a.throttled(t.Context(), postMessage, "C0OPS", "", usual, func() error { return err })
			require.NoError(t, a.throttled(t.Context(), postMessage, "C0ROOM", "", usual, func() error { return nil }), "another channel is not limited")
		},
		look: func(a *Client, err error) { _ = a.ask(t.Context(), look, func() error { return err }) },
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			now := time.Unix(1_800_000_000, 0)
			a := &Client{Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(&log, nil))}
			says := func(err error) { call(a, err); now = now.Add(time.Minute) }
			limited := &slack.RateLimitedError{RetryAfter: 30 * time.Second}
			for range 3 {
				for range 3 {
					says(limited)
				}
				says(nil)
			}
			says(limited)
			now = now.Add(9 * time.Hour)
			says(limited)
			says(nil)
			require.Empty(t, log.String(), "that is usual")
			for range 120 {
				says(limited)
			}
			require.Equal(t, 1, strings.Count(log.String(), "\n"), "%s", &log)
			require.Contains(t, log.String(), "level=WARN")
			require.Contains(t, log.String(), name)
			says(nil)
			says(nil)
			require.Equal(t, 2, strings.Count(log.String(), "\n"), "%s", &log)
			require.Contains(t, log.String(), "Slack takes these calls again")
			require.Contains(t, log.String(), "for=2h0m0s")
		})
	}
}
