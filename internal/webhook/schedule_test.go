package webhook_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/webhook"
)

func TestTheScheduleIsThatOfTheSpecification(t *testing.T) {
	var all []time.Duration
	var total time.Duration
	for attempt := 1; ; attempt++ {
		d, more := webhook.Delay(attempt, 0)
		if !more {
			break
		}
		soonest, _ := webhook.Delay(attempt, 1)
		require.Equal(t, d-d/10, soonest)
		all, total = append(all, d), total+d
	}
	const s, m, h = time.Second, time.Minute, time.Hour
	require.Equal(t, []time.Duration{0, 5 * s, 5 * m, 30 * m, 2 * h, 5 * h, 10 * h, 14 * h, 20 * h, 24 * h}, all)
	require.Equal(t, 75*h+35*m+5*s, total)
	for _, none := range []int{0, -1, 11} {
		_, more := webhook.Delay(none, 0)
		require.False(t, more)
	}
	for _, wild := range []float64{-5, 7} {
		d, _ := webhook.Delay(10, wild)
		require.True(t, d == 24*h || d == 24*h-24*h/10)
	}
}

var (
	start  = time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)
	failed = webhook.Outcome{Kind: webhook.Retry, Status: 500, Reason: "The receiver answered 500."}
)

func TestAMessageThatNeverArrivesEndsAfterTheSchedule(t *testing.T) {
	var a webhook.Attempts
	now, tries := start, 0
	for a.State == webhook.Waiting {
		a = a.Next(failed, now, 0)
		if tries++; a.State == webhook.Waiting {
			require.True(t, a.Due.After(now))
			now = a.Due
		}
	}
	require.Equal(t, 10, tries)
	require.Equal(t, 75*time.Hour+35*time.Minute+5*time.Second, now.Sub(start))
	require.Equal(t, webhook.Attempts{State: webhook.Undelivered, Count: 10, First: start, Last: now, LastStatus: 500, LastError: failed.Reason}, a)
	require.True(t, a.State.DisablesEndpoint())
	require.Equal(t, a, a.Next(webhook.Outcome{Kind: webhook.Delivered}, now, 0), "a final state never changes")
}

// A receiver that always asks for more time gets at most some hours more.
func TestARetryAfterCannotProlongTheScheduleForEver(t *testing.T) {
	var a webhook.Attempts
	now := start
	for a.State == webhook.Waiting {
		a = a.Next(webhook.Outcome{Kind: webhook.Retry, After: 1000 * time.Hour}, now, 0)
		if !a.Due.IsZero() {
			now = a.Due
		}
	}
	require.Equal(t, 78*time.Hour, now.Sub(start))
}

func TestWhatAnOutcomeMakesOfTheAttempts(t *testing.T) {
	one := webhook.Attempts{}.Next(failed, start, 0)
	require.Equal(t, webhook.Attempts{Count: 1, First: start, Last: start, Due: start.Add(5 * time.Second), LastStatus: 500, LastError: failed.Reason}, one)
	later := start.Add(time.Minute)
	for _, c := range []struct {
		outcome  webhook.Outcome
		jitter   float64
		want     webhook.Attempts
		disables bool
	}{
		{webhook.Outcome{Kind: webhook.Delivered, Status: 200}, 0, webhook.Attempts{State: webhook.Done, Count: 2, First: start, Last: later, LastStatus: 200, LastError: failed.Reason}, false},
		{webhook.Outcome{Kind: webhook.Gone, Status: 410, Reason: "r"}, 0, webhook.Attempts{State: webhook.Unwanted, Count: 2, First: start, Last: later, LastStatus: 410, LastError: "r"}, true},
		{webhook.Outcome{Kind: webhook.Invalid, Reason: "r"}, 0, webhook.Attempts{State: webhook.Unsendable, Count: 2, First: start, Last: later, LastError: "r"}, false},
		{webhook.Outcome{Kind: webhook.Interrupted, Reason: "r"}, 0, webhook.Attempts{Count: 1, First: start, Last: start, Due: later, LastStatus: 500, LastError: failed.Reason}, false},
		{webhook.Outcome{Kind: webhook.Retry, Reason: "r"}, 1, webhook.Attempts{Count: 2, First: start, Last: later, Due: later.Add(270 * time.Second), LastError: "r"}, false},
		{webhook.Outcome{Kind: webhook.Retry, After: 10 * time.Minute, Reason: "r"}, 1, webhook.Attempts{Count: 2, First: start, Last: later, Due: later.Add(10 * time.Minute), LastError: "r"}, false},
		{webhook.Outcome{}, 0, webhook.Attempts{Count: 2, First: start, Last: later, Due: later.Add(5 * time.Minute), LastError: failed.Reason}, false},
	} {
		got := one.Next(c.outcome, later, c.jitter)
		require.Equal(t, c.want, got, c.outcome.Kind)
		require.Equal(t, c.disables, got.State.DisablesEndpoint())
		data, err := json.Marshal(got)
		require.NoError(t, err)
		var back webhook.Attempts
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, got, back, "%s is stored", c.outcome.Kind)
	}
	require.Equal(t, 1, one.Count, "it is not changed")
}
