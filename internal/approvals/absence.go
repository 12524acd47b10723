package approvals

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// An Absence says that a person is away, and who is asked in their place. It ends
// by itself.
type Absence struct {
	User     UserID
	Delegate UserID // empty: nobody
	From     time.Time
	Until    time.Time
}

// Absences are all that are known, at most one a person, in the order of their
// names. It is a value: no method changes it.
type Absences []Absence

// The bounds of absences.
const (
	MaxAbsence = 60 * 24 * time.Hour // how long one may last
	MaxHops    = 3                   // how far a delegate who is away too may pass it on
)

// Set returns the absences with this one, which replaces an earlier one of the
// same person, and without those that are over at now. It returns [ErrAbsence]
// for an absence that is over already, lasts longer than [MaxAbsence], names the
// person themselves, or closes a circle of people who are all away at one time.
func (as Absences) Set(a Absence, now time.Time) (Absences, error) {
	a.From, a.Until = plain(a.From), plain(a.Until)
	for _, u := range []UserID{a.User, a.Delegate} {
		if !utf8.ValidString(string(u)) || a.User == "" {
			return as, fmt.Errorf("%w: %q is not a person", ErrInvalid, string(u))
		}
	}
	switch {
	case now.IsZero(), a.From.IsZero(), a.Until.IsZero(), a.From.Year() < 0, a.Until.Year() > 9999:
		return as, fmt.Errorf("%w: an absence needs its times", ErrInvalid)
	case !a.From.Before(a.Until), !now.Before(a.Until):
		return as, fmt.Errorf("%w: it is over before it begins", ErrAbsence)
	case a.Until.Sub(a.From) > MaxAbsence:
		return as, fmt.Errorf("%w: it lasts longer than %d days", ErrAbsence, int(MaxAbsence/(24*time.Hour)))
	case a.Delegate == a.User:
		return as, fmt.Errorf("%w: a person cannot be their own delegate", ErrAbsence)
	}
	next := slices.DeleteFunc(slices.Clone(as), func(b Absence) bool { return b.User == a.User || !now.Before(b.Until) })
	if next.leads(a) {
		return as, fmt.Errorf("%w: it leads in a circle, back to %q", ErrAbsence, string(a.User))
	}
	next = append(next, a)
	slices.SortFunc(next, func(a, b Absence) int { return cmp.Compare(a.User, b.User) })
	return next, nil
}

// leads reports whether following the delegates of a leads back to its own
// person at some time during it. No other circle is possible: the absences had
// none before.
func (as Absences) leads(a Absence) bool {
	user, from, until := a.Delegate, a.From, a.Until
	for range as {
		i := as.index(user)
		if i < 0 {
			return false
		}
		from, until = later(from, as[i].From), earlier(until, as[i].Until)
		if !from.Before(until) {
			return false
		}
		if user = as[i].Delegate; user == a.User {
			return true
		}
	}
	return false
}

// Back returns the absences without the one of a person who has returned.
func (as Absences) Back(user UserID) Absences {
	return slices.DeleteFunc(slices.Clone(as), func(a Absence) bool { return a.User == user })
}

// Of returns the absence of this person at this time, if they are away.
func (as Absences) Of(user UserID, at time.Time) (Absence, bool) {
	if i := as.index(user); i >= 0 && as[i].covers(at) {
		return as[i], true
	}
	return Absence{}, false
}

// A Delegation is the absence of a person, as it concerns a delegate of theirs.
// Via are the people who passed it on, from the delegate that the absent person
// named to the one who named the last delegate.
type Delegation struct {
	Absence
	Via []UserID
}

// DelegationsTo returns the delegations to this person at this time: from those
// who are away and named them, those who are away and named one of these, and
// so on, up to [MaxHops]. The nearest come first, each person comes once, and
// the person themselves never. A delegation lasts only while everyone on its
// way is away.
func (as Absences) DelegationsTo(user UserID, at time.Time) []Delegation {
	var all []Delegation
	ends := []Delegation{{Absence: Absence{User: user}}}
	for hop := range MaxHops {
		var further []Delegation
		for _, end := range ends {
			for _, a := range as {
				if a.Delegate == "" || a.Delegate != end.User || a.User == user || a.User == "" || !a.covers(at) ||
					slices.ContainsFunc(all, func(b Delegation) bool { return b.User == a.User }) {
					continue
				}
				d := Delegation{Absence: a}
				if hop > 0 {
					d.From, d.Until = later(a.From, end.From), earlier(a.Until, end.Until)
					d.Via = append([]UserID{end.User}, end.Via...)
				}
				all, further = append(all, d), append(further, d)
			}
		}
		ends = further
	}
	return all
}

func (as Absences) index(user UserID) int {
	return slices.IndexFunc(as, func(a Absence) bool { return a.User == user })
}

func (a Absence) covers(at time.Time) bool { return !at.Before(a.From) && at.Before(a.Until) }

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{b, a}, time.Time.Compare) }

func earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{b, a}, time.Time.Compare) }
