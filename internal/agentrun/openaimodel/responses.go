package openaimodel

import (
	"context"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// responsesQuery is the request by the Responses API. The provider keeps nothing of
// it: like chat completions, every request has the whole history.
func (m *Model) responsesQuery(r agentrun.ModelRequest) query {
	store := false
	request := openai.CreateResponseRequest{
		Model:        m.model,
		Instructions: r.Instructions,
		Input:        m.input(r.Messages, r.Approved),
		Tools:        append(functions(r.Tools), m.servers()...),
		Store:        &store,
	}
	return query{
		send: func(ctx context.Context, c *openai.Client) (events, error) {
			return c.CreateResponseStream(ctx, request)
		},
		answer: func() answer {
			return &responsesAnswer{conceal: m.conceal, unlisted: m.unlisted, progress: progress{written: m.written(r)}}
		},
		most: maxLast,
	}
}

// The types of items that go-openai has no types for, or none that fit.
type (
	messageItem struct {
		Type    string `json:"type"`
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	reasoningItem struct {
		Type             string        `json:"type"`
		ID               string        `json:"id"`
		Summary          []summaryText `json:"summary"`
		EncryptedContent string        `json:"encrypted_content"`
	}
	summaryText struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	callItem struct {
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	outputItem struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
		Output string `json:"output"`
	}
)

// input returns the history as items. Requests with no response between them are
// one turn: what answers the calls of the response before them goes first, what
// people wrote after it.
// Approvals come after the results of the other calls.
func (m *Model) input(history []agentrun.Message, approved []approvals.ToolCallID) []any {
	hosted := m.hostedCalls(history)
	out, prompts := []any{}, []any{}
	for _, message := range history {
		switch message := message.(type) {
		case agentrun.Request:
			for _, p := range message.Parts {
				switch item := hosted.requestItem(p).(type) {
				case nil:
				case messageItem:
					prompts = append(prompts, item)
				default:
					out = append(out, item)
				}
			}
		case agentrun.Response:
			out, prompts = append(out, prompts...), nil
			out = append(out, m.responseItems(message, hosted)...)
		}
	}
	out = append(out, hosted.approve(approved)...)
	return append(out, prompts...)
}

func (h hostedCalls) requestItem(p agentrun.RequestPart) any {
	c := chatPart(p)
	if item, hosted := h.answer(approvals.ToolCallID(c.ToolCallID), p); hosted {
		return item
	}
	if c.Role == openai.ChatMessageRoleTool {
		return outputItem{"function_call_output", c.ToolCallID, c.Content}
	}
	return messageItem{"message", c.Role, c.Content}
}

// responseItems are what the model said. Reasoning goes back only with something
// after it, and only if the provider has signed it: the API refuses anything else.
func (m *Model) responseItems(r agentrun.Response, hosted hostedCalls) []any {
	var out, reasoning []any
	add := func(item any) {
		out, reasoning = append(append(out, reasoning...), item), nil
	}
	for _, p := range r.Parts {
		switch p := p.(type) {
		case agentrun.Text:
			if p.Content != "" {
				add(messageItem{"message", openai.ChatMessageRoleAssistant, p.Content})
			}
		case agentrun.CallPart:
			if hosted.requests[p.ID] != "" {
				add(hosted.call(p))
				continue
			}
			add(callItem{"function_call", string(p.ID), toolName(p.Name), arguments(p.Args)})
		case agentrun.ProviderCall:
			if m.hosts(p.Name) {
				add(ranItem(string(p.ID), p.Name, p.Args, p.Output, p.Failed))
			}
		case agentrun.Thinking:
			if p.ID == "" || p.Signature == "" {
				continue
			}
			item := reasoningItem{Type: "reasoning", ID: p.ID, Summary: []summaryText{}, EncryptedContent: p.Signature}
			if p.Content != "" {
				item.Summary = append(item.Summary, summaryText{"summary_text", p.Content})
			}
			reasoning = append(reasoning, item)
		}
	}
	return out
}

// functions are the tools. The schemas are not written for the strict mode of the
// API, which it would otherwise assume.
func functions(tools []agentrun.ToolDefinition) []openai.ResponseTool {
	var out []openai.ResponseTool
	for _, t := range tools {
		out = append(out, openai.ResponseTool{Type: openai.ToolTypeFunction, Parameters: map[string]any{
			"name": t.Name, "description": t.Description, "parameters": parameters(t.Parameters), "strict": false,
		}})
	}
	return out
}

// said joins the texts of parts.
func said[T any](parts []T, text func(T) string) string {
	var texts []string
	for _, p := range parts {
		if t := text(p); t != "" {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, "\n\n")
}
