package approvals

import (
	"encoding/json"
	"fmt"
	"time"
)

// eventVersion is the version of the JSON of events. Stored events decode for
// ever: a change of their shape is a new version beside this one.
const eventVersion = 1

type eventHead struct {
	V    int    `json:"v"`
	Kind string `json:"kind"`
}

type callRefJSON struct {
	ID     ToolCallID `json:"id"`
	Name   string     `json:"name"`
	Digest Digest     `json:"digest"`
	Size   int        `json:"size"`
}

type principalJSON struct {
	User     UserID       `json:"user"`
	Groups   []GroupID    `json:"groups,omitempty"`
	GroupsAt time.Time    `json:"groups_at,omitzero"`
	For      []absentJSON `json:"for,omitempty"`
}

type absentJSON struct {
	User   UserID    `json:"user"`
	Groups []GroupID `json:"groups,omitempty"`
	Until  time.Time `json:"until,omitzero"`
	Via    []UserID  `json:"via,omitempty"`
}

type (
	openedJSON struct {
		eventHead
		Batch     BatchID       `json:"batch"`
		Run       RunID         `json:"run"`
		Agent     string        `json:"agent,omitempty"`
		Requester UserID        `json:"requester,omitempty"`
		Approvals []callRefJSON `json:"approvals,omitempty"`
		Calls     []callRefJSON `json:"calls,omitempty"`
		At        time.Time     `json:"at,omitzero"`

		Participants []UserID `json:"participants,omitempty"`
	}
	decidedJSON struct {
		eventHead
		Batch   BatchID       `json:"batch"`
		Call    ToolCallID    `json:"call"`
		By      principalJSON `json:"by"`
		Verdict Verdict       `json:"verdict"`
		Digest  Digest        `json:"digest"`
		Reason  string        `json:"reason,omitempty"`
		At      time.Time     `json:"at,omitzero"`
	}
	retractedJSON struct {
		eventHead
		Batch BatchID       `json:"batch"`
		Call  ToolCallID    `json:"call"`
		By    principalJSON `json:"by"`
		At    time.Time     `json:"at,omitzero"`
	}
	amendedJSON struct {
		eventHead
		Batch   BatchID       `json:"batch"`
		Call    ToolCallID    `json:"call"`
		By      principalJSON `json:"by"`
		From    Digest        `json:"from"`
		To      Digest        `json:"to"`
		Cleared []UserID      `json:"cleared,omitempty"`
		At      time.Time     `json:"at,omitzero"`
	}
	remindedJSON struct {
		eventHead
		Batch BatchID    `json:"batch"`
		Call  ToolCallID `json:"call"`
		Rung  int        `json:"rung"`
		At    time.Time  `json:"at,omitzero"`
	}
	escalatedJSON struct {
		eventHead
		Batch   BatchID    `json:"batch"`
		Call    ToolCallID `json:"call"`
		Rung    int        `json:"rung"`
		Quorum  string     `json:"quorum,omitempty"`
		Users   []UserID   `json:"users,omitempty"`
		Groups  []GroupID  `json:"groups,omitempty"`
		Channel string     `json:"channel,omitempty"`
		At      time.Time  `json:"at,omitzero"`
	}
	fulfilledJSON struct {
		eventHead
		Batch BatchID    `json:"batch"`
		Call  ToolCallID `json:"call"`
		By    UserID     `json:"by"`
		At    time.Time  `json:"at,omitzero"`
	}
	settledJSON struct {
		eventHead
		Batch  BatchID    `json:"batch"`
		Call   ToolCallID `json:"call"`
		Status Status     `json:"status"`
		By     UserID     `json:"by,omitempty"`
		Reason string     `json:"reason,omitempty"`
		At     time.Time  `json:"at,omitzero"`
	}
	resolvedJSON struct {
		eventHead
		Batch BatchID   `json:"batch"`
		Run   RunID     `json:"run"`
		At    time.Time `json:"at,omitzero"`
	}
)

// EncodeEvent returns the JSON in which the event is stored and shown. Its
// "kind" is the name of the type in lower case, its "v" is 1.
func EncodeEvent(e Event) ([]byte, error) {
	head := func(kind string) eventHead { return eventHead{V: eventVersion, Kind: kind} }
	var doc any
	switch e := e.(type) {
	case Opened:
		doc = openedJSON{head("opened"), e.Batch, e.Run, e.Agent, e.Requester, refsToJSON(e.Approvals), refsToJSON(e.Calls), e.At, e.Participants}
	case Decided:
		doc = decidedJSON{head("decided"), e.Batch, e.Call, principalToJSON(e.By), e.Verdict, e.Digest, e.Reason, e.At}
	case Retracted:
		doc = retractedJSON{head("retracted"), e.Batch, e.Call, principalToJSON(e.By), e.At}
	case Amended:
		doc = amendedJSON{head("amended"), e.Batch, e.Call, principalToJSON(e.By), e.From, e.To, e.Cleared, e.At}
	case Reminded:
		doc = remindedJSON{head("reminded"), e.Batch, e.Call, e.Rung, e.At}
	case Escalated:
		doc = escalatedJSON{head("escalated"), e.Batch, e.Call, e.Rung, e.Quorum, e.Add.Users, e.Add.Groups, e.Channel, e.At}
	case Fulfilled:
		doc = fulfilledJSON{head("fulfilled"), e.Batch, e.Call, e.By, e.At}
	case Settled:
		doc = settledJSON{head("settled"), e.Batch, e.Call, e.Status, e.By, e.Reason, e.At}
	case Resolved:
		doc = resolvedJSON{head("resolved"), e.Batch, e.Run, e.At}
	default:
		return nil, fmt.Errorf("%w: %T is no event", ErrInvalid, e)
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", e, err)
	}
	return raw, nil
}

// DecodeEvent reads what [EncodeEvent] wrote. A kind or version that it does
// not know is an error that names it, never an event that is left out.
func DecodeEvent(raw []byte) (Event, error) {
	var head eventHead
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, fmt.Errorf("%w: decode event: %w", ErrInvalid, err)
	}
	if head.V != eventVersion {
		return nil, fmt.Errorf("%w: event of unknown version %d", ErrInvalid, head.V)
	}
	switch head.Kind {
	case "opened":
		return decoded(raw, func(d openedJSON) Event {
			return Opened{d.Batch, d.Run, d.Agent, d.Requester, refsFromJSON(d.Approvals), refsFromJSON(d.Calls), plain(d.At), d.Participants}
		})
	case "decided":
		return decoded(raw, func(d decidedJSON) Event {
			return Decided{d.Batch, Decision{d.Call, d.By.principal(), d.Verdict, d.Digest, d.Reason, plain(d.At)}}
		})
	case "retracted":
		return decoded(raw, func(d retractedJSON) Event {
			return Retracted{d.Batch, d.Call, d.By.principal(), plain(d.At)}
		})
	case "amended":
		return decoded(raw, func(d amendedJSON) Event {
			return Amended{d.Batch, d.Call, d.By.principal(), d.From, d.To, d.Cleared, plain(d.At)}
		})
	case "reminded":
		return decoded(raw, func(d remindedJSON) Event {
			return Reminded{d.Batch, d.Call, d.Rung, plain(d.At)}
		})
	case "escalated":
		return decoded(raw, func(d escalatedJSON) Event {
			return Escalated{d.Batch, d.Call, d.Rung, d.Quorum, From{d.Users, d.Groups}, d.Channel, plain(d.At)}
		})
	case "fulfilled":
		return decoded(raw, func(d fulfilledJSON) Event {
			return Fulfilled{d.Batch, d.Call, d.By, plain(d.At)}
		})
	case "settled":
		return decoded(raw, func(d settledJSON) Event {
			return Settled{d.Batch, d.Call, d.Status, d.By, d.Reason, plain(d.At)}
		})
	case "resolved":
		return decoded(raw, func(d resolvedJSON) Event {
			return Resolved{d.Batch, d.Run, plain(d.At)}
		})
	}
	return nil, fmt.Errorf("%w: event of unknown kind %.100q", ErrInvalid, head.Kind)
}

func decoded[T any](raw []byte, event func(T) Event) (Event, error) {
	var doc T
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("%w: decode event: %w", ErrInvalid, err)
	}
	return event(doc), nil
}

func (p principalJSON) principal() Principal {
	out := Principal{User: p.User, Groups: p.Groups, GroupsAt: plain(p.GroupsAt)}
	for _, a := range p.For {
		out.For = append(out.For, Absent{a.User, a.Groups, plain(a.Until), a.Via})
	}
	return out
}

func refsToJSON(refs []CallRef) []callRefJSON {
	var all []callRefJSON
	for _, r := range refs {
		all = append(all, callRefJSON(r))
	}
	return all
}

func refsFromJSON(refs []callRefJSON) []CallRef {
	var all []CallRef
	for _, r := range refs {
		all = append(all, CallRef(r))
	}
	return all
}

func principalToJSON(p Principal) principalJSON {
	out := principalJSON{User: p.User, Groups: p.Groups, GroupsAt: p.GroupsAt}
	for _, a := range p.For {
		out.For = append(out.For, absentJSON(a))
	}
	return out
}
