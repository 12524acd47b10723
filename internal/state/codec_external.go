package state

import (
	"encoding/json"
	"fmt"

	"github.com/countersign/countersign/internal/approvals"
)

type storedExternal struct {
	Call      storedRef       `json:"call"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	WriteOnly []string        `json:"write_only,omitempty"`
	Summary   string          `json:"summary,omitempty"`
	Place     storedPlace     `json:"place,omitzero"`
	Result    *storedResult   `json:"result,omitempty"`
	Ending    storedEnding    `json:"ending,omitzero"`
}

// storedResult is a sealed [approvals.CallResult]; the kinds are upstream's.
type storedResult struct {
	Kind     string          `json:"kind"`
	Message  string          `json:"message,omitempty"`
	Value    json.RawMessage `json:"return_value,omitempty"`
	Content  json.RawMessage `json:"content,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

const (
	kindDenied = "tool-denied"
	kindReturn = "tool-return"
	kindFailed = "tool-failed"
	kindRetry  = "model-retry"
)

func storeResult(r approvals.CallResult) *storedResult {
	switch r := r.(type) {
	case nil:
		return nil
	case approvals.ToolDenied:
		return &storedResult{Kind: kindDenied, Message: r.Message}
	case approvals.ToolReturn:
		return &storedResult{Kind: kindReturn, Value: r.ReturnValue, Content: r.Content, Metadata: r.Metadata}
	case approvals.ToolFailed:
		return &storedResult{Kind: kindFailed, Message: r.Message}
	case approvals.ModelRetry:
		return &storedResult{Kind: kindRetry, Message: r.Message}
	}
	panic(fmt.Sprintf("state: unknown call result %T", r)) // unreachable
}

func (r *reader) result(s *storedResult) approvals.CallResult {
	if s == nil {
		return nil
	}
	switch s.Kind {
	case kindDenied:
		return approvals.ToolDenied{Message: s.Message}
	case kindReturn:
		return approvals.ToolReturn{ReturnValue: s.Value, Content: s.Content, Metadata: s.Metadata}
	case kindFailed:
		return approvals.ToolFailed{Message: s.Message}
	case kindRetry:
		return approvals.ModelRetry{Message: s.Message}
	}
	if r.err == nil {
		r.err = fmt.Errorf("decode document: a call result of kind %q", s.Kind)
	}
	return nil
}
