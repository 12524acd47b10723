package approvals

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// The kinds of results on the wire.
const (
	kindApproved    = "tool-approved"
	kindDenied      = "tool-denied"
	kindReturn      = "tool-return"
	kindFailed      = "tool-failed"
	kindRetry       = "model-retry"
	kindRetryPrompt = "retry-prompt"
)

type approvedJSON struct {
	Kind string          `json:"kind"`
	Args json.RawMessage `json:"override_args,omitempty"`
}

type messageJSON struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

type returnJSON struct {
	Kind     string          `json:"kind"`
	Value    json.RawMessage `json:"return_value"`
	Content  json.RawMessage `json:"content"`
	Metadata json.RawMessage `json:"metadata"`
}

// MarshalJSON writes upstream's shape, each result as an object with its kind.
// The encoder around it may take out white space and escape characters of
// override arguments; it never changes a value.
//
// Upstream has no denial among the results of external calls in JSON, and
// would read ours as a success: do not send one there.
func (r DeferredToolResults) MarshalJSON() ([]byte, error) {
	doc := struct {
		Calls     map[ToolCallID]any             `json:"calls"`
		Approvals map[ToolCallID]any             `json:"approvals"`
		Metadata  map[ToolCallID]json.RawMessage `json:"metadata"`
	}{map[ToolCallID]any{}, map[ToolCallID]any{}, map[ToolCallID]json.RawMessage{}}
	if err := r.check(); err != nil {
		return nil, err
	}
	for id, c := range r.Calls {
		w, err := callResultJSON(c)
		if err != nil {
			return nil, fmt.Errorf("call %q: %w", string(id), err)
		}
		doc.Calls[id] = w
	}
	for id, a := range r.Approvals {
		w, err := approvalResultJSON(a)
		if err != nil {
			return nil, fmt.Errorf("call %q: %w", string(id), err)
		}
		doc.Approvals[id] = w
	}
	if r.Metadata != nil {
		doc.Metadata = r.Metadata
	}
	return json.Marshal(doc)
}

// check refuses answers of which it would depend on the reader which call they
// answer, and how.
func (r DeferredToolResults) check() error {
	for id := range r.Calls {
		if _, both := r.Approvals[id]; both {
			return fmt.Errorf("%w: call %q is answered in calls and in approvals", ErrInvalid, string(id))
		}
	}
	_, c := r.Calls[""]
	_, a := r.Approvals[""]
	if c || a {
		return fmt.Errorf("%w: an answer to a call without an id", ErrInvalid)
	}
	return checkMetadatas(r.Metadata)
}

func callResultJSON(r CallResult) (any, error) {
	r, err := checkResult(r)
	if err != nil {
		return nil, err
	}
	switch r := r.(type) {
	case ToolReturn:
		return returnJSON{kindReturn, r.ReturnValue, r.Content, r.Metadata}, checkInline(r.ReturnValue)
	case ToolFailed:
		return messageJSON{kindFailed, r.Message}, nil
	case ModelRetry:
		return messageJSON{kindRetry, r.Message}, nil
	case ToolDenied:
		return messageJSON{kindDenied, r.Message}, nil
	}
	return nil, fmt.Errorf("%w: %T is no result", ErrInvalid, r)
}

func approvalResultJSON(r ApprovalResult) (any, error) {
	switch r := r.(type) {
	case ToolApproved:
		return approvedJSON{kindApproved, r.OverrideArgs}, checkOverride(r.OverrideArgs)
	case ToolDenied:
		return messageJSON{kindDenied, r.Message}, checkMessage(r.Message)
	case ToolHappened:
		return nil, fmt.Errorf("%w: upstream has no answer for a call in doubt", ErrInvalid)
	}
	return nil, fmt.Errorf("%w: %T neither approves nor denies", ErrInvalid, r)
}

// checkOverride refuses arguments of no bytes: written, they would be missing,
// and the call would run with the model's.
func checkOverride(args json.RawMessage) error {
	if args != nil && len(args) == 0 {
		return fmt.Errorf("%w: write {} for no arguments", ErrInvalid)
	}
	return CheckArgs(args)
}

// UnmarshalJSON reads upstream's shape, more strictly than upstream does.
func (r *DeferredToolResults) UnmarshalJSON(raw []byte) error {
	if err := checkObject(raw, wireDepth); err != nil {
		return fmt.Errorf("deferred tool results: %w", err)
	}
	doc, err := fields(raw, "calls", "approvals", "metadata")
	if err != nil {
		return fmt.Errorf("deferred tool results: %w", err)
	}
	read := DeferredToolResults{
		Calls:     map[ToolCallID]CallResult{},
		Approvals: map[ToolCallID]ApprovalResult{},
		Metadata:  map[ToolCallID]json.RawMessage{},
	}
	var calls, approvals map[ToolCallID]json.RawMessage
	for key, m := range map[string]*map[ToolCallID]json.RawMessage{
		"calls": &calls, "approvals": &approvals, "metadata": &read.Metadata,
	} {
		if value, ok := doc[key]; ok {
			if err := into(value, '{', m); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	for id, value := range calls {
		if read.Calls[id], err = readCallResult(value); err != nil {
			return fmt.Errorf("calls: %q: %w", string(id), err)
		}
	}
	for id, value := range approvals {
		if read.Approvals[id], err = readApprovalResult(value); err != nil {
			return fmt.Errorf("approvals: %q: %w", string(id), err)
		}
	}
	if err := read.check(); err != nil {
		return err
	}
	*r = read
	return nil
}

// readApprovalResult takes true, false, and objects of the two kinds; never
// what only looks like one of them.
func readApprovalResult(raw json.RawMessage) (ApprovalResult, error) {
	switch string(raw) {
	case "true":
		return ToolApproved{}, nil
	case "false":
		return ToolDenied{Message: DeniedMessage}, nil
	}
	if raw[0] != '{' {
		return nil, fmt.Errorf("%w: an approval is true, false or an object with a kind", ErrInvalid)
	}
	switch kindOf(raw, "kind") {
	case kindApproved:
		doc, err := fields(raw, "kind", "override_args")
		if err != nil {
			return nil, err
		}
		args := doc["override_args"]
		if args == nil || string(args) == "null" {
			return ToolApproved{}, nil
		}
		if err := CheckArgs(args); err != nil {
			return nil, fmt.Errorf("override_args: %w", err)
		}
		return ToolApproved{OverrideArgs: args}, nil
	case kindDenied:
		return readDenied(raw)
	}
	return nil, fmt.Errorf("%w: the kind of an approval is %s or %s", ErrInvalid, kindApproved, kindDenied)
}

func readDenied(raw json.RawMessage) (ToolDenied, error) {
	doc, err := fields(raw, "kind", "message")
	if err != nil {
		return ToolDenied{}, err
	}
	if _, ok := doc["message"]; !ok {
		return ToolDenied{Message: DeniedMessage}, nil
	}
	message, err := readMessage(doc["message"])
	return ToolDenied{Message: message}, err
}

// readCallResult takes any value as the result of a tool, but an object of one
// of the known kinds only if it is one.
func readCallResult(raw json.RawMessage) (CallResult, error) {
	if raw[0] != '{' {
		return ToolReturn{ReturnValue: raw}, checkInline(raw)
	}
	if kindOf(raw, "part_kind") == kindRetryPrompt || kindOf(raw, "kind") == kindRetryPrompt {
		doc, err := fields(raw, "kind", "part_kind", "content", "tool_name", "tool_call_id", "timestamp")
		if err != nil {
			return nil, err
		}
		message, err := readMessage(doc["content"])
		return ModelRetry{Message: message}, err
	}
	switch kind := kindOf(raw, "kind"); kind {
	case kindReturn:
		return readReturn(raw)
	case kindDenied:
		return readDenied(raw)
	case kindFailed, kindRetry:
		doc, err := fields(raw, "kind", "message")
		if err != nil {
			return nil, err
		}
		message, err := readMessage(doc["message"])
		if kind == kindFailed {
			return ToolFailed{Message: message}, err
		}
		return ModelRetry{Message: message}, err
	case kindApproved:
		return nil, fmt.Errorf("%w: a call that runs elsewhere cannot be approved", ErrInvalid)
	}
	return ToolReturn{ReturnValue: raw}, checkInline(raw)
}

func readReturn(raw json.RawMessage) (ToolReturn, error) {
	doc, err := fields(raw, "kind", "return_value", "content", "metadata", "tools")
	if err != nil {
		return ToolReturn{}, err
	}
	if given(doc["tools"]) != nil {
		return ToolReturn{}, fmt.Errorf("%w: a result cannot make tools available", ErrInvalid)
	}
	r := ToolReturn{ReturnValue: doc["return_value"], Content: given(doc["content"]), Metadata: given(doc["metadata"])}
	if r.ReturnValue == nil {
		return ToolReturn{}, fmt.Errorf("%w: return_value is required", ErrInvalid)
	}
	if err := checkInline(r.ReturnValue); err != nil {
		return ToolReturn{}, err
	}
	return r.check()
}

// given is nil for null.
func given(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

func readMessage(raw json.RawMessage) (string, error) {
	var m string
	if err := into(raw, '"', &m); err != nil {
		return "", fmt.Errorf("the words for the model: %w", err)
	}
	return m, nil
}

// kindOf returns the string under key, or nothing.
func kindOf(raw json.RawMessage, key string) string {
	var doc map[string]json.RawMessage
	var kind string
	if json.Unmarshal(raw, &doc) != nil || json.Unmarshal(doc[key], &kind) != nil {
		return ""
	}
	return kind
}

// checkInline refuses binary content written into a return value: upstream does
// not read it back as binary but as an object full of base64.
func checkInline(raw json.RawMessage) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // a number may be too large for a float64
	var v any
	if err := dec.Decode(&v); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if inlineBinary(v) {
		return fmt.Errorf("%w: a return value may not hold binary content; give its address", ErrInvalid)
	}
	return nil
}

func inlineBinary(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		if _, data := v["data"]; data && v["kind"] == "binary" {
			return true
		}
		for _, inner := range v {
			if inlineBinary(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, inlineBinary)
	}
	return false
}
