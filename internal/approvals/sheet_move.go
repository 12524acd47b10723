package approvals

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// A Submission is what the person submits on a sheet. Ticked are the places of
// the risky lines that they chose one by one, from 0. A Reason that is not
// empty replaces the one that the sheet was shown with.
type Submission struct {
	Request RequestID
	By      Principal
	Ticked  []int
	Reason  string
	At      time.Time
}

// request binds the id to what was said, see [RequestID.bind].
func (c Submission) request() RequestID {
	parts := []string{"submit", string(c.By.User), c.Reason}
	for _, i := range c.Ticked {
		parts = append(parts, strconv.Itoa(i))
	}
	return c.Request.bind(parts...)
}

// Submit returns the sheet with what was chosen. The same request again is
// answered with the sheet as it stands; any other on a sheet that is submitted
// is [ErrSettled]. Someone else than the person it was shown to is
// [ErrNotEligible], and from ExpiresAt on it is [ErrExpired]. A tick that is no
// risky line of the sheet, or a line ticked twice, is [ErrInvalid] as a whole,
// and so is a submission that chooses nothing.
func (s Sheet) Submit(c Submission) (Sheet, error) {
	if err := checkActor(c.By.User, c.At); err != nil {
		return s, err
	}
	if err := s.Check(); err != nil {
		return s, err
	}
	if err := checkReason(c.Reason); err != nil {
		return s, err
	}
	switch {
	case c.Request == "":
		return s, fmt.Errorf("%w: a request needs an id", ErrInvalid)
	case c.By.User != s.By:
		return s, fmt.Errorf("sheet %s: %w", s.ID, ErrNotEligible)
	case s.Status != SheetShown && s.Request == c.request():
		return s, nil
	case s.Status != SheetShown:
		return s, fmt.Errorf("sheet %s: %w", s.ID, ErrSettled)
	case !c.At.Before(s.ExpiresAt):
		return s, fmt.Errorf("sheet %s: %w", s.ID, ErrExpired)
	}
	next := s.moved()
	for i := range next.Lines {
		next.Lines[i].Chosen = !next.Lines[i].Risky
	}
	for _, i := range c.Ticked {
		if i < 0 || i >= len(next.Lines) || next.Lines[i].Chosen {
			return s, fmt.Errorf("%w: line %d of sheet %s is not one to tick, or ticked twice", ErrInvalid, i, s.ID)
		}
		next.Lines[i].Chosen = true
	}
	if !slices.ContainsFunc(next.Lines, func(l Line) bool { return l.Chosen }) {
		return s, fmt.Errorf("%w: nothing on sheet %s is chosen", ErrInvalid, s.ID)
	}
	next.Status, next.Request = SheetSubmitted, c.request()
	next.SubmittedAt, next.Principal = plain(c.At), c.By.plain()
	if c.Reason != "" {
		next.Reason = c.Reason
	}
	return next, nil
}

// plain is p with nothing that is shared or that does not survive storage.
func (p Principal) plain() Principal {
	p.Groups, p.GroupsAt, p.For = slices.Clone(p.Groups), plain(p.GroupsAt), slices.Clone(p.For)
	for i := range p.For {
		p.For[i].Groups, p.For[i].Until = slices.Clone(p.For[i].Groups), plain(p.For[i].Until)
	}
	return p
}

// Claim returns the sheet as held by a worker, who alone records outcomes until
// the lease ends. A sheet that someone else holds is [ErrConflict], one that
// is not submitted or already finished is [ErrSettled].
func (s Sheet) Claim(owner string, at, until time.Time) (Sheet, error) {
	if owner == "" || at.IsZero() || !until.After(at) {
		return s, fmt.Errorf("%w: a claim needs an owner and a time", ErrInvalid)
	}
	if err := s.Check(); err != nil {
		return s, err
	}
	switch {
	case s.Status != SheetSubmitted:
		return s, fmt.Errorf("sheet %s is %s: %w", s.ID, s.Status, ErrSettled)
	case s.Owner != owner && at.Before(s.LeaseEnds):
		return s, fmt.Errorf("sheet %s: a worker has it: %w", s.ID, ErrConflict)
	}
	next := s.moved()
	next.Owner, next.LeaseEnds = owner, plain(until)
	return next, nil
}

// A LineResult is the outcome of the line at this place of a sheet.
type LineResult struct {
	Line    int
	Outcome LineOutcome
	Why     Why
}

// Record returns the sheet with these outcomes, held until the lease ends or,
// if no chosen line is left, finished. Only the worker that claimed it records,
// and each chosen line gets one outcome; anything else is refused as a whole.
func (s Sheet) Record(owner string, until time.Time, results []LineResult) (Sheet, error) {
	if err := s.Check(); err != nil {
		return s, err
	}
	switch {
	case s.Status != SheetSubmitted:
		return s, fmt.Errorf("sheet %s is %s: %w", s.ID, s.Status, ErrSettled)
	case owner == "" || s.Owner != owner:
		return s, fmt.Errorf("sheet %s: another worker has it: %w", s.ID, ErrConflict)
	case len(results) == 0:
		return s, nil
	}
	next := s.moved()
	for _, r := range results {
		signed, skipped := r.Outcome == LineSigned && r.Why == "", r.Outcome == LineSkipped && r.Why != ""
		if r.Line < 0 || r.Line >= len(next.Lines) || !signed && !skipped {
			return s, fmt.Errorf("%w: line %d of sheet %s cannot be %s %s", ErrInvalid, r.Line, s.ID, r.Outcome, r.Why)
		}
		l := &next.Lines[r.Line]
		if !l.Chosen || l.Outcome != "" {
			return s, fmt.Errorf("%w: line %d of sheet %s takes no outcome", ErrInvalid, r.Line, s.ID)
		}
		l.Outcome, l.Why = r.Outcome, r.Why
	}
	if next.open() > 0 {
		next.LeaseEnds = plain(until)
		return next, nil
	}
	next.Status, next.Owner, next.LeaseEnds = SheetFinished, "", time.Time{}
	return next, nil
}

// Due returns when a worker has to look at the sheet, if ever.
func (s Sheet) Due() (time.Time, bool) {
	switch {
	case s.Status != SheetSubmitted:
		return time.Time{}, false
	case s.LeaseEnds.IsZero():
		return s.SubmittedAt, true
	}
	return s.LeaseEnds, true
}

// open is how many chosen lines have no outcome.
func (s Sheet) open() (n int) {
	for _, l := range s.Lines {
		if l.Chosen && l.Outcome == "" {
			n++
		}
	}
	return n
}
