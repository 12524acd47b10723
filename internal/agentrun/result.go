package agentrun

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
)

// MaxResult is how many bytes of a result the model reads; what is longer is
// cut, and the model is told.
const MaxResult = 128 << 10

// What the model reads about executions that did not end well. None of them
// says more than is known.
const (
	failedMessage   = "The tool failed without a reason that can be shown."
	panickedMessage = "The tool crashed."
	lateMessage     = "The tool did not finish within %s and was stopped."
	unknownMessage  = "It is not known whether the call took effect, so it is not repeated."
)

// returned is the result of a call, with words as its content.
func returned(c approvals.ToolCall, o Outcome, words string, at time.Time) ToolReturn {
	return ToolReturn{ToolName: c.Name, CallID: c.ID, Content: jsonString(words), Outcome: o, At: at}
}

// again asks the model to correct a call.
func again(c approvals.ToolCall, words string, at time.Time) RequestPart {
	return RetryPrompt{ToolName: c.Name, CallID: c.ID, Content: words, At: at}
}

// refused is the result of a call that the policy does not let run.
func refused(c approvals.ToolCall, r approvals.Refuse, at time.Time) RequestPart {
	reason := r.Reason
	if reason == "" {
		reason = approvals.DeniedMessage
	}
	return returned(c, OutcomeDenied, reason, at)
}

// value returns a result as JSON of a size that a model can read.
func value(v json.RawMessage) json.RawMessage {
	switch {
	case len(v) == 0:
		return json.RawMessage("null")
	case !json.Valid(v) || len(v) > MaxResult:
		return jsonString(cut(string(v)))
	}
	return v
}

// cut shortens text to [MaxResult] bytes, between two characters, and says so.
func cut(s string) string {
	if len(s) <= MaxResult {
		return s
	}
	end := MaxResult
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s\n[cut: the first %d of %d bytes]", s[:end], end, len(s))
}

// object returns m if it is one JSON object, and nil otherwise.
func object(m json.RawMessage) json.RawMessage {
	if len(m) == 0 || approvals.CheckArgs(m) != nil {
		return nil
	}
	return m
}
