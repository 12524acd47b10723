package intake

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// view is the request as its client sees it now.
func (s *Service) view(ctx context.Context, x found) (Request, error) {
	r, err := s.standing(ctx, x)
	if err == nil && x.rec.HasState {
		if r.StateDoc, _, err = s.c.Store.Memo(ctx, string(x.id), stateMemo); err != nil {
			err = fmt.Errorf("load the state of %s: %w", x.id, err)
		}
	}
	if err != nil {
		return Request{}, err
	}
	return s.sign(ctx, r)
}

// standing is the request without what never changes the answer to how it stands:
// the state of the caller, and the receipts.
func (s *Service) standing(ctx context.Context, x found) (Request, error) {
	now := s.c.Now()
	r := Request{
		ID: x.id, Batch: x.remote.Batch.ID, ExternalID: x.rec.ExternalID, Group: x.rec.Group, State: StateSettled,
		CreatedAt: x.remote.Run.CreatedAt, Trace: x.rec.Trace, SupersededBy: x.rec.SupersededBy,
	}
	if len(x.rec.Calls) != len(x.remote.Calls) {
		return Request{}, fmt.Errorf("%w: request %s has %d calls, its run %d", approvals.ErrUnreadable, x.id, len(x.rec.Calls), len(x.remote.Calls))
	}
	var decided time.Time // when the last call was
	for i, c := range x.remote.Calls {
		st, err := s.status(ctx, x, x.rec.Calls[i], c, now)
		if err != nil {
			return Request{}, err
		}
		if st.Outcome == OutcomePending {
			r.State = StatePending
		}
		if st.DecidedAt.After(decided) {
			decided = st.DecidedAt
		}
		r.Calls = append(r.Calls, st)
	}
	for i := range r.Calls {
		r.Calls[i].UsableUntil = x.usableUntil(r, i, decided)
	}
	if r.State == StatePending {
		r.ExpiresAt = x.remote.Batch.Deadline()
	}
	return r, r.mark()
}

// mark gives the request its version: a digest of everything else in it. The state
// document never changes, and a receipt says nothing new.
func (r *Request) mark() error {
	doc, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode request %s: %w", r.ID, err)
	}
	r.Version = sum("countersign.request.v1", string(doc))[:32]
	return nil
}

// sign adds the receipts of the calls that are decided.
func (s *Service) sign(ctx context.Context, r Request) (Request, error) {
	if s.c.Sign == nil {
		return r, nil
	}
	for i, c := range r.Calls {
		if c.Outcome == OutcomePending {
			continue
		}
		receipt, err := s.c.Sign(ctx, r, c)
		if err != nil {
			return Request{}, fmt.Errorf("sign the receipt of call %q: %w", string(c.ID), err)
		}
		r.Calls[i].Receipt = receipt
	}
	return r, nil
}

// usableUntil is when the decision on call i is of no use any more, if every call
// of the request is decided: an agent that waits for several of them can use none
// before.
func (x found) usableUntil(r Request, i int, decided time.Time) time.Time {
	if r.State == StatePending {
		return time.Time{}
	}
	switch r.Calls[i].Outcome {
	case OutcomeApproved, OutcomeDenied, OutcomeAllowed:
		a, _ := x.remote.Batch.Approval(r.Calls[i].ID)
		return decided.Add(cmp.Or(a.Requirement.ClaimWithin, approvals.DefaultClaimWithin))
	default:
		return time.Time{}
	}
}

// status is where one call stands.
func (s *Service) status(ctx context.Context, x found, kept storedCall, c agentrun.RuledCall, now time.Time) (CallStatus, error) {
	st := CallStatus{
		ID: c.ID, Tool: c.Name, Args: c.Args, Fingerprint: kept.Fingerprint, ClaimedAt: kept.ClaimedAt,
		Digest: approvals.DigestOf(approvals.BatchID(x.id), c.ToolCall), DecidedAt: x.remote.Run.CreatedAt,
	}
	if kept.Report != nil {
		report := Report(*kept.Report)
		st.Report = &report
	}
	if a, ok := x.remote.Batch.Approval(c.ID); ok {
		err := s.asked(ctx, x, a, &st, now)
		return st, err
	}
	for _, e := range x.remote.Batch.Calls {
		if e.Call.ID == c.ID {
			x.waits(e, &st)
			return st, nil
		}
	}
	switch ruling := c.Ruling.(type) {
	case approvals.Permit:
		st.Outcome = OutcomeAllowed
		x.end(&st)
	case approvals.Refuse:
		st.Outcome, st.Reason = OutcomeRefused, ruling.Reason
	default:
		return st, fmt.Errorf("%w: nobody is asked about call %q", approvals.ErrUnreadable, string(c.ID))
	}
	return st, nil
}

// asked is where a call stands that people are asked about.
func (s *Service) asked(ctx context.Context, x found, a approvals.Approval, st *CallStatus, now time.Time) error {
	o := a.Outcome(now)
	st.Digest, st.Rule, st.DecidedAt = a.Call.Digest, a.Rule, o.At
	for _, seat := range o.By {
		if o.Status != approvals.Withdrawn {
			st.By = append(st.By, seat.User)
		}
	}
	switch o.Status {
	case approvals.Pending:
		st.Outcome, st.DecidedAt = OutcomePending, time.Time{}
	case approvals.Approved:
		st.Outcome = OutcomeApproved
	case approvals.Denied:
		st.Outcome = OutcomeDenied
	case approvals.Expired:
		st.Outcome = OutcomeExpired
	case approvals.Withdrawn:
		st.Outcome = OutcomeWithdrawn
	}
	switch st.Outcome {
	case OutcomeDenied, OutcomeWithdrawn:
		st.Reason = a.Denial().Message
	case OutcomeExpired:
		st.Reason = approvals.ExpiredMessage
	default:
	}
	x.end(st)
	if x.rec.Calls[x.rec.call(st.ID)].Refused != "" {
		st.Outcome, st.Reason = OutcomeRefused, x.rec.Calls[x.rec.call(st.ID)].Refused
	}
	if a.Call.Digest == a.Proposed {
		return nil
	}
	call, err := s.c.Desk.Call(ctx, x.remote.Batch, a.Call.ID)
	if err != nil {
		return err
	}
	st.Edited, st.Args = !bytes.Equal(call.Args, st.Args), call.Args
	return nil
}

// end is what became of a decision that was not used when the caller withdrew its
// request, or put another in its place.
func (x found) end(st *CallStatus) {
	switch {
	case !st.ClaimedAt.IsZero():
	case st.Outcome != OutcomeApproved && st.Outcome != OutcomeAllowed && st.Outcome != OutcomeWithdrawn && st.Outcome != OutcomePending:
	case x.rec.SupersededBy != "":
		st.Outcome, st.Reason = OutcomeSuperseded, supersededMessage
	case x.rec.Withdrawn && st.Outcome != OutcomeWithdrawn && st.Outcome != OutcomePending:
		st.Outcome, st.Reason = OutcomeWithdrawn, approvals.WithdrawnMessage
	}
}

const supersededMessage = "Nobody denied this tool call; another request took its place. It was not executed."

// waits is where an external call stands.
func (x found) waits(e approvals.External, st *CallStatus) {
	st.External, st.Digest, st.DecidedAt, st.Result = true, e.Call.Digest, e.Ending.At, e.Result
	switch r := e.Result.(type) {
	case nil:
		st.Outcome, st.DecidedAt = OutcomePending, time.Time{}
	case approvals.ToolDenied:
		if st.Outcome = OutcomeFulfilled; e.Ending.Reason != "" {
			st.Outcome, st.Reason, st.Result = OutcomeWithdrawn, r.Message, nil
		}
		x.end(st)
	default:
		st.Outcome = OutcomeFulfilled
	}
}
