package slackapi

import "errors"

// Soonest collects the errors of several steps and says when to try again: when the
// first of our own steps is due, or else when others have finished theirs.
type Soonest struct {
	outage, ours, others *LaterError
	failed               error
}

// Add adds the error of a step; nil is no error.
func (s *Soonest) Add(err error) {
	later, ok := errors.AsType[*LaterError](err)
	switch {
	case err == nil:
	case !ok:
		s.failed = errors.Join(s.failed, err)
	case later.Outage:
		s.outage = later
	case later.Follows:
		if s.others == nil || later.After > s.others.After {
			s.others = later
		}
	case s.ours == nil || later.After < s.ours.After:
		s.ours = later
	}
}

// Err returns the error that says when to try again, together with the failures; nil if
// no step had an error.
func (s *Soonest) Err() error {
	for _, l := range []*LaterError{s.outage, s.ours, s.others} {
		if l != nil && s.failed == nil {
			return l
		}
		if l != nil {
			return errors.Join(l, s.failed)
		}
	}
	return s.failed
}
