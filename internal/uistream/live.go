package uistream

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A shown is the draft of a step that is not stored yet, as a client received it.
type shown struct {
	step  int
	run   approvals.RunID
	at    int // the place in the thread that the response will have
	parts []*shownPart
}

type shownPart struct {
	agentrun.DraftPart // as it was sent

	id string // of its chunks
}

// part returns a part as it was sent, and nil if none of it was.
func (x *shown) part(kind agentrun.DeltaKind, id string) *shownPart {
	if x == nil {
		return nil
	}
	for _, p := range x.parts {
		if p.Kind == kind && p.id == id {
			return p
		}
	}
	return nil
}

// partID names the nth text, or reasoning, of a step. It is the same for a draft
// and for the stored step.
func partID(step int, kind agentrun.DeltaKind, n int) string {
	return fmt.Sprintf("%d.%s.%d", step, kind, n)
}

// draft returns what is new in the response that a model is writing, if it is the
// next step of the turn. If the client received something else, from an attempt that
// broke off, that is removed first, see [teller.takeBack].
func (w *teller) draft(t *turn, d agentrun.Draft) []chunk {
	if t.over || t.waits || d.Run != t.run || d.At != t.at || len(d.Parts) == 0 {
		return nil
	}
	var out []chunk
	if w.shown != nil && slices.ContainsFunc(w.shown.parts, func(p *shownPart) bool { return !p.begins(d.Parts) }) {
		out = w.takeBack()
	}
	if w.lost {
		return nil
	}
	if w.shown == nil {
		out = append(out, w.startStep()...)
		w.shown = &shown{step: len(t.steps), run: d.Run, at: d.At}
	}
	for _, p := range d.Parts {
		out = append(out, w.grow(p)...)
	}
	return out
}

// begins reports whether a draft agrees with the text that was sent: one of the two
// begins with the other. The draft of another attempt may be the shorter one.
// Arguments need not agree, because a client can receive them again from the start.
func (p *shownPart) begins(parts []agentrun.DraftPart) bool {
	i := slices.IndexFunc(parts, func(x agentrun.DraftPart) bool { return x.Kind == p.Kind })
	return i < 0 || p.Kind == agentrun.DeltaCall || strings.HasPrefix(parts[i].Text, p.Text) || strings.HasPrefix(p.Text, parts[i].Text)
}

// grow returns what was added to a part.
func (w *teller) grow(d agentrun.DraftPart) []chunk {
	if d.Kind == agentrun.DeltaThinking && !w.reasoning || d.Kind != agentrun.DeltaCall && d.Text == "" {
		return nil
	}
	id := partID(w.shown.step, d.Kind, 0)
	if d.Kind == agentrun.DeltaCall {
		id = string(d.Call)
	}
	p := w.shown.part(d.Kind, id)
	var out []chunk
	if p == nil {
		p = &shownPart{id: id, DraftPart: agentrun.DraftPart{Kind: d.Kind, Call: d.Call, Tool: d.Tool}}
		w.shown.parts = append(w.shown.parts, p)
		out = append(out, p.start())
		if d.Kind == agentrun.DeltaCall {
			w.call(d.Call).started = true
		}
	}
	switch {
	case strings.HasPrefix(p.Text, d.Text): // another attempt, which has written less so far
		return out
	case !strings.HasPrefix(d.Text, p.Text):
		out, p.Text = append(out, p.start()), "" // these are arguments: send them again from the start
	}
	out = append(out, p.delta(d.Text[len(p.Text):]))
	p.Text = d.Text
	return out
}

func (p *shownPart) start() chunk {
	switch p.Kind {
	case agentrun.DeltaCall:
		return chunk{Type: typeInputStart, ToolCallID: p.id, ToolName: p.Tool}
	case agentrun.DeltaThinking:
		return chunk{Type: typeReasoningStart, ID: p.id}
	case agentrun.DeltaText, agentrun.DeltaAgain:
	}
	return chunk{Type: typeTextStart, ID: p.id}
}

func (p *shownPart) delta(text string) chunk {
	switch p.Kind {
	case agentrun.DeltaCall:
		return chunk{Type: typeInputDelta, ToolCallID: p.id, InputTextDelta: text}
	case agentrun.DeltaThinking:
		return chunk{Type: typeReasoningDelta, ID: p.id, Delta: text}
	case agentrun.DeltaText, agentrun.DeltaAgain:
	}
	return chunk{Type: typeTextDelta, ID: p.id, Delta: text}
}

func (p *shownPart) end() chunk {
	if p.Kind == agentrun.DeltaThinking {
		return chunk{Type: typeReasoningEnd, ID: p.id}
	}
	return chunk{Type: typeTextEnd, ID: p.id}
}

// whole returns a text or a reasoning of a stored step, without what the client has
// received of its draft.
func (w *teller) whole(kind agentrun.DeltaKind, id, text string) []chunk {
	p := w.shown.part(kind, id)
	var out []chunk
	if p == nil {
		p = &shownPart{id: id, DraftPart: agentrun.DraftPart{Kind: kind}}
		out = append(out, p.start())
	}
	if rest := text[len(p.Text):]; rest != "" {
		out = append(out, p.delta(rest))
	}
	return append(out, p.end())
}

// agrees reports whether the stored step contains everything that was sent of its
// draft.
func (x *shown) agrees(s *step) bool {
	for _, p := range x.parts {
		if p.Kind == agentrun.DeltaCall {
			if !slices.ContainsFunc(s.calls, func(c *call) bool { return c.id == p.Call && c.name == p.Tool }) {
				return false
			}
			continue
		}
		if text, ok := s.text(p.Kind); !ok || !strings.HasPrefix(text, p.Text) {
			return false
		}
	}
	return true
}

// text returns the first text, or reasoning, of the response that is not empty.
func (s *step) text(kind agentrun.DeltaKind) (string, bool) {
	for _, p := range s.response.Parts {
		switch p := p.(type) {
		case agentrun.Text:
			if kind == agentrun.DeltaText && p.Content != "" {
				return p.Content, true
			}
		case agentrun.Thinking:
			if kind == agentrun.DeltaThinking && p.Content != "" {
				return p.Content, true
			}
		case agentrun.CallPart, agentrun.ProviderCall:
		}
	}
	return "", false
}

// stale reports whether the step that a client sees growing will never be stored,
// because the thread has moved on to another place.
func (w *teller) stale(t *turn) bool {
	return w.shown != nil && t.failure == "" && len(t.steps) <= w.shown.step && (w.shown.run != t.run || w.shown.at != t.at)
}

// takeBack removes what was sent of a draft. Most dialects have no chunk for that: in
// those the stream ends here, without a finish, and the client resumes it from its
// beginning.
func (w *teller) takeBack() []chunk {
	if !w.dialect.resets() {
		w.lost = true
		return nil
	}
	for _, p := range w.shown.parts {
		if p.Kind == agentrun.DeltaCall {
			delete(w.calls, p.Call)
		}
	}
	w.shown.parts = nil
	return []chunk{{Type: typeResetStep}}
}

// abandon closes what was sent of a draft whose response will not come, because the
// agent has failed.
func (w *teller) abandon() []chunk {
	if w.shown == nil {
		return nil
	}
	var out []chunk
	for _, p := range w.shown.parts {
		if p.Kind != agentrun.DeltaCall {
			out = append(out, p.end())
			continue
		}
		w.call(p.Call).settled = true
		out = append(out, chunk{Type: typeInputError, ToolCallID: p.id, ToolName: p.Tool, Input: quoted(p.Text), ErrorText: wordsUnfinished})
	}
	w.shown, w.open = nil, false
	return append(out, chunk{Type: typeFinishStep})
}
