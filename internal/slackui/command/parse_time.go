package command

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	lasting  = regexp.MustCompile(`^(\d{1,4}) ?(m|min|minutes?|h|hours?|d|days?|w|weeks?)$`)
	clocked  = regexp.MustCompile(`^(?:(.*?) ?(?:at )?)?(\d{1,2})(?::(\d{2}))?(?: ?([ap])(?:m|\.m\.))?$`)
	isoDate  = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)
	weekdays = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}
)

// until reads the end of an absence as a person writes it, in the time zone of now:
// "friday", "tomorrow", "2026-12-24", each with a time after it or meaning the
// end of that day; "15:00"; "3pm"; "3 days", which is the end of the third; "2h". It
// may not be clear when that is.
func until(text string, now time.Time) (end time.Time, sure bool) {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	if m := lasting.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1]) // at most four digits
		switch m[2][0] {
		case 'm':
			return now.Add(time.Duration(n) * time.Minute), true
		case 'h':
			return now.Add(time.Duration(n) * time.Hour), true
		case 'w':
			n *= 7
		}
		return endOf(noonOf(now, n)), true
	}
	if m := clocked.FindStringSubmatch(text); m != nil && m[3]+m[4] != "" {
		hour, minute, ok := timeOf(m[2], m[3], m[4])
		day := now
		if m[1] != "" && ok {
			day, ok = dayOf(m[1], now)
		}
		if !ok {
			return time.Time{}, false
		}
		return time.Date(day.Year(), day.Month(), day.Day(), hour, minute, 0, 0, day.Location()), true
	}
	day, ok := dayOf(text, now)
	if !ok {
		return time.Time{}, false
	}
	return endOf(day), true
}

// timeOf is the time that a clock of 12 hours shows if half is "a" or "p", and else one of 24.
func timeOf(hours, minutes, half string) (hour, minute int, ok bool) {
	hour, _ = strconv.Atoi(hours) // two digits
	minute, _ = strconv.Atoi(minutes)
	if half == "" {
		return hour, minute, hour < 24 && minute < 60
	}
	ok = hour >= 1 && hour <= 12 && minute < 60
	if hour %= 12; half == "p" {
		hour += 12
	}
	return hour, minute, ok
}

// dayOf is the day that is meant; a weekday is the next one, never today.
func dayOf(text string, now time.Time) (time.Time, bool) {
	switch text {
	case "today":
		return now, true
	case "tomorrow":
		return noonOf(now, 1), true
	}
	if isoDate.MatchString(text) {
		day, err := time.Parse(time.DateOnly, text)
		return time.Date(day.Year(), day.Month(), day.Day(), 12, 0, 0, 0, now.Location()), err == nil
	}
	i := slices.IndexFunc(weekdays, func(d string) bool { return text == d || text == d[:3] })
	if i < 0 {
		return time.Time{}, false
	}
	ahead := (i - int(now.Weekday()) + 7) % 7
	if ahead == 0 {
		ahead = 7
	}
	return noonOf(now, ahead), true
}

// noonOf is noon of the day so many days later. Where clocks are put forward at midnight,
// a time soon after it may be one of the day before.
func noonOf(now time.Time, days int) time.Time {
	return time.Date(now.Year(), now.Month(), now.Day()+days, 12, 0, 0, 0, now.Location())
}

// endOf is the last minute of the day: midnight would read as the day after. Where clocks
// are put back at midnight, that minute comes twice, and the second is meant.
func endOf(day time.Time) time.Time {
	end := time.Date(day.Year(), day.Month(), day.Day(), 23, 59, 0, 0, day.Location())
	if again := end.Add(time.Hour); again.Day() == end.Day() {
		return again
	}
	return end
}
