package approvals

import (
	"context"
	"encoding/json"
	"fmt"
)

// A Resolver says who an authenticated person is at this moment: which of the
// groups that are asked they are in, and for whom they may approve. A surface
// brings one for the person whom it has authenticated. Where it does not know,
// it returns an error, and then nothing is decided.
type Resolver func(ctx context.Context, asked Asked) (Principal, error)

// A Case is a call that an authenticated person was shown, and who that person
// is. Every surface decides by the same steps: [Desk.Batch], [Desk.Case], and
// then [Desk.DecideCase] or one of its like, which compares the digest and
// judges whether the person may. The surface makes sure that the person was
// shown the whole call.
type Case struct {
	Batch    Batch
	Approval Approval
	Decision Decision // without verdict and reason; its digest is of the arguments that were shown
	Repeated bool     // the person had decided the same before, and this request is new; nothing was changed
}

// Case finds the call in the batch and resolves the person. shown is the digest
// of the arguments that the person saw. With an error the case holds as much as
// is known, for explaining it.
func (d *Desk) Case(ctx context.Context, b Batch, call ToolCallID, shown Digest, who Resolver) (Case, error) {
	c := Case{Batch: b, Decision: Decision{Call: call, Digest: shown, At: d.now()}}
	i, err := b.approval(call)
	if err != nil {
		return c, err
	}
	c.Approval = b.Approvals[i]
	if c.Decision.By, err = who(ctx, b.Asked()); err != nil {
		return c, fmt.Errorf("resolve who decides on call %q: %w", string(call), err)
	}
	return c, nil
}

// MayDecide is nil if this verdict would be taken as the batch was when the case
// was made, with a reason where one is needed.
func (c Case) MayDecide(v Verdict) error {
	c.Decision.Verdict, c.Decision.Reason = v, "a reason"
	_, _, err := c.Batch.Apply(Decide{c.Decision})
	return err
}

// DecideCase commits the person's verdict and returns the case as it is after
// it. With an error, what it returns was read again if it could be: someone
// else may have moved the batch.
func (d *Desk) DecideCase(ctx context.Context, c Case, r RequestID, v Verdict, reason string) (Case, error) {
	c.Decision.Verdict, c.Decision.Reason = v, reason
	cmd := Decide{c.Decision}
	cmd.At = d.at(cmd.At)
	if c.Batch.Has(c.Decision) {
		answered, err := d.store.Answered(ctx, c.Batch.ID, cmd.request(r))
		if err != nil {
			return c, err
		}
		c.Repeated = !answered
	}
	b, err := d.commits.decideOn(ctx, c.Batch, cmd.request(r), cmd)
	return d.after(ctx, c, b, err)
}

// RetractCase commits that the person takes back their decision, and returns the
// case like [Desk.DecideCase].
func (d *Desk) RetractCase(ctx context.Context, c Case, r RequestID) (Case, error) {
	b, err := d.Retract(ctx, c.Batch.ID, r, Retract{Call: c.Decision.Call, By: c.Decision.By, At: c.Decision.At})
	return d.after(ctx, c, b, err)
}

// AmendCase commits that the person replaces the arguments that they were shown,
// and returns the case like [Desk.DecideCase]: its decision is on the new
// arguments then.
func (d *Desk) AmendCase(ctx context.Context, c Case, r RequestID, args json.RawMessage) (Case, error) {
	shown := c.Decision.Digest
	b, err := d.Amend(ctx, c.Batch.ID, r, Amend{
		Call: c.Decision.Call, From: shown, Args: args, By: c.Decision.By, At: c.Decision.At,
	})
	if err == nil {
		c.Decision.Digest = DigestOf(c.Batch.ID, ToolCall{ID: c.Approval.Call.ID, Name: c.Approval.Call.Name, Args: args})
	}
	return d.after(ctx, c, b, err)
}

// after returns the case with the batch b, or with what is stored if a command
// was refused.
func (d *Desk) after(ctx context.Context, c Case, b Batch, refused error) (Case, error) {
	if refused != nil {
		now, err := d.store.Batch(ctx, c.Batch.ID)
		if err != nil {
			return c, refused
		}
		b = now
	}
	c.Batch = b
	c.Approval, _ = b.Approval(c.Decision.Call)
	return c, refused
}
