package intake

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/summary"
)

// Ask takes a request. The same external id with the same calls is the same
// request; with other calls it is a new one, and the one before is superseded.
// If the policy permits or refuses a call without asking anyone, the answer says so.
//
// The record of a request is stored before its run, and all the rest after it. Each step
// can be repeated, so that a caller whose request was cut off at any point can ask again.
func (s *Service) Ask(ctx context.Context, c Client, a Ask) (Request, error) {
	if err := a.check(c); err != nil {
		return Request{}, err
	}
	before, err := s.useKey(ctx, c, a)
	if err != nil {
		return Request{}, err
	}
	if before != "" {
		return s.Get(ctx, c, before)
	}
	a = a.named(c)
	r, ruled, err := s.admit(ctx, c, a)
	if err != nil || r.Claimed {
		return r, err
	}
	a.ruled = ruled
	var x found
	if a.Reuse {
		x, err = s.reuse(ctx, c, a)
	} else {
		x, err = s.submit(ctx, c, a, sum("external/"+a.ExternalID+"/"+payload(a.Calls)))
	}
	if err != nil {
		return Request{}, err
	}
	if x, err = s.point(ctx, c, a, x); err != nil {
		return Request{}, err
	}
	if err := s.keepKey(ctx, c, a, x); err != nil {
		return Request{}, err
	}
	if r, err = s.view(ctx, x); err != nil {
		return Request{}, err
	}
	r.Joined = a.ExternalID != x.rec.ExternalID
	if r.State == StatePending {
		err = s.notify(ctx, EventCreated, x.rec, r)
	}
	if err == nil {
		err = s.c.Store.Confirm(ctx, string(x.id))
	}
	if err != nil {
		return Request{}, err
	}
	return r, nil
}

// named returns the request with an external id. Without one it is named by its
// idempotency key; without that, by a random name, so that it cannot be found again.
func (a Ask) named(c Client) Ask {
	switch {
	case a.ExternalID != "":
	case a.IdempotencyKey != "":
		a.ExternalID = "key-" + sum(c.Name, a.IdempotencyKey)
	default:
		a.ExternalID = uuid.NewString()
	}
	return a
}

// submit stores the request under a key and rules on its calls, once.
func (s *Service) submit(ctx context.Context, c Client, a Ask, key string) (found, error) {
	x := found{id: agentrun.RemoteRunID(Executor, c.Name, key)}
	var err error
	ahead := s.ahead(ctx, x.id)
	if x.rec, _, err = s.record(ahead, x.id); isNotFound(err) && !isRemoved(err) {
		x.fresh = true
		r := &reservation{client: c, request: agentRequest{Run: x.id, External: a.ExternalID, Group: a.Group}}
		if err = s.reserve(ctx, r); err == nil {
			x.rec, err = s.begin(ctx, c, a, x.id)
		}
	}
	if err != nil {
		return found{}, err
	}
	// A request that was found by its fingerprint keeps the call ids of the caller
	// that asked first.
	calls := slices.Clone(a.Calls)
	for i := range calls {
		calls[i].ID = x.rec.Calls[i].ID
	}
	q := x.rec.request(c, key, calls, a.Prompt)
	q.Ruled = a.ruled
	x.remote, err = s.c.Runner.Submit(ahead, q)
	if err == nil && x.fresh && x.remote.Run.Status != agentrun.RunDeferred {
		s.counters.of(c.Name).ended(x.id)
	}
	return x, err
}

// begin creates the record, or returns the one that is there.
func (s *Service) begin(ctx context.Context, c Client, a Ask, id approvals.RunID) (record, error) {
	if len(a.State) > 0 {
		_, version, err := s.c.Store.Memo(ctx, string(id), stateMemo)
		if err == nil && version == 0 {
			err = s.c.Store.CommitMemo(ctx, string(id), stateMemo, a.State, 0, 0)
		}
		if err != nil && !errors.Is(err, approvals.ErrConflict) {
			return record{}, err
		}
	}
	r := s.recordOf(c, a)
	err := s.save(ctx, string(id), recordMemo, r, 0)
	if errors.Is(err, approvals.ErrConflict) {
		r, _, err = s.record(ctx, id)
	}
	return r, err
}

// recordOf is the record of a request that is made now.
func (s *Service) recordOf(c Client, a Ask) record {
	now := s.c.Now()
	r := record{
		Schema: schema, Agent: c.Name, Door: a.Door, Credential: c.Credential, ExternalID: a.ExternalID, Group: a.Group, Session: a.Session,
		Carries: storedCarries(a.Carries), Until: until(now, a.Within, c.Within), Trace: a.Trace, Notify: a.Notify,
		HasState: len(a.State) > 0, Reuse: a.Reuse, Here: a.Here, CreatedAt: now.UTC(),
	}
	if a.IdempotencyKey != "" {
		r.Keys = []string{indexID(c.Name, "key", a.IdempotencyKey)}
	}
	for _, call := range a.Calls {
		r.Calls = append(r.Calls, storedCall{ID: call.ID, Fingerprint: Fingerprint(c, a.Session, call)})
	}
	return r
}

// until is when the first of these times is over, or zero.
func until(now time.Time, all ...time.Duration) time.Time {
	var first time.Duration
	for _, d := range all {
		if d > 0 && (first == 0 || d < first) {
			first = d
		}
	}
	if first == 0 {
		return time.Time{}
	}
	return now.Add(first).UTC()
}

// request is what the runner rules on.
func (r record) request(c Client, key string, calls []Call, prompt string) agentrun.RemoteRequest {
	q := agentrun.RemoteRequest{
		Executor: Executor, Key: key, Agent: c.Name, Requester: c.requester(), Participants: c.Triggers, Channel: c.Channel,
		Limits: approvals.Limits{NoEdits: !r.Carries.Edits, NoReasons: !r.Carries.Reasons},
		Prompt: prompt, Until: r.Until, Untold: r.Notify == "",
	}
	for _, call := range calls {
		q.Calls = append(q.Calls, agentrun.RemoteCall{
			ToolCall: approvals.ToolCall{ID: call.ID, Name: call.Tool, Args: call.Args},
			Place:    approvals.Place{Cwd: call.Cwd, Repository: call.Repository, Branch: call.Branch, Server: call.Server},
			Reason:   call.Reason, External: call.External, Summary: cmp.Or(call.Summary, summary.Known(call.Tool)),
			WriteOnly: call.WriteOnly, Severity: call.Severity, Definition: call.Defined, Metadata: call.Metadata,
		})
	}
	return q
}

// useKey returns the request that the idempotency key was used for, if it was for
// this payload. A key is kept as long as its request.
func (s *Service) useKey(ctx context.Context, c Client, a Ask) (approvals.RunID, error) {
	if a.IdempotencyKey == "" {
		return "", nil
	}
	p, err := update(ctx, s, indexID(c.Name, "key", a.IdempotencyKey), keyMemo, func(p *pointer, stored bool) (bool, error) {
		if stored && p.Payload != a.Payload.String() {
			return false, ErrKeyReused
		}
		p.Schema, p.Payload = schema, a.Payload.String()
		return !stored, nil
	})
	return p.Run, err
}

// keepKey notes which request the idempotency key stands for.
func (s *Service) keepKey(ctx context.Context, c Client, a Ask, x found) error {
	if a.IdempotencyKey == "" {
		return nil
	}
	key := indexID(c.Name, "key", a.IdempotencyKey)
	if !slices.Contains(x.rec.Keys, key) && len(x.rec.Keys) <= maxJoins { // it was found, not made
		_, err := s.change(ctx, x.id, func(r *record) (bool, error) {
			if slices.Contains(r.Keys, key) {
				return false, nil
			}
			r.Keys = append(r.Keys, key)
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	_, err := update(ctx, s, key, keyMemo, func(p *pointer, _ bool) (bool, error) {
		if p.Run != "" {
			return false, nil
		}
		p.Schema, p.Payload, p.Run = schema, a.Payload.String(), x.id
		return true, nil
	})
	return err
}
