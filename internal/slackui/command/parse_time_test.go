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

// People write times as their clocks show them.
func TestTimesAreOfAClockOfTwelveHoursOrOf24(t *testing.T) {
	now := time.Date(2026, 3, 4, 9, 30, 0, 0, time.UTC) // a Wednesday
	for text, want := range map[string]string{
		"15:00": "03-04 15:00", "3pm": "03-04 15:00", "3 PM": "03-04 15:00", "3:15 p.m.": "03-04 15:15", "12pm": "03-04 12:00",
		"tomorrow 12am": "03-05 00:00", "monday 9am": "03-09 09:00", "friday at 11:59 pm": "03-06 23:59", "2026-12-24 8 a.m.": "12-24 08:00",
	} {
		end, sure := until(text, now)
		require.True(t, sure, text)
		require.Equal(t, want, end.Format("01-02 15:04"), text)
	}
	for _, text := range []string{"3", "friday 3", "0pm", "13pm", "15:00pm", "3:60pm", "24:00", "pm", "3 p", "3p.m", "2026-12-24 9", "noon pm"} {
		_, sure := until(text, now)
		require.False(t, sure, text)
	}
}
