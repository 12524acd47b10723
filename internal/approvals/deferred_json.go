package approvals

import (
	"encoding/json"
	"fmt"
	"slices"
)

// The JSON of [DeferredToolRequests] and [DeferredToolResults] is upstream's,
// read more strictly: what could be taken for something else than its writer
// meant is [ErrInvalid]. An unknown or repeated key would drop an answer; a
// coerced 1 or "yes" would run a call; a misspelled result would be recorded as
// a success.

// wireDepth is how deep a document may nest around arguments and values.
const wireDepth = maxDepth + 8

const partToolCall = "tool-call"

// callJSON writes Args as a string, which holds the exact bytes.
type callJSON struct {
	Name string     `json:"tool_name"`
	Args *string    `json:"args"`
	ID   ToolCallID `json:"tool_call_id"`
	Part string     `json:"part_kind"`
}

// MarshalJSON writes upstream's shape. Arguments are written as a string, so
// that their bytes are kept.
func (r DeferredToolRequests) MarshalJSON() ([]byte, error) {
	doc := struct {
		Calls     []callJSON                     `json:"calls"`
		Approvals []callJSON                     `json:"approvals"`
		Metadata  map[ToolCallID]json.RawMessage `json:"metadata"`
	}{[]callJSON{}, []callJSON{}, map[ToolCallID]json.RawMessage{}}
	if err := r.check(); err != nil {
		return nil, err
	}
	for _, c := range r.Calls {
		doc.Calls = append(doc.Calls, c.wire())
	}
	for _, c := range r.Approvals {
		doc.Approvals = append(doc.Approvals, c.wire())
	}
	if r.Metadata != nil {
		doc.Metadata = r.Metadata
	}
	return json.Marshal(doc)
}

func (c ToolCall) wire() callJSON {
	w := callJSON{Name: c.Name, ID: c.ID, Part: partToolCall}
	if c.Args != nil {
		args := string(c.Args)
		w.Args = &args
	}
	return w
}

// check refuses requests that [Open] would refuse.
func (r DeferredToolRequests) check() error {
	seen := map[ToolCallID]bool{}
	for _, c := range slices.Concat(r.Calls, r.Approvals) {
		if err := (Deferral{Call: c}).check(seen); err != nil {
			return err
		}
	}
	return checkMetadatas(r.Metadata)
}

func checkMetadatas(all map[ToolCallID]json.RawMessage) error {
	for id, m := range all {
		if m == nil || checkMetadata(m) != nil {
			return fmt.Errorf("%w: metadata of call %q must be a JSON object", ErrInvalid, string(id))
		}
	}
	return nil
}

// UnmarshalJSON reads upstream's shape. Arguments may be an object, whose bytes
// are kept as they stand, a string that holds an object, or null.
func (r *DeferredToolRequests) UnmarshalJSON(raw []byte) error {
	if err := checkObject(raw, wireDepth); err != nil {
		return fmt.Errorf("deferred tool requests: %w", err)
	}
	doc, err := fields(raw, "calls", "approvals", "metadata")
	if err != nil {
		return fmt.Errorf("deferred tool requests: %w", err)
	}
	var read DeferredToolRequests
	if read.Calls, err = readCalls(doc["calls"]); err != nil {
		return fmt.Errorf("calls: %w", err)
	}
	if read.Approvals, err = readCalls(doc["approvals"]); err != nil {
		return fmt.Errorf("approvals: %w", err)
	}
	if m, ok := doc["metadata"]; ok {
		if err := into(m, '{', &read.Metadata); err != nil {
			return fmt.Errorf("metadata: %w", err)
		}
	}
	if err := read.check(); err != nil {
		return err
	}
	*r = read
	return nil
}

func readCalls(raw json.RawMessage) ([]ToolCall, error) {
	if raw == nil {
		return nil, nil
	}
	var list []json.RawMessage
	if err := into(raw, '[', &list); err != nil {
		return nil, err
	}
	var calls []ToolCall
	for _, item := range list {
		c, err := readCall(item)
		if err != nil {
			return nil, err
		}
		calls = append(calls, c)
	}
	return calls, nil
}

func readCall(raw json.RawMessage) (ToolCall, error) {
	// The last four are known, and say nothing about what is to be approved.
	doc, err := fields(raw, "tool_name", "args", "tool_call_id", "part_kind",
		"tool_kind", "id", "provider_name", "provider_details")
	if err != nil {
		return ToolCall{}, err
	}
	var c ToolCall
	if err := into(doc["tool_name"], '"', &c.Name); err != nil {
		return ToolCall{}, fmt.Errorf("tool_name: %w", err)
	}
	if err := into(doc["tool_call_id"], '"', &c.ID); err != nil {
		return ToolCall{}, fmt.Errorf("tool_call_id: %w", err)
	}
	if part, ok := doc["part_kind"]; ok && string(part) != `"`+partToolCall+`"` {
		return ToolCall{}, fmt.Errorf("%w: part_kind must be %q", ErrInvalid, partToolCall)
	}
	switch args := doc["args"]; {
	case args == nil || string(args) == "null":
	case args[0] == '"':
		var s string
		if err := json.Unmarshal(args, &s); err != nil {
			return ToolCall{}, fmt.Errorf("args: %w", err)
		}
		if s != "" {
			c.Args = json.RawMessage(s)
		}
	case args[0] == '{':
		c.Args = args
	default:
		return ToolCall{}, fmt.Errorf("%w: args of call %q must be an object, a string or null", ErrInvalid, string(c.ID))
	}
	return c, nil
}

// fields takes an object apart. A key that is not known is refused: it may be a
// known one misspelled, and its value would be lost.
func fields(raw json.RawMessage, known ...string) (map[string]json.RawMessage, error) {
	var doc map[string]json.RawMessage
	if err := into(raw, '{', &doc); err != nil {
		return nil, err
	}
	for key := range doc {
		if !slices.Contains(known, key) {
			return nil, fmt.Errorf("%w: unknown key %.100q", ErrInvalid, key)
		}
	}
	return doc, nil
}

// into decodes a value that must begin with open: nothing is coerced, and null
// is not taken for an empty value. Missing is nil, and refused likewise.
func into(raw json.RawMessage, open byte, v any) error {
	s := scanner{raw: raw}
	if s.space(); s.peek() != open {
		what := map[byte]string{'{': "an object", '[': "a list", '"': "a string"}[open]
		return fmt.Errorf("%w: %s is required", ErrInvalid, what)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}
