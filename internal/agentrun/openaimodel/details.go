package openaimodel

import (
	"encoding/json"
	"fmt"

	"github.com/countersign/countersign/internal/agentrun"
)

// callDetails are the [agentrun.CallPart].ProviderDetails of a call. Gemini 3, behind
// Google's compatible API, gives its calls extra_content with a signature of the thoughts
// that led to them, and refuses a call that comes back without it
// (https://ai.google.dev/gemini-api/docs/thought-signatures).
type callDetails struct {
	Extra json.RawMessage `json:"extra_content"`
}

// extrasOf returns the extra_content of all calls in the history, in their order. Nil means
// that no call has any.
func extrasOf(history []agentrun.Message) []json.RawMessage {
	var all []json.RawMessage
	some := false
	for _, m := range history {
		r, ok := m.(agentrun.Response)
		if !ok {
			continue
		}
		for _, p := range r.Parts {
			c, ok := p.(agentrun.CallPart)
			if !ok {
				continue
			}
			var d callDetails
			_ = json.Unmarshal(c.ProviderDetails, &d) // those of another provider say nothing here
			all, some = append(all, d.Extra), some || d.Extra != nil
		}
	}
	if !some {
		return nil
	}
	return all
}

// withExtras returns the body of a request for a chat completion with the extras of
// [extrasOf] in its calls. The types of go-openai have no field for them.
func withExtras(body []byte, extras []json.RawMessage) ([]byte, error) {
	var request map[string]json.RawMessage
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, fmt.Errorf("read our own request: %w", err)
	}
	var messages []map[string]json.RawMessage
	if err := json.Unmarshal(request["messages"], &messages); err != nil {
		return nil, fmt.Errorf("read the messages of our own request: %w", err)
	}
	for _, m := range messages {
		var made []map[string]json.RawMessage
		if len(m["tool_calls"]) == 0 {
			continue
		}
		if err := json.Unmarshal(m["tool_calls"], &made); err != nil {
			return nil, fmt.Errorf("read the calls of our own request: %w", err)
		}
		if len(made) > len(extras) {
			return nil, fmt.Errorf("our own request has more calls than the history: %d, and %d are left", len(made), len(extras))
		}
		for i, c := range made {
			if extras[i] != nil {
				c["extra_content"] = extras[i]
			}
		}
		extras = extras[len(made):]
		var err error
		if m["tool_calls"], err = json.Marshal(made); err != nil {
			return nil, err
		}
	}
	var err error
	if request["messages"], err = json.Marshal(messages); err != nil {
		return nil, err
	}
	return json.Marshal(request)
}
