package openaisim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	jsonv1 "github.com/go-json-experiment/json/v1"
)

// A responsesRequest is a request to the Responses API. Parameters that the server
// does not look at are there because the real API refuses those that it does not know.
type responsesRequest struct {
	Model             string          `json:"model"`
	Instructions      *string         `json:"instructions"`
	Input             json.RawMessage `json:"input"`
	Tools             []responsesTool `json:"tools"`
	Store             *bool           `json:"store"`
	Stream            bool            `json:"stream"`
	PreviousID        *string         `json:"previous_response_id"`
	Include           []string        `json:"include"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls"`
	MaxOutputTokens   *int            `json:"max_output_tokens"`
	Metadata          json.RawMessage `json:"metadata"`
	Reasoning         json.RawMessage `json:"reasoning"`
	ToolChoice        json.RawMessage `json:"tool_choice"`
	Text              json.RawMessage `json:"text"`
	User              string          `json:"user"`

	items []inputItem
}

// An inputItem is one of the input. Its type says which fields it may have.
type inputItem struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	// of a message
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	// of a call, by the client or by the provider
	CallID      string  `json:"call_id"`
	Name        string  `json:"name"`
	Arguments   *string `json:"arguments"`
	ServerLabel string  `json:"server_label"`
	Output      *string `json:"output"`
	Error       *string `json:"error"`
	// of an approval
	ApprovalRequestID string `json:"approval_request_id"`
	Approve           *bool  `json:"approve"`
	Reason            string `json:"reason"`
	// of reasoning
	Summary          []json.RawMessage `json:"summary"`
	EncryptedContent string            `json:"encrypted_content"`
}

// itemKeys are the keys of each type of item, those that it must have first.
var itemKeys = map[string]struct{ must, may []string }{
	"message":               {[]string{"role", "content"}, []string{"type", "id", "status", "phase"}},
	"function_call":         {[]string{"type", "call_id", "name", "arguments"}, []string{"id", "status"}},
	"function_call_output":  {[]string{"type", "call_id", "output"}, []string{"id", "status"}},
	"reasoning":             {[]string{"type", "id", "summary"}, []string{"encrypted_content", "content", "status"}},
	"mcp_approval_request":  {[]string{"type", "id", "server_label", "name", "arguments"}, nil},
	"mcp_approval_response": {[]string{"type", "approval_request_id", "approve"}, []string{"id", "reason"}},
	"mcp_call":              {[]string{"type", "id", "server_label", "name", "arguments"}, []string{"approval_request_id", "error", "output", "status"}},
	"mcp_list_tools":        {[]string{"type", "id", "server_label", "tools"}, []string{"error"}},
}

// decodeResponses reads a request and holds it to the rules of the real API.
func decodeResponses(body []byte) (responsesRequest, *problem) {
	var r responsesRequest
	d := jsonv1.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(&r)
	if wrong, ok := errors.AsType[*jsonv1.UnmarshalTypeError](err); ok {
		return r, wrongType("", wrong)
	}
	if name, unknown := strings.CutPrefix(fmt.Sprint(err), "json: unknown field "); unknown {
		return r, invalid(strings.Trim(name, `"`), "unknown_parameter", "Unknown parameter: "+name+".")
	}
	if err != nil {
		return r, invalid("", "", "The body of the request is not JSON.")
	}
	if r.Model == "" {
		return r, invalid("", "missing_required_parameter", "The request names no model.")
	}
	for i, t := range r.Tools {
		if p := t.check(fmt.Sprintf("tools[%d]", i)); p != nil {
			return r, p
		}
	}
	if p := r.readInput(); p != nil {
		return r, p
	}
	return r, r.checkItems()
}

func (r *responsesRequest) readInput() *problem {
	var text string
	if json.Unmarshal(r.Input, &text) == nil {
		r.items = []inputItem{{Type: "message", Role: "user", Content: r.Input}}
		return nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(r.Input, &list); err != nil || len(list) == 0 {
		return invalid("input", "missing_required_parameter", "input must be a text or a list of items that is not empty.")
	}
	for i, raw := range list {
		it, p := readItem(fmt.Sprintf("input[%d]", i), raw)
		if p != nil {
			return p
		}
		r.items = append(r.items, it)
	}
	return nil
}

func readItem(at string, raw json.RawMessage) (inputItem, *problem) {
	var it inputItem
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return it, invalid(at, "invalid_type", at+" must be an object.")
	}
	if wrong, ok := errors.AsType[*jsonv1.UnmarshalTypeError](jsonv1.Unmarshal(raw, &it)); ok {
		return it, wrongType(at, wrong)
	}
	if it.Type == "" && keys["role"] != nil {
		it.Type = "message"
	}
	known, ok := itemKeys[it.Type]
	if !ok {
		return it, invalid(at, "invalid_value", fmt.Sprintf("Invalid value: '%s'.", it.Type))
	}
	for _, key := range known.must {
		if v := keys[key]; (v == nil || string(v) == "null") && (key != "type" || it.Type != "message") {
			return it, invalid(at+"."+key, "missing_required_parameter", fmt.Sprintf("Missing required parameter: '%s.%s'.", at, key))
		}
	}
	for key := range keys {
		if !slices.Contains(known.must, key) && !slices.Contains(known.may, key) {
			return it, invalid(at+"."+key, "unknown_parameter", fmt.Sprintf("Unknown parameter: '%s.%s'.", at, key))
		}
	}
	return it, it.check(at)
}

// check holds the values of one item to the rules.
func (it inputItem) check(at string) *problem {
	switch it.Type {
	case "message":
		return message{Role: it.Role, Content: it.Content}.checkRole(at)
	case "function_call":
		if p := checkName(at+".name", it.Name); p != nil {
			return p
		}
		return checkCallID(at, it.CallID)
	case "function_call_output":
		return checkCallID(at, it.CallID)
	}
	if strings.HasPrefix(it.Type, "mcp_") && it.Type != "mcp_approval_response" && !serverLabel.MatchString(it.ServerLabel) {
		return invalid(at+".server_label", "invalid_value", at+".server_label is not a label.")
	}
	return nil
}

func (m message) checkRole(at string) *problem {
	if !slices.Contains([]string{"user", "assistant", "system", "developer"}, m.Role) {
		return invalid(at+".role", "invalid_value", fmt.Sprintf("Invalid value: '%s'.", m.Role))
	}
	var text string
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if json.Unmarshal(m.Content, &text) == nil {
		return nil
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return invalid(at+".content", "invalid_type", at+".content must be a text or a list.")
	}
	want := "input_text"
	if m.Role == "assistant" {
		want = "output_text"
	}
	for i, p := range parts {
		if p.Type != want || p.Text == nil {
			return invalid(fmt.Sprintf("%s.content[%d]", at, i), "invalid_value", fmt.Sprintf("Invalid value: '%s'. The scripted model takes %s.", p.Type, want))
		}
	}
	return nil
}

// maxCallID is the real API's limit.
const maxCallID = 64

func checkCallID(at, id string) *problem {
	if id == "" || len(id) > maxCallID {
		return invalid(at+".call_id", "string_above_max_length", fmt.Sprintf("Invalid '%s.call_id': it must have 1 to %d characters.", at, maxCallID))
	}
	return nil
}

// checkItems holds the items to the rules between them: each call has one output,
// each approval is of one request, and reasoning has what it led to after it.
func (r responsesRequest) checkItems() *problem {
	const at = "input"
	ids, calls, outputs, requests, answers := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i, it := range r.items {
		if it.ID != "" && ids[it.ID] {
			return invalid(at, "", fmt.Sprintf("Duplicate item found with id %s. Remove duplicate items from your input and try again.", it.ID))
		}
		ids[it.ID] = true
		switch it.Type {
		case "function_call":
			if calls[it.CallID] {
				return invalid(at, "", fmt.Sprintf("Duplicate call_id %s.", it.CallID))
			}
			calls[it.CallID] = true
		case "function_call_output":
			if !calls[it.CallID] || outputs[it.CallID] {
				return invalid(at, "", fmt.Sprintf("No tool call found for function call output with call_id %s.", it.CallID))
			}
			outputs[it.CallID] = true
		case "mcp_approval_request":
			requests[it.ID] = true
			if r.server(it.ServerLabel) == nil {
				return invalid(at, "", fmt.Sprintf("There is no MCP server %q in tools.", it.ServerLabel))
			}
		case "mcp_approval_response":
			if !requests[it.ApprovalRequestID] || answers[it.ApprovalRequestID] {
				return invalid(at, "", fmt.Sprintf("No approval request found for approval response with approval_request_id %s.", it.ApprovalRequestID))
			}
			answers[it.ApprovalRequestID] = true
		case "reasoning":
			if it.EncryptedContent != sealed(it.ID) {
				return invalid(at, "invalid_encrypted_content", fmt.Sprintf("The encrypted content for item %s could not be verified.", it.ID))
			}
			if i == len(r.items)-1 || r.items[i+1].Role == "user" {
				return invalid(at, "", fmt.Sprintf("Item '%s' of type 'reasoning' was provided without its required following item.", it.ID))
			}
		}
	}
	for id := range calls {
		if !outputs[id] {
			return invalid(at, "", fmt.Sprintf("No tool output found for function call %s.", id))
		}
	}
	for id := range requests {
		if !answers[id] {
			return invalid(at, "", fmt.Sprintf("No approval response found for approval request %s.", id))
		}
	}
	if r.PreviousID != nil {
		return invalid("previous_response_id", "previous_response_not_found", fmt.Sprintf("Previous response with id '%s' not found.", *r.PreviousID))
	}
	return nil
}
