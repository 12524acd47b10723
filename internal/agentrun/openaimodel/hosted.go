package openaimodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A Hosted is an MCP server that the provider calls. Its tools are called Label.tool,
// and none of them runs before a request says that its call is approved.
type Hosted struct {
	Label       string
	URL         string
	Description string
	Tools       []string // those that the model may call
	// Headers opens what the provider sends to the server. It is called for each
	// request, and never printed.
	Headers func() map[string]string
	// Conceal replaces the values of the headers in what the server said.
	Conceal func(text string) string
}

// serverLabel is the form of the label of a hosted server.
var serverLabel = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]{0,63}$`)

func (h Hosted) check() error {
	switch {
	case !serverLabel.MatchString(h.Label):
		return fmt.Errorf("the label %q of a hosted server must begin with a letter and have letters, digits, - and _", h.Label)
	case h.URL == "" || len(h.Tools) == 0 || h.Headers == nil || h.Conceal == nil:
		return fmt.Errorf("the hosted server %s lacks a URL, tools, Headers or Conceal", h.Label)
	}
	return nil
}

// checkHosted returns what is wrong with the hosted servers.
func (m *Model) checkHosted() error {
	var problems []error
	if len(m.hosted) > 0 && m.api != Responses {
		problems = append(problems, errors.New("openaimodel: Config.Hosted needs the Responses API"))
	}
	for _, h := range m.hosted {
		if err := h.check(); err != nil {
			problems = append(problems, fmt.Errorf("openaimodel: Config.Hosted: %w", err))
		}
	}
	return errors.Join(problems...)
}

// servers returns the hosted servers as tools of a request. The provider must ask for
// approval of each of their calls, because the policy decides which calls need none.
func (m *Model) servers() []openai.ResponseTool {
	var out []openai.ResponseTool
	for _, h := range m.hosted {
		t := openai.ResponseTool{Type: "mcp", Parameters: map[string]any{
			"server_label": h.Label, "server_url": h.URL, "allowed_tools": h.Tools, "require_approval": "always",
		}}
		if h.Description != "" {
			t.Parameters["server_description"] = h.Description
		}
		if headers := h.Headers(); len(headers) > 0 {
			t.Parameters["headers"] = headers
		}
		out = append(out, t)
	}
	return out
}

// written returns the function that is told what the model writes. With hosted servers
// it is nil: a secret that a server repeats could be split over several pieces, and can
// be replaced in the whole text only.
func (m *Model) written(r agentrun.ModelRequest) func(agentrun.Delta) {
	if len(m.hosted) > 0 {
		return nil
	}
	return r.Written
}

// unlisted logs that the provider could not list the tools of a server, so that the
// model has none of them. The log has no words of the provider: they can hold anything.
func (m *Model) unlisted(label string) {
	if !slices.ContainsFunc(m.hosted, func(h Hosted) bool { return h.Label == label }) {
		label = "unknown"
	}
	m.log.Warn("the model provider could not list the tools of a hosted MCP server", slog.String("server", label))
}

// hosts reports whether the tool is of a hosted server.
func (m *Model) hosts(tool string) bool {
	label, _, _ := strings.Cut(tool, ".")
	return slices.ContainsFunc(m.hosted, func(h Hosted) bool { return h.Label == label })
}

// conceal replaces the values of the headers in a text of the provider or of a hosted
// server.
func (m *Model) conceal(text string) string {
	for _, h := range m.hosted {
		text = h.Conceal(text)
	}
	return text
}

// literals are the strings and numbers of a JSON document.
var literals = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*`)

// concealIn does the same in arguments, however their strings are escaped. What is a
// JSON document stays one.
func concealIn(args string, conceal func(string) string) json.RawMessage {
	return json.RawMessage(literals.ReplaceAllStringFunc(args, func(literal string) string {
		text := literal
		if literal[0] == '"' && json.Unmarshal([]byte(literal), &text) != nil {
			return conceal(literal) // the arguments cannot be read
		}
		concealed := conceal(text)
		if concealed == text {
			return literal
		}
		quoted, _ := json.Marshal(concealed) // a string always is one
		return string(quoted)
	}))
}

type (
	approvalRequestItem struct {
		Type        string `json:"type"`
		ID          string `json:"id"`
		ServerLabel string `json:"server_label"`
		Name        string `json:"name"`
		Arguments   string `json:"arguments"`
	}
	approvalResponseItem struct {
		Type              string `json:"type"`
		ApprovalRequestID string `json:"approval_request_id"`
		Approve           bool   `json:"approve"`
		Reason            string `json:"reason,omitempty"`
	}
	hostedCallItem struct {
		Type        string  `json:"type"`
		ID          string  `json:"id"`
		ServerLabel string  `json:"server_label"`
		Name        string  `json:"name"`
		Arguments   string  `json:"arguments"`
		Output      *string `json:"output,omitempty"`
		Error       *string `json:"error,omitempty"`
	}
)

// maxReason is how many bytes of a reason are sent with a denial.
const maxReason = 4 << 10

// hostedCalls are the hosted calls of a history, by the ids that they have here. A call
// of a server that the agent no longer has is not among them: it is sent as a call of an
// ordinary tool, because the request does not name that server.
type hostedCalls struct {
	requests map[approvals.ToolCallID]string
	results  map[approvals.ToolCallID]agentrun.ToolReturn // of those that the provider ran
}

func (m *Model) hostedCalls(history []agentrun.Message) hostedCalls {
	h := hostedCalls{map[approvals.ToolCallID]string{}, map[approvals.ToolCallID]agentrun.ToolReturn{}}
	for _, message := range history {
		switch message := message.(type) {
		case agentrun.Response:
			for _, p := range message.Parts {
				if c, ok := p.(agentrun.CallPart); ok && c.ApprovalRequest != "" && m.hosts(c.Name) {
					h.requests[c.ID] = c.ApprovalRequest
				}
			}
		case agentrun.Request:
			for _, p := range message.Parts {
				if r, ok := p.(agentrun.ToolReturn); ok && r.ProviderCall != "" && h.requests[r.CallID] != "" {
					h.results[r.CallID] = r
				}
			}
		}
	}
	return h
}

// call returns a hosted call as an item of the input. A call that has run is sent with
// its result and without its approval: an approval is sent in one request only, so that
// it never counts twice.
func (h hostedCalls) call(c agentrun.CallPart) any {
	label, name, _ := strings.Cut(c.Name, ".")
	r, ran := h.results[c.ID]
	if !ran {
		return approvalRequestItem{"mcp_approval_request", c.ApprovalRequest, label, name, string(c.Args)}
	}
	return ranItem(r.ProviderCall, c.Name, c.Args, content(r.Content), r.Outcome != agentrun.OutcomeSuccess)
}

func ranItem(id, tool string, args json.RawMessage, text string, failed bool) any {
	label, name, _ := strings.Cut(tool, ".")
	item := hostedCallItem{Type: "mcp_call", ID: id, ServerLabel: label, Name: name, Arguments: string(args)}
	if failed {
		item.Error = &text
	} else {
		item.Output = &text
	}
	return item
}

// answer returns the result of a hosted call as an item of the input. It returns no
// item if the provider ran the call, and otherwise a denial, so that the provider does
// not run it now.
func (h hostedCalls) answer(id approvals.ToolCallID, p agentrun.RequestPart) (item any, hosted bool) {
	request, hosted := h.requests[id]
	if _, ran := h.results[id]; !hosted || ran {
		return nil, hosted
	}
	reason := strings.ToValidUTF8(chatPart(p).Content, "")
	if r, ok := p.(agentrun.ToolReturn); ok && r.Outcome == agentrun.OutcomeSuccess {
		reason = "Do not make this call again. " + reason
	}
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "")
	}
	return approvalResponseItem{"mcp_approval_response", request, false, reason}, true
}

// approve returns the items that let the provider run the calls.
func (h hostedCalls) approve(calls []approvals.ToolCallID) []any {
	var out []any
	for _, id := range calls {
		if request, ok := h.requests[id]; ok {
			out = append(out, approvalResponseItem{Type: "mcp_approval_response", ApprovalRequestID: request, Approve: true})
		}
	}
	return out
}

// refusals are the statuses with which the provider refuses a request before it runs
// anything.
var refusals = []int{400, 401, 402, 403, 404, 405, 406, 413, 414, 415, 422, 429, 431}

// notRun reports whether an attempt that failed certainly ran no call.
func (a *attempt) notRun() bool { return !a.left.Load() || slices.Contains(refusals, a.status) }
