package hookserver

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/door"
	command "github.com/countersign/countersign/internal/hook"
	"github.com/countersign/countersign/internal/intake"
)

// A verdict is the answer to the agent about its call. The zero value denies it.
type verdict struct {
	allow   bool
	args    json.RawMessage // what runs
	input   json.RawMessage // the same, if the answer is to name it; else nil
	reason  string          // why not, in words for the model
	pending bool            // it is denied because nobody has decided
}

// deny denies a call because of something that went wrong here.
func deny(why string) verdict {
	return verdict{reason: door.NotRun(why)}
}

// An asking is one call that is asked about, and until when its caller waits.
type asking struct {
	intake.Ask

	until time.Time
	tell  func(intake.Request) // is called with the request whenever it changes; may be nil
	// still says why the credential does not prove the agent any more; nothing if it does.
	// It is asked after the wait, because a token may be taken away while a call is held.
	still func() string
}

// decide asks about a call, waits until it is decided, its hold is over or its
// caller is gone, and claims an approval. What the policy permits without asking
// anyone is claimed with the question. The claim is the last thing that can
// fail before the agent has its answer.
func (s *Server) decide(ctx context.Context, c intake.Client, a asking) verdict {
	release, ok := s.door.Hold(c.Name)
	if !ok {
		return verdict{reason: s.door.TooMany()}
	}
	defer release()
	asked, cancel := context.WithTimeout(ctx, s.c.Handling)
	a.Claim = true
	q, err := s.c.Intake.Ask(asked, c, a.Ask)
	cancel()
	if err != nil {
		return s.explain(ctx, err)
	}
	if q.Claimed {
		return verdict{allow: true, args: q.Calls[0].Args}
	}
	return s.follow(ctx, c, q, a)
}

// follow is [Server.decide] for a request that is there.
func (s *Server) follow(ctx context.Context, c intake.Client, q intake.Request, a asking) verdict {
	held, done := s.door.Until(ctx, a.until.Sub(s.c.Now()))
	q, err := s.door.Wait(held, c, q, a.tell)
	done()
	if ctx.Err() != nil {
		s.door.Gone(ctx, c, q.ID)
		return deny("the caller stopped waiting")
	}
	if err != nil {
		return s.explain(ctx, err)
	}
	call := q.Calls[0]
	if call.Outcome != intake.OutcomeAllowed && call.Outcome != intake.OutcomeApproved {
		return notApproved(q)
	}
	if why := a.still(); why != "" {
		return deny(why)
	}
	claiming, cancel := context.WithTimeout(ctx, s.c.Handling)
	defer cancel()
	claim, err := s.c.Intake.Claim(claiming, c, q.ID, call.ID)
	if err != nil {
		return s.explain(ctx, err)
	}
	v := verdict{allow: true, args: claim.Args}
	if call.Edited || call.Outcome == intake.OutcomeApproved && !command.AsksItsPerson(call.Tool) {
		v.input = claim.Args // another hook may have changed the input meanwhile
	}
	return v
}

// notApproved is the verdict on a call that may not run. Pending, denied, refused,
// expired, withdrawn and superseded are different answers.
func notApproved(q intake.Request) verdict {
	call := q.Calls[0]
	if call.Outcome == intake.OutcomePending {
		return verdict{pending: true, reason: fmt.Sprintf(
			"Pending: nobody has decided this call yet, and it was not run. Ask again with exactly the same call to keep waiting. Request %s.", q.ID)}
	}
	return verdict{reason: door.Outcome(call)}
}

// explain turns an error into a denial that says what the agent can do about it.
func (s *Server) explain(ctx context.Context, err error) verdict {
	return verdict{reason: s.door.Explain(ctx, err)}
}
