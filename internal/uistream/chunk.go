package uistream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// A chunk is one event of the stream. Older clients are strict: a field that its
// type does not have ends them, so a field that is not set is left out.
type chunk struct {
	Type            string          `json:"type"`
	MessageID       string          `json:"messageId,omitempty"`
	ID              string          `json:"id,omitempty"`
	Delta           string          `json:"delta,omitempty"`
	ApprovalID      string          `json:"approvalId,omitempty"`
	ToolCallID      string          `json:"toolCallId,omitempty"`
	ToolName        string          `json:"toolName,omitempty"`
	Hosted          bool            `json:"providerExecuted,omitempty"`
	InputTextDelta  string          `json:"inputTextDelta,omitempty"`
	Input           json.RawMessage `json:"input,omitempty"`
	Output          json.RawMessage `json:"output,omitempty"`
	ErrorText       string          `json:"errorText,omitempty"`
	IsAutomatic     bool            `json:"isAutomatic,omitempty"`
	Approved        *bool           `json:"approved,omitempty"`
	Reason          string          `json:"reason,omitempty"`
	SourceID        string          `json:"sourceId,omitempty"`
	URL             string          `json:"url,omitempty"`
	MediaType       string          `json:"mediaType,omitempty"`
	Title           string          `json:"title,omitempty"`
	Data            *approvalData   `json:"data,omitempty"`
	FinishReason    string          `json:"finishReason,omitempty"`
	MessageMetadata *metadata       `json:"messageMetadata,omitempty"`
}

// metadata is what is said of a message as a whole.
type metadata struct {
	Timestamp time.Time        `json:"timestamp"`      // when the message began
	User      approvals.UserID `json:"user,omitempty"` // who wrote it, in a conversation of several people
}

// The types of chunks.
const (
	typeStart            = "start"
	typeFinish           = "finish"
	typeStartStep        = "start-step"
	typeFinishStep       = "finish-step"
	typeResetStep        = "reset-step"
	typeError            = "error"
	typeTextStart        = "text-start"
	typeTextDelta        = "text-delta"
	typeTextEnd          = "text-end"
	typeReasoningStart   = "reasoning-start"
	typeReasoningDelta   = "reasoning-delta"
	typeReasoningEnd     = "reasoning-end"
	typeInputStart       = "tool-input-start"
	typeInputDelta       = "tool-input-delta"
	typeInputAvailable   = "tool-input-available"
	typeInputError       = "tool-input-error"
	typeApprovalRequest  = "tool-approval-request"
	typeApprovalResponse = "tool-approval-response"
	typeOutput           = "tool-output-available"
	typeOutputError      = "tool-output-error"
	typeOutputDenied     = "tool-output-denied"
	typeSourceURL        = "source-url"
	typeSourceDocument   = "source-document"
	typeFile             = "file"
	typeApproval         = "data-approval"
)

// The reasons to finish.
const (
	finishStop      = "stop"
	finishToolCalls = "tool-calls"
	finishError     = "error"
	finishOther     = "other"
)

// doneEvent ends a stream that is complete.
const doneEvent = "data: [DONE]\n\n"

// event returns the chunk as a server-sent event.
func (c chunk) event() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("data: ")
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(c); err != nil {
		return nil, fmt.Errorf("encode a chunk %s: %w", c.Type, err)
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}
