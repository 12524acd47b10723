package openaisim

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// maxTools is the real API's limit.
const maxTools = 128

var functionName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func (r chatRequest) check() *problem {
	if r.Model == "" {
		return invalid("", "", "The request names no model.")
	}
	if r.N != nil && *r.N != 1 {
		return invalid("n", "unsupported_value", "The scripted model gives one choice; n must be 1.")
	}
	if r.StreamOptions != nil && !r.Stream {
		return invalid("stream_options", "", "stream_options needs stream to be true.")
	}
	if p := checkMessages(r.Messages); p != nil {
		return p
	}
	if p := r.checkTools(); p != nil {
		return p
	}
	return r.checkToolChoice()
}

func (r chatRequest) checkTools() *problem {
	if r.Tools == nil {
		if r.ParallelToolCalls != nil {
			return invalid("parallel_tool_calls", "", "parallel_tool_calls needs tools.")
		}
		return nil
	}
	if len(r.Tools) == 0 {
		return invalid("tools", "empty_array", "tools is empty; leave it out or name a tool.")
	}
	if len(r.Tools) > maxTools {
		return invalid("tools", "array_above_max_length", fmt.Sprintf("There are %d tools; the limit is %d.", len(r.Tools), maxTools))
	}
	for i, t := range r.Tools {
		if p := t.check(fmt.Sprintf("tools[%d]", i)); p != nil {
			return p
		}
	}
	return nil
}

func (t tool) check(at string) *problem {
	if t.Type != "function" {
		return invalid(at+".type", "invalid_value", fmt.Sprintf("%s.type is %q; only \"function\" is known.", at, t.Type))
	}
	if t.Function == nil {
		return invalid(at+".function", "missing_required_parameter", at+".function is missing.")
	}
	if p := checkName(at+".function.name", t.Function.Name); p != nil {
		return p
	}
	if t.Function.Parameters == nil {
		return nil
	}
	var schema struct {
		Type json.RawMessage `json:"type"`
	}
	if err := json.Unmarshal(t.Function.Parameters, &schema); err != nil || string(schema.Type) != `"object"` {
		return invalid(at+".function.parameters", "invalid_function_parameters",
			fmt.Sprintf("The schema of function %q must be a JSON Schema whose type is \"object\".", t.Function.Name))
	}
	return nil
}

func checkName(at, name string) *problem {
	if name == "" {
		return invalid(at, "missing_required_parameter", at+" is missing.")
	}
	if !functionName.MatchString(name) {
		return invalid(at, "invalid_value", fmt.Sprintf("%s is %q, which does not match %s.", at, name, functionName))
	}
	return nil
}

func (r chatRequest) checkToolChoice() *problem {
	if len(r.ToolChoice) == 0 || string(r.ToolChoice) == "null" {
		return nil
	}
	if r.Tools == nil {
		return invalid("tool_choice", "", "tool_choice needs tools.")
	}
	var word string
	if json.Unmarshal(r.ToolChoice, &word) == nil {
		if slices.Contains([]string{"none", "auto", "required"}, word) {
			return nil
		}
		return invalid("tool_choice", "invalid_value", fmt.Sprintf("tool_choice is %q; none, auto and required are known.", word))
	}
	var choice struct {
		Type     string
		Function struct{ Name string }
	}
	if err := json.Unmarshal(r.ToolChoice, &choice); err != nil || choice.Type != "function" {
		return invalid("tool_choice.type", "invalid_value", "tool_choice is neither a known word nor a function.")
	}
	if !slices.ContainsFunc(r.Tools, func(t tool) bool { return t.Function.Name == choice.Function.Name }) {
		return invalid("tool_choice", "", fmt.Sprintf("tool_choice names %q, which is not among the tools.", choice.Function.Name))
	}
	return nil
}
