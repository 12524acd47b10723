package policy

import (
	"slices"
	"time"
	_ "time/tzdata" // a calendar means its zone also where the system knows none
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
func newCalendar(f calendarForm, p *problems) *calendar {
	c := &calendar{zone: time.UTC, holidays: map[string]bool{}, to: 24 * time.Hour}
	switch zone, err := time.LoadLocation(f.Zone.s); {
	case !f.Zone.set():
		p.wrong(f.key("zone"), "is missing; name one such as Europe/Berlin")
	case f.Zone.s == "":
	case err != nil || f.Zone.s == "Local":
		p.wrong(f.Zone.mark, "%q is no time zone such as Europe/Berlin", f.Zone.s)
	default:
		c.zone = zone
	}
	if !f.Days.set() {
		p.wrong(f.key("days"), "is missing; name some such as [mon, tue]")
	}
	for _, d := range f.Days.items {
		i := slices.Index(weekdays, d.s)
		switch {
		case d.s == "":
		case i < 0:
			p.wrong(d.mark, "%q is no day; mon, tue, wed, thu, fri, sat and sun are", d.s)
		case c.days[i]:
			p.wrong(d.mark, "is there twice")
		default:
			c.days[i] = true
		}
	}
	from, fine := clock(f.From, p, f.key("from"))
	to, well := clock(f.To, p, f.key("to"))
	if fine && well {
		c.from, c.to = from, to
		if from >= to {
			p.wrong(f.To.mark, "is not after from")
		}
	}
	for _, h := range f.Holidays.items {
		_, err := time.Parse(time.DateOnly, h.s)
		switch {
		case h.s == "":
		case err != nil:
			p.wrong(h.mark, "%q is no date such as \"2026-12-25\"", h.s)
		case c.holidays[h.s]:
			p.wrong(h.mark, "is there twice")
		default:
			c.holidays[h.s] = true
		}
	}
	return c
}

func clock(t text, p *problems, at mark) (time.Duration, bool) {
	if !t.set() {
		p.wrong(at, "is missing; write a time such as \"09:00\"")
		return 0, false
	}
	if t.s == "24:00" {
		return 24 * time.Hour, true
	}
	v, err := time.Parse("15:04", t.s)
	if err != nil || len(t.s) != len("09:00") {
		if t.s != "" {
			p.wrong(t.mark, "%q is no time such as \"09:00\"", t.s)
		}
		return 0, false
	}
	return time.Duration(v.Hour())*time.Hour + time.Duration(v.Minute())*time.Minute, true
}

// horizon is how far a calendar looks for hours.
const horizon = 10 * 366

// add returns when so much time of the calendar has passed since at. Without a
// calendar all time counts.
func (c *calendar) add(at time.Time, d time.Duration) time.Time {
	if c == nil {
		return at.Add(d)
	}
	y, m, day := at.In(c.zone).Date()
	for i := range horizon {
		noon := time.Date(y, m, day+i, 12, 0, 0, 0, c.zone)
		if !c.days[noon.Weekday()] || c.holidays[noon.Format(time.DateOnly)] {
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
	return at // a calendar that is never open: nothing waits for ever
}

// clock is the moment at which the clocks show so much on this day.
func (c *calendar) clock(day time.Time, since time.Duration) time.Time {
	y, m, d := day.Date()
	return time.Date(y, m, d, int(since/time.Hour), int(since%time.Hour/time.Minute), 0, 0, c.zone)
}
