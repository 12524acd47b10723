package approvals

import (
	"errors"
	"fmt"
)

// What callers branch on. Everything else is wrapped with what we were doing.
var (
	// ErrNotFound: there is no such batch, call or document.
	ErrNotFound = errors.New("not found")
	// ErrUnreadable: the document is there and cannot be understood.
	ErrUnreadable = errors.New("unreadable")
	// ErrConflict: the document moved on since it was read. Read it again.
	ErrConflict = errors.New("changed meanwhile")
	// ErrNotDurable: the change is stored, and may still be lost with the machine
	// that stored it. Nobody may be told that it counts; the same request may be
	// made again.
	ErrNotDurable = errors.New("not known to be durable")
	// ErrSettled: the call has its outcome; it never moves again.
	ErrSettled = errors.New("already settled")
	// ErrExpired: the deadline has passed, swept or not.
	ErrExpired = errors.New("deadline passed")
	// ErrNotYet: an expiry or a climb before anything is due.
	ErrNotYet = errors.New("nothing is due yet")
	// ErrStale: the decision is about other arguments than the current ones.
	ErrStale = errors.New("arguments changed since they were shown")
	// ErrNotEligible: the person is in no quorum of the call.
	ErrNotEligible = errors.New("not an approver of this call")
	// ErrOwnRequest: the person asked for the call and may not approve it.
	ErrOwnRequest = errors.New("requesters cannot approve their own call")
	// ErrOwnEdit: the person amended the arguments and may not approve them. It is
	// an ErrOwnRequest too: it was they who asked for these arguments.
	ErrOwnEdit = fmt.Errorf("%w: arguments changed by the same person", ErrOwnRequest)
	// ErrOwnWords: the model had been sent words of this person when it made the
	// call, so they may not approve it. It is an ErrOwnRequest too.
	ErrOwnWords = fmt.Errorf("%w: the call follows words of the same person", ErrOwnRequest)
	// ErrDenied: whoever asked for the call cannot change it while somebody else's
	// denial stands: that would wipe it away.
	ErrDenied = errors.New("somebody denied it: withdraw it, or ask again")
	// ErrAmendments: the arguments were changed as often as they may be.
	ErrAmendments = fmt.Errorf("arguments changed %d times already", MaxAmendments)
	// ErrDecided: the person has already said the opposite about this call.
	ErrDecided = errors.New("already decided otherwise")
	// ErrReasonNeeded: an approval of this call must say why.
	ErrReasonNeeded = errors.New("a reason is needed")
	// ErrAbsence: the absence would be too long, or lead in a circle.
	ErrAbsence = errors.New("absence not possible")
	// ErrNoDecision: there is no decision of this person to take back.
	ErrNoDecision = errors.New("nothing to take back")
	// ErrRefused: the policy refuses the call, whoever approves it. See [RefusedError].
	ErrRefused = errors.New("refused by policy")
	// ErrInvalid: the command, arguments or results are not well formed.
	ErrInvalid = errors.New("invalid")
	// ErrOpen: results were asked for while something is still pending.
	ErrOpen = errors.New("not all calls are settled")
)

// A RefusedError is an [ErrRefused] with what the policy says, for people.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string {
	if e.Reason == "" {
		return ErrRefused.Error()
	}
	return ErrRefused.Error() + ": " + e.Reason
}

// Unwrap returns [ErrRefused].
func (e *RefusedError) Unwrap() error { return ErrRefused }
