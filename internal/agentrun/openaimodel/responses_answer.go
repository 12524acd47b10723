package openaimodel

import (
	"encoding/json"
	"fmt"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A responsesAnswer is made of the last event of a stream, which has the whole answer.
// The events before it show that the model is at work, and what it writes.
type responsesAnswer struct {
	conceal  func(text string) string
	unlisted func(label string) // the provider could not list the tools of that server
	said     bool
	called   []agentrun.ProviderCall // see [answer.ran]
	streamed int                     // how many of them came before the last event
	end      *finished

	progress progress
}

// An event is one of a stream: its end, or an error.
type event struct {
	Type     string           `json:"type"`
	Response json.RawMessage  `json:"response"`
	Code     any              `json:"code"`
	Message  string           `json:"message"`
	Item     json.RawMessage  `json:"item"`
	Param    *string          `json:"param"`
	Error    *json.RawMessage `json:"error"`
}

// finished is a response that is over.
type finished struct {
	Status            string            `json:"status"`
	Model             string            `json:"model"`
	Output            []json.RawMessage `json:"output"`
	Usage             *finishedUsage    `json:"usage"`
	Error             *finishedError    `json:"error"`
	IncompleteDetails *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

type finishedUsage struct {
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
}

type finishedError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (a *responsesAnswer) begun() bool { return a.said }

func (a *responsesAnswer) ran() []agentrun.ProviderCall { return a.called }

// add takes one event, a JSON document. It ignores unknown types: the API adds new
// ones, and the last event has everything.
func (a *responsesAnswer) add(raw []byte) error {
	var e event
	if err := json.Unmarshal(raw, &e); err != nil {
		return malformed("an event cannot be read: %w", err)
	}
	if e.Error != nil {
		return reported(*e.Error)
	}
	switch e.Type {
	case "error":
		return &openai.APIError{Code: e.Code, Message: e.Message, Param: e.Param}
	case "response.completed", "response.incomplete", "response.failed":
	default:
		var i item
		if len(e.Item) > 0 && json.Unmarshal(e.Item, &i) == nil {
			a.see(i)
		}
		if e.Type == "response.mcp_call_arguments.done" {
			a.argue(raw)
		}
		a.said = a.said || strings.HasPrefix(e.Type, "response.output_text.") ||
			strings.HasPrefix(e.Type, "response.refusal.") || strings.HasPrefix(e.Type, "response.function_call_arguments.")
		return a.progress.add(e.Type, raw)
	}
	if err := lossless(raw); err != nil {
		return err
	}
	if a.end != nil {
		return malformed("the stream has two ends")
	}
	a.end = &finished{}
	if err := json.Unmarshal(e.Response, a.end); err != nil {
		return malformed("the response of %s cannot be read: %w", e.Type, err)
	}
	if want := strings.TrimPrefix(e.Type, "response."); a.end.Status != want {
		return malformed("the response of %s has the status %.40q", e.Type, a.end.Status)
	}
	a.streamed = len(a.called)
	for _, raw := range a.end.Output {
		var i item
		if json.Unmarshal(raw, &i) == nil {
			a.see(i)
		}
	}
	return nil
}

// response returns the answer if it is complete.
func (a *responsesAnswer) response() (agentrun.Response, error) {
	if a.end == nil {
		return agentrun.Response{}, malformed("the stream ended without a last event")
	}
	r := agentrun.Response{ModelName: a.end.Model, FinishReason: agentrun.FinishStop, Usage: agentrun.Usage{Requests: 1}}
	if u := a.end.Usage; u != nil {
		r.Usage.InputTokens, r.Usage.OutputTokens = max(0, u.InputTokens), max(0, u.OutputTokens)
	}
	switch a.end.Status {
	case "failed":
		if a.end.Error == nil {
			return agentrun.Response{}, malformed("the response failed without an error")
		}
		return agentrun.Response{}, &openai.APIError{Code: a.end.Error.Code, Message: a.end.Error.Message}
	case "incomplete":
		finish, err := a.end.cutShort()
		if err != nil {
			return agentrun.Response{}, err
		}
		r.FinishReason = finish
	}
	if len(a.end.Output) > maxItems {
		return agentrun.Response{}, malformed("there are more than %d items", maxItems)
	}
	for i, raw := range a.end.Output {
		parts, err := a.parts(raw)
		if err != nil {
			return agentrun.Response{}, malformed("item %d of %d: %w", i+1, len(a.end.Output), err)
		}
		for _, p := range parts {
			if _, call := p.(agentrun.CallPart); call && r.FinishReason == agentrun.FinishStop {
				r.FinishReason = agentrun.FinishToolCall
			}
		}
		r.Parts = append(r.Parts, parts...)
	}
	r.Parts = append(r.Parts, a.leftOut(r.Parts)...)
	return r, nil
}

// maxItems is how many items one answer may have.
const maxItems = 2 * maxCalls

// cutShort says why a response is incomplete.
func (f *finished) cutShort() (agentrun.FinishReason, error) {
	reason := ""
	if f.IncompleteDetails != nil {
		reason = f.IncompleteDetails.Reason
	}
	switch reason {
	case "max_output_tokens":
		return agentrun.FinishLength, nil
	case "content_filter":
		return "", errFiltered
	}
	return "", malformed("the response is incomplete for the reason %.40q, which is not one of the protocol's", reason)
}

// An item is one of the output, of any type that can be in an answer to what is
// sent.
type item struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Content []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
	Summary          []summaryText `json:"summary"`
	EncryptedContent string        `json:"encrypted_content"`
	CallID           string        `json:"call_id"`
	Name             string        `json:"name"`
	Arguments        string        `json:"arguments"`

	ServerLabel       string          `json:"server_label"`
	ApprovalRequestID string          `json:"approval_request_id"`
	Output            *string         `json:"output"`
	Error             json.RawMessage `json:"error"`
	Status            string          `json:"status"`
}

// parts returns what an item says.
func (a *responsesAnswer) parts(raw json.RawMessage) ([]agentrun.ResponsePart, error) {
	var i item
	if err := json.Unmarshal(raw, &i); err != nil {
		return nil, err
	}
	args := concealIn(i.Arguments, a.conceal)
	switch i.Type {
	case "message":
		return i.texts(a.conceal)
	case "reasoning":
		return []agentrun.ResponsePart{agentrun.Thinking{
			Content: a.conceal(said(i.Summary, func(s summaryText) string { return s.Text })), ID: i.ID, Signature: i.EncryptedContent,
		}}, nil
	case "function_call":
		if i.CallID == "" || i.Name == "" {
			return nil, fmt.Errorf("the function call %.60q has no call_id or no name", i.ID)
		}
		return []agentrun.ResponsePart{agentrun.CallPart{ToolCall: approvals.ToolCall{
			ID: approvals.ToolCallID(i.CallID), Name: i.Name, Args: args,
		}}}, nil
	case "mcp_list_tools":
		if len(i.Error) > 0 && string(i.Error) != "null" {
			a.unlisted(i.ServerLabel)
		}
		return nil, nil // the provider finds out itself what its servers have
	case "mcp_approval_request":
		c, err := i.hosted(args)
		return []agentrun.ResponsePart{agentrun.CallPart{ToolCall: c, ApprovalRequest: i.ID}}, err
	case "mcp_call":
		c, err := i.hosted(args)
		text, failed, unsure := i.outcome()
		return []agentrun.ResponsePart{agentrun.ProviderCall{
			ToolCall: c, ApprovalRequest: i.ApprovalRequestID, Output: a.conceal(text), Failed: failed, Unsure: unsure,
		}}, err
	}
	return nil, fmt.Errorf("it has the type %.60q, which was not asked for", i.Type)
}

// hosted is the call of a hosted tool.
func (i item) hosted(args json.RawMessage) (approvals.ToolCall, error) {
	if i.ID == "" || !serverLabel.MatchString(i.ServerLabel) || i.Name == "" {
		return approvals.ToolCall{}, fmt.Errorf("the %s %.60q has no id, no server_label or no name", i.Type, i.ID)
	}
	return approvals.ToolCall{ID: approvals.ToolCallID(i.ID), Name: i.ServerLabel + "." + i.Name, Args: args}, nil
}

// A callError is why a call of the provider failed.
type callError struct {
	Type string `json:"type"`
	Code int    `json:"code"`
}

// ended reports whether the call is certainly over: the tool itself says that it
// failed, or its server refused the request.
func (e callError) ended() bool {
	return e.Type == "mcp_tool_execution_error" || e.Type == "http_error" && e.Code >= 400 && e.Code < 500
}

// outcome is what a call of the provider gave. An unsure one may have taken effect: an
// error that is a text says nothing about that, and neither does a failure without one.
func (i item) outcome() (text string, failed, unsure bool) {
	var said string
	var e callError
	switch {
	case len(i.Error) == 0 || string(i.Error) == "null":
	case json.Unmarshal(i.Error, &said) == nil:
		return said, true, true
	default:
		err := json.Unmarshal(i.Error, &e)
		return string(i.Error), true, err != nil || !e.ended()
	}
	if i.Output != nil {
		text = *i.Output
	}
	switch i.Status {
	case "", "completed":
		return text, false, false
	case "failed":
		return text, true, i.Output == nil
	}
	return text, true, true
}

// texts returns the texts of a message, which can quote a hosted server. A model that
// declines to answer says so in a field of its own; for people that is its text.
func (i item) texts(conceal func(string) string) ([]agentrun.ResponsePart, error) {
	var parts []agentrun.ResponsePart
	for _, c := range i.Content {
		switch c.Type {
		case "output_text", "refusal":
			if text := c.Text + c.Refusal; text != "" {
				parts = append(parts, agentrun.Text{Content: conceal(text)})
			}
		default:
			return nil, fmt.Errorf("its content has the type %.60q", c.Type)
		}
	}
	return parts, nil
}
