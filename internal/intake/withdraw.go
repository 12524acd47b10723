package intake

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
)

// CallerGone is the reason of a request that was withdrawn because its door can
// bring no answer to a caller that stopped waiting.
const CallerGone = "the caller stopped waiting, and no answer can reach it now"

// Withdraw ends a request of the client: what is open is withdrawn, and decisions
// that were not used cannot be used any more. It may be repeated. A request that
// has its outcome is [approvals.ErrSettled].
func (s *Service) Withdraw(ctx context.Context, c Client, id approvals.RunID, reason string) (Request, error) {
	x, err := s.find(ctx, c, id)
	if err != nil {
		return Request{}, err
	}
	if x.remote.Batch.ID == "" {
		return Request{}, approvals.ErrSettled
	}
	_, err = s.c.Desk.Withdraw(ctx, x.remote.Batch.ID, approvals.RequestID("withdraw:"+id), approvals.Withdraw{By: c.actor(), Reason: cut(reason)})
	if errors.Is(err, approvals.ErrSettled) && x.withdrawn(c) {
		err = nil
	}
	if err != nil {
		return Request{}, err
	}
	_, err = s.change(ctx, id, func(r *record) (bool, error) {
		if r.Withdrawn {
			return false, nil
		}
		*r = r.end(s.c.Now())
		r.Withdrawn = true
		return true, nil
	})
	if err != nil {
		return Request{}, err
	}
	s.hubs.wake(id)
	if x, err = s.find(ctx, c, id); err != nil {
		return Request{}, err
	}
	s.lapse(ctx, x, cmp.Or(cut(reason), withdrawnReason))
	return s.view(ctx, x)
}

// withdrawnReason is what people read of an approved call if the client does not say why
// it withdrew the request.
const withdrawnReason = "the agent withdrew its request"

// lapse says on the cards, and in the facts, that the approved calls that were not claimed
// before their request ended do not run. The record is what counts, as for [Service.show].
func (s *Service) lapse(ctx context.Context, x found, why string) {
	for _, a := range x.remote.Batch.Approvals {
		i := x.rec.call(a.Call.ID)
		if i < 0 || a.Status != approvals.Approved || !x.rec.Calls[i].ClaimedAt.IsZero() || x.rec.Calls[i].Refused != "" || x.rec.Here {
			continue
		}
		e := approvals.Execution{State: approvals.NotRun, At: s.c.Now(), Words: why}
		s.conclude(ctx, x, approvals.Conclusion{Call: a.Call.ID, Execution: e})
	}
}

// Gone says that the caller of a request stopped waiting for it. If its door can bring an
// answer later, nothing changes; otherwise the request is withdrawn, so that nobody
// decides in vain. A request that has its outcome keeps it.
func (s *Service) Gone(ctx context.Context, c Client, id approvals.RunID) error {
	rec, _, err := s.record(ctx, id)
	if err != nil || rec.Carries.Late {
		return err
	}
	_, err = s.Withdraw(ctx, c, id, CallerGone)
	if errors.Is(err, approvals.ErrSettled) {
		return nil
	}
	return err
}

// Leave notes that the caller which asked under this external id does not wait any
// more. It may have said so to another process than the one that holds its call,
// which finds it in [Request].Left. An external id that names nothing is ignored.
func (s *Service) Leave(ctx context.Context, c Client, external string) error {
	var p pointer
	if _, err := s.load(ctx, indexID(c.Name, "external", external), externalMemo, &p); err != nil || p.Run == "" {
		return err
	}
	if _, err := s.find(ctx, c, p.Run); err != nil {
		if isRemoved(err) {
			return nil
		}
		return err
	}
	_, err := s.change(ctx, p.Run, func(r *record) (bool, error) {
		if slices.Contains(r.Left, external) {
			return false, nil
		}
		r.Left = append(r.Left, external)
		return true, nil
	})
	if err != nil {
		return err
	}
	s.hubs.wake(p.Run)
	return nil
}

// withdrawn reports whether the client has ended a call of the request before.
func (x found) withdrawn(c Client) bool {
	for _, a := range x.remote.Batch.Approvals {
		if a.Status == approvals.Withdrawn && a.Ending.By == c.actor() {
			return true
		}
	}
	for _, e := range x.remote.Batch.Calls {
		if e.Withdrawn() && e.Ending.By == c.actor() {
			return true
		}
	}
	return false
}

// cut is the beginning of a text of the caller, as a batch can keep it.
func cut(text string) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, string(utf8.RuneError)))
	n := 0
	for i := range text {
		if n++; n > approvals.MaxExecutionWords-1 {
			return text[:i] + "…"
		}
	}
	return text
}
