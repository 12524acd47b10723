package approvals

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// An Execution is the outcome of executing an approved call. It comes from the
// journal of the run that resumed, or from the executor of the call, and never
// from a model. The zero value says that nothing is known yet.
type Execution struct {
	State ExecutionState
	At    time.Time     // when the call ended, or when it was known that it does not run
	Took  time.Duration // how long it ran; zero if it did not, or if that was not measured
	// Words are the error of a call that failed, and for a call that did not run,
	// why. Excerpt is the beginning of the result of a call that ran. Both are
	// foreign text of at most [MaxExecutionWords] runes. An excerpt may quote
	// anything that the tool returned: it is for those who may read the arguments.
	Words   string
	Excerpt string
	// By is whose word this is: the agent that used the approval. Empty for what the
	// journal of this program says.
	By string
}

// ExecutionState says how far an approved call came.
type ExecutionState string

// The states. Each but InDoubt and Claimed is final.
const (
	Ran        ExecutionState = "ran"         // to its end, and the tool says that it succeeded
	RanFailed  ExecutionState = "failed"      // it ran, and the tool says that it failed
	InDoubt    ExecutionState = "in_doubt"    // it began, and whether it took effect is not known
	NotRun     ExecutionState = "not_run"     // a limit, arguments that became invalid, a tool that is gone, a run that ended
	Refused    ExecutionState = "refused"     // the policy refused it when it was about to run
	AskedAgain ExecutionState = "asked_again" // people are asked about it once more, in another batch
	Claimed    ExecutionState = "claimed"     // an agent or a gateway has used the approval, and nothing is known since
)

// MaxExecutionWords is how many runes of an error or a result a batch keeps.
const MaxExecutionWords = 300

// Conclude records what became of the approved calls of a settled batch. Each is
// recorded once; only a call in doubt, or one of which nothing is known but that
// it was claimed, may be recorded anew. What is recorded already is left as it
// is, so a command may be repeated. A batch that is not settled is [ErrOpen],
// unless a call is executed elsewhere, whose executor need not wait for the last of
// them: then its word is recorded, or that the policy refused the call to it.
type Conclude struct {
	Calls []Conclusion
	At    time.Time
}

// A Conclusion is what became of one call. Rule is the rule that refused it, with the
// version of its policy, if one did.
type Conclusion struct {
	Call      ToolCallID
	Execution Execution
	Rule      string
}

func (Conclude) command() {}

// early reports whether this may be known before every call of the batch is decided.
func (c Conclusion) early() bool { return c.Execution.By != "" || c.Execution.State == Refused }

// Concluded says that the execution of an approved call is known.
type Concluded struct {
	Batch BatchID        `json:"batch"`
	Call  ToolCallID     `json:"call"`
	State ExecutionState `json:"state"`
	Took  time.Duration  `json:"took_ns,omitempty"`
	By    string         `json:"by,omitempty"`   // see [Execution]
	Rule  string         `json:"rule,omitempty"` // see [Conclusion]; older versions did not store it
	At    time.Time      `json:"at,omitzero"`
}

func (Concluded) event() {}

// conclude records the executions of approved calls. It changes neither a
// status nor a decision.
func (b Batch) conclude(cmd Conclude) (Batch, []Event, error) {
	if cmd.At.IsZero() {
		return b, nil, fmt.Errorf("%w: a command needs a time", ErrInvalid)
	}
	late := func(c Conclusion) bool { return !c.early() }
	if !b.Settled() && (len(cmd.Calls) == 0 || slices.ContainsFunc(cmd.Calls, late)) {
		return b, nil, fmt.Errorf("batch %s: %w", b.ID, ErrOpen)
	}
	next := b
	var events []Event
	for _, c := range cmd.Calls {
		e, err := c.Execution.check(cmd.At)
		if err != nil {
			return b, nil, fmt.Errorf("call %q: %w", string(c.Call), err)
		}
		i, err := next.approval(c.Call)
		if err != nil {
			return b, nil, err
		}
		a := next.Approvals[i]
		switch {
		case a.Status != Approved:
			return b, nil, fmt.Errorf("%w: call %q was not approved, so nothing became of it", ErrInvalid, string(c.Call))
		case !a.Execution.yields(e):
			continue
		}
		a.Execution = e
		next = next.with(i, a)
		events = append(events, Concluded{Batch: b.ID, Call: c.Call, State: e.State, Took: e.Took, By: e.By, Rule: c.Rule, At: e.At})
	}
	if len(events) == 0 {
		return b, nil, nil
	}
	next.Version++
	return next, events, nil
}

// yields reports whether what is recorded is replaced by something newer.
func (e Execution) yields(to Execution) bool {
	switch e.State {
	case "":
		return true
	case Claimed:
		return to.State != Claimed
	case InDoubt:
		return to.State != InDoubt && to.State != Claimed
	default:
		return false
	}
}

func (e Execution) check(at time.Time) (Execution, error) {
	if !slices.Contains([]ExecutionState{Ran, RanFailed, InDoubt, NotRun, Refused, AskedAgain, Claimed}, e.State) {
		return Execution{}, fmt.Errorf("%w: %q is no state of an execution", ErrInvalid, string(e.State))
	}
	if e.Took < 0 {
		return Execution{}, fmt.Errorf("%w: an execution cannot take %s", ErrInvalid, e.Took)
	}
	if e.State == Claimed && e.By == "" {
		return Execution{}, fmt.Errorf("%w: somebody claims a call", ErrInvalid)
	}
	for _, words := range []string{e.Words, e.Excerpt, e.By} {
		if !utf8.ValidString(words) || utf8.RuneCountInString(words) > MaxExecutionWords {
			return Execution{}, fmt.Errorf("%w: what is said of an execution is text of at most %d characters", ErrInvalid, MaxExecutionWords)
		}
	}
	if e.At.IsZero() {
		e.At = at
	}
	e.At = plain(e.At)
	return e, nil
}
