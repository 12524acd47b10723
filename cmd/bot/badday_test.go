package main

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// Slack limits, fails, performs calls and loses the replies, delivers events late,
// in another order and twice: the request comes to its end all the same, each call
// runs once, and each card tells the truth.
func TestABadDayOfSlackLosesAndDoublesNothing(t *testing.T) {
	days := 5
	if *everyStep {
		days = 100
	}
	for seed := range days {
		t.Run(fmt.Sprint("day ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newScenario(t)
				w.refuses = true
				w.begins(fault{}, 0)
				w.slack.SetFaults(slacksim.Faults{Chaos: &slacksim.Chaos{
					Seed: uint64(seed), Limited: 0.15, Failed: 0.15, LostReply: 0.05, Duplicated: 0.3, EventDelay: 5000,
				}})
				w.lives(10 * time.Minute)
				w.slack.SetFaults(slacksim.Faults{})
				w.drains()
				_, copies := w.holds(fault{})
				t.Logf("%d messages posted twice", copies)
			})
		})
	}
}

// For an hour of its own clock Slack takes no call. What people clicked before and in
// that hour counts, and when it is over everything is shown, once.
func TestAnHourWithoutSlackLosesAndDoublesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newScenario(t)
		w.begins(fault{}, 0)
		for len(w.cards()) == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		w.slack.SetFaults(slacksim.Faults{OutageMS: int(time.Hour / time.Millisecond)})
		w.decides()
		time.Sleep(time.Minute)
		require.Zero(t, w.answers(), "Slack shows nothing meanwhile")
		w.slack.Advance(time.Hour)
		w.lives(10 * time.Minute)
		w.drains()
		_, copies := w.holds(fault{})
		require.Zero(t, copies, "nothing was posted twice")
	})
}
