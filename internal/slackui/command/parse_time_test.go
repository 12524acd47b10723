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

// In Chile, Egypt and Lebanon clocks are put back at midnight, so the last hour of a day comes twice.
func TestADayWithTwoLastHoursEndsWithTheSecond(t *testing.T) {
	for zone, day := range map[string]string{
		"America/Santiago": "2027-04-03", "Africa/Cairo": "2027-10-28", "Asia/Beirut": "2027-10-30",
	} {
		t.Run(zone, func(t *testing.T) {
			at, err := time.LoadLocation(zone)
			require.NoError(t, err)
			that, err := time.ParseInLocation(time.DateOnly, day, at)
			require.NoError(t, err)
			end, sure := until(day, that.AddDate(0, 0, -1))
			require.True(t, sure)
			require.Equal(t, day+" 23:59", end.Format("2006-01-02 15:04"))
			require.Equal(t, that.AddDate(0, 0, 1).Day(), end.Add(time.Minute).Day())
		})
	}
}
