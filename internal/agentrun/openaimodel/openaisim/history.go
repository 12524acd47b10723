package openaisim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

var roles = []string{"system", "developer", "user", "assistant", "tool"}

// checkMessages holds a history to the rules: every call of an assistant
// message is answered by exactly one tool message before any other message
// follows, and a tool message answers nothing else.
func checkMessages(messages []message) *problem {
	if messages == nil {
		return invalid("messages", "missing_required_parameter", "messages is missing.")
	}
	if len(messages) == 0 {
		return invalid("messages", "empty_array", "messages is empty.")
	}
	var open []string            // calls that wait for their answer
	answered := map[string]int{} // by which message, since the last assistant message
	for i, m := range messages {
		if p := m.check(fmt.Sprintf("messages[%d]", i)); p != nil {
			return p
		}
		if m.Role == "tool" {
			at := slices.Index(open, m.ToolCallID)
			if at < 0 {
				return notOpen(i, m.ToolCallID, answered)
			}
			open = slices.Delete(open, at, at+1)
			answered[m.ToolCallID] = i
			continue
		}
		if len(open) > 0 {
			return unanswered(i, open)
		}
		clear(answered)
		for _, call := range m.ToolCalls {
			if slices.Contains(open, call.ID) {
				return invalid(fmt.Sprintf("messages.[%d].tool_calls", i), "",
					fmt.Sprintf("messages[%d] has two tool calls with the id %q.", i, call.ID))
			}
			open = append(open, call.ID)
		}
	}
	if len(open) > 0 {
		return unanswered(len(messages), open)
	}
	return nil
}

func notOpen(i int, id string, answered map[string]int) *problem {
	if first, twice := answered[id]; twice {
		return invalid(fmt.Sprintf("messages.[%d].tool_call_id", i), "",
			fmt.Sprintf("The tool call %q is answered twice, in messages[%d] and messages[%d].", id, first, i))
	}
	return invalid(fmt.Sprintf("messages.[%d].role", i), "",
		fmt.Sprintf("messages[%d] answers the tool call %q, which the assistant message before it did not make.", i, id))
}

func unanswered(i int, open []string) *problem {
	return invalid(fmt.Sprintf("messages.[%d].role", i), "",
		"Tool messages must answer every tool call of the assistant message before them. Not answered: "+strings.Join(open, ", "))
}

func (m message) check(at string) *problem {
	if m.Role == "" {
		return invalid(at+".role", "missing_required_parameter", at+".role is missing.")
	}
	if !slices.Contains(roles, m.Role) {
		return invalid(at+".role", "invalid_value", fmt.Sprintf("%s.role is %q; known are %s.", at, m.Role, strings.Join(roles, ", ")))
	}
	if p := m.checkContent(at); p != nil {
		return p
	}
	if m.Role == "tool" && m.ToolCallID == "" {
		return invalid(at+".tool_call_id", "missing_required_parameter", at+".tool_call_id is missing.")
	}
	if m.ToolCalls == nil {
		return nil
	}
	if m.Role != "assistant" {
		return invalid(at+".tool_calls", "", "Only assistant messages have tool_calls.")
	}
	if len(m.ToolCalls) == 0 {
		return invalid(at+".tool_calls", "empty_array", at+".tool_calls is empty; leave it out.")
	}
	for i, call := range m.ToolCalls {
		if p := call.check(fmt.Sprintf("%s.tool_calls[%d]", at, i)); p != nil {
			return p
		}
	}
	return nil
}

func (m message) checkContent(at string) *problem {
	if len(m.Content) == 0 || string(m.Content) == "null" {
		if m.Role == "assistant" && m.ToolCalls != nil {
			return nil
		}
		return invalid(at+".content", "invalid_type", at+".content is null; it must be a string or a list of parts.")
	}
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return nil
	}
	var parts []contentPart
	if json.Unmarshal(m.Content, &parts) != nil {
		return invalid(at+".content", "invalid_type", at+".content must be a string or a list of parts.")
	}
	if len(parts) == 0 {
		return invalid(at+".content", "empty_array", at+".content is a list without parts.")
	}
	for i, p := range parts {
		if p.Type == "text" && p.Text == nil {
			return invalid(fmt.Sprintf("%s.content[%d].text", at, i), "missing_required_parameter", "A text part has no text.")
		}
		if p.Type != "text" && m.Role != "user" {
			return invalid(fmt.Sprintf("%s.content[%d].type", at, i), "invalid_value",
				fmt.Sprintf("A %s message has parts of type text only, not %q.", m.Role, p.Type))
		}
	}
	return nil
}

func (c requestCall) check(at string) *problem {
	if c.ID == "" {
		return invalid(at+".id", "missing_required_parameter", at+".id is missing.")
	}
	if c.Type != "function" {
		return invalid(at+".type", "invalid_value", fmt.Sprintf("%s.type is %q; only \"function\" is known.", at, c.Type))
	}
	if c.Function.Arguments == nil {
		return invalid(at+".function.arguments", "missing_required_parameter", at+".function.arguments is missing.")
	}
	return checkName(at+".function.name", c.Function.Name)
}
