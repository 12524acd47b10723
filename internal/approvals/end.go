package approvals

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// fulfill records the result of an external call, once.
func (b Batch) fulfill(cmd Fulfill) (Batch, []Event, error) {
	if err := checkActor(cmd.By, cmd.At); err != nil {
		return b, nil, err
	}
	i := slices.IndexFunc(b.Calls, func(c External) bool { return c.Call.ID == cmd.Call })
	if i < 0 {
		if _, err := b.approval(cmd.Call); err != nil {
			return b, nil, err
		}
		return b, nil, fmt.Errorf("%w: call %q needs people, not a result", ErrInvalid, string(cmd.Call))
	}
	result, err := checkResult(cmd.Result)
	if err != nil {
		return b, nil, fmt.Errorf("call %q: %w", string(cmd.Call), err)
	}
	c := b.Calls[i]
	if c.Result != nil {
		if sameResult(c.Result, result) {
			return b, nil, nil
		}
		return b, nil, fmt.Errorf("call %q: %w", string(cmd.Call), ErrSettled)
	}
	at := plain(cmd.At)
	c.Result, c.Ending = result, Ending{At: at, By: cmd.By}
	b.Calls = slices.Clone(b.Calls)
	b.Calls[i] = c
	return b.moved(at, Fulfilled{Batch: b.ID, Call: cmd.Call, By: cmd.By, At: at})
}

// expire ends what is overdue. A zero time is before every deadline.
func (b Batch) expire(cmd Expire) (Batch, []Event, error) {
	next, at := b, plain(cmd.At)
	var events []Event
	for i, a := range b.Approvals {
		if a.Status != Pending || !a.overdue(at) {
			continue
		}
		next = next.with(i, a.settle(Expired, "", "", at))
		events = append(events, Settled{Batch: b.ID, Call: a.Call.ID, Status: Expired, At: at})
	}
	if len(events) == 0 {
		return b, nil, fmt.Errorf("batch %s: %w", b.ID, ErrNotYet)
	}
	return next.moved(at, events...)
}

// withdraw ends everything that is open.
func (b Batch) withdraw(cmd Withdraw) (Batch, []Event, error) {
	if err := checkActor(cmd.By, cmd.At); err != nil {
		return b, nil, err
	}
	if err := checkReason(cmd.Reason); err != nil {
		return b, nil, err
	}
	next, at := b, plain(cmd.At)
	next.Approvals, next.Calls = slices.Clone(b.Approvals), slices.Clone(b.Calls)
	var events []Event
	settled := func(call ToolCallID) {
		events = append(events, Settled{
			Batch: b.ID, Call: call, Status: Withdrawn, By: cmd.By, Reason: cmd.Reason, At: at,
		})
	}
	for i, a := range next.Approvals {
		if a.Status == Pending {
			next.Approvals[i] = a.settle(Withdrawn, cmd.By, cmd.Reason, at)
			settled(a.Call.ID)
		}
	}
	for i, c := range next.Calls {
		if c.Result == nil {
			c.Result = ToolDenied{Message: because(UnansweredMessage, cmd.Reason)}
			c.Ending = Ending{At: at, By: cmd.By, Reason: cmd.Reason}
			next.Calls[i] = c
			settled(c.Call.ID)
		}
	}
	if len(events) == 0 {
		return b, nil, fmt.Errorf("batch %s: %w", b.ID, ErrSettled)
	}
	return next.moved(at, events...)
}

// checkResult returns a copy of a well-formed result. Nothing else may be
// stored: what a model reads later must be what was delivered.
func checkResult(r CallResult) (CallResult, error) {
	switch r := r.(type) {
	case ToolReturn:
		return r.check()
	case ToolFailed:
		return r, checkMessage(r.Message)
	case ModelRetry:
		return r, checkMessage(r.Message)
	case ToolDenied:
		return r, checkMessage(r.Message)
	}
	return nil, fmt.Errorf("%w: %T is no result", ErrInvalid, r)
}

func checkMessage(m string) error {
	if !utf8.ValidString(m) {
		return fmt.Errorf("%w: a message must be valid UTF-8", ErrInvalid)
	}
	return nil
}

func (r ToolReturn) check() (ToolReturn, error) {
	if r.ReturnValue == nil {
		r.ReturnValue = json.RawMessage("null")
	}
	if err := checkValue(r.ReturnValue, maxDepth); err != nil {
		return ToolReturn{}, fmt.Errorf("return value: %w", err)
	}
	if r.Content != nil && (checkValue(r.Content, maxDepth) != nil || !bytes.HasPrefix(bytes.TrimSpace(r.Content), []byte{'"'})) {
		return ToolReturn{}, fmt.Errorf("%w: content must be a JSON string", ErrInvalid)
	}
	if err := checkMetadata(r.Metadata); err != nil {
		return ToolReturn{}, err
	}
	return ToolReturn{
		ReturnValue: slices.Clone(r.ReturnValue),
		Content:     slices.Clone(r.Content),
		Metadata:    slices.Clone(r.Metadata),
	}, nil
}

// sameResult compares two well-formed results byte for byte.
func sameResult(x, y CallResult) bool {
	a, ok := x.(ToolReturn)
	if !ok {
		return x == y
	}
	b, ok := y.(ToolReturn)
	return ok && same(a.ReturnValue, b.ReturnValue) && same(a.Content, b.Content) && same(a.Metadata, b.Metadata)
}

func same(x, y json.RawMessage) bool { return bytes.Equal(x, y) && (x == nil) == (y == nil) }
