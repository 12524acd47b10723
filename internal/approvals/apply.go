package approvals

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"
)

// Command is what can be asked of a batch; there is no other way to move it.
//
//sumtype:decl
type Command interface{ command() }

// Decide records one person's verdict on one call.
type Decide struct{ Decision }

// Retract takes back the person's own decision while the call is open.
type Retract struct {
	Call ToolCallID
	By   Principal
	At   time.Time
}

// Fulfill delivers the result of an external call. By is the person or service
// that delivered it; whether they may is for the caller to know.
type Fulfill struct {
	Call   ToolCallID
	Result CallResult
	By     UserID
	At     time.Time
}

// Amend replaces the arguments of an open call. From names the digest that it
// replaces; Ruling is the policy's word on the new arguments: a new
// requirement replaces the old one, though not with a later deadline, [Permit]
// keeps it, [Refuse] refuses. Nobody may amend a call more than [MaxAmendments]
// times, nor those who asked for it while someone else denies it.
// Args are one JSON object; {} stands for no arguments. Only an approver of the
// call, or the person who asked for it, may amend it.
type Amend struct {
	Call   ToolCallID
	From   Digest
	Args   json.RawMessage
	Ruling Ruling
	By     Principal
	At     time.Time
}

// Expire ends every approval whose deadline has passed at At.
type Expire struct{ At time.Time }

// Climb takes every rung whose time has come at At, of every approval that is
// open and not overdue: see [Rung].
type Climb struct{ At time.Time }

// Withdraw ends everything that is still open. By is the person or service that
// withdrew it, and never empty; whether they may is for the caller to know.
type Withdraw struct {
	By     UserID
	Reason string
	At     time.Time
}

func (Decide) command()   {}
func (Retract) command()  {}
func (Fulfill) command()  {}
func (Amend) command()    {}
func (Expire) command()   {}
func (Climb) command()    {}
func (Withdraw) command() {}

// Apply returns the batch after cmd and the facts that follow. It never
// modifies b; a command that changes nothing gives no facts. The version moves
// by one exactly when there are facts. With an error, the batch is b.
func (b Batch) Apply(cmd Command) (Batch, []Event, error) {
	switch cmd := cmd.(type) {
	case Decide:
		return b.decide(cmd)
	case Retract:
		return b.retract(cmd)
	case Fulfill:
		return b.fulfill(cmd)
	case Amend:
		return b.amend(cmd)
	case Expire:
		return b.expire(cmd)
	case Climb:
		return b.climb(cmd)
	case Withdraw:
		return b.withdraw(cmd)
	case Conclude:
		return b.conclude(cmd)
	case Report:
		return b.report(cmd)
	}
	return b, nil, fmt.Errorf("%w: unknown command %T", ErrInvalid, cmd)
}

// moved returns b one version on, with the facts that a command led to, and
// with [Resolved] behind them if it settled the last open call. The command
// has settled something, or found the batch open: so Resolved comes once.
func (b Batch) moved(at time.Time, events ...Event) (Batch, []Event, error) {
	b.Version++
	if b.Settled() {
		events = append(events, Resolved{Batch: b.ID, Run: b.Run, At: at})
	}
	return b, events, nil
}

// checkActor refuses a command that does not say who acted or when: without a
// time no deadline would ever have passed.
func checkActor(who UserID, at time.Time) error {
	if who == "" || !utf8.ValidString(string(who)) {
		return fmt.Errorf("%w: %q is not a person", ErrInvalid, string(who))
	}
	if at.IsZero() {
		return fmt.Errorf("%w: a command needs a time", ErrInvalid)
	}
	return nil
}

// MaxReason is how many bytes of words a person may give with a command.
const MaxReason = 16 << 10

func checkReason(reason string) error {
	if len(reason) > MaxReason || !utf8.ValidString(reason) {
		return fmt.Errorf("%w: a reason is text of at most %d bytes", ErrInvalid, MaxReason)
	}
	return nil
}

// plain strips what does not survive storage: the zone and the monotonic clock.
func plain(t time.Time) time.Time { return t.Round(0).UTC() }
