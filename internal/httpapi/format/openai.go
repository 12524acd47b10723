package format

import (
	"encoding/json"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
)

// The longest texts that a request of a framework may have in one place.
const (
	maxName        = 256
	maxDescription = 4 << 10
)

// readOpenAI reads the interruptions of OpenAI's Agents SDK, as JSON.stringify or
// to_json writes them: a list, or an object that has it under that name. The SDK
// takes no other arguments back, so the call cannot be edited, unless the caller runs
// what a claim returns. A tool of a namespace has the name that the SDK gives it,
// NAMESPACE.TOOL: another namespace may have a tool of the same name.
func readOpenAI(body json.RawMessage) (Reading, error) {
	list := Value{Raw: body}
	if list.has("interruptions") {
		doc, err := list.given("interruptions")
		if err != nil {
			return Reading{}, err
		}
		list = doc["interruptions"]
	}
	items, err := list.List()
	if err != nil {
		return Reading{}, err
	}
	if len(items) == 0 {
		return Reading{}, fault(list.At, "has no interruptions")
	}
	r := Reading{Form: Form{Format: OpenAIAgents}, Carries: intake.Carries{Reasons: true, Late: true}}
	for _, item := range items {
		c, err := readInterruption(item)
		if err != nil {
			return Reading{}, err
		}
		r.Calls = append(r.Calls, c)
	}
	return r, nil
}

func readInterruption(item Value) (intake.Call, error) {
	doc, err := item.given("type", "rawItem", "raw_item", "agent", "toolName", "tool_name", "functionToolStateKey",
		"tool_namespace", "tool_lookup_key", "tool_origin", "allow_bare_name_alias")
	if err != nil {
		return intake.Call{}, err
	}
	if kind, err := doc["type"].Text(maxName); err != nil || kind != "tool_approval_item" {
		return intake.Call{}, fault(item.At+"/type", `must be "tool_approval_item"`)
	}
	raw, ok := doc["rawItem"]
	if snake, both := doc["raw_item"]; both && ok {
		return intake.Call{}, fault(item.At, "has rawItem and raw_item")
	} else if both {
		raw, ok = snake, true
	}
	if !ok {
		return intake.Call{}, fault(item.At+"/rawItem", "is missing")
	}
	var of struct {
		Type json.RawMessage `json:"type"`
	}
	if json.Unmarshal(raw.Raw, &of) == nil && len(of.Type) > 0 && string(of.Type) != `"function_call"` {
		return intake.Call{}, fault(raw.At+"/type", `must be "function_call"; calls of hosted tools run at the provider, and calls of its shell, apply_patch and computer tools have another form: make a function tool of them`)
	}
	call, err := raw.given("type", "id", "callId", "call_id", "name", "namespace", "arguments", "status", "caller", "async",
		"providerData", "provider_data")
	if err != nil {
		return intake.Call{}, err
	}
	id, err := oneOf(raw.At, call, "callId", "call_id")
	if err != nil {
		return intake.Call{}, err
	}
	tool, err := call["name"].Text(maxName)
	if err == nil && tool == "" {
		err = fault(raw.At+"/name", "is missing")
	}
	if err != nil {
		return intake.Call{}, err
	}
	switch space, err := call["namespace"].Text(maxName); {
	case err != nil:
		return intake.Call{}, err
	case space != "" && space != tool: // the SDK loads a tool later under a namespace of its name
		tool = space + "." + tool
	}
	args, err := call["arguments"].argsText()
	return intake.Call{ID: approvals.ToolCallID(id), Tool: tool, Args: args}, err
}

// oneOf returns the text under exactly one of two spellings of a key.
func oneOf(at string, doc map[string]Value, a, b string) (string, error) {
	v, first := doc[a]
	w, second := doc[b]
	if first == second {
		return "", fault(at, "needs exactly one of %s and %s", a, b)
	}
	if second {
		v = w
	}
	s, err := v.Text(maxName)
	if err == nil && s == "" {
		err = fault(v.At, "must not be empty")
	}
	return s, err
}

type openAIDecision struct {
	CallID  approvals.ToolCallID `json:"callId"`
	Approve bool                 `json:"approve"`
	Message string               `json:"message,omitempty"`
}

// writeOpenAI writes one decision for each interruption, in their order: the
// caller applies each with state.approve or state.reject. A call whose arguments
// were changed is approved only for a caller that runs what its claim returns. An
// external call cannot be answered: it is neither approved nor denied.
func (f Form) writeOpenAI(calls []intake.CallStatus) (json.RawMessage, error) {
	out := make([]openAIDecision, len(calls))
	for i, c := range calls {
		if slices.Contains(f.External, c.ID) {
			return nil, ErrOther
		}
		out[i] = openAIDecision{CallID: c.ID, Approve: approved(c) && (f.ByClaim || !c.Edited)}
		switch {
		case out[i].Approve:
		case approved(c):
			out[i].Message = "This tool call was approved with other arguments, which this framework cannot take back. It must not run."
		default:
			out[i].Message = Words(c)
		}
	}
	return compact(map[string]any{"decisions": out})
}
