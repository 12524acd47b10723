package state

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A crew has a goroutine for each function that runs, uses it again, and ends it when
// there was nothing to do for a while.
func TestACrewUsesItsGoroutinesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew()
		hold := make(chan struct{})
		wait := func() { <-hold }
		resting := func() (n int) { // it gives each of them something to do
			for {
				synctest.Wait()
				select {
				case c.next <- wait:
					n++
				default:
					return n
				}
			}
		}
		for range 5 {
			c.run(wait)
		}
		require.Zero(t, resting(), "all of them are at work")
		for range 3 {
			for range 5 {
				hold <- struct{}{}
			}
			require.Equal(t, 5, resting())
		}
		hold <- struct{}{}
		synctest.Wait()
		c.run(runtime.Goexit)
		for range 4 {
			hold <- struct{}{}
		}
		require.Equal(t, 4, resting(), "one was ended by its function")
		close(hold)
		synctest.Wait()
		time.Sleep(crewRests)
		require.Zero(t, resting())
	})
}
