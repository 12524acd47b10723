package policy

import (
	"slices"
	"time"
	_ "time/tzdata" // so that zones are known where the system has no database of them

	"github.com/countersign/countersign/internal/strictyaml"
)

// A calendar counts time only in some hours of some days, as the clocks of its
// zone show them: the day on which they change is shorter or longer.
type calendar struct {
	zone     *time.Location
	days     [7]bool
	from, to time.Duration // since midnight, by the clock
	holidays map[string]bool
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// newCalendar always returns a calendar; with a problem it is a stand-in.
func newCalendar(f calendarForm, p *strictyaml.Problems) *calendar {
	c := &calendar{zone: time.UTC, holidays: map[string]bool{}, to: 24 * time.Hour}
	switch zone, err := time.LoadLocation(f.Zone.Value); {
	case !f.Zone.Written():
		p.Wrong(f.Key("zone"), "is missing; write a time zone such as Europe/Berlin")
	case f.Zone.Value == "":
	case err != nil || f.Zone.Value == "Local":
		p.Wrong(f.Zone.Mark, "%q is not a time zone such as Europe/Berlin", f.Zone.Value)
	default:
		c.zone = zone
	}
	if !f.Days.Written() {
		p.Wrong(f.Key("days"), "is missing; write days such as [mon, tue]")
	}
	for _, d := range f.Days.Items {
		i := slices.Index(weekdays, d.Value)
		switch {
		case d.Value == "":
		case i < 0:
			p.Wrong(d.Mark, "%q is not a day; use mon, tue, wed, thu, fri, sat or sun", d.Value)
		case c.days[i]:
			p.Wrong(d.Mark, "is listed twice")
		default:
			c.days[i] = true
		}
	}
	from, fine := clock(f.From, p, f.Key("from"))
	to, well := clock(f.To, p, f.Key("to"))
	if fine && well {
		c.from, c.to = from, to
		if from >= to {
			p.Wrong(f.To.Mark, "is not after from")
		}
	}
	for _, h := range f.Holidays.Items {
		_, err := time.Parse(time.DateOnly, h.Value)
		switch {
		case h.Value == "":
		case err != nil:
			p.Wrong(h.Mark, "%q is not a date such as \"2026-12-25\"", h.Value)
		case c.holidays[h.Value]:
			p.Wrong(h.Mark, "is listed twice")
		default:
			c.holidays[h.Value] = true
		}
	}
	return c
}

func clock(t text, p *strictyaml.Problems, at strictyaml.Mark) (time.Duration, bool) {
	if !t.Written() {
		p.Wrong(at, "is missing; write a time such as \"09:00\"")
		return 0, false
	}
	if t.Value == "24:00" {
		return 24 * time.Hour, true
	}
	v, err := time.Parse("15:04", t.Value)
	if err != nil || len(t.Value) != len("09:00") {
		if t.Value != "" {
			p.Wrong(t.Mark, "%q is not a time such as \"09:00\"", t.Value)
		}
		return 0, false
	}
	return time.Duration(v.Hour())*time.Hour + time.Duration(v.Minute())*time.Minute, true
}

// open reports whether the moment is within the hours of the calendar.
func (c *calendar) open(at time.Time) bool {
	y, m, d := at.In(c.zone).Date()
	noon := time.Date(y, m, d, 12, 0, 0, 0, c.zone)
	return c.counts(noon) && !at.Before(c.clock(noon, c.from)) && at.Before(c.clock(noon, c.to))
}

// counts reports whether the day of this moment has hours at all.
func (c *calendar) counts(at time.Time) bool {
	return c.days[at.Weekday()] && !c.holidays[at.Format(time.DateOnly)]
}

// horizon is how far a calendar looks for hours.
const horizon = 10 * 366

// decade is how much time there is, at the least, before [horizon]; a calendar with
// problems has as much as any.
func (c *calendar) decade() time.Duration {
	days := 0
	for _, counts := range c.days {
		if counts {
			days += horizon/7 - 1
		}
	}
	if days == 0 {
		return MaxWithin
	}
	return time.Duration(max(days-len(c.holidays), 0)) * (c.to - c.from)
}

// add returns when so much time of the calendar has passed since at. Without a
// calendar all time counts.
func (c *calendar) add(at time.Time, d time.Duration) time.Time {
	if c == nil {
		return at.Add(d)
	}
	y, m, day := at.In(c.zone).Date()
	for i := range horizon {
		noon := time.Date(y, m, day+i, 12, 0, 0, 0, c.zone)
		if !c.counts(noon) {
			continue
		}
		open, shut := c.clock(noon, c.from), c.clock(noon, c.to)
		if at.After(open) {
			open = at
		}
		if !shut.After(open) {
			continue
		}
		if left := shut.Sub(open); d > left {
			d -= left
			continue
		}
		return open.Add(d).UTC()
	}
	return at // a calendar that is never open must not make a call wait for ever
}

// clock is the moment at which the clocks show so much on this day.
func (c *calendar) clock(day time.Time, since time.Duration) time.Time {
	return clockOf(day, since, c.zone)
}

// clockOf is the moment at which the clocks of a zone show so much on this day. A
// time that they skip is when they are moved, or as much later.
func clockOf(day time.Time, since time.Duration, zone *time.Location) time.Time {
	y, m, d := day.Date()
	show := func(zone *time.Location) time.Time {
		return time.Date(y, m, d, int(since/time.Hour), int(since%time.Hour/time.Minute), 0, 0, zone)
	}
	at := show(zone)
	_, offset := at.Zone()
	// Of a time that is skipped, Date may return one before that.
	if early := show(time.UTC).Sub(at.Add(time.Duration(offset) * time.Second)); early > 0 {
		at = at.Add(early)
	}
	return at
}
