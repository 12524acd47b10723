package openaimodel

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// see notes a call that the provider makes, in the place of what was known of it. A call
// of which nothing came yet may have taken effect.
func (a *responsesAnswer) see(i item) {
	if i.Type != "mcp_call" {
		return
	}
	text, failed, unsure := i.outcome()
	if i.Status == "" && i.Output == nil && !failed {
		failed, unsure = true, true
	}
	c := agentrun.ProviderCall{
		ToolCall: approvals.ToolCall{
			ID:   seenID(i.ID),
			Name: approvals.Visible(fmt.Sprintf("%.64s.%.128s", i.ServerLabel, i.Name)), // people and the log read it
			Args: concealIn(i.Arguments, a.conceal),
		},
		ApprovalRequest: i.ApprovalRequestID, Output: a.conceal(text), Failed: failed, Unsure: unsure,
	}
	at := slices.IndexFunc(a.called, func(known agentrun.ProviderCall) bool {
		return known.ID == c.ID && (c.ID != "" || known.Name == c.Name)
	})
	switch {
	case at >= 0 && (!unsure || a.called[at].Unsure):
		a.called[at] = c
	case at < 0 && len(a.called) < maxItems:
		a.called = append(a.called, c)
	}
}

// seenID is the id of a call of the provider, which the log and the journal have.
func seenID(id string) approvals.ToolCallID {
	return approvals.ToolCallID(approvals.Visible(fmt.Sprintf("%.128s", id)))
}

// argue notes the arguments of a call that began without them.
func (a *responsesAnswer) argue(raw []byte) {
	var e struct {
		ID   string `json:"item_id"`
		Args string `json:"arguments"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return
	}
	for i, c := range a.called {
		if c.ID == seenID(e.ID) && c.Unsure {
			a.called[i].Args = concealIn(e.Args, a.conceal)
		}
	}
}

// leftOut are the calls that the provider began and that its last event does not have,
// also not under another id.
func (a *responsesAnswer) leftOut(listed []agentrun.ResponsePart) []agentrun.ResponsePart {
	var parts []agentrun.ResponsePart
	for _, c := range a.called {
		if !slices.ContainsFunc(listed, func(p agentrun.ResponsePart) bool {
			l, ok := p.(agentrun.ProviderCall)
			return ok && (seenID(string(l.ID)) == c.ID || l.Name == c.Name && l.ApprovalRequest == c.ApprovalRequest)
		}) {
			c.Failed, c.Unsure = true, true
			parts = append(parts, c)
		}
	}
	return parts
}
