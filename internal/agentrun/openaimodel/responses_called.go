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
	at := indexOf(a.called, c)
	switch {
	case at >= 0 && (!unsure || a.called[at].Unsure):
		a.called[at] = c
	case at < 0 && len(a.called) < maxItems:
		a.called = append(a.called, c)
	}
}

// indexOf is where the call is among others, or -1.
func indexOf(in []agentrun.ProviderCall, c agentrun.ProviderCall) int {
	return slices.IndexFunc(in, func(x agentrun.ProviderCall) bool {
		return x.ID == c.ID && (c.ID != "" || x.Name == c.Name)
	})
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
// also not under another id: one that only the last event has stands for one of the stream.
func (a *responsesAnswer) leftOut(listed []agentrun.ResponsePart) []agentrun.ResponsePart {
	var ended, renamed []agentrun.ProviderCall
	streamed := a.called[:a.streamed]
	for _, p := range listed {
		if c, ok := p.(agentrun.ProviderCall); ok {
			c.ID = seenID(string(c.ID))
			ended = append(ended, c)
			if indexOf(streamed, c) < 0 {
				renamed = append(renamed, c)
			}
		}
	}
	var parts []agentrun.ResponsePart
	for _, c := range streamed {
		if indexOf(ended, c) >= 0 {
			continue
		}
		at := slices.IndexFunc(renamed, func(x agentrun.ProviderCall) bool {
			return x.Name == c.Name && x.ApprovalRequest == c.ApprovalRequest
		})
		if at >= 0 {
			renamed = slices.Delete(renamed, at, at+1)
			continue
		}
		c.Failed, c.Unsure = true, true
		parts = append(parts, c)
	}
	return parts
}
