package slackapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
)

// An absence is of a Slack that may not answer, on a clock of its own. Calls come back
// when they are told to.
type absence struct {
	t     *testing.T
	p     throttle
	now   time.Time
	away  bool
	calls map[string]call
	tried int
	made  []string // in their order
}

func absent(t *testing.T) *absence {
	t.Helper()
	return &absence{t: t, now: time.Unix(1_800_000_000, 0), away: true, calls: map[string]call{}}
}

// try makes a call if it has its turn.
func (a *absence) try(key string, r rank) {
	err := a.p.wait(postMessage, key, key, r, a.now)
	if err == nil {
		a.tried++
		if a.away {
			err = classify(postMessage, slack.StatusCodeError{Code: http.StatusServiceUnavailable})
		}
		a.p.record(postMessage, key, key, r, a.now, err)
		err = a.p.heard(postMessage, key, key, r, a.now, err)
	}
	if later, ok := errors.AsType[*LaterError](err); ok {
		a.calls[key] = call{r, a.now.Add(max(later.After, time.Millisecond))}
		return
	}
	require.NoError(a.t, err)
	delete(a.calls, key)
	a.made = append(a.made, key)
}

func (a *absence) pass(span time.Duration) {
	for end := a.now.Add(span); ; {
		next, at := "", end
		for key, c := range a.calls {
			if c.at.Before(at) || c.at.Equal(at) && next != "" && key < next {
				next, at = key, c.at
			}
		}
		if a.now = at; next == "" {
			return
		}
		a.try(next, a.calls[next].rank)
	}
}

// While Slack is away one call is tried at a time, and when it is back all are made in the
// order of their ranks.
func TestCallsAreMadeByTheirRankAfterAnOutage(t *testing.T) {
	const many = 100
	a := absent(t)
	for n := range many {
		a.try(fmt.Sprint("low", n), low)
		a.try(fmt.Sprint("usual", n), usual)
	}
	require.Equal(t, awayAfter, a.tried)
	a.pass(10 * time.Minute)
	require.Less(t, a.tried, 2*awayAfter+30)
	require.Empty(t, a.made)

	a.away = false
	a.pass(longestAway + 2*many*drainEvery + time.Second)
	require.Len(t, a.made, 2*many)
	for _, key := range a.made[:many] {
		require.Contains(t, key, "usual")
	}
	a.try("next", low)
	require.Equal(t, "next", a.made[2*many], "nothing waits any more")
}

// What people have just done is tried at once, and goes first when Slack is back.
func TestAnAwaitedCallIsTriedDuringAnOutage(t *testing.T) {
	a := absent(t)
	for n := range 50 {
		a.try(fmt.Sprint("usual", n), usual)
	}
	a.pass(time.Minute)
	tried := a.tried
	a.try("click", awaited)
	require.Equal(t, tried+1, a.tried)
	a.away = false
	a.try("another click", awaited)
	require.Equal(t, []string{"another click"}, a.made)
	a.pass(longestAway + time.Second)
	require.Len(t, a.made, 52)
	require.Contains(t, a.made[:3], "click")
}

// Calls that this process has given up say nothing about Slack.
func TestCallsThatWereCanceledAreNoOutage(t *testing.T) {
	a := absent(t)
	for n := range 2 * awayAfter {
		key := fmt.Sprint("usual", n)
		require.NoError(t, a.p.wait(postMessage, key, key, usual, a.now))
		require.Error(t, a.p.heard(postMessage, key, key, usual, a.now, classify(postMessage, context.Canceled)))
	}
	require.NoError(t, a.p.wait(postMessage, "another", "another", usual, a.now))
}

// A call that this process has given up leaves no turn behind, for which others would wait.
func TestACallThatWasCanceledHasNoTurn(t *testing.T) {
	a := absent(t)
	for n := range awayAfter {
		a.try(fmt.Sprint("usual", n), usual)
	}
	a.pass(longestAway)
	a.try("given up", usual)
	a.now = a.calls["given up"].at
	require.NoError(t, a.p.wait(postMessage, "given up", "given up", usual, a.now))
	what, _ := limitOf(postMessage, "given up")
	require.Contains(t, a.p.queues[everything].turns, what+" given up")
	require.Error(t, a.p.heard(postMessage, "given up", "given up", usual, a.now, classify(postMessage, context.Canceled)))
	require.NotContains(t, a.p.queues[everything].turns, what+" given up")
}

// A few calls that fail make no others wait, however often they do: the cause may be what
// they send.
func TestCallsThatFailAmongOthersAreNoOutage(t *testing.T) {
	a := absent(t)
	for range 10 * awayAfter {
		a.try("one", usual)
	}
	require.Equal(t, 10*awayAfter, a.tried)
	a.away, a.tried, a.made = false, 0, nil
	a.try("another", usual)
	require.Equal(t, []string{"another"}, a.made)

	a = absent(t)
	for n := range 10 * awayAfter {
		a.away = n%awayAfter != 0
		a.try(fmt.Sprint("usual", n), usual)
	}
	require.Equal(t, 10*awayAfter, a.tried)
	require.Len(t, a.made, 10)
}

// Work that waits for Slack is no failure and is not logged, so the log says once that it
// waits, and once that it need not wait any more.
func TestTheLogSaysOnceThatSlackIsAway(t *testing.T) {
	var log bytes.Buffer
	now := time.Unix(1_800_000_000, 0)
	a := Client{Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(&log, nil))}
	post := func(n int, err error) {
		_ = a.throttled(t.Context(), postMessage, fmt.Sprint("C", n), "", usual, func() error { return err })
	}
	for round := range 2 {
		for n := range 3 * awayAfter {
			post(n, slack.StatusCodeError{Code: http.StatusServiceUnavailable})
			now = now.Add(time.Minute)
		}
		require.Equal(t, round+1, strings.Count(log.String(), "level=WARN msg=\"no call to Slack succeeds"), "%s", &log)
		for n := range 3 {
			post(n, nil)
			now = now.Add(time.Minute)
		}
		require.Equal(t, round+1, strings.Count(log.String(), "succeed again"), "%s", &log)
	}
	require.Equal(t, 4, strings.Count(log.String(), "\n"))
}

// Where one card is all that waits, no other call fails, and the log is the only place
// that says why the card does not appear.
func TestTheLogSaysThatTheOnlyCallFails(t *testing.T) {
	var log bytes.Buffer
	now := time.Unix(1_800_000_000, 0)
	a := Client{Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(&log, nil))}
	for range awayAfter {
		require.Empty(t, log.String())
		_ = a.throttled(t.Context(), postMessage, "C1", "", usual, func() error { return slack.SlackErrorResponse{Err: "token_revoked"} })
		now = now.Add(time.Minute)
	}
	require.Contains(t, log.String(), "no call to Slack succeeds")
	require.Contains(t, log.String(), "install it again")
	require.NoError(t, a.throttled(t.Context(), postMessage, "C1", "", usual, func() error { return nil }))
	require.Contains(t, log.String(), "calls to Slack succeed again")
}
