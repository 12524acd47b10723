package door

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
)

// NotRun is why a call does not run because of something that went wrong here.
func NotRun(why string) string { return "Not run: " + why + ". Nobody denied this call." }

// TooMany is why the call of an agent is not held.
func (d *Door) TooMany() string {
	return NotRun(fmt.Sprintf("the agent has %d calls that wait", d.c.Holds))
}

const sayRefusedNow = "Refused by the policy, which changed after the approval. "

// Outcome is why a call that was asked about may not run, in words for the model.
// Denied, refused, expired, withdrawn and superseded are different answers. That
// of a call that is pending is the door's.
func Outcome(call intake.CallStatus) string {
	switch call.Outcome {
	case intake.OutcomeRefused:
		if len(call.Approvers) > 0 {
			return sayRefusedNow + call.Reason
		}
		return "Refused by the policy; nobody was asked. " + call.Reason
	case intake.OutcomeDenied, intake.OutcomeExpired, intake.OutcomeWithdrawn, intake.OutcomeSuperseded:
		return call.Reason
	default:
		return NotRun("the outcome " + string(call.Outcome) + " is no approval")
	}
}

// Explain turns an error into words for the model, which say what the agent can do
// about it. What it does not know is logged, and the model reads nothing of it.
func (d *Door) Explain(ctx context.Context, err error) string {
	if l, ok := errors.AsType[*intake.LimitError](err); ok {
		return NotRun(fmt.Sprintf("the agent may have at most %d %s; ask again in %s", l.Limit, l.What, l.RetryAfter.Round(time.Second)))
	}
	if o, ok := errors.AsType[*intake.OutcomeError](err); ok {
		return fmt.Sprintf("Not run: the call is %s now. %s", o.Outcome, o.Reason)
	}
	if no, ok := errors.AsType[*approvals.RefusedError](err); ok {
		return sayRefusedNow + no.Reason
	}
	switch {
	case errors.Is(err, intake.ErrClaimed):
		return NotRun("the approval of this call was used already; ask again with the same call")
	case errors.Is(err, intake.ErrTooLate):
		return NotRun("the approval waited longer than it may; ask again with the same call")
	case errors.Is(err, intake.ErrRuleUnjudged):
		d.c.Log.WarnContext(ctx, "a call cannot be claimed now", slog.Any("err", err))
		return NotRun("a rule of the policy, or the check that it names, cannot judge the call now; ask again with the same call")
	case errors.Is(err, intake.ErrNowAsks):
		return NotRun("the policy asks for approval of this call by now, and nobody has approved it; ask again later")
	case errors.Is(err, approvals.ErrInvalid):
		return NotRun("the call cannot be asked about: " + err.Error())
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return NotRun("the caller stopped waiting")
	}
	d.c.Log.ErrorContext(ctx, "cannot decide a call", slog.Any("err", err))
	return NotRun("Countersign cannot answer now; ask again with the same call")
}
