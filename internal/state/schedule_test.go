package state

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

// rounds runs a schedule for a while with a round each two seconds, and returns the
// times at which each partition was asked. hears says whether the answer arrives.
func rounds(s *schedule, from, d time.Duration, hears func(n int) bool) (asked [approvals.Partitions][]time.Duration) {
	for at := from; at < from+d; at += 2 * time.Second {
		for _, n := range s.round(time.Unix(0, 0).Add(at)) {
			asked[n] = append(asked[n], at)
			if hears(n) {
				s.heard(n)
			}
		}
	}
	return asked
}

func always(int) bool { return true }

// While wake-ups arrive each partition is asked at the latest after the longest time, and
// they are spread.
func TestPartitionsAreAskedRarelyWhileWakeUpsArrive(t *testing.T) {
	s := newSchedule(25 * time.Second)
	at := map[time.Duration]int{}
	for _, asked := range rounds(s, 0, 10*time.Minute, always) {
		for i, when := range asked {
			if when > 0 {
				at[when]++
				require.LessOrEqual(t, when-asked[i-1], 26*time.Second)
			}
			if i > 1 {
				require.GreaterOrEqual(t, when-asked[i-1], 18*time.Second)
			}
		}
	}
	for when, n := range at {
		require.Less(t, n, approvals.Partitions/2, when)
	}
}

// One message that does not arrive is enough to have every partition asked in each
// round until all arrive again.
func TestAllPartitionsAreAskedWhileAWakeUpDoesNotArrive(t *testing.T) {
	s := newSchedule(25 * time.Second)
	rounds(s, 0, time.Minute, always)
	lost := rounds(s, time.Minute, time.Minute, func(n int) bool { return n != 7 })
	first := lost[7][0]
	for n, asked := range lost {
		for at := first + 2*time.Second; at < 2*time.Minute; at += 2 * time.Second {
			require.Contains(t, asked, at, n)
		}
	}
	again := 0
	for _, asked := range rounds(s, 2*time.Minute, 20*time.Second, always) {
		again += len(asked)
	}
	require.Less(t, again, 3*approvals.Partitions)
}

// A subscription that begins anew has every partition asked, whatever arrives before.
func TestAllPartitionsAreAskedAfterAReset(t *testing.T) {
	s := newSchedule(25 * time.Second)
	rounds(s, 0, time.Minute, always)
	s.reset()
	for n := range approvals.Partitions {
		s.heard(n)
	}
	require.Len(t, s.round(time.Unix(61, 0)), approvals.Partitions)
}
