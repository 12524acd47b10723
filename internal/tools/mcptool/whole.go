package mcptool

import (
	"encoding/json"

	"github.com/countersign/countersign/internal/approvals"
)

// sent is what of a result is for whoever made the call.
type sent struct {
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structuredContent,omitempty"`
}

type metadata struct {
	MCP *sent `json:"mcp"`
}

// whole returns the metadata that keeps a result. It is nil for one that is too
// large to be kept, or whose text is more than the server may send.
func (s Server) whole(result json.RawMessage) json.RawMessage {
	var r sent
	if json.Unmarshal(result, &r) != nil {
		return nil
	}
	text := 0
	for _, raw := range r.Content {
		p, err := readPart(raw)
		if err != nil || p.Note == noteUnknown {
			return nil
		}
		text += len(p.Text)
	}
	if max(text, len(r.Structured)) > s.maxResult() {
		return nil
	}
	m := encoded(metadata{&r})
	if approvals.CheckArgs(m) != nil {
		return nil
	}
	return m
}

// Sent returns the result that the metadata of a call keeps, as an object with
// content and structuredContent, or nil if it keeps none.
func Sent(kept json.RawMessage) json.RawMessage {
	var m metadata
	if json.Unmarshal(kept, &m) != nil || m.MCP == nil {
		return nil
	}
	if m.MCP.Content == nil {
		m.MCP.Content = []json.RawMessage{}
	}
	return encoded(m.MCP)
}
