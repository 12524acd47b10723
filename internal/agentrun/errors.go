package agentrun

import (
	"errors"
	"fmt"
	"time"
)

// Why answers cannot be applied to a history. Nothing has been executed then.
// The texts are the reasons that the shared vectors name.
var (
	// ErrNoModelResponse: there is nothing in the history to answer.
	ErrNoModelResponse = errors.New("no_model_response")
	// ErrNoPendingCalls: the last response has no call without a result.
	ErrNoPendingCalls = errors.New("no_pending_calls")
	// ErrDuplicateIDs: two calls of the last response share an id.
	ErrDuplicateIDs = errors.New("duplicate_ids")
	// ErrResultsMismatch: an answer is missing, or is for no pending call.
	ErrResultsMismatch = errors.New("results_do_not_match_pending_set")
	// ErrWrongCategory: a call that needs people was answered like one that
	// runs elsewhere, or the other way round, or both ways.
	ErrWrongCategory = errors.New("wrong_category")
	// ErrCallChanged: the call in the history is not the one people were asked
	// about.
	ErrCallChanged = errors.New("call_is_not_the_one_that_was_signed")
	// ErrPromptWithPendingCalls: a prompt came while calls have no result.
	ErrPromptWithPendingCalls = errors.New("prompt_with_pending_calls")
)

// What callers of a [Runner] branch on.
var (
	// ErrQueueFull: too many runs wait for the thread already.
	ErrQueueFull = errors.New("too many runs wait for this thread")
	// ErrPending: calls of the thread wait for people or results, and its agent
	// takes nothing new before that. It is in a [*PendingError].
	ErrPending = errors.New("calls of this thread are pending")
	// ErrThreadClosed: the thread takes no more messages; its Closed says why, for
	// people.
	ErrThreadClosed = errors.New("the thread is closed")
	// ErrRunHeld: a worker has the run.
	ErrRunHeld = errors.New("a worker has the run")
	// errNobodyWaits: the caller for whom a claimed call was to be executed is gone.
	errNobodyWaits = errors.New("nobody waits for the call any more")
	// ErrElsewhere: the run is not executed by this program. It is neither worked
	// on nor resumed; its answers are delivered.
	ErrElsewhere = errors.New("the run is executed elsewhere")
	// ErrKeyReused: a remote request with this key was handed in before, with
	// other calls.
	ErrKeyReused = errors.New("the key was used for other calls")
	// ErrUnjudged: the policy cannot say now whether a call may go ahead.
	ErrUnjudged = errors.New("the policy cannot judge the call")
	// ErrRuleUnjudged: a rule, or the check that it names, cannot judge now whether a
	// call may go ahead. Nothing here is broken, and the same may be tried again. It is
	// an ErrUnjudged too.
	ErrRuleUnjudged = fmt.Errorf("%w: a rule could not judge it", ErrUnjudged)
	// ErrNowAsks: the call needed nobody when it was handed in, and the policy asks
	// for approval now.
	ErrNowAsks = errors.New("the policy asks for approval now")
	// ErrRunEnded: the run has its outcome, which never changes.
	ErrRunEnded = errors.New("the run has ended")
)

// ErrUnreadable says that a stored document cannot be understood. Trying again
// does not help.
var ErrUnreadable = errors.New("unreadable")

// Why a worker releases a run without an outcome.
var (
	errClaimLost = errors.New("claim lost")
	errDraining  = errors.New("draining")
	errNoRuling  = errors.New("the policy cannot judge")
)

// A notHereError says that a run is left to the other runners. It is not a failure, so
// the due index neither counts it nor waits longer each time: any of them may be next.
type notHereError struct{ what string }

func (e *notHereError) Error() string { return e.what + " is not in the configuration of this replica" }

// RetryAfter is when to try again.
func (*notHereError) RetryAfter() time.Duration { return putOff }
