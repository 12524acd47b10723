package approvals

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// eventVersion is the version of the JSON of events, whose fields are those of
// the tags in the types. Stored events decode for ever: a change of their shape
// is a new version beside this one.
const eventVersion = 1

type eventHead struct {
	V    int    `json:"v"`
	Kind string `json:"kind"`
}

type eventKind struct {
	name   string // under which it is stored
	of     reflect.Type
	decode func(raw []byte) (Event, error)
}

// eventKinds are all types of events.
var eventKinds = []eventKind{
	{"opened", reflect.TypeFor[Opened](), decoded(func(e Opened) Event { e.At = plain(e.At); return e })},
	{"decided", reflect.TypeFor[Decided](), decoded(func(e Decided) Event { e.At, e.By = plain(e.At), e.By.plain(); return e })},
	{"retracted", reflect.TypeFor[Retracted](), decoded(func(e Retracted) Event { e.At, e.By = plain(e.At), e.By.plain(); return e })},
	{"amended", reflect.TypeFor[Amended](), decoded(func(e Amended) Event { e.At, e.By = plain(e.At), e.By.plain(); return e })},
	{"reminded", reflect.TypeFor[Reminded](), decoded(func(e Reminded) Event { e.At = plain(e.At); return e })},
	{"escalated", reflect.TypeFor[Escalated](), decoded(func(e escalatedJSON) Event { e.At = plain(e.At); return e.event() })},
	{"fulfilled", reflect.TypeFor[Fulfilled](), decoded(func(e Fulfilled) Event { e.At = plain(e.At); return e })},
	{"settled", reflect.TypeFor[Settled](), decoded(func(e Settled) Event { e.At = plain(e.At); return e })},
	{"concluded", reflect.TypeFor[Concluded](), decoded(func(e Concluded) Event { e.At = plain(e.At); return e })},
	{"reported", reflect.TypeFor[Reported](), decoded(func(e Reported) Event { e.At = plain(e.At); return e })},
	{"resolved", reflect.TypeFor[Resolved](), decoded(func(e Resolved) Event { e.At = plain(e.At); return e })},
}

// escalatedJSON is the stored form of [Escalated]: the users and groups that it
// adds stand beside the other fields.
type escalatedJSON struct {
	Batch  BatchID    `json:"batch"`
	Call   ToolCallID `json:"call"`
	Rung   int        `json:"rung"`
	Quorum string     `json:"quorum,omitempty"`
	From
	Channel string    `json:"channel,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

func (e escalatedJSON) event() Event {
	return Escalated{e.Batch, e.Call, e.Rung, e.Quorum, e.From, e.Channel, e.At}
}

// EncodeEvent returns the JSON in which the event is stored and shown. Its
// "kind" is the name of the type in lower case, its "v" is 1.
func EncodeEvent(e Event) ([]byte, error) {
	of := reflect.TypeOf(e)
	kind := slices.IndexFunc(eventKinds, func(k eventKind) bool { return k.of == of })
	if kind < 0 {
		return nil, fmt.Errorf("%w: %T is no event", ErrInvalid, e)
	}
	var doc any = e
	if e, ok := e.(Escalated); ok {
		doc = escalatedJSON{e.Batch, e.Call, e.Rung, e.Quorum, e.Add, e.Channel, e.At}
	}
	body, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", e, err)
	}
	return append(fmt.Appendf(nil, `{"v":%d,"kind":%q,`, eventVersion, eventKinds[kind].name), body[1:]...), nil // every event has a batch
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
	kind := slices.IndexFunc(eventKinds, func(k eventKind) bool { return k.name == head.Kind })
	if kind < 0 {
		return nil, fmt.Errorf("%w: event of unknown kind %.100q", ErrInvalid, head.Kind)
	}
	return eventKinds[kind].decode(raw)
}

// decoded reads a T and passes it through event, which makes its times plain.
func decoded[T any](event func(T) Event) func(raw []byte) (Event, error) {
	return func(raw []byte) (Event, error) {
		var doc T
		if err := json.Unmarshal(raw, &doc); err != nil {
			return nil, fmt.Errorf("%w: decode event: %w", ErrInvalid, err)
		}
		return event(doc), nil
	}
}
