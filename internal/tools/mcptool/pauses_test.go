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
		for _, want := range []time.Duration{1, 2, 4, 5, 5} {
			p.rest()
			time.Sleep(time.Minute - 1)
			require.Equal(t, want*time.Second, p.next())
			time.Sleep(time.Hour) // is no rest
		}
		p.rest()
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, want := range []time.Duration{1, 2} {
			require.Equal(t, want*time.Second, p.next())
			p.rest()
		}
	})
}
