package agentrun

import (
	"context"
	"encoding/json"

	"github.com/countersign/countersign/internal/approvals"
)

// A Model answers a history. Implementations retry what is worth retrying
// themselves, within ctx; an error that comes back ends the run.
type Model interface {
	// Request returns the complete response. On an error nothing of a partial
	// response is used. Errors that a person should read in their own words
	// are a [*ModelError]. After an error that does not say NotRun the provider may have
	// run the calls that were approved; nothing is asked again then.
	Request(ctx context.Context, r ModelRequest) (Response, error)
}

// A ModelRequest is everything that the model is to know.
type ModelRequest struct {
	Instructions string
	Messages     []Message
	Tools        []ToolDefinition

	// Written, if not nil, is told what the model writes, in order and from one
	// goroutine, until Request returns. A model may leave it alone.
	Written func(Delta)

	// Approved are the calls without a result that the provider is to run now, each
	// of them in this one request only.
	Approved []approvals.ToolCallID
}

// A ToolDefinition is what the model reads about a tool.
type ToolDefinition struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema of an object
}

// A ModelError is a failure of the model that is reported to people. Words is a
// sentence for the thread and holds no secrets; Err is for the log, and holds
// neither secrets nor anything of a call's arguments.
type ModelError struct {
	Code  ModelErrorCode
	Words string
	Err   error
	// NotRun says that the provider certainly did not run the calls of
	// [ModelRequest].Approved: no request reached it that it did not refuse.
	NotRun bool
	// Ran are the calls that the provider made before its answer broke off, or in an
	// answer that cannot be used. Those that it had not finished are Unsure.
	Ran []ProviderCall
}

// ModelErrorCode tells the failures apart.
type ModelErrorCode string

// The codes.
const (
	ContextTooLong   ModelErrorCode = "context_length_exceeded"
	ContentFiltered  ModelErrorCode = "content_filter"
	RateLimited      ModelErrorCode = "rate_limited"
	ModelUnavailable ModelErrorCode = "unavailable"
	ModelRefused     ModelErrorCode = "refused" // the key, the model's name or the request is wrong
)

// Error is for the log.
func (e *ModelError) Error() string {
	if e.Err == nil {
		return string(e.Code)
	}
	return string(e.Code) + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *ModelError) Unwrap() error { return e.Err }
