package intake

import (
	"context"
	"errors"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
)

// replacedReason is what people read on a card that ended because its external id was
// used again with other calls.
const replacedReason = "the agent asked for something else in its place"

// point moves the external id to this request, and ends the requests that it named
// before. It ends none of a door that executes calls: there it is the id of a message, and
// clients that resume a session count their messages anew. The last to move it wins. Every
// later ask ends the requests that a crash between the two steps left open.
func (s *Service) point(ctx context.Context, c Client, a Ask, x found) (found, error) {
	index := indexID(c.Name, "external", a.ExternalID)
	old := false
	ahead := s.c.Store.Prefetch(ctx, approvals.Reads{Memos: []approvals.MemoKey{
		{ID: index, Surface: externalMemo}, {ID: string(x.id), Surface: recordMemo},
	}})
	p, err := update(ahead, s, index, externalMemo, func(p *pointer, stored bool) (bool, error) {
		// The record is read after the index: a request leaves the list of those
		// replaced only once its record says so.
		old = slices.Contains(p.Replaced, x.id)
		if p.Run == x.id || old {
			return false, nil
		}
		rec, _, err := s.record(ahead, x.id)
		if err != nil {
			return false, err
		}
		if old = rec.SupersededBy != ""; old {
			return false, nil // it comes late: something else has taken its place
		}
		p.Schema = schema
		if p.Run != "" && !a.Here {
			p.Replaced = append(p.Replaced, p.Run)
		}
		p.Run = x.id
		return true, nil
	})
	if err != nil {
		return found{}, err
	}
	if len(p.Replaced) == 0 && !old {
		return x, nil
	}
	for _, id := range p.Replaced {
		if err := s.replace(ctx, c, a, id, p.Run); err != nil {
			return found{}, err
		}
	}
	_, err = update(ctx, s, index, externalMemo, func(q *pointer, _ bool) (bool, error) {
		left := slices.DeleteFunc(slices.Clone(q.Replaced), func(id approvals.RunID) bool { return slices.Contains(p.Replaced, id) })
		changed := len(left) != len(q.Replaced)
		q.Replaced = left
		return changed, nil
	})
	if err != nil {
		return found{}, err
	}
	return s.find(ctx, c, x.id)
}

// replace ends a request that its external id does not name any more, unless
// another caller has found it by its fingerprint. Decisions that were used stay
// used.
func (s *Service) replace(ctx context.Context, c Client, a Ask, id, by approvals.RunID) error {
	shared := false
	_, err := s.change(ctx, id, func(r *record) (bool, error) {
		shared = r.ExternalID != a.ExternalID || len(r.Joins) > 0
		if shared || r.SupersededBy != "" {
			return false, nil
		}
		*r = r.end(s.c.Now())
		r.SupersededBy = by
		return true, nil
	})
	if isRemoved(err) { // it had ended
		return nil
	}
	if err != nil || shared {
		return err
	}
	remote, err := s.c.Runner.Remote(ctx, id)
	if err != nil || remote.Batch.ID == "" {
		return err
	}
	_, err = s.c.Desk.Withdraw(ctx, remote.Batch.ID, approvals.RequestID("replaced:"+id), approvals.Withdraw{By: c.actor(), Reason: replacedReason})
	if err != nil && !errors.Is(err, approvals.ErrSettled) {
		return err
	}
	x, err := s.find(ctx, c, id)
	if err != nil {
		return err
	}
	s.lapse(ctx, x, replacedReason)
	return nil
}
