package slackapi

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/slack-go/slack"
)

// UntilAnswered calls ask, which returns an error of slack-go, until Slack answers: it tries
// again, for as long as ctx lasts, while Slack cannot be reached or has troubles of its own.
// Any other error it returns at once. Each call has 15 seconds.
func UntilAnswered(ctx context.Context, log *slog.Logger, ask func(context.Context) error) error {
	const patience, longest = 15 * time.Second, 30 * time.Second
	for wait := time.Second; ; wait = min(2*wait, longest) {
		asking, cancel := context.WithTimeout(ctx, patience)
		err := ask(asking)
		cancel()
		if err == nil || !unanswered(err) || ctx.Err() != nil {
			return err
		}
		log.WarnContext(ctx, "Slack does not answer; trying again until it does", slog.Duration("wait", wait), slog.Any("err", err))
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// unanswered reports whether a call failed because of Slack or of the way to it, and not
// because of what was asked.
func unanswered(err error) bool {
	if refused, ok := errors.AsType[slack.SlackErrorResponse](err); ok {
		return slices.Contains(troubles, refused.Err)
	}
	if status, ok := errors.AsType[slack.StatusCodeError](err); ok {
		return status.Code/100 == 5 || status.Code == http.StatusTooManyRequests || status.Code == http.StatusRequestTimeout
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	_, page := errors.AsType[*json.SyntaxError](err) // of a proxy, or of an outage
	_, limited := errors.AsType[*slack.RateLimitedError](err)
	_, network := errors.AsType[*url.Error](err)
	return limited || network || page || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
