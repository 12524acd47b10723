package gateway

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign/countersign/internal/agentrun"
)

// failed is a result that says why there is none.
func failed(words string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: words}}}
}

// result is what the client gets of an execution that is over.
func (s *Server) result(t Tool, e agentrun.Executed) *mcp.CallToolResult {
	out, notes := failed(e.Words), []mcp.Content(nil)
	if e.Words == "" {
		out = failed(emptyWords)
	}
	for _, part := range e.Parts {
		switch p := part.(type) {
		case agentrun.ToolReturn:
			out = s.returned(t, p)
		case agentrun.RetryPrompt:
			out = failed(p.Content)
		case agentrun.UserPrompt: // what ran, if people changed it
			notes = append(notes, &mcp.TextContent{Text: p.Content})
		}
	}
	if len(notes) == 0 {
		return out
	}
	// Some clients show their model nothing but the structured content of a success.
	if raw, ok := out.StructuredContent.(json.RawMessage); ok {
		if out = asText(out, raw); !out.IsError && structured(t) {
			out.IsError = true
			notes = append([]mcp.Content{&mcp.TextContent{Text: changedWords}}, notes...)
		}
	}
	out.Content = append(notes, out.Content...)
	return out
}

// returned is the result as the server of the tool sent it, or else as a model of
// ours would read it.
func (s *Server) returned(t Tool, p agentrun.ToolReturn) *mcp.CallToolResult {
	isError := p.Outcome != agentrun.OutcomeSuccess
	var (
		whole mcp.CallToolResult
		exact struct { // its numbers as the server wrote them
			Structured json.RawMessage `json:"structuredContent"`
		}
	)
	if sent := s.c.Sent(p.Metadata); sent != nil && json.Unmarshal(sent, &whole) == nil && json.Unmarshal(sent, &exact) == nil {
		if whole.StructuredContent != nil {
			whole.StructuredContent = exact.Structured
		}
		if isError && len(whole.Content) == 0 {
			whole.Content = failed(text(p.Content)).Content
		}
		return &mcp.CallToolResult{Content: whole.Content, StructuredContent: whole.StructuredContent, IsError: isError}
	}
	out := failed(text(p.Content))
	if isError {
		return out
	}
	// A client would refuse a success without the structured content that the
	// definition promises.
	if out.IsError = structured(t); out.IsError {
		out.Content = append([]mcp.Content{&mcp.TextContent{Text: tooLargeWords}}, out.Content...)
	}
	return out
}

// anyJSON is the version of the protocol from which on structured content may be any
// JSON value: https://modelcontextprotocol.io/seps/2106-json-schema-2020-12
const anyJSON = "2026-07-28"

// readable is a result as a client of this version can read it: structured content that is
// no object is text for those before [anyJSON].
func readable(r *mcp.CallToolResult, version string) *mcp.CallToolResult {
	raw, ok := r.StructuredContent.(json.RawMessage)
	if !ok || version >= anyJSON || bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return r
	}
	return asText(r, raw)
}

// asText is a result with its structured content as text.
func asText(r *mcp.CallToolResult, raw json.RawMessage) *mcp.CallToolResult {
	out := *r
	out.StructuredContent = nil
	says := func(c mcp.Content) bool { t, ok := c.(*mcp.TextContent); return ok && t.Text == string(raw) }
	if !slices.ContainsFunc(r.Content, says) {
		out.Content = append(slices.Clone(r.Content), &mcp.TextContent{Text: string(raw)})
	}
	return &out
}

// structured reports whether the results of a tool have a schema.
func structured(t Tool) bool {
	var d struct {
		Output json.RawMessage `json:"outputSchema"`
	}
	return json.Unmarshal(t.Defined(), &d) == nil && len(d.Output) > 0
}

// text is a text as it is, and anything else as JSON.
func text(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}
