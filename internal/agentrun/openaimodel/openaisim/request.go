package openaisim

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	jsonv1 "github.com/go-json-experiment/json/v1"
)

// A chatRequest is the part of a request body that the server looks at.
type chatRequest struct {
	Model             string          `json:"model"`
	Messages          []message       `json:"messages"`
	N                 *int            `json:"n"`
	Tools             []tool          `json:"tools"`
	ToolChoice        json.RawMessage `json:"tool_choice"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls"`
	Stream            bool            `json:"stream"`
	StreamOptions     *streamOptions  `json:"stream_options"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []requestCall   `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

type requestCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string  `json:"name"`
		Arguments *string `json:"arguments"`
	} `json:"function"`
}

type tool struct {
	Type     string `json:"type"`
	Function *struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type contentPart struct {
	Type string  `json:"type"`
	Text *string `json:"text"`
}

// text returns the text of the content, whether a string or parts.
func (m message) text() string {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text
	}
	var parts []contentPart
	if json.Unmarshal(m.Content, &parts) != nil {
		return ""
	}
	var texts []string
	for _, p := range parts {
		if p.Text != nil {
			texts = append(texts, *p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// callable returns the names of the tools that a model may call. It expects a
// request that passed check.
func (r chatRequest) callable() []string {
	if string(r.ToolChoice) == `"none"` {
		return nil
	}
	names := make([]string, 0, len(r.Tools))
	for _, t := range r.Tools {
		names = append(names, t.Function.Name)
	}
	return names
}

// wrongType is the problem of a value of a type that it cannot have, in what is at a path.
func wrongType(at string, wrong *jsonv1.UnmarshalTypeError) *problem {
	for name := range strings.SplitSeq(wrong.Field, ".") {
		switch _, err := strconv.Atoi(name); {
		case err == nil:
			name = "[" + name + "]"
		case at != "":
			name = "." + name
		}
		at += name
	}
	return invalid(at, "invalid_type", fmt.Sprintf("%s cannot be a JSON %s.", at, wrong.Value))
}

// decode reads a request and holds it to the rules of the real API.
func decode(body []byte) (chatRequest, *problem) {
	var r chatRequest
	err := jsonv1.Unmarshal(body, &r)
	if wrong, ok := errors.AsType[*jsonv1.UnmarshalTypeError](err); ok {
		return r, wrongType("", wrong)
	}
	if err != nil {
		return r, invalid("", "", "The body of the request is not JSON.")
	}
	return r, r.check()
}
