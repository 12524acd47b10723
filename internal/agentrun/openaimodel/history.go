package openaimodel

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// chatQuery is the request as chat completions.
func (m *Model) chatQuery(r agentrun.ModelRequest) query {
	request := openai.ChatCompletionRequest{
		Model:         m.model,
		Messages:      chatMessages(r.Instructions, r.Messages, m.takesMore),
		Tools:         chatTools(r.Tools),
		StreamOptions: &openai.StreamOptions{IncludeUsage: true},
	}
	q := query{
		send: func(ctx context.Context, c *openai.Client) (events, error) {
			return c.CreateChatCompletionStream(ctx, request)
		},
		answer: func() answer { return &chatAnswer{written: r.Written} },
		most:   maxChunk,
	}
	if m.takesMore {
		q.extras = extrasOf(r.Messages)
	}
	return q
}

// chatMessages returns the history in the protocol's shape. Requests with no
// response between them are one turn: what answers the calls of the response
// before them goes first, what people wrote after it.
func chatMessages(instructions string, history []agentrun.Message, reasoning bool) []openai.ChatCompletionMessage {
	var out, prompts []openai.ChatCompletionMessage
	if instructions != "" {
		out = append(out, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: instructions})
	}
	for _, m := range history {
		switch m := m.(type) {
		case agentrun.Request:
			for _, p := range m.Parts {
				if c := chatPart(p); c.Role == openai.ChatMessageRoleTool {
					out = append(out, c)
				} else {
					prompts = append(prompts, c)
				}
			}
		case agentrun.Response:
			out = append(out, prompts...)
			prompts = nil
			if c, ok := assistant(m, reasoning); ok {
				out = append(out, c)
			}
		}
	}
	return append(out, prompts...)
}

func chatPart(p agentrun.RequestPart) openai.ChatCompletionMessage {
	switch p := p.(type) {
	case agentrun.UserPrompt:
		return userMessage(orElse(p.Content, "(This message is empty.)"))
	case agentrun.ToolReturn:
		return toolMessage(string(p.CallID), outcome(p))
	case agentrun.RetryPrompt:
		if p.ToolName == "" || p.CallID == "" {
			return userMessage(orElse(p.Content, "That answer cannot be used.") + "\n\nPlease answer again without this mistake.")
		}
		return toolMessage(string(p.CallID), orElse(p.Content, "This call cannot be carried out.")+
			"\n\nFix what is wrong and call again.")
	}
	panic("openaimodel: unknown request part") // unreachable
}

func userMessage(text string) openai.ChatCompletionMessage {
	return openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: text}
}

func toolMessage(id, text string) openai.ChatCompletionMessage {
	return openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, ToolCallID: id, Content: text}
}

func orElse(text, words string) string {
	if text == "" {
		return words
	}
	return text
}

// undecided is how the message about a call begins that ended without a decision: as
// it is written, and as earlier versions wrote it.
var undecided = []string{
	approvals.ExpiredMessage, approvals.WithdrawnMessage,
	"Nobody denied this tool call; the time to approve it ran out.", "Nobody denied this tool call; it was withdrawn before it was approved.",
}

// outcome returns what the model reads as the result of a call: a success as it
// is, anything else with an opening that tells which it is. What ended without a
// decision is not called denied.
func outcome(p agentrun.ToolReturn) string {
	text := content(p.Content)
	var opening, rest string
	switch p.Outcome {
	case agentrun.OutcomeSuccess:
		return orElse(text, "(The tool returned an empty result.)")
	case agentrun.OutcomeDenied:
		if slices.ContainsFunc(undecided, func(said string) bool { return strings.HasPrefix(text, said) }) {
			return text
		}
		opening, rest = "The tool call was denied", " and was not carried out."
	case agentrun.OutcomeFailed:
		opening, rest = "The tool call failed", "."
	case agentrun.OutcomeInterrupted:
		opening, rest = "The tool call was interrupted", " before it had a result."
	default:
		opening, rest = "The outcome of the tool call is not known", "."
	}
	if len(text) >= len(opening) && strings.EqualFold(text[:len(opening)], opening) {
		return text
	}
	return strings.TrimSpace(opening + rest + " " + text)
}

// content returns the text of a JSON string, and other JSON without spaces.
func content(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil && string(bytes.TrimSpace(raw)) != "null" {
		return text
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw) // not JSON: all there is to say is what it is
	}
	return b.String()
}

// takesMore reports whether a server may want more back with its calls than OpenAI's API
// has: the reasoning that led to them, as DeepSeek and Kimi do when they think
// (https://api-docs.deepseek.com/guides/thinking_mode), or [callDetails]. OpenAI gives
// neither in chat completions, and refuses members that it does not know.
func takesMore(base *url.URL) bool {
	host := base.Hostname()
	return host != "api.openai.com" && !strings.HasSuffix(host, ".openai.azure.com")
}

// assistant returns what the model said. Thinking is sent back only with calls, if the
// server may want it, and an answer that holds nothing else has no form in the protocol.
func assistant(r agentrun.Response, reasoning bool) (openai.ChatCompletionMessage, bool) {
	m := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant}
	var texts, thoughts []string
	for _, p := range r.Parts {
		switch p := p.(type) {
		case agentrun.Text:
			if p.Content != "" {
				texts = append(texts, p.Content)
			}
		case agentrun.CallPart:
			m.ToolCalls = append(m.ToolCalls, openai.ToolCall{
				ID: string(p.ID), Type: openai.ToolTypeFunction,
				Function: openai.FunctionCall{Name: toolName(p.Name), Arguments: arguments(p.Args)},
			})
		case agentrun.Thinking:
			if p.ID == "" { // else it is of the Responses API
				thoughts = append(thoughts, p.Content)
			}
		case agentrun.ProviderCall:
		}
	}
	if reasoning && len(m.ToolCalls) > 0 {
		m.ReasoningContent = strings.Join(thoughts, "\n\n")
	}
	m.Content = strings.Join(texts, "\n\n")
	return m, m.Content != "" || len(m.ToolCalls) > 0
}

// arguments returns the arguments as they were, if they are an object. Servers
// that read them refuse anything else, and with it the thread for ever; the
// model still sees in the member invalid_json what it wrote.
func arguments(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "{}"
	}
	if json.Valid(raw) && bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) {
		return string(raw)
	}
	b, err := json.Marshal(map[string]string{"invalid_json": string(raw)})
	if err != nil {
		panic(err) // unreachable: every string has a JSON form
	}
	return string(b)
}

var notInNames = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// toolName returns a name that the protocol permits. Names of tools that exist
// are, but a model can make one up.
func toolName(name string) string {
	name = orElse(notInNames.ReplaceAllLiteralString(name, "_"), "unnamed")
	return name[:min(len(name), 64)]
}

func chatTools(tools []agentrun.ToolDefinition) []openai.Tool {
	var out []openai.Tool
	for _, t := range tools {
		out = append(out, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: parameters(t.Parameters),
		}})
	}
	return out
}

// parameters returns the schema with the members without which the API refuses
// it, type and properties.
func parameters(schema json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if len(schema) > 0 && json.Unmarshal(schema, &members) != nil {
		return schema // wrong in a way that is not ours to mend
	}
	missing := ""
	if _, ok := members["type"]; !ok {
		missing += `,"type":"object"`
	}
	if _, ok := members["properties"]; !ok {
		missing += `,"properties":{}`
	}
	if len(members) == 0 {
		return json.RawMessage("{" + missing[1:] + "}")
	}
	if missing == "" {
		return schema
	}
	end := bytes.LastIndexByte(schema, '}')
	return json.RawMessage(string(schema[:end]) + missing + "}")
}
