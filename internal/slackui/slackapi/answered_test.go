package slackapi

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
)

// An outage passes; what Slack says about the app and its token does not.
func TestWhatPassesIsWaitedFor(t *testing.T) {
	refused := errors.New("connection refused")
	for _, c := range []struct {
		err   error
		waits bool
	}{
		{&url.Error{Op: "Post", URL: "https://slack.com/api/auth.test", Err: refused}, true},
		{&slack.RateLimitedError{RetryAfter: time.Second}, true},
		{slack.StatusCodeError{Code: 503, Status: "503 Service Unavailable"}, true},
		{slack.StatusCodeError{Code: 404, Status: "404 Not Found"}, false},
		{slack.SlackErrorResponse{Err: "service_unavailable"}, true},
		{slack.SlackErrorResponse{Err: "invalid_auth"}, false},
		{json.Unmarshal([]byte("<html>"), &struct{}{}), true},
		{io.EOF, true},
		{io.ErrUnexpectedEOF, true},
		{&url.Error{Op: "Post", URL: "https://slack.com/api/auth.test", Err: &tls.CertificateVerificationError{Err: refused}}, false},
		{refused, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			err := UntilAnswered(t.Context(), slog.New(slog.DiscardHandler), func(context.Context) error {
				if asked++; asked > 3 {
					return nil
				}
				return c.err
			})
			if c.waits {
				require.NoError(t, err)
				require.Equal(t, 4, asked)
			} else {
				require.Equal(t, c.err, err)
				require.Equal(t, 1, asked)
			}
		})
	}
}

func TestWaitingForSlackEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		away := &url.Error{Op: "Post", Err: errors.New("no such host")}
		err := UntilAnswered(ctx, slog.New(slog.DiscardHandler), func(context.Context) error { return away })
		require.ErrorIs(t, err, away)
		require.Error(t, ctx.Err())
	})
}
