package agentrun

import (
	"encoding/json"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// A Message is one entry of a thread's history: a [Request], which is all that
// was sent to the model in one turn, or a [Response], all that came back.
//
// The JSON form is PydanticAI's (`ModelMessagesTypeAdapter`): `kind`, `parts`,
// `part_kind`; there is no role.
//
//sumtype:decl
type Message interface{ message() }

// A Request is what was sent to the model.
type Request struct {
	Parts []RequestPart
	// Authors are the people whose words are in the parts, each once: who wrote a
	// prompt, gave a reason for a denial, or changed arguments. Nil is that nobody
	// noted them, as in what was stored before they were.
	Authors      []approvals.UserID
	Instructions string
	RunID        approvals.RunID
	At           time.Time
}

// A Response is what the model answered.
type Response struct {
	Parts        []ResponsePart
	Usage        Usage // of this one request
	ModelName    string
	FinishReason FinishReason
	RunID        approvals.RunID
	At           time.Time
}

func (Request) message()  {}
func (Response) message() {}

// RequestPart is [UserPrompt], [ToolReturn] or [RetryPrompt].
//
//sumtype:decl
type RequestPart interface{ requestPart() }

// UserPrompt is what a person wrote, or content that a tool added.
type UserPrompt struct {
	Content string
	At      time.Time
}

// ToolReturn is the result of one call. Content is any JSON value. Metadata and Parts
// are kept and never sent to the model. If the provider of the model ran the call,
// ProviderCall is its id there, and otherwise empty.
type ToolReturn struct {
	ToolName string
	CallID   approvals.ToolCallID

	ProviderCall string

	Content  json.RawMessage
	Outcome  Outcome
	Metadata json.RawMessage
	Parts    []Part
	At       time.Time
}

// RetryPrompt asks the model to do a call again, or, without ToolName, to
// answer again.
type RetryPrompt struct {
	ToolName string
	CallID   approvals.ToolCallID
	Content  string
	At       time.Time
}

func (UserPrompt) requestPart()  {}
func (ToolReturn) requestPart()  {}
func (RetryPrompt) requestPart() {}

// Outcome tells a result from a refusal.
type Outcome string

// The outcomes, as upstream.
const (
	OutcomeSuccess     Outcome = "success"
	OutcomeFailed      Outcome = "failed"
	OutcomeDenied      Outcome = "denied"      // also expired and withdrawn; the content says which
	OutcomeInterrupted Outcome = "interrupted" // the run ended before the call had a result
)

// ResponsePart is [Text], [Thinking], [CallPart] or [ProviderCall].
//
//sumtype:decl
type ResponsePart interface{ responsePart() }

// Text is what the model says.
type Text struct{ Content string }

// Thinking is the model's reasoning; it is kept and never shown. A provider that
// keeps nothing itself gives it an ID and a Signature, with which it takes the
// reasoning back; only that provider can read the Signature.
type Thinking struct {
	Content   string
	ID        string
	Signature string
}

// CallPart is a call that the model makes. Its arguments are the exact bytes
// that the model wrote, which need not be JSON. Of a call of a remote agent, Place
// is where it would run, in the agent's words, and Rule is what permitted or
// refused it; the model never reads them.
//
// A call with an ApprovalRequest is one that the provider of the model runs, on a
// server that it hosts: the provider asks for approval under that id.
//
// ProviderDetails is what the [Model] needs to send the call back to its provider, a JSON
// object that only the model reads; nil if that is nothing.
type CallPart struct {
	approvals.ToolCall

	Place           approvals.Place
	Rule            string
	ApprovalRequest string
	ProviderDetails json.RawMessage
}

// ProviderCall is a call that the provider of the model has made while it answered,
// with what came of it. What a [Model] returns has one for each call that it was told
// to run; their results are stored as [ToolReturn]. Any other was made without approval:
// it is stored as it is.
type ProviderCall struct {
	approvals.ToolCall // ID is that of the provider

	ApprovalRequest string // which request for approval it was made for, as the provider says
	Output          string
	Failed          bool // Output is the error
	Unsure          bool // it failed, and may have taken effect; not stored
}

func (Text) responsePart()     {}
func (Thinking) responsePart() {}
func (CallPart) responsePart() {}

func (ProviderCall) responsePart() {}

// FinishReason says why the model stopped.
type FinishReason string

// The finish reasons, as upstream.
const (
	FinishStop          FinishReason = "stop"
	FinishLength        FinishReason = "length"
	FinishContentFilter FinishReason = "content_filter"
	FinishToolCall      FinishReason = "tool_call"
	FinishError         FinishReason = "error"
)

// Usage counts what a run, together with the runs it resumes, has used.
type Usage struct {
	Requests     int
	ToolCalls    int // executed calls
	InputTokens  int
	OutputTokens int
}
