package intake

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// view is the request as its client sees it now.
func (s *Service) view(ctx context.Context, x found) (Request, error) {
	r, err := s.standing(ctx, x)
	if err == nil && x.rec.HasState {
		r.StateDoc, _, err = s.c.Store.Memo(ctx, string(x.id), stateMemo)
	}
	if err != nil {
		return Request{}, err
	}
	return s.sign(r)
}

// standing is the request without what never changes the answer to how it stands:
// the state of the caller, and the receipts.
func (s *Service) standing(ctx context.Context, x found) (Request, error) {
	r, err := s.stands(ctx, x)
	if err != nil {
		return Request{}, err
	}
	return r, r.mark()
}

// stands is standing without the version, for callers that do not wait for the next one.
func (s *Service) stands(ctx context.Context, x found) (Request, error) {
	if ends := x.remote.Batch.Deadline(); !ends.IsZero() && !s.c.Shown().Before(ends) {
		_ = s.c.Agrees(ctx) // if not, what is shown follows the earlier clock from now on
	}
	now := s.c.Shown()
	r := Request{
		ID: x.id, Agent: x.rec.Agent, Batch: x.remote.Batch.ID, ExternalID: x.rec.ExternalID, Group: x.rec.Group, State: StateSettled,
		CreatedAt: x.remote.Run.CreatedAt, Trace: x.rec.Trace, SupersededBy: x.rec.SupersededBy, Left: x.rec.Left,
	}
	if len(x.rec.Calls) != len(x.remote.Calls) {
		return Request{}, fmt.Errorf("%w: request %s has %d calls, its run %d", approvals.ErrUnreadable, x.id, len(x.rec.Calls), len(x.remote.Calls))
	}
	for i, c := range x.remote.Calls {
		st, err := s.status(ctx, x, x.rec.Calls[i], c, now)
		if err != nil {
			return Request{}, err
		}
		if st.Outcome == OutcomePending {
			r.State = StatePending
		}
		r.Calls = append(r.Calls, st)
	}
	decided := x.lastDecision(now)
	for i := range r.Calls {
		r.Calls[i].UsableUntil = x.usableUntil(r, i, decided)
	}
	if r.State == StatePending {
		r.ExpiresAt = x.remote.Batch.Deadline()
	}
	return r, nil
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
func (s *Service) sign(r Request) (Request, error) {
	if s.c.Sign == nil {
		return r, nil
	}
	for i, c := range r.Calls {
		if c.Outcome == OutcomePending {
			continue
		}
		receipt, err := s.c.Sign(r, c)
		if err != nil {
			return Request{}, fmt.Errorf("sign the receipt of call %q: %w", string(c.ID), err)
		}
		r.Calls[i].Receipt = receipt
	}
	return r, nil
}

// lastDecision is when the last call of a request was decided, if each is: with the request,
// if nobody was asked about it. What becomes of a decision later, such as a refusal at its
// claim, gives the other ones no more time.
func (x found) lastDecision(now time.Time) time.Time {
	var last time.Time
	if len(x.remote.Batch.Approvals)+len(x.remote.Batch.Calls) < len(x.remote.Calls) {
		last = x.remote.Run.CreatedAt
	}
	for _, a := range x.remote.Batch.Approvals {
		last = latest(last, a.Outcome(now).At)
	}
	for _, e := range x.remote.Batch.Calls {
		last = latest(last, e.Ending.At)
	}
	return last
}

// usableUntil is when the decision on call i can no longer be used. Its time begins once
// every call of the request is decided, because an agent that waits for several of them
// can use none before. For a call that was claimed earlier, it began with the claim.
func (x found) usableUntil(r Request, i int, decided time.Time) time.Time {
	c := r.Calls[i]
	from := decided
	switch early := !c.ClaimedAt.IsZero() && (r.State == StatePending || c.ClaimedAt.Before(decided)); {
	case early:
		from = latest(c.ClaimedAt, c.DecidedAt) // by a clock that was set back, the claim is the earlier one
	case r.State == StatePending:
		return time.Time{}
	}
	switch c.Outcome {
	case OutcomeApproved, OutcomeDenied, OutcomeAllowed:
		a, _ := x.remote.Batch.Approval(c.ID)
		return from.Add(cmp.Or(a.Requirement.ClaimWithin, approvals.DefaultClaimWithin))
	default:
		return time.Time{}
	}
}

// status is where one call stands.
func (s *Service) status(ctx context.Context, x found, kept storedCall, c agentrun.RuledCall, now time.Time) (CallStatus, error) {
	st := CallStatus{
		ID: c.ID, Tool: c.Name, Place: c.Place, Args: c.Args, Fingerprint: kept.Fingerprint, ClaimedAt: kept.ClaimedAt,
		Digest: approvals.DigestOf(approvals.BatchID(x.id), c.ToolCall), DecidedAt: x.remote.Run.CreatedAt,
		Here: x.rec.Here, Answered: !x.rec.AnsweredAt.IsZero(),
	}
	if kept.Report != nil {
		report := Report(*kept.Report)
		st.Report = &report
	}
	if a, ok := x.remote.Batch.Approval(c.ID); ok {
		err := s.asked(ctx, x, a, &st, now)
		kept.refuse(&st)
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
		st.Outcome, st.Rule = OutcomeAllowed, ruling.Rule
		x.end(&st)
		kept.refuse(&st)
	case approvals.Refuse:
		st.Outcome, st.Reason, st.Rule = OutcomeRefused, ruling.Reason, ruling.Rule
	default:
		return st, fmt.Errorf("%w: nobody is asked about call %q", approvals.ErrUnreadable, string(c.ID))
	}
	return st, nil
}

// asked is where a call stands that people are asked about.
func (s *Service) asked(ctx context.Context, x found, a approvals.Approval, st *CallStatus, now time.Time) error {
	o := a.Outcome(now)
	st.Digest, st.Rule, st.DecidedAt = a.Call.Digest, a.Rule, o.At
	st.Given, st.Needed = given(a), needed(a.Requirement)
	if o.Status != approvals.Withdrawn {
		st.By = o.By
	}
	st.Editors, st.Approvers, st.Deniers = editors(a), a.Approvers(), a.Deciders(a.No())
	switch o.Status {
	case approvals.Pending:
		st.Outcome, st.DecidedAt = OutcomePending, time.Time{}
	case approvals.Approved:
		if err := x.released(a, *st); err != nil {
			return fmt.Errorf("%w: %w", approvals.ErrUnreadable, err)
		}
		st.Outcome = OutcomeApproved
	case approvals.Denied:
		st.Outcome = OutcomeDenied
	case approvals.Expired:
		st.Outcome = OutcomeExpired
	case approvals.Withdrawn:
		st.Outcome = OutcomeWithdrawn
	case approvals.Confirmed: // what is asked about here has not run
		return fmt.Errorf("%w: call %q is %s", approvals.ErrUnreadable, string(a.Call.ID), string(o.Status))
	}
	switch st.Outcome {
	case OutcomeDenied, OutcomeWithdrawn:
		st.Reason = a.Denial().Message
	case OutcomeExpired:
		st.Reason = approvals.ExpiredMessage
	default:
	}
	x.end(st)
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

// released is nil if people approved the call, with the arguments that its caller gets.
func (x found) released(a approvals.Approval, st CallStatus) error {
	if err := x.remote.Batch.Implies(a); err != nil {
		return err
	}
	call := approvals.ToolCall{ID: st.ID, Name: st.Tool, Args: st.Args}
	if a.Call.Digest == a.Proposed && approvals.DigestOf(x.remote.Batch.ID, call) != a.Call.Digest { // else the desk reads the edited ones
		return fmt.Errorf("call %q: stored arguments: %w", string(a.Call.ID), approvals.ErrStale)
	}
	return nil
}

// editors are the people who changed the arguments, also when the call was asked
// about before, each once and in their order.
func editors(a approvals.Approval) []approvals.UserID {
	all := slices.Clone(a.EditedBy)
	for _, m := range a.Amendments {
		if !slices.Contains(all, m.By.User) {
			all = append(all, m.By.User)
		}
	}
	return all
}

// refuse is what became of a call that the policy refused when it was about to be
// claimed.
func (c storedCall) refuse(st *CallStatus) {
	if c.Refused == "" {
		return
	}
	st.Outcome, st.Reason, st.Rule, st.By = OutcomeRefused, c.Refused, c.RefusedBy, nil
	if !c.RefusedAt.IsZero() {
		st.DecidedAt = c.RefusedAt
	}
}

// given is how many approvals count so far.
func given(a approvals.Approval) int {
	n := 0
	for _, p := range a.Progress() {
		n += len(p.By)
	}
	return n
}

// needed is how many approvals meet the requirement, if there is one way to meet it.
func needed(r approvals.Requirement) int {
	n := 0
	for _, q := range r.Quorums {
		if q.Choice != 0 {
			return 0
		}
		n += q.Need
	}
	return n
}

// end is what became of a decision that was not used when the caller withdrew its
// request, or put another in its place.
func (x found) end(st *CallStatus) {
	was := st.Outcome
	decided := was == OutcomeApproved || was == OutcomeAllowed
	switch {
	case !st.ClaimedAt.IsZero():
	case !decided && was != OutcomeWithdrawn && was != OutcomePending:
	case x.rec.SupersededBy != "":
		if st.Outcome = OutcomeSuperseded; !st.External { // else its reason says that it may have run
			st.Reason = supersededMessage
		}
	case x.rec.Withdrawn && decided:
		st.Outcome, st.Reason = OutcomeWithdrawn, withdrawnMessage
	}
	if decided && st.Outcome != was {
		st.DecidedAt = latest(st.DecidedAt, x.rec.EndedAt)
	}
}

// What is said of a decision that was not used.
const (
	supersededMessage = "This tool call was not denied; another request took its place. It was not executed."
	withdrawnMessage  = "This tool call was not denied; its request was withdrawn before it was run. It was not executed."
)

// waits is where an external call stands.
func (x found) waits(e approvals.External, st *CallStatus) {
	st.External, st.Digest, st.DecidedAt, st.Result = true, e.Call.Digest, e.Ending.At, e.Result
	switch r := e.Result.(type) {
	case nil:
		st.Outcome, st.DecidedAt = OutcomePending, time.Time{}
	case approvals.ToolDenied:
		if st.Outcome = OutcomeFulfilled; e.Withdrawn() {
			st.Outcome, st.Reason, st.Result = OutcomeWithdrawn, r.Message, nil
		}
		x.end(st)
	default:
		st.Outcome = OutcomeFulfilled
	}
}
