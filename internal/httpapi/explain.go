package httpapi

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/httpapi/format"
	"github.com/countersign/countersign/internal/intake"
)

// askAnew is what to do where a request has come to nothing: it is kept under its names.
const askAnew = "ask again under another name, because the same external_id or Idempotency-Key finds this request again"

// ofIntake is the problem that an error of the intake or of a format is, or nil.
func ofIntake(err error) *problem {
	if f, ok := errors.AsType[*format.RequestError](err); ok {
		p := refuse(kindInvalid, "")
		p.faults = []wireFault{{At: f.At, Problem: f.Problem}}
		return p
	}
	if l, ok := errors.AsType[*intake.LimitError](err); ok {
		return refuse(kindLimited, "the agent may have at most %d %s", l.Limit, l.What).again(l.RetryAfter)
	}
	if c, ok := errors.AsType[*intake.ClaimedError](err); ok {
		return refuse(kindClaimed, "").with("claimed_at", c.At.UTC())
	}
	if o, ok := errors.AsType[*intake.OutcomeError](err); ok {
		if o.Outcome == intake.OutcomePending {
			return refuse(kindPending, "the call has no outcome").with("outcome", o.Outcome)
		}
		p := refuse(kindNotApproved, "the call is %s", o.Outcome).with("outcome", o.Outcome)
		if o.Reason != "" {
			p = p.with("reason", o.Reason)
		}
		return p
	}
	if no, ok := errors.AsType[*approvals.RefusedError](err); ok {
		return refuse(kindNotApproved, "the policy refuses the call now").with("outcome", intake.OutcomeRefused).with("reason", no.Reason)
	}
	if gone, ok := errors.AsType[*intake.RemovedError](err); ok {
		return refuse(kindRemoved, "").with("removed_at", gone.At.UTC())
	}
	switch {
	case errors.Is(err, approvals.ErrUnreadable):
		return nil // what is stored is wrong, and not what the client sent
	case errors.Is(err, intake.ErrKeyReused):
		return refuse(kindKeyReused, "")
	case errors.Is(err, intake.ErrTooLate):
		return refuse(kindLapsed, "%s", askAnew)
	case errors.Is(err, intake.ErrNowAsks):
		const why = "the policy asks for approval of the call by now"
		return refuse(kindNotApproved, "%s, and nobody has approved it; %s", why, askAnew).with("reason", why)
	case errors.Is(err, intake.ErrNotClaimed):
		return refuse(kindNotExternal, "the call was not claimed")
	case errors.Is(err, intake.ErrReported):
		return refuse(kindNotExternal, "another result was reported before")
	case errors.Is(err, approvals.ErrSettled):
		return refuse(kindSettled, "")
	case errors.Is(err, format.ErrOpen), errors.Is(err, approvals.ErrOpen):
		return refuse(kindPending, "")
	case errors.Is(err, format.ErrOther):
		return refuse(kindOtherFormat, "")
	case errors.Is(err, approvals.ErrNotFound):
		return refuse(kindNotFound, "")
	case errors.Is(err, approvals.ErrConflict):
		return refuse(kindInProgress, "").again(time.Second)
	case errors.Is(err, approvals.ErrNotDurable):
		return refuse(kindUnavailable, "the store does not confirm that it keeps it").again(time.Second)
	case errors.Is(err, approvals.ErrInvalid):
		p := refuse(kindInvalid, "")
		p.faults = []wireFault{placed(err)}
		return p
	}
	return nil
}

// parameters are the places that the intake knows by other names than the client.
var parameters = map[string]string{"after": "after", "limit": "limit", "place": "Last-Event-ID", "trace": "traceparent"}

// placed takes the place out of an error that begins with it.
func placed(err error) wireFault {
	at, rest, found := strings.Cut(plain(err), " ")
	if place, known := parameters[at]; found && known {
		return wireFault{At: place, Problem: rest}
	}
	fields := []string{"calls", "state", "result", "group", "session", "notify"}
	if !found || !strings.ContainsAny(at, "[._") && !slices.Contains(fields, at) {
		return wireFault{Problem: plain(err)}
	}
	return wireFault{At: "/" + strings.NewReplacer("[", "/", "]", "", ".", "/", ":", "").Replace(at), Problem: rest}
}

func plain(err error) string {
	return strings.ReplaceAll(err.Error(), approvals.ErrInvalid.Error()+": ", "")
}

// within puts the place of a fault below another.
func within(at string, err error) error {
	if f, ok := errors.AsType[*format.RequestError](err); ok {
		return &format.RequestError{At: at + f.At, Problem: f.Problem}
	}
	return err
}
