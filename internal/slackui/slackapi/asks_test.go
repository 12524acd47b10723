package slackapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
)

type inBackground struct{}

// A lookout asks one question, in the background or for a person who waits, on a clock of
// its own.
type lookout struct {
	t     *testing.T
	api   *Client
	now   time.Time
	says  error // what Slack answers
	asked int
}

func newLookout(t *testing.T) *lookout {
	t.Helper()
	l := &lookout{t: t, now: time.Unix(1_800_000_000, 0)}
	l.api = &Client{
		Now:        func() time.Time { return l.now },
		Background: func(ctx context.Context) bool { return ctx.Value(inBackground{}) != nil },
	}
	return l
}

func (l *lookout) ask(ctx context.Context, key string) error {
	_, err := Share(ctx, l.api, key, func(ctx context.Context) (string, error) {
		return "yes", l.api.ask(ctx, "users.info", func() error { l.asked++; return l.says })
	})
	l.api.Asks.Wait()
	return err
}

// While Slack does not answer, work that is done again later asks less and less often, a
// person who waits is always asked for, and the first answer ends it.
func TestAQuestionThatSlackDoesNotAnswerIsPutOff(t *testing.T) {
	l := newLookout(t)
	background := context.WithValue(t.Context(), inBackground{}, true)
	l.says = slack.StatusCodeError{Code: http.StatusServiceUnavailable}
	for _, wait := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, longestAway, longestAway} {
		before := l.asked
		require.Error(t, l.ask(background, "one"))
		require.Equal(t, before+1, l.asked)
		for range 20 {
			later, ok := errors.AsType[*LaterError](l.ask(background, "one"))
			require.True(t, ok)
			require.Equal(t, wait, later.After)
			require.False(t, later.Outage, "it says when to try again")
		}
		require.Equal(t, before+1, l.asked)
		l.now = l.now.Add(wait)
	}
	before := l.asked
	require.Error(t, l.ask(background, "another"))
	require.Equal(t, before+1, l.asked, "what is asked elsewhere may be answered")

	require.Error(t, l.ask(background, "one"))
	before = l.asked
	for range 3 {
		require.Error(t, l.ask(t.Context(), "one"))
	}
	require.Equal(t, before+3, l.asked)
	l.says = nil
	require.NoError(t, l.ask(t.Context(), "one"))
	require.NoError(t, l.ask(background, "one"), "Slack has answered a person")
}

// A limit ends when Slack said, and a refusal is an answer.
func TestALimitedQuestionIsPutOffForAsLongAsSlackSays(t *testing.T) {
	l := newLookout(t)
	background := context.WithValue(t.Context(), inBackground{}, true)
	l.says = &slack.RateLimitedError{RetryAfter: 7 * time.Second}
	for range 3 {
		require.Error(t, l.ask(background, "one"))
		later, ok := errors.AsType[*LaterError](l.ask(background, "one"))
		require.True(t, ok)
		require.Equal(t, 7*time.Second, later.After)
		l.now = l.now.Add(7 * time.Second)
	}
	require.Equal(t, 3, l.asked)
	l.says = slack.SlackErrorResponse{Err: "user_not_found"}
	for range 3 {
		require.Error(t, l.ask(background, "one"))
	}
	require.Equal(t, 6, l.asked)
}

// However many questions fail, those that may be asked again are forgotten.
func TestFewFailuresOfQuestionsAreKept(t *testing.T) {
	l := newLookout(t)
	for n := range 3 * mostFailed {
		l.api.Asks.answered(fmt.Sprint(n), l.now, &LaterError{After: time.Second})
		l.now = l.now.Add(10 * time.Millisecond)
	}
	require.LessOrEqual(t, len(l.api.Asks.failed), mostFailed)
}

// The channel of direct messages to a person is asked for like everything else.
func TestDirectMessagesAreOpenedNoMoreOftenThanSlackSays(t *testing.T) {
	l := newLookout(t)
	l.api.client = slack.New("xoxb", slack.OptionHTTPClient(&http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		l.asked++
		return &http.Response{
			StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"7"}}, Body: http.NoBody, Request: r,
		}, nil
	})}))
	for range 3 {
		for range 5 {
			_, err := l.api.OpenDirect(t.Context(), "U0BOB")
			later, ok := errors.AsType[*LaterError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, 7*time.Second, later.After)
		}
		l.now = l.now.Add(7 * time.Second)
	}
	require.Equal(t, 3, l.asked)
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
