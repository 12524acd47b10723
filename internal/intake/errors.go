package intake

import (
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// What a door branches on, besides [approvals.ErrInvalid] with what and where,
// [approvals.ErrNotFound] also for what is another agent's, and
// [approvals.ErrSettled] for a request that has its outcome.
var (
	// ErrKeyReused: the idempotency key was used with another payload.
	ErrKeyReused = errors.New("the idempotency key was used for another request")
	// ErrClaimed is in a [ClaimedError].
	ErrClaimed = errors.New("the decision is used")
	// ErrNotUsable is in an [OutcomeError].
	ErrNotUsable = errors.New("there is no approval to use")
	// ErrTooLate: the decision waited longer than it may.
	ErrTooLate = errors.New("the approval has expired unused; ask again")
	// ErrNotClaimed: a report of a call that its caller has not claimed.
	ErrNotClaimed = errors.New("the call is not claimed")
	// ErrReported: something else was reported of the call.
	ErrReported = errors.New("something else was reported of the call")
	// ErrRuleUnjudged: a rule of the policy, or the check that it names, cannot judge
	// now whether the call may run. The decision is not used; claim again.
	ErrRuleUnjudged = agentrun.ErrRuleUnjudged
	// ErrNowAsks: nobody was asked about the call, and the policy asks people by now.
	// The permission is of no use as long as it does.
	ErrNowAsks = agentrun.ErrNowAsks
)

// A LimitError says that a request is one too many, and when to try again.
type LimitError struct {
	What       string // "open requests" or "requests in a minute"
	Limit      int
	RetryAfter time.Duration
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("too many requests: at most %d %s", e.Limit, e.What)
}

// A ClaimedError is an [ErrClaimed] that says since when.
type ClaimedError struct{ At time.Time }

func (e *ClaimedError) Error() string {
	return fmt.Sprintf("%s since %s; ask again", ErrClaimed, e.At.UTC().Format(time.RFC3339))
}

// Unwrap returns [ErrClaimed].
func (e *ClaimedError) Unwrap() error { return ErrClaimed }

// An OutcomeError is an [ErrNotUsable] that says how the call stands.
type OutcomeError struct {
	Outcome Outcome
	Reason  string // in words for the model
}

func (e *OutcomeError) Error() string {
	return fmt.Sprintf("%s: the call is %s", ErrNotUsable, e.Outcome)
}

// Unwrap returns [ErrNotUsable].
func (e *OutcomeError) Unwrap() error { return ErrNotUsable }

// A RemovedError is an [approvals.ErrNotFound] of a request that there was: it was
// removed, because it had ended long ago. The same request is not made again.
type RemovedError struct {
	Request approvals.RunID
	At      time.Time
}

func (e *RemovedError) Error() string {
	return fmt.Sprintf("request %s ended long ago and was removed on %s", e.Request, e.At.UTC().Format(time.DateOnly))
}

// Unwrap returns [approvals.ErrNotFound].
func (e *RemovedError) Unwrap() error { return approvals.ErrNotFound }

func isRemoved(err error) bool {
	_, yes := errors.AsType[*RemovedError](err)
	return yes
}

// invalid says what is wrong, and where.
func invalid(at, format string, args ...any) error {
	return fmt.Errorf("%w: %s %s", approvals.ErrInvalid, at, fmt.Sprintf(format, args...))
}
