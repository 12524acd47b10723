package approvals

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Check says whether new arguments fit the tool of a call, as they would have
// to if the model had made them. The error is shown to the person who wrote
// them.
type Check func(ctx context.Context, b Batch, c ToolCall) error

// Amend checks the new arguments, rules on them under the current policy and
// commits them; the command's own ruling is not looked at. What would be
// refused whatever the arguments are is neither checked nor ruled on: a person
// who may not amend the call learns nothing about the tool. Arguments that
// differ from those of now in white space only are no change, and [ErrInvalid].
func (d *Desk) Amend(ctx context.Context, id BatchID, r RequestID, cmd Amend) (Batch, error) {
	cmd.At = d.at(cmd.At)
	if err := CheckArgs(cmd.Args); err != nil {
		return Batch{}, err
	}
	return d.commits.move(ctx, id, cmd.request(r), func(b Batch) (change, error) {
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
		if err := d.changes(ctx, b, cmd); err != nil {
			return change{}, err
		}
		call := ToolCall{ID: cmd.Call, Name: b.Approvals[i].Call.Name, Args: slices.Clone(cmd.Args)}
		if err := d.judge.fits(ctx, b, call); err != nil {
			return change{}, fmt.Errorf("call %q: %w", string(cmd.Call), err)
		}
		cmd.Ruling = d.judge.rule(ctx, b, b.Approvals[i], call, cmd.At)
		next, events, err = b.Apply(cmd)
		args := map[Digest]json.RawMessage{DigestOf(b.ID, call): call.Args}
		return change{batch: next, events: events, args: args}, err
	})
}

// changes is nil if the new arguments are others, and not the same with other
// white space. Missing arguments always count as different.
func (d *Desk) changes(ctx context.Context, b Batch, cmd Amend) error {
	now, err := d.Call(ctx, b, cmd.Call)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if bytes.Equal(compact(now.Args), compact(cmd.Args)) {
		return fmt.Errorf("call %q: %w: nothing but white space is changed", string(cmd.Call), ErrInvalid)
	}
	return nil
}

// compact returns arguments without the white space that means nothing.
func compact(args json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, args) != nil {
		return args
	}
	return out.Bytes()
}

// A judge decides whether a call may have the arguments that a person wrote.
type judge struct {
	policy Policy
	check  Check
}

// fits is nil if the new arguments fit the tool of the call.
func (j judge) fits(ctx context.Context, b Batch, call ToolCall) error {
	if j.check == nil {
		return fmt.Errorf("%w: nothing here can check changed arguments", ErrInvalid)
	}
	if err := j.check(ctx, b, call); err != nil {
		return fmt.Errorf("check the changed arguments: %w", err)
	}
	return nil
}

// rule is the current policy's word on an amended call. The policy is given the
// tool's reason from when the call was proposed. rule fails closed, and a
// permitted call keeps its earlier requirement: an edit never removes one.
func (j judge) rule(ctx context.Context, b Batch, a Approval, call ToolCall, at time.Time) Ruling {
	ruling, err := j.policy.Rule(ctx, Proposal{
		Call:      call,
		Gate:      a.Gate,
		Agent:     b.Agent,
		Requester: b.Requester,
		Channel:   b.Channel,
		Place:     a.Place,
		SoFar:     b.SoFar.clone(),
		At:        at,
	})
	if err != nil || ruling == nil {
		return Ask{Requirement: j.policy.Strictest(at), Why: "No rule could judge the changed arguments.", Unjudged: true}
	}
	if ask, ok := ruling.(Ask); ok {
		if p, ok := j.policy.(stating); ok {
			ask.Severity = ask.Severity.Worse(p.Stated(b.Agent, call.Name))
			return ask
		}
	}
	return ruling
}

// A stating policy knows how bad the calls of a tool are by its own statement.
type stating interface {
	Stated(agent, tool string) Severity
}
