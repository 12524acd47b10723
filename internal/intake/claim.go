package intake

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// Claim takes the decision on a call, once, and returns exactly what was approved.
// The policy is asked once more: a rule that refuses now stops the call with an
// [approvals.RefusedError], as it stops one of our own. [ErrRuleUnjudged] and
// [ErrNowAsks] say why the call cannot be claimed now. Nothing but a claim uses a
// decision. A caller that gets no answer to its claim cannot know whether the claim
// counted, and has to ask again.
func (s *Service) Claim(ctx context.Context, c Client, id approvals.RunID, call approvals.ToolCallID) (Claim, error) {
	for range maxTries {
		claim, err := s.claim(ctx, c, id, call)
		if !errors.Is(err, approvals.ErrConflict) {
			return claim, err
		}
	}
	return Claim{}, fmt.Errorf("claim call %q: lost %d races: %w", string(call), maxTries, approvals.ErrConflict)
}

func (s *Service) claim(ctx context.Context, c Client, id approvals.RunID, call approvals.ToolCallID) (Claim, error) {
	x, err := s.find(ctx, c, id)
	if err != nil {
		return Claim{}, err
	}
	rec, version := x.rec, x.version
	r, err := s.standing(ctx, x)
	if err != nil {
		return Claim{}, err
	}
	i := rec.call(call)
	if i < 0 {
		return Claim{}, fmt.Errorf("call %q: %w", string(call), approvals.ErrNotFound)
	}
	st, now := r.Calls[i], s.c.Now()
	switch {
	case !st.ClaimedAt.IsZero():
		s.show(ctx, x, call)
		return Claim{}, &ClaimedError{At: st.ClaimedAt}
	case st.Outcome != OutcomeAllowed && st.Outcome != OutcomeApproved:
		s.stop(ctx, x, call)
		s.giveBack(ctx, x.remote.Run, rec.Calls[i])
		return Claim{}, &OutcomeError{Outcome: st.Outcome, Reason: st.Reason}
	case !st.UsableUntil.IsZero() && !now.Before(st.UsableUntil):
		return Claim{}, cmp.Or(s.c.Agrees(ctx), ErrTooLate)
	}
	tool, kept := approvals.ToolCall{ID: call, Name: st.Tool, Args: st.Args}, rec.Calls[i]
	if kept.NowAsks { // on any replica, whatever its policy says by now: the call has no place any more
		s.giveBack(ctx, x.remote.Run, kept)
		return Claim{}, fmt.Errorf("claim call %q: %w", string(call), ErrNowAsks)
	}
	err = s.c.Runner.Clear(ctx, x.remote, tool)
	if refused, ok := errors.AsType[*approvals.RefusedError](err); ok {
		kept.Refused, kept.RefusedBy, kept.RefusedAt = cmp.Or(refused.Reason, "The policy refuses it."), refused.Rule, now.UTC()
		x.rec = rec.with(i, kept)
		if unsaved := s.save(ctx, string(id), recordMemo, x.rec, version); unsaved != nil {
			err = unsaved // it may be claimed yet; if this was stored all the same, the next claim shows it
		} else {
			s.stop(ctx, x, call)
			s.giveBack(ctx, x.remote.Run, kept)
		}
	}
	if errors.Is(err, ErrNowAsks) {
		kept.NowAsks = true
		if unsaved := s.save(ctx, string(id), recordMemo, rec.with(i, kept), version); unsaved != nil {
			err = unsaved
		} else {
			s.giveBack(ctx, x.remote.Run, kept)
		}
	}
	if err != nil {
		return Claim{}, fmt.Errorf("claim call %q: %w", string(call), err)
	}
	kept.ClaimedAt, kept.ClaimedBy = now.UTC(), c.Credential
	x.rec = rec.with(i, kept)
	if r, err = s.view(ctx, x); err != nil { // first, so that a claim that is stored has its answer
		return Claim{}, err
	}
	if err := s.keep(ctx, string(id), recordMemo, x.rec, version); err != nil {
		if !errors.Is(err, approvals.ErrConflict) {
			s.unclaim(ctx, x, rec)
		}
		return Claim{}, err
	}
	s.hubs.wake(id)
	s.show(ctx, x, call)
	st = r.Calls[i]
	return Claim{Call: call, Tool: st.Tool, Args: st.Args, Digest: st.Digest, ClaimedAt: st.ClaimedAt, Receipt: st.Receipt}, nil
}

// unclaim puts back the record from before a claim that may be stored and is not known to
// be durable: its caller reads that it does not count, and claims again. A claim may reach
// Redis only later: then the record is stored again, so that its version no longer fits that
// claim. unclaim never takes away the claim of another. If it fails and the claim was stored,
// the decision stays used.
// A call that is executed here may have begun for another caller, so its claim stays.
func (s *Service) unclaim(ctx context.Context, x found, before record) {
	if before.Here {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unclaimTime)
	defer cancel()
	is, err := json.Marshal(x.rec)
	to, errTo := json.Marshal(before)
	if err = cmp.Or(err, errTo); err == nil {
		err = s.c.Store.RevertMemo(ctx, string(x.id), recordMemo, is, to, x.version+1)
	}
	if err != nil && !errors.Is(err, approvals.ErrConflict) {
		s.c.Log.LogAttrs(ctx, slog.LevelWarn, "a claim that failed cannot be taken back; if Redis has stored it, the call has to be asked about again", slog.String("request", string(x.id)), slog.Any("err", err))
	}
}

// unclaimTime is how long a caller whose claim failed waits for its end.
const unclaimTime = 2 * time.Second

// Report keeps what the caller says became of a call that it claimed, once. An external
// call of another agent that the client may fulfill takes no report, which is
// [approvals.ErrInvalid].
func (s *Service) Report(ctx context.Context, c Client, id approvals.RunID, call approvals.ToolCallID, report Report) (Request, error) {
	switch report.State {
	case approvals.Ran, approvals.RanFailed, approvals.NotRun:
	default:
		return Request{}, invalid("state", "must be %s, %s or %s", approvals.Ran, approvals.RanFailed, approvals.NotRun)
	}
	if report.Took < 0 {
		return Request{}, invalid("took", "is negative")
	}
	x, err := s.find(ctx, c, id)
	if errors.Is(err, approvals.ErrNotFound) {
		if _, no := s.fulfillable(ctx, c, id, call); no == nil {
			return Request{}, invalid("state", "is for calls that the agent claimed; this is an external call of another agent, and has result")
		}
	}
	if err != nil {
		return Request{}, err
	}
	now := s.c.Now().UTC()
	said := storedReport{State: report.State, Took: report.Took, Words: cut(report.Words), Excerpt: cut(report.Excerpt), At: now}
	x.rec, err = s.change(ctx, id, func(r *record) (bool, error) {
		i := r.call(call)
		if i < 0 {
			return false, fmt.Errorf("call %q: %w", string(call), approvals.ErrNotFound)
		}
		kept := r.Calls[i]
		switch {
		case kept.ClaimedAt.IsZero():
			return false, ErrNotClaimed
		case kept.Report != nil:
			again := said
			if again.At = kept.Report.At; *kept.Report != again {
				return false, ErrReported
			}
			return false, nil
		}
		kept.Report = &said
		*r = r.with(i, kept)
		return true, nil
	})
	if err != nil {
		return Request{}, err
	}
	s.hubs.wake(id)
	s.show(ctx, x, call)
	return s.Get(ctx, c, id)
}

// Answered says that a caller was told what became of a call that was executed
// here: from now on, the same call is a new request. It may be repeated, and returns
// whether this was the first time.
func (s *Service) Answered(ctx context.Context, c Client, id approvals.RunID) (bool, error) {
	first := false
	err := s.changeHere(ctx, c, id, func(r *record) (bool, error) {
		if first = r.AnsweredAt.IsZero(); first {
			r.AnsweredAt = s.c.Now().UTC()
		}
		return first, nil
	})
	return first, err
}

// Unanswered takes [Service.Answered] back for the caller that was the first: it left
// before its answer. The same call finds this one again.
func (s *Service) Unanswered(ctx context.Context, c Client, id approvals.RunID) error {
	return s.changeHere(ctx, c, id, func(r *record) (bool, error) {
		told := !r.AnsweredAt.IsZero()
		r.AnsweredAt, r.Owed = time.Time{}, true
		return told, nil
	})
}

// Owe stores that a caller is about to be told to make the same call again for the
// result of a call that is executed here. Until [Service.Answered], the same call
// then finds this request, also if the policy permits the call without asking
// anyone, so that it does not run twice. It may be repeated.
func (s *Service) Owe(ctx context.Context, c Client, id approvals.RunID) error {
	return s.changeHere(ctx, c, id, func(r *record) (bool, error) {
		owed := r.Owed
		if r.Owed = true; r.AnsweredAt.Equal(r.Calls[0].ClaimedAt) { // it was claimed with the question
			r.AnsweredAt = time.Time{}
		}
		return !owed, nil
	})
}

// changeHere changes the record of a request whose call is executed here.
func (s *Service) changeHere(ctx context.Context, c Client, id approvals.RunID, change func(r *record) (bool, error)) error {
	x, err := s.find(ctx, c, id)
	if err != nil {
		return err
	}
	if !x.rec.Here {
		return invalid("request", "is not executed here")
	}
	rec, err := s.change(ctx, id, change)
	if err != nil {
		return err
	}
	if !rec.used() {
		s.turns.drop(indexID(c.Name, "print", rec.Calls[0].Fingerprint))
	}
	return nil
}

// show puts on the card what the record has of a call that people approved. The
// record is what counts: if this fails, it is logged, and the next request about the
// call shows it.
func (s *Service) show(ctx context.Context, x found, call approvals.ToolCallID) {
	i := x.rec.call(call)
	if i < 0 || x.rec.Calls[i].ClaimedAt.IsZero() {
		return
	}
	kept := x.rec.Calls[i]
	e := approvals.Execution{State: approvals.Claimed, At: kept.ClaimedAt, By: x.rec.Agent}
	if said := kept.Report; said != nil {
		e = approvals.Execution{State: said.State, At: said.At, Took: said.Took, Words: said.Words, By: x.rec.Agent}
		if said.State == approvals.Ran {
			e.Words, e.Excerpt = "", said.Excerpt
		}
	}
	s.conclude(ctx, x, approvals.Conclusion{Call: call, Execution: e})
}

// giveBack gives back the place of the day of a call that the policy stopped at its claim, as
// it is stored. It may be repeated: a process can end between the two. A delivery can enter
// the call once more, so it comes after [Service.stop]: a delivery that is under way then
// does not end, and gives the place back when it is repeated.
func (s *Service) giveBack(ctx context.Context, run agentrun.Run, kept storedCall) {
	if kept.Refused != "" || kept.NowAsks {
		s.c.Runner.Unclear(ctx, run, approvals.ToolCall{ID: kept.ID})
	}
}

// stop puts on the card, and in the facts, that the policy refused a call that people
// approved. Like [Service.show] it may be repeated.
func (s *Service) stop(ctx context.Context, x found, call approvals.ToolCallID) {
	if i := x.rec.call(call); i >= 0 && x.rec.Calls[i].Refused != "" {
		kept := x.rec.Calls[i]
		e := approvals.Execution{State: approvals.Refused, At: kept.RefusedAt, Words: cut(kept.Refused)}
		s.conclude(ctx, x, approvals.Conclusion{Call: call, Execution: e, Rule: kept.RefusedBy})
	}
}

func (s *Service) conclude(ctx context.Context, x found, c approvals.Conclusion) {
	if _, ok := x.remote.Batch.Approval(c.Call); !ok {
		return
	}
	request := approvals.RequestID("intake:" + string(x.id) + ":" + string(c.Call) + ":" + string(c.Execution.State))
	_, err := s.c.Desk.Conclude(context.WithoutCancel(ctx), x.remote.Batch.ID, request, approvals.Conclude{
		Calls: []approvals.Conclusion{c}, At: s.c.Now(),
	})
	if err != nil {
		s.c.Log.LogAttrs(ctx, slog.LevelWarn, "what became of a call is not on its card", slog.String("request", string(x.id)), slog.Any("err", err))
	}
}
