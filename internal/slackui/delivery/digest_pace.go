package delivery

import (
	"context"
	"errors"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

var (
	errDigestSoon  = errors.New("the digest changed a moment ago")
	errDigestsMany = errors.New("many digests changed a moment ago")
	errDigestFull  = errors.New("the digest has no room for another request")
)

// shown reports whether the digest shows what it knows of the batch. It returns a
// [*slackapi.LaterError] if the digest has to be drawn and must wait.
func (d *Digests) shown(n *memo.Record[Digest], b approvals.BatchID) (bool, error) {
	if n.Body.shows(b) {
		return true, nil
	}
	left := n.Body.Next.Sub(d.Now())
	if later, busy := errors.AsType[*slackapi.LaterError](d.Notes().Busy(n)); busy {
		left = max(left, later.After)
	}
	if left > 0 {
		return false, d.later(&n.Body, b, left)
	}
	return false, nil
}

// later is for a batch whose digest may be drawn when this time is over. The request that
// has waited longest draws it. The others look afterwards whether it was drawn, and later
// each time that it was put off: Slack may be away for long, and they may be many.
func (d *Digests) later(x *Digest, b approvals.BatchID, left time.Duration) error {
	if x.leads(b) {
		return &slackapi.LaterError{After: left, Err: errDigestSoon}
	}
	return &slackapi.LaterError{After: left + slackapi.WaitAfter(x.PutOff), Err: errDigestSoon, Follows: true}
}

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
