package openaimodel

import (
	"encoding/json"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// progress tells those who watch what the events before the last one say: the first
// text, the first reasoning, and the calls. The rest comes with the answer.
type progress struct {
	written func(agentrun.Delta) // nil: nobody watches
	calls   map[int]item         // by their place in the output
	places  map[agentrun.DeltaKind]place
}

// A place is where in the output a text is.
type place struct{ output, part int }

// A pieceEvent is an event that adds something to the output.
type pieceEvent struct {
	Output  int    `json:"output_index"`
	Content int    `json:"content_index"`
	Summary int    `json:"summary_index"`
	Delta   string `json:"delta"`
	Item    item   `json:"item"`
}

// add takes one event of this type.
func (p *progress) add(kind string, raw []byte) error {
	if p.written == nil {
		return nil
	}
	switch kind {
	case "response.output_item.added", "response.function_call_arguments.delta", "response.output_text.delta",
		"response.refusal.delta", "response.reasoning_summary_text.delta":
	default:
		return nil
	}
	var e pieceEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		return malformed("an event %s cannot be read: %w", kind, err)
	}
	if err := lossless(raw); err != nil {
		return err
	}
	switch kind {
	case "response.output_item.added":
		if e.Item.Type == "function_call" && e.Item.CallID != "" && e.Item.Name != "" {
			if p.calls == nil {
				p.calls = map[int]item{}
			}
			p.calls[e.Output] = e.Item
			p.call(e.Item, "")
		}
	case "response.function_call_arguments.delta":
		if c, ok := p.calls[e.Output]; ok {
			p.call(c, e.Delta)
		}
	case "response.reasoning_summary_text.delta":
		p.text(agentrun.DeltaThinking, place{e.Output, e.Summary}, e.Delta)
	default:
		p.text(agentrun.DeltaText, place{e.Output, e.Content}, e.Delta)
	}
	return nil
}

func (p *progress) call(c item, args string) {
	p.written(agentrun.Delta{Kind: agentrun.DeltaCall, Call: approvals.ToolCallID(c.CallID), Tool: c.Name, Text: args})
}

// text tells a piece if it is of the first text of its kind.
func (p *progress) text(kind agentrun.DeltaKind, at place, text string) {
	if p.places == nil {
		p.places = map[agentrun.DeltaKind]place{}
	}
	if first, ok := p.places[kind]; ok && first != at || text == "" {
		return
	}
	p.places[kind] = at
	p.written(agentrun.Delta{Kind: kind, Text: text})
}
