package approvals

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// A Check says whether new arguments fit the tool of a call, as they would have
// to if the model had made them. Its words are for the person who wrote them.
type Check func(ctx context.Context, b Batch, c ToolCall) error

// Amend checks the new arguments, rules on them under the current policy and
// commits them; the command's own ruling is not looked at. What would be
// refused whatever the arguments are is neither checked nor ruled on: an
// outsider learns nothing of the tool.
func (d *Desk) Amend(ctx context.Context, id BatchID, r RequestID, cmd Amend) (Batch, error) {
	cmd.At = d.at(cmd.At)
	if err := CheckArgs(cmd.Args); err != nil {
		return Batch{}, err
	}
	return d.move(ctx, id, cmd.request(r), func(b Batch) (change, error) {
		cmd := cmd
		cmd.Ruling = Permit{}
		next, events, err := b.Apply(cmd)
		if err != nil || len(events) == 0 {
			return change{batch: next}, err
		}
		i, err := b.approval(cmd.Call)
		if err != nil {
			return change{}, err
		}
		call := ToolCall{ID: cmd.Call, Name: b.Approvals[i].Call.Name, Args: slices.Clone(cmd.Args)}
		if err := d.fits(ctx, b, call); err != nil {
			return change{}, fmt.Errorf("call %q: %w", string(cmd.Call), err)
		}
		cmd.Ruling = d.rule(ctx, b, call, cmd.At)
		next, events, err = b.Apply(cmd)
		args := map[Digest]json.RawMessage{DigestOf(b.ID, call): call.Args}
		return change{batch: next, events: events, args: args}, err
	})
}

// fits is nil if the new arguments fit the tool of the call.
func (d *Desk) fits(ctx context.Context, b Batch, call ToolCall) error {
	if d.check == nil {
		return fmt.Errorf("%w: nothing here can check changed arguments", ErrInvalid)
	}
	if err := d.check(ctx, b, call); err != nil {
		return fmt.Errorf("check the changed arguments: %w", err)
	}
	return nil
}

// rule is the current policy's word on an amended call. It fails closed.
func (d *Desk) rule(ctx context.Context, b Batch, call ToolCall, at time.Time) Ruling {
	ruling, err := d.policy.Rule(ctx, Proposal{
		Call:      call,
		Gate:      GateDeclared, // a gate once closed is not opened by an edit
		Agent:     b.Agent,
		Requester: b.Requester,
		Channel:   b.Channel,
		SoFar:     b.SoFar.clone(),
		At:        at,
	})
	if err != nil || ruling == nil {
		return Ask{Requirement: d.policy.Strictest(at), Why: "No rule could judge the changed arguments."}
	}
	return ruling
}
