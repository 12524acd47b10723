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
	// ErrConflict: the document has changed since it was read. Read it again.
	ErrConflict = errors.New("changed meanwhile")
	// ErrAnswered: the request of a commit was committed before. This commit changed
	// nothing.
	ErrAnswered = errors.New("this request was committed before")
	// ErrNotDurable: the change is stored, but may still be lost with the machine
	// that stored it. The caller must not acknowledge it, and may make the same
	// request again.
	ErrNotDurable = errors.New("not known to be durable")
	// ErrSettled: the call has its outcome, which never changes.
	ErrSettled = errors.New("already decided")
	// ErrExpired: the deadline has passed, swept or not.
	ErrExpired = errors.New("deadline passed")
	// ErrNotYet: an expiry or a climb came before anything was due.
	ErrNotYet = errors.New("nothing is due yet")
	// ErrStale: the decision is about other arguments than the current ones.
	ErrStale = errors.New("arguments changed since they were shown")
	// ErrNotEligible: the person is in no quorum of the call.
	ErrNotEligible = errors.New("not an approver of this call")
	// ErrOwnRequest: the person asked for the call and may not approve it.
	ErrOwnRequest = errors.New("requesters cannot approve their own call")
	// ErrOwnEdit: the person amended the arguments and may not approve them. It is
	// an ErrOwnRequest too: they asked for these arguments.
	ErrOwnEdit = fmt.Errorf("%w: arguments changed by the same person", ErrOwnRequest)
	// ErrOwnWords: the model had been sent words of this person when it made the
	// call, so they may not approve it. It is an ErrOwnRequest too.
	ErrOwnWords = fmt.Errorf("%w: the call follows words of the same person", ErrOwnRequest)
	// ErrDenied: a person who asked for the call cannot change it while someone
	// else's denial stands: the change would clear the denial.
	ErrDenied = errors.New("someone denied it: withdraw it, or ask again")
	// ErrAmendments: the arguments were changed as often as they may be.
	ErrAmendments = fmt.Errorf("arguments changed %d times already", MaxAmendments)
	// ErrNoEdits: whoever executes the call cannot be given other arguments.
	ErrNoEdits = errors.New("the arguments of this call cannot be changed")
	// ErrDecided: the person has already said the opposite about this call.
	ErrDecided = errors.New("this person already decided otherwise")
	// ErrReasonNeeded: an approval of this call must say why.
	ErrReasonNeeded = errors.New("a reason is needed")
	// ErrAbsence: the absence would be too long, or lead in a circle.
	ErrAbsence = errors.New("absence not possible")
	// ErrNoDecision: there is no decision of this person to take back.
	ErrNoDecision = errors.New("no decision to take back")
	// ErrRefused: the policy refuses the call; no approval changes that. See
	// [RefusedError].
	ErrRefused = errors.New("refused by policy")
	// ErrInvalid: the command, arguments or results are not well formed.
	ErrInvalid = errors.New("invalid")
	// ErrInDoubt: people are asked whether the call took effect, so it can be
	// neither approved, denied nor changed. See [Doubt].
	ErrInDoubt = errors.New("in doubt: it is answered with a verdict of its own")
	// ErrNotInDoubt: nobody is asked whether the call took effect. It is an ErrInvalid
	// too.
	ErrNotInDoubt = fmt.Errorf("%w: not in doubt", ErrInvalid)
	// ErrOpen: results were asked for while something is still pending.
	ErrOpen = errors.New("not all calls are decided")
)

// A TooManyNamedError is an [ErrInvalid]: the requirements of the calls of a batch name
// more people and groups than [MaxNamed].
type TooManyNamedError struct{ Named int }

func (e *TooManyNamedError) Error() string {
	return fmt.Sprintf("%s: the policy asks %d people and groups about these calls, and at most %d can be asked together; "+
		"ask about fewer calls at once, or name groups of people in the policy", ErrInvalid, e.Named, MaxNamed)
}

// Unwrap returns [ErrInvalid].
func (e *TooManyNamedError) Unwrap() error { return ErrInvalid }

// A RefusedError is an [ErrRefused] with what the policy says, for people, and the
// rule that refuses.
type RefusedError struct{ Reason, Rule string }

func (e *RefusedError) Error() string {
	if e.Reason == "" {
		return ErrRefused.Error()
	}
	return ErrRefused.Error() + ": " + e.Reason
}

// Unwrap returns [ErrRefused].
func (e *RefusedError) Unwrap() error { return ErrRefused }
