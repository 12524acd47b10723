package approvals

import (
	"cmp"
	"errors"
	"slices"
)

// Why is the reason why a chosen line was not approved. It is stored; surfaces
// have sentences for it.
type Why string

// The reasons.
const (
	WhySettled     Why = "settled"
	WhyExpired     Why = "expired"
	WhyStale       Why = "stale" // the arguments changed since they were shown
	WhyNotEligible Why = "not eligible"
	WhyOwnRequest  Why = "own request"
	WhyOwnEdit     Why = "own edit"
	WhyOwnWords    Why = "own words"
	WhyDecided     Why = "already decided otherwise"
	WhyReason      Why = "reason needed"
	WhyGone        Why = "gone"            // there is no such batch or call any more
	WhyTakenBack   Why = "taken back"      // approved, and taken back before the sheet was finished
	WhyUnreadable  Why = "unreadable"      // the batch is stored and cannot be read
	WhyTooLate     Why = "too late"        // it could not be decided for a day
	WhyInvalid     Why = "not well formed" // the decision was refused for what it says
	WhyOther       Why = "refused"
)

// whyOf returns the word for the error that a decision was refused with.
func whyOf(err error) Why {
	for _, r := range []struct {
		is  error
		why Why
	}{
		{ErrOwnEdit, WhyOwnEdit}, // these two before ErrOwnRequest, which they are too
		{ErrOwnWords, WhyOwnWords},
		{ErrOwnRequest, WhyOwnRequest},
		{ErrSettled, WhySettled},
		{ErrExpired, WhyExpired},
		{ErrStale, WhyStale},
		{ErrNotEligible, WhyNotEligible},
		{ErrDecided, WhyDecided},
		{ErrReasonNeeded, WhyReason},
		{ErrNotFound, WhyGone},
		{ErrAnswered, WhyTakenBack},
		{ErrUnreadable, WhyUnreadable},
		{errTooLate, WhyTooLate},
		{ErrInvalid, WhyInvalid},
	} {
		if errors.Is(err, r.is) {
			return r.why
		}
	}
	return WhyOther
}

// A SheetSummary counts the lines of a sheet.
type SheetSummary struct {
	Signed    int
	Skipped   []Tally // by reason, the most frequent first
	NotChosen int
	Open      int // chosen, without an outcome yet
}

// A Tally is so many lines that were skipped for one reason.
type Tally struct {
	Why   Why
	Lines int
}

// Summary counts the lines by what became of them.
func (s Sheet) Summary() SheetSummary {
	var sum SheetSummary
	skipped := make(map[Why]int)
	for _, l := range s.Lines {
		switch {
		case !l.Chosen:
			sum.NotChosen++
		case l.Outcome == LineSigned:
			sum.Signed++
		case l.Outcome == LineSkipped:
			skipped[l.Why]++
		default:
			sum.Open++
		}
	}
	for why, n := range skipped {
		sum.Skipped = append(sum.Skipped, Tally{why, n})
	}
	slices.SortFunc(sum.Skipped, func(a, b Tally) int {
		return cmp.Or(cmp.Compare(b.Lines, a.Lines), cmp.Compare(a.Why, b.Why))
	})
	return sum
}
