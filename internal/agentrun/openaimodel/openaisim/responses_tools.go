package openaisim

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
)

var serverLabel = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]*$`)

// A responsesTool is a function, or a server that the provider calls.
type responsesTool struct {
	Type string `json:"type"`
	// of a function
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
	// of a server
	ServerLabel       string            `json:"server_label"`
	ServerURL         string            `json:"server_url"`
	ServerDescription string            `json:"server_description"`
	AllowedTools      []string          `json:"allowed_tools"`
	Headers           map[string]string `json:"headers"`
	RequireApproval   json.RawMessage   `json:"require_approval"`
}

func (t responsesTool) check(at string) *problem {
	switch t.Type {
	case "function":
		if p := checkName(at+".name", t.Name); p != nil {
			return p
		}
		var schema struct {
			Type       string                     `json:"type"`
			Properties map[string]json.RawMessage `json:"properties"`
			Additional json.RawMessage            `json:"additionalProperties"`
		}
		if err := json.Unmarshal(t.Parameters, &schema); err != nil || schema.Type != "object" {
			return invalid(at+".parameters", "invalid_function_parameters", fmt.Sprintf("Invalid schema for function '%s': its type must be \"object\".", t.Name))
		}
		if strict := t.Strict == nil || *t.Strict; strict && string(schema.Additional) != "false" {
			return invalid(at+".parameters", "invalid_function_parameters",
				fmt.Sprintf("Invalid schema for function '%s': 'additionalProperties' is required to be supplied and to be false.", t.Name))
		}
		return nil
	case "mcp":
		return t.checkServer(at)
	}
	return invalid(at+".type", "invalid_value", fmt.Sprintf("Invalid value: '%s'. The scripted model knows function and mcp.", t.Type))
}

func (t responsesTool) checkServer(at string) *problem {
	if !serverLabel.MatchString(t.ServerLabel) {
		return invalid(at+".server_label", "invalid_value", at+".server_label must begin with a letter and have letters, digits, - and _.")
	}
	if u, err := url.Parse(t.ServerURL); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return invalid(at+".server_url", "invalid_value", at+".server_url is not a URL.")
	}
	if _, ok := t.approval(); !ok {
		return invalid(at+".require_approval", "invalid_value", at+".require_approval must be always, never, or an object with these.")
	}
	return nil
}

// An approvalFilter says which tools need approval; those that it does not name do.
type approvalFilter struct {
	Always, Never *struct {
		ToolNames []string `json:"tool_names"`
	}
}

// approval returns the filter, and whether there is a valid one.
func (t responsesTool) approval() (approvalFilter, bool) {
	var f approvalFilter
	var word string
	switch {
	case len(t.RequireApproval) == 0, string(t.RequireApproval) == "null":
		return f, true
	case json.Unmarshal(t.RequireApproval, &word) == nil:
		if word == "never" {
			f.Never = &struct {
				ToolNames []string `json:"tool_names"`
			}{t.AllowedTools}
		}
		return f, word == "always" || word == "never"
	}
	return f, json.Unmarshal(t.RequireApproval, &f) == nil
}

// asks reports whether the tool of the server needs approval.
func (t responsesTool) asks(name string) bool {
	f, _ := t.approval()
	return f.Never == nil || !slices.Contains(f.Never.ToolNames, name)
}

// server returns the server of the label.
func (r responsesRequest) server(label string) *responsesTool {
	for i, t := range r.Tools {
		if t.Type == "mcp" && t.ServerLabel == label {
			return &r.Tools[i]
		}
	}
	return nil
}

// callable are the names of the tools, as stories call them.
func (r responsesRequest) callable() []string {
	var names []string
	for _, t := range r.Tools {
		if t.Type == "function" {
			names = append(names, t.Name)
		}
		for _, name := range t.AllowedTools {
			names = append(names, t.ServerLabel+"."+name)
		}
	}
	return names
}
