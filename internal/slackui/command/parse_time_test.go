package command

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// In Chile and Cuba clocks are put forward at midnight, so a day has no midnight.
func TestADayWithoutMidnightIsThatDay(t *testing.T) {
	for zone, day := range map[string]string{
		"America/Santiago": "2027-09-05", "America/Havana": "2027-03-14", "Africa/Cairo": "2027-04-30", "Europe/Berlin": "2027-03-28",
	} {
		t.Run(zone, func(t *testing.T) {
			at, err := time.LoadLocation(zone)
			require.NoError(t, err)
			that, err := time.Parse(time.DateOnly, day)
			require.NoError(t, err)
			before := time.Date(that.Year(), that.Month(), that.Day()-1, 0, 30, 0, 0, at)
			for _, text := range []string{day, "tomorrow", "1 day", that.Weekday().String()} {
				end, sure := until(text, before)
				require.True(t, sure)
				require.Equal(t, day+" 23:59", end.Format("2006-01-02 15:04"), text)
			}
		})
	}
}
