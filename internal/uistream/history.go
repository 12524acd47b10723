package uistream

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A shownMessage is a message of the history, in the form of the clients.
type shownMessage struct {
	ID       string           `json:"id"`
	Role     string           `json:"role"`
	Metadata *metadata        `json:"metadata,omitempty"`
	Parts    []map[string]any `json:"parts"`
}

// history is GET /api/chat/{id}: all messages of the chat, for a page that is
// loaded again.
func (s *Server) history(c caller) error {
	d, _, err := s.manner(c.r, "", nil)
	if err != nil {
		return err
	}
	ctx := c.r.Context()
	chat := c.r.PathValue("id")
	at, err := s.placeOf(ctx, c.user, chat)
	if err != nil {
		return err
	}
	thread, err := s.c.Runs.Thread(ctx, at.thread)
	if err != nil {
		return err
	}
	all := []shownMessage{}
	heads, err := s.heads(ctx, thread)
	if err != nil {
		return err
	}
	for _, h := range heads {
		t, err := s.load(ctx, at, c.user, h.run)
		if err != nil {
			return err
		}
		said := &metadata{Timestamp: t.began.UTC()} // when it was sent, also if it had to wait for its turn
		if at.shared {
			said.User = t.by
		}
		all = append(all, shownMessage{
			ID: saidPrefix + string(h.run), Role: roleUser, Metadata: said,
			Parts: []map[string]any{{"type": "text", "text": h.prompt}},
		}, shownMessage{ID: messageID(h.run), Role: roleAssistant, Metadata: &metadata{Timestamp: t.began.UTC()}, Parts: s.parts(t, d, c.user)})
	}
	return c.reply(map[string]any{"id": chat, "messages": all})
}

// A turnHead is where a turn begins, with what the user wrote.
type turnHead struct {
	run    approvals.RunID
	prompt string
}

// heads lists the turns of a thread in their order.
func (s *Server) heads(ctx context.Context, thread agentrun.Thread) ([]turnHead, error) {
	if thread.Messages == 0 {
		return nil, nil
	}
	messages, err := s.c.Runs.Messages(ctx, thread.ID, 0, thread.Messages)
	if err != nil {
		return nil, err
	}
	var all []turnHead
	seen := map[approvals.RunID]bool{}
	for _, m := range messages {
		q, ok := m.(agentrun.Request)
		if !ok || seen[q.RunID] {
			continue
		}
		seen[q.RunID] = true
		var prompt []string
		for _, p := range q.Parts {
			if u, ok := p.(agentrun.UserPrompt); ok {
				prompt = append(prompt, u.Content)
			}
		}
		head, err := s.turns.headOf(ctx, q.RunID)
		if errors.Is(err, approvals.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if head == q.RunID {
			all = append(all, turnHead{head, strings.Join(prompt, "\n\n")})
		}
	}
	return all, nil
}

// parts is a turn as a client has it that was sent all of it.
func (s *Server) parts(t *turn, d Dialect, reader approvals.UserID) []map[string]any {
	now := s.c.Now()
	all := []map[string]any{}
	for _, c := range t.ended {
		all = append(all, map[string]any{"type": typeApproval, "id": string(c.id), "data": c.data(reader, now)})
	}
	for _, st := range t.steps {
		all = append(all, map[string]any{"type": "step-start"})
		for _, p := range st.response.Parts {
			switch p := p.(type) {
			case agentrun.Text:
				if p.Content != "" {
					all = append(all, map[string]any{"type": "text", "text": p.Content, "state": "done"})
				}
			case agentrun.Thinking:
				if p.Content != "" && s.c.Reasoning {
					all = append(all, map[string]any{"type": "reasoning", "text": p.Content, "state": "done"})
				}
			case agentrun.CallPart:
				if c := t.find(p.ID); c != nil {
					all = append(all, c.part(d, now))
				}
			case agentrun.ProviderCall:
				if c := t.find(p.ID); c != nil {
					all = append(all, c.part(d, now))
				}
			}
		}
		for _, c := range st.calls {
			if r, ok := c.result.(agentrun.ToolReturn); ok && r.Outcome == agentrun.OutcomeSuccess {
				for _, s := range sources(r) {
					all = append(all, s.part())
				}
			}
			if data := c.data(reader, now); data != nil {
				all = append(all, map[string]any{"type": typeApproval, "id": string(c.id), "data": data})
			}
		}
	}
	return all
}

// part is a call as a part of a message.
func (c *call) part(d Dialect, now time.Time) map[string]any {
	p := map[string]any{"type": "tool-" + c.name, "toolCallId": string(c.id), "input": c.input()}
	if c.hosted {
		p["providerExecuted"] = true
	}
	if c.asked != nil && d.approvals() && (c.result != nil || c.pending(now) || c.ahead()) {
		a := map[string]any{"id": c.approval()}
		if d.reasons() && c.asked.Why != "" {
			a["requestReason"] = c.asked.Why
		}
		if approved, decided := c.decided(); decided {
			a["approved"] = approved
			if why := c.why(); why != "" {
				a["reason"] = why
			}
		}
		p["approval"] = a
	}
	switch r := c.result.(type) {
	case agentrun.ToolReturn:
		switch {
		case r.Outcome == agentrun.OutcomeSuccess, r.Outcome == agentrun.OutcomeDenied && !d.approvals():
			p["state"], p["output"] = stateOutput, shownJSON(r.Content)
		case r.Outcome == agentrun.OutcomeDenied:
			p["state"] = stateDenied
			if why, refused := c.refusal(); refused {
				a := map[string]any{"id": policyApproval(c.id), "approved": false, "reason": why}
				if d.decisions() {
					a["isAutomatic"] = true
				}
				p["approval"] = a
			}
		default:
			p["state"], p["errorText"] = stateError, words(r.Content)
		}
	case agentrun.RetryPrompt:
		p["state"], p["errorText"] = stateError, r.Content
	default:
		switch {
		case c.pending(now) && d.approvals():
			p["state"] = stateRequested
		case c.ahead() && d.approvals():
			p["state"] = stateResponded
		default:
			p["state"] = stateAvailable
		}
	}
	return p
}
