package intake

import (
	"context"
	"fmt"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
)

// reuse finds the open request or the unused decision of a call, or makes a new
// request. A fingerprint has one request after the other: its key has how many
// there were before, so that callers that ask at the same time meet in one.
func (s *Service) reuse(ctx context.Context, c Client, a Ask) (found, error) {
	print := Fingerprint(c, a.Session, a.Calls[0])
	index := indexID(c.Name, "print", print)
	for range maxTries {
		var at pointer
		if _, err := s.load(ctx, index, printMemo, &at); err != nil {
			return found{}, err
		}
		x, err := s.submit(ctx, c, a, keyOf(print, at.Turn))
		if err != nil && !isRemoved(err) {
			return found{}, err
		}
		if err == nil {
			r, err := s.standing(ctx, x)
			if err != nil {
				return found{}, err
			}
			if s.usable(r, x) {
				return s.join(ctx, a, x)
			}
		}
		_, err = update(ctx, s, index, printMemo, func(p *pointer, _ bool) (bool, error) {
			if p.Turn != at.Turn {
				return false, nil // another caller has moved it
			}
			p.Schema, p.Turn = schema, at.Turn+1
			return true, nil
		})
		if err != nil {
			return found{}, err
		}
	}
	return found{}, fmt.Errorf("find a request by its fingerprint: lost %d races: %w", maxTries, approvals.ErrConflict)
}

// usable reports whether a caller that asks again gets this request: it is open,
// or its decision is not used and not too old. A denial stands as long as an
// approval would, so that an agent in a loop does not ask people again and again.
// A refusal stands for the caller that it was just made for, and so does a
// permission to execute a call here, unless its caller was told to ask again. A
// permission that the policy took back, as a claim found, stands for nobody. Where a call
// was claimed to be executed here, a caller that asks again gets what became of it, until
// a caller has got it.
func (s *Service) usable(r Request, x found) bool {
	call := r.Calls[0]
	switch call.Outcome {
	case OutcomePending:
		return true
	case OutcomeAllowed, OutcomeApproved:
		if x.rec.Here && call.Outcome == OutcomeAllowed && !x.rec.Owed {
			return x.fresh // the policy lets the same call run again
		}
		if x.rec.Here && !call.ClaimedAt.IsZero() {
			return !call.Answered
		}
		return call.ClaimedAt.IsZero() && !x.rec.Calls[0].NowAsks && s.c.Now().Before(call.UsableUntil)
	case OutcomeDenied:
		return call.ClaimedAt.IsZero() && s.c.Now().Before(call.UsableUntil)
	case OutcomeRefused:
		return x.fresh
	default:
		return false
	}
}

// join notes that the request was found under another external id.
func (s *Service) join(ctx context.Context, a Ask, x found) (found, error) {
	if x.rec.ExternalID == a.ExternalID || slices.Contains(x.rec.Joins, a.ExternalID) || len(x.rec.Joins) >= maxJoins {
		return x, nil
	}
	rec, err := s.change(ctx, x.id, func(r *record) (bool, error) {
		if slices.Contains(r.Joins, a.ExternalID) || len(r.Joins) >= maxJoins {
			return false, nil
		}
		r.Joins = append(r.Joins, a.ExternalID)
		return true, nil
	})
	x.rec = rec
	return x, err
}

// maxJoins is how many external ids of a request are kept besides the first.
const maxJoins = 64
