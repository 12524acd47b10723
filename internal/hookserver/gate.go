package hookserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
)

// A verdict is the answer to the agent about its call. The zero value denies it.
type verdict struct {
	allow   bool
	args    json.RawMessage // what runs
	input   json.RawMessage // the same, if people changed it; else nil
	reason  string          // why not, in words for the model
	pending bool            // it is denied because nobody has decided
}

// deny denies a call because of something that went wrong here.
func deny(why string) verdict {
	return verdict{reason: "Not run: " + why + ". Nobody denied this call."}
}

// An asking is one call that is asked about, and until when its caller waits.
type asking struct {
	intake.Ask

	until time.Time
	tell  func(intake.Request) // is called with the request whenever it changes; may be nil
	// still reports whether the credential still proves the agent. It is asked after
	// the wait, because a token may be taken away while a call is held.
	still func() bool
}

// decide asks about a call, waits until it is decided, its hold is over or its
// caller is gone, and claims an approval. The claim is the last thing that can
// fail before the agent has its answer.
func (s *Server) decide(ctx context.Context, c intake.Client, a asking) verdict {
	release, ok := s.hold(c.Name)
	if !ok {
		return deny(fmt.Sprintf("the agent has %d calls that wait", s.c.Holds))
	}
	defer release()
	asked, cancel := context.WithTimeout(ctx, s.c.Handling)
	q, err := s.c.Intake.Ask(asked, c, a.Ask)
	cancel()
	if err != nil {
		return s.explain(ctx, err)
	}
	return s.follow(ctx, c, q, a)
}

// follow is [Server.decide] for a request that is there.
func (s *Server) follow(ctx context.Context, c intake.Client, q intake.Request, a asking) verdict {
	q, err := s.wait(ctx, c, q, a)
	if ctx.Err() != nil {
		s.gone(ctx, c, q.ID)
		return deny("the caller stopped waiting")
	}
	if err != nil {
		return s.explain(ctx, err)
	}
	call := q.Calls[0]
	if call.Outcome != intake.OutcomeAllowed && call.Outcome != intake.OutcomeApproved {
		return notApproved(q)
	}
	if !a.still() {
		return deny("the token does not prove the agent any more")
	}
	claiming, cancel := context.WithTimeout(ctx, s.c.Handling)
	defer cancel()
	claim, err := s.c.Intake.Claim(claiming, c, q.ID, call.ID)
	if err != nil {
		return s.explain(ctx, err)
	}
	v := verdict{allow: true, args: claim.Args}
	if call.Edited {
		v.input = claim.Args
	}
	return v
}

// wait returns the request once it is decided, or as it stands when the hold is
// over or the server ends.
func (s *Server) wait(ctx context.Context, c intake.Client, q intake.Request, a asking) (intake.Request, error) {
	held, cancel := context.WithTimeout(ctx, a.until.Sub(s.c.Now()))
	defer cancel()
	stop := context.AfterFunc(s.over, cancel) //nolint:contextcheck // the end of the server, beside that of the caller
	defer stop()
	for {
		if a.tell != nil {
			a.tell(q)
		}
		if q.State != intake.StatePending || held.Err() != nil {
			return q, nil
		}
		next, err := s.c.Intake.Wait(held, c, q.ID, q.Version)
		if err != nil {
			if held.Err() != nil {
				return q, nil
			}
			return q, err
		}
		q = next
	}
}

// gone says that the caller of a request stopped waiting. A request that no late
// answer can reach is withdrawn, and its card says why.
func (s *Server) gone(ctx context.Context, c intake.Client, id approvals.RunID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.c.Handling)
	defer cancel()
	if err := s.c.Intake.Gone(ctx, c, id); err != nil {
		s.c.Log.WarnContext(ctx, "a request whose caller is gone stays open", slog.String("request", string(id)), slog.Any("err", err))
	}
}

// notApproved is the verdict on a call that may not run. Pending, denied, refused,
// expired, withdrawn and superseded are different answers.
func notApproved(q intake.Request) verdict {
	call := q.Calls[0]
	switch call.Outcome {
	case intake.OutcomePending:
		return verdict{pending: true, reason: fmt.Sprintf(
			"Pending: nobody has decided this call yet, and it was not run. Ask again with exactly the same call to keep waiting. Request %s.", q.ID)}
	case intake.OutcomeRefused:
		return verdict{reason: "Refused by the policy; nobody was asked. " + call.Reason}
	case intake.OutcomeDenied, intake.OutcomeExpired, intake.OutcomeWithdrawn, intake.OutcomeSuperseded:
		return verdict{reason: call.Reason}
	default:
		return deny("the outcome " + string(call.Outcome) + " is no approval")
	}
}

// explain turns an error into a denial that says what the agent can do about it.
// What it does not know is logged, and the agent reads nothing of it.
func (s *Server) explain(ctx context.Context, err error) verdict {
	if l, ok := errors.AsType[*intake.LimitError](err); ok {
		return deny(fmt.Sprintf("the agent may have at most %d %s; ask again in %s", l.Limit, l.What, l.RetryAfter.Round(time.Second)))
	}
	if o, ok := errors.AsType[*intake.OutcomeError](err); ok {
		return verdict{reason: fmt.Sprintf("Not run: the call is %s now. %s", o.Outcome, o.Reason)}
	}
	if no, ok := errors.AsType[*approvals.RefusedError](err); ok {
		return verdict{reason: "Refused by the policy, which changed after the approval. " + no.Reason}
	}
	switch {
	case errors.Is(err, intake.ErrClaimed):
		return deny("the approval of this call was used already; ask again with the same call")
	case errors.Is(err, intake.ErrTooLate):
		return deny("the approval waited longer than it may; ask again with the same call")
	case errors.Is(err, approvals.ErrInvalid):
		return deny("the call cannot be asked about: " + err.Error())
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return deny("the caller stopped waiting")
	}
	s.c.Log.ErrorContext(ctx, "cannot decide a call", slog.Any("err", err))
	return deny("Countersign cannot answer now; ask again with the same call")
}
