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

// digestFollow is how long after a digest is drawn those look whether it was
// who do not draw it.
const digestFollow = 2 * time.Second

var (
	errDigestSoon    = errors.New("the digest changed a moment ago")
	errDigestFollows = fmt.Errorf("%w, and another request draws it", errDigestSoon)
	errDigestsMany   = errors.New("many digests changed a moment ago")
)

// A pace is how often digests are drawn anew: one not more often than every, and
// all of a kind not more often than apart. They share one limit of Slack with
// the cards, and have the smaller part of it.
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

// pace takes a turn among the digests of all replicas, and returns when the next
// one of this digest may be. The error is a [*LaterError] if it has to wait.
func (d *Digests) pace(ctx context.Context, channel, id string, at time.Time) (time.Time, error) {
	p := paceOf(channel)
	l, key := memo.Notes[spent]{Memos: d.Memos, Surface: "updates", Now: d.Now}, channelID("updates", d.Team, p.kind)
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

// kinds is for how many different things there are slots.
func (s *spent) kinds() int {
	all := map[string]bool{}
	for _, x := range s.Slots {
		all[x.For] = true
	}
	return len(all)
}

// soonest collects why something is not done, and when to look again: at once
// when something here is ours to do, else when others have done theirs.
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
