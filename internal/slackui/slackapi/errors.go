package slackapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"
)

// ErrTooMany says that a list has more entries than are read: about 20,000.
var ErrTooMany = errors.New("too many to read")

// ErrNoAnswer says that Slack answered with neither a result nor an error.
var ErrNoAnswer = errors.New("no usable answer")

// A callError is a failed call to Slack.
type callError struct {
	method string
	code   string // Slack's error code, if it sent one
	err    error
}

func (e *callError) Error() string {
	if h := hint(e.code); h != "" {
		return fmt.Sprintf("slack: %s: %v: %s", e.method, e.err, h)
	}
	return fmt.Sprintf("slack: %s: %v", e.method, e.err)
}

func (e *callError) Unwrap() error { return e.err }

// Class is what operators read of work that was given up: the method, Slack's error code
// and what to do about it. It has none of the text of the call.
func (e *callError) Class() string {
	words := []string{"slack", e.method}
	if status, ok := errors.AsType[slack.StatusCodeError](e.err); ok {
		words = append(words, fmt.Sprintf("HTTP %d", status.Code))
	}
	for _, more := range []string{e.code, hint(e.code)} {
		if more != "" {
			words = append(words, more)
		}
	}
	return strings.Join(words, ": ")
}

// hint says what to do about an error that does not go away by itself.
func hint(code string) string {
	switch code {
	case "not_in_channel":
		return "invite the app to the channel"
	case "channel_not_found":
		return "the channel is gone, or the app was never invited"
	case "is_archived":
		return "the channel is archived"
	case "invalid_auth", "not_authed", "token_expired":
		return "the bot token is wrong"
	case "token_revoked", "account_inactive":
		return "the app was uninstalled; install it again"
	case "missing_scope":
		return "add the scope to the app and install it again"
	case restricted:
		return "the workspace does not let the app post there"
	case "invalid_blocks", "invalid_arguments", "msg_blocks_too_long":
		return "this is a bug in Countersign"
	}
	return ""
}

// classify wraps an error of slack-go. A refusal that repeating the call does not
// change is a plain failure: an error code of Slack that is not passing, or an HTTP
// status that blames the request. A limit, an outage of Slack, an error of the network
// and a redirect, which is not Slack's, are a [*LaterError].
func classify(method string, err error) error {
	if err == nil {
		return nil
	}
	e := &callError{method: method, err: err}
	if limited, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		return &LaterError{After: RetryAfter(limited), Err: e}
	}
	if refused, ok := errors.AsType[slack.SlackErrorResponse](err); ok {
		e.code = refused.Err
		switch {
		case strings.HasPrefix(e.code, restricted+"_"):
			e.code = restricted // the rest says for whom or where, and is in the message
		case e.code == "is_inactive":
			e.code = "is_archived" // as chat.update says it
		}
		if slices.Contains(passing, refused.Err) {
			return &LaterError{After: WaitAfter(0), Err: e, Outage: true}
		}
		if len(refused.ResponseMetadata.Messages) > 0 && strings.HasPrefix(refused.Err, "invalid_") {
			e.err = fmt.Errorf("%w: %s", err, strings.Join(refused.ResponseMetadata.Messages, "; "))
		}
		if refused.Needed != "" {
			e.err = fmt.Errorf("%w: needs %s", err, refused.Needed)
		}
		return e
	}
	if status, ok := errors.AsType[slack.StatusCodeError](err); ok && status.Code/100 == 4 &&
		status.Code != http.StatusTooManyRequests && status.Code != http.StatusRequestTimeout {
		return e
	}
	return &LaterError{After: WaitAfter(0), Err: e, Outage: true}
}

// passing are the error codes that are not about what a call does: of Slack's own
// troubles, and of a token that is refused whatever it is used for. Work waits until they
// have passed, or the bot has another token.
var passing = slices.Concat(troubles, tokens)

// tokens are the error codes that are about the token.
var tokens = []string{"invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive"}

// troubles are the error codes that are about Slack itself.
var troubles = []string{"internal_error", "fatal_error", "service_unavailable", "request_timeout", "ratelimited", "rate_limited"}

// longestLimit bounds how long a limit of Slack is heeded. Slack names seconds; whatever
// names a day must not keep people from deciding for a day.
const longestLimit = 5 * time.Minute

// RetryAfter is how long to wait after a call that Slack has limited: as long as the
// answer says, but at least a second and at most five minutes.
func RetryAfter(limited *slack.RateLimitedError) time.Duration {
	return min(max(limited.RetryAfter, time.Second), longestLimit)
}

// WaitAfter is how long to wait after a failed call that this many failed before.
func WaitAfter(attempts int) time.Duration {
	const first, longest = 2 * time.Second, time.Minute
	return min(first<<min(attempts, 10), longest)
}

// Refused reports whether Slack refused the call with an error code that does not pass by
// itself.
func Refused(err error) bool {
	e, ok := errors.AsType[*callError](err)
	_, later := errors.AsType[*LaterError](err)
	return ok && !later && e.code != ""
}

// lasting are the error codes of questions that get no answer until someone changes the
// app or the workspace.
var lasting = []string{
	"missing_scope", "no_permission", "not_allowed_token_type", "access_denied", "team_access_not_granted",
	"plan_upgrade_required", "not_in_channel",
}

// Lasts reports whether asking again does not help, because of the app or the
// workspace.
func Lasts(err error) bool { return HasCode(err, lasting...) || errors.Is(err, ErrTooMany) }

// TokenRefused reports whether Slack refuses the token, whatever it is used for.
func TokenRefused(err error) bool { return HasCode(err, tokens...) }

// HasCode reports whether Slack refused with one of these error codes.
func HasCode(err error, codes ...string) bool {
	_, has := CodeOf(err, codes...)
	return has
}

// CodeOf returns Slack's error code, if it is one of these.
func CodeOf(err error, codes ...string) (string, bool) {
	e, ok := errors.AsType[*callError](err)
	if !ok || e.code == "" || !slices.Contains(codes, e.code) {
		return "", false
	}
	return e.code, true
}

// A LaterError says when to try again. It does not count as a failure of the work,
// however often it occurs.
type LaterError struct {
	After time.Duration
	Err   error // why

	Outage  bool // Slack did not say how long to wait, so After grows with each attempt
	Follows bool // others do the work first
}

// Error is for the log.
func (e *LaterError) Error() string {
	if e.Outage {
		return e.Err.Error() // the due index logs when it tries again
	}
	return fmt.Sprintf("again in %s: %v", e.After, e.Err)
}

// Unwrap returns the reason.
func (e *LaterError) Unwrap() error { return e.Err }

// RetryAfter tells the due index when.
func (e *LaterError) RetryAfter() time.Duration { return e.After }
