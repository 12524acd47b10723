package mcptool

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPausesGrowAndBeginAnewAfterARest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPauses(time.Second, 5*time.Second, time.Minute)
		for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
			p.rest()
			time.Sleep(time.Minute - 1)
			require.Equal(t, want, p.next())
			time.Sleep(time.Hour) // is no rest
		}
		p.rest()
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, want := range []time.Duration{time.Second, 2 * time.Second} {
			require.Equal(t, want, p.next())
			p.rest()
		}
	})
}
