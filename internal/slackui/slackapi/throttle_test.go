package slackapi

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
)

// A line is of updates that come back when they are told to, on a clock of its own.
type line struct {
	t     *testing.T
	p     throttle
	now   time.Time
	calls map[string]call
	made  []string // in their order
	when  map[string]time.Time
}

type call struct {
	rank rank
	at   time.Time // when it comes back
}

// limited returns a line in which so many updates of the rank wait after Slack has
// limited them.
func limited(t *testing.T, many int, r rank) *line {
	t.Helper()
	l := &line{t: t, now: time.Unix(1_800_000_000, 0), calls: map[string]call{}, when: map[string]time.Time{}}
	l.p.record(PostUpdate, "C0OPS", "first", usual, l.now, &slack.RateLimitedError{RetryAfter: time.Second})
	for n := range many {
		l.ask(fmt.Sprint("other", n), r)
	}
	return l
}

// ask asks for a turn, and makes the call if it is its turn.
func (l *line) ask(key string, r rank) {
	err := l.p.wait(PostUpdate, "C0OPS", key, r, l.now)
	if later, ok := errors.AsType[*LaterError](err); ok {
		l.calls[key] = call{r, l.now.Add(max(later.After, 10*time.Millisecond))}
		return
	}
	require.NoError(l.t, err)
	l.p.record(PostUpdate, "C0OPS", key, r, l.now, nil)
	delete(l.calls, key)
	l.made, l.when[key] = append(l.made, key), l.now
}

// pass lets the time pass, and returns how many calls were made.
func (l *line) pass(span time.Duration) int {
	before, end := len(l.made), l.now.Add(span)
	for {
		next, at := "", end
		for key, c := range l.calls {
			if c.at.Before(at) || c.at.Equal(at) && next != "" && key < next {
				next, at = key, c.at
			}
		}
		if next == "" {
			l.now = end
			return len(l.made) - before
		}
		l.now = at
		l.ask(next, l.calls[next].rank)
	}
}

// What someone has just clicked on is updated next, before hundreds that wait, and all
// of those are updated within Slack's limit.
func TestAnAwaitedUpdateGoesBeforeThoseThatWait(t *testing.T) {
	const many = 300
	for name, of := range map[string]rank{"decided": usual, "still waiting": low} {
		t.Run(name, func(t *testing.T) {
			l := limited(t, many, of)
			l.pass(30 * time.Second)
			for n := range 3 {
				l.ask(fmt.Sprint("click", n), awaited)
			}
			l.pass(6 * time.Second)
			for n := range 3 {
				require.Contains(t, l.when, fmt.Sprint("click", n))
			}
			for minutes := 0; len(l.calls) > 0; minutes++ {
				require.LessOrEqual(t, l.pass(time.Minute), 51)
				require.Less(t, minutes, 30)
			}
			require.Len(t, l.made, many+3)
		})
	}
}

// However many updates are awaited, one in four is another.
func TestAwaitedUpdatesStarveNoOther(t *testing.T) {
	const many = 60
	l := limited(t, many, usual)
	l.pass(10 * time.Second)
	before := len(l.made)
	for n := range 600 {
		l.ask(fmt.Sprint("click", n), awaited)
	}
	made := l.pass(2 * time.Minute)
	require.LessOrEqual(t, made, 102)
	others := 0
	for _, key := range l.made[before:] {
		if key[0] == 'o' {
			others++
		}
	}
	require.InDelta(t, made/4, others, 3)
}

// Whatever time Slack names, calls are tried again within minutes, and not at once.
func TestALimitIsHeededWithinReason(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for named, waits := range map[time.Duration]time.Duration{
		-time.Second: time.Second, 0: time.Second, 7 * time.Second: 7 * time.Second, 24 * time.Hour: 5 * time.Minute,
	} {
		limited := &slack.RateLimitedError{RetryAfter: named}
		var later *LaterError
		require.ErrorAs(t, classify(PostUpdate, limited), &later)
		require.Equal(t, waits, later.After)

		var p throttle
		p.record(PostUpdate, "C0OPS", "first", usual, now, limited)
		require.ErrorAs(t, p.wait(PostUpdate, "C0OPS", "first", usual, now), &later)
		require.Equal(t, waits, later.After)

		a := Client{Now: func() time.Time { return now }}
		require.ErrorAs(t, a.ask(t.Context(), "users.info", func() error { return limited }), &later)
		require.Equal(t, waits, later.After)
		require.ErrorAs(t, a.ask(t.Context(), "users.info", func() error { return nil }), &later)
		require.Equal(t, waits, later.After)
	}
}
