package policy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHoursCountByTheClocksOfTheZone(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	weekdaysOnly := [7]bool{false, true, true, true, true, true, false}
	everyDay := [7]bool{true, true, true, true, true, true, true}
	office := &calendar{zone: berlin, days: weekdaysOnly, from: 9 * time.Hour, to: 17*time.Hour + 30*time.Minute, holidays: map[string]bool{"2026-12-25": true, "2026-12-24": true}}
	always := &calendar{zone: berlin, days: everyDay, to: 24 * time.Hour}
	night := &calendar{zone: berlin, days: everyDay, from: time.Hour, to: 4 * time.Hour}

	for name, c := range map[string]struct {
		of   *calendar
		from string
		d    time.Duration
		want string
	}{
		"within a day":                         {office, "2026-03-02T09:00:00+01:00", 8 * time.Hour, "2026-03-02T17:00:00+01:00"},
		"to the minute at which it shuts":      {office, "2026-03-02T16:30:00+01:00", time.Hour, "2026-03-02T17:30:00+01:00"},
		"over night":                           {office, "2026-03-02T17:00:00+01:00", time.Hour, "2026-03-03T09:30:00+01:00"},
		"from before it opens":                 {office, "2026-03-02T04:00:00+01:00", time.Hour, "2026-03-02T10:00:00+01:00"},
		"from after it shuts":                  {office, "2026-03-02T20:00:00+01:00", time.Hour, "2026-03-03T10:00:00+01:00"},
		"over a weekend":                       {office, "2026-03-06T17:00:00+01:00", time.Hour, "2026-03-09T09:30:00+01:00"},
		"over the weekend clocks go forward":   {office, "2026-03-27T17:00:00+01:00", 2 * time.Hour, "2026-03-30T10:30:00+02:00"},
		"over the weekend they go back":        {office, "2026-10-23T17:00:00+02:00", 2 * time.Hour, "2026-10-26T10:30:00+01:00"},
		"over holidays":                        {office, "2026-12-23T17:00:00+01:00", time.Hour, "2026-12-28T09:30:00+01:00"},
		"a day of March has 23 hours":          {always, "2026-03-29T00:00:00+01:00", 23 * time.Hour, "2026-03-30T00:00:00+02:00"},
		"a day of October has 25":              {always, "2026-10-25T00:00:00+02:00", 25 * time.Hour, "2026-10-26T00:00:00+01:00"},
		"a night of March is an hour shorter":  {night, "2026-03-29T00:00:00+01:00", 2*time.Hour + time.Minute, "2026-03-30T01:01:00+02:00"},
		"a night of October is longer":         {night, "2026-10-25T00:00:00+02:00", 4 * time.Hour, "2026-10-25T04:00:00+01:00"},
		"another zone asks, the office counts": {office, "2026-03-02T23:30:00-08:00", 30 * time.Minute, "2026-03-03T09:30:00+01:00"},
		"no calendar counts all time":          {nil, "2026-03-28T12:00:00+01:00", 24 * time.Hour, "2026-03-29T12:00:00+01:00"},
	} {
		t.Run(name, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, c.from)
			require.NoError(t, err)
			want, err := time.Parse(time.RFC3339, c.want)
			require.NoError(t, err)
			if name == "no calendar counts all time" {
				want = at.Add(c.d)
			}
			require.Equal(t, want.UTC(), c.of.add(at, c.d).UTC())
		})
	}
	never := &calendar{zone: berlin, to: time.Hour}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	require.Equal(t, at, never.add(at, time.Hour), "what is never open does not wait for ever")
}
