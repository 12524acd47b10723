package approvals

import "encoding/json"

// DeferredToolRequests are what a run ends with when its calls need someone:
// the calls to run elsewhere, the calls that need people, and what the tools
// said when they asked (a JSON object per call). Calls deferred by a tool while
// it ran come first, then those that their definition defers, each in emission
// order.
type DeferredToolRequests struct {
	Calls     []ToolCall
	Approvals []ToolCall
	Metadata  map[ToolCallID]json.RawMessage
}

// DeferredToolResults are the answers to [DeferredToolRequests], by call.
// Metadata reaches the tool of an approved call, a JSON object each.
type DeferredToolResults struct {
	Calls     map[ToolCallID]CallResult
	Approvals map[ToolCallID]ApprovalResult
	Metadata  map[ToolCallID]json.RawMessage
}

// ApprovalResult answers a call that needed people: [ToolApproved],
// [ToolDenied] or, of a call in doubt, [ToolHappened].
//
//sumtype:decl
type ApprovalResult interface{ approvalResult() }

// CallResult answers a call that ran elsewhere: [ToolReturn], [ToolFailed],
// [ModelRetry] or [ToolDenied].
//
//sumtype:decl
type CallResult interface{ callResult() }

// ToolApproved lets the call run. OverrideArgs, if not nil, replace all of its
// arguments; an empty object means no arguments.
type ToolApproved struct{ OverrideArgs json.RawMessage }

// ToolDenied stops the call. The model reads Message as it stands; an empty
// one stays empty.
type ToolDenied struct{ Message string }

// ToolHappened says that a call in doubt took effect, by the word of a person.
// The model reads Message as it stands. Upstream does not have it.
type ToolHappened struct{ Message string }

// DeniedMessage is what the model reads about a denial without words.
const DeniedMessage = "The tool call was denied."

// ToolReturn is the result of a call that ran elsewhere. Metadata is kept and
// never sent to the model. Content, a JSON string, becomes a user prompt after
// the results.
type ToolReturn struct {
	ReturnValue json.RawMessage
	Content     json.RawMessage
	Metadata    json.RawMessage
}

// ToolFailed says that the call ran and failed; the model reads Message.
type ToolFailed struct{ Message string }

// ModelRetry asks the model to try again; it reads Message.
type ModelRetry struct{ Message string }

func (ToolApproved) approvalResult() {}
func (ToolDenied) approvalResult()   {}
func (ToolHappened) approvalResult() {}
func (ToolDenied) callResult()       {}
func (ToolReturn) callResult()       {}
func (ToolFailed) callResult()       {}
func (ModelRetry) callResult()       {}
