package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// digestFollow is how long after a digest is due the batches that do not draw it look
// whether it was drawn.
const digestFollow = 2 * time.Second

var (
	errDigestSoon    = errors.New("the digest changed a moment ago")
	errDigestFollows = fmt.Errorf("%w, and another request draws it", errDigestSoon)
	errDigestsMany   = errors.New("many digests changed a moment ago")
)

// A pace limits how often digests are updated: each digest at most once in every, and
// all digests of a kind at most once in apart. Digests share a limit of Slack with the
// cards and use the smaller part of it.
type pace struct {
	kind         string
	every, apart time.Duration
}

func paceOf(channel string) pace {
	if ofOnePerson(channel) {
		return pace{kind: "people", every: 15 * time.Second, apart: 5 * time.Second}
	}
	return pace{kind: "channels", every: 3 * time.Second, apart: 3 * time.Second}
}

// pace takes a slot for an update of the digest, shared by all replicas, and returns
// when the digest may be updated next. If it has to wait, the error is a
// [*slackapi.LaterError].
func (d *Digests) pace(ctx context.Context, channel, id string, at time.Time) (time.Time, error) {
	p := paceOf(channel)
	l, key := memo.Notes[spent]{Memos: d.Memos, Surface: "updates", Now: d.Now, Derived: d.API.Log}, channelID("updates", d.Team, p.kind)
	for range memo.Attempts {
		n, version, err := l.Load(ctx, key)
		if err != nil && ctx.Err() != nil {
			return at, err
		}
		if err != nil {
			return at.Add(slackapi.BudgetSpan), nil //nolint:nilerr // no digest may stand still because this cannot be read
		}
		n.Body.forget(at)
		if most := int(slackapi.BudgetSpan / p.apart); len(n.Body.Slots) >= most {
			left := n.Body.Slots[len(n.Body.Slots)-most].At.Add(slackapi.BudgetSpan).Sub(at)
			return at, &slackapi.LaterError{After: max(left, time.Second), Err: errDigestsMany}
		}
		n.Body.Slots = append(n.Body.Slots, slot{For: id, At: at})
		switch err := l.Store(ctx, key, n, version, 0); {
		case err == nil:
			return at.Add(max(p.every, time.Duration(n.Body.kinds())*p.apart)), nil
		case !errors.Is(err, approvals.ErrConflict):
			return at, err
		}
	}
	return at, lostRace(approvals.ErrConflict)
}

// kinds counts the different messages that have slots.
func (s *spent) kinds() int {
	all := map[string]bool{}
	for _, x := range s.Slots {
		all[x.For] = true
	}
	return len(all)
}

// soonest collects the errors of several steps and says when to try again: when the
// first of our own steps is due, or else when others have finished theirs.
type soonest struct {
	outage, ours, others *slackapi.LaterError
	failed               error
}

func (s *soonest) add(err error) {
	later, ok := errors.AsType[*slackapi.LaterError](err)
	switch {
	case err == nil:
	case !ok:
		s.failed = errors.Join(s.failed, err)
	case later.Outage:
		s.outage = later
	case errors.Is(err, errDigestFollows):
		if s.others == nil || later.After > s.others.After {
			s.others = later
		}
	case s.ours == nil || later.After < s.ours.After:
		s.ours = later
	}
}

func (s *soonest) err() error {
	for _, l := range []*slackapi.LaterError{s.outage, s.ours, s.others} {
		if l != nil && s.failed == nil {
			return l
		}
		if l != nil {
			return errors.Join(l, s.failed)
		}
	}
	return s.failed
}
