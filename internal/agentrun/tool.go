package agentrun

import (
	"context"
	"encoding/json"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// A Tool is something an agent can do.
type Tool interface {
	Spec() Spec
	// Validate judges the arguments before any person is asked and again
	// before the call is executed. An error is words for the model, which
	// tries again; [*ApprovalRequired] and [*CallDeferred] set the call aside.
	// A person who changes the arguments reads each [*ArgumentError] in it
	// beside the argument.
	Validate(ctx context.Context, c Call) error
	// Execute does it, at most once per approval. Besides a plain error,
	// which becomes a failed result, it may return [*ApprovalRequired] (unless
	// the call is approved), [*CallDeferred], [*RetryError], [*FailedError] or
	// [*PreconditionFailed], and [*UnsureError] if it cannot say what happened.
	Execute(ctx context.Context, c Call) (Result, error)
}

// Kind says where a call of the tool runs.
type Kind string

// The kinds, as upstream.
const (
	KindFunction   Kind = "function"   // it runs here
	KindUnapproved Kind = "unapproved" // it runs here, always after an approval
	KindExternal   Kind = "external"   // it runs elsewhere; its arguments are not validated

	// KindHosted is ours: the provider of the model runs it, in the request that
	// tells it that the call is approved.
	KindHosted Kind = "hosted"
)

// A Spec is what a tool declares of itself.
type Spec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of its arguments, an object
	Kind        Kind
	// NeedsApproval, if set, decides over validated arguments and context
	// whether this call needs approval. An error means that it does.
	NeedsApproval func(ctx context.Context, c Call) (bool, error)
	Sequential    bool          // runs alone: what was emitted before it is done, what comes after waits
	MaxRetries    int           // how often the model may correct the arguments; 0 means 1, negative none
	Timeout       time.Duration // of one execution; 0 means [DefaultToolTimeout]
	WriteOnly     []string      // arguments that people see as a length only, as in [approvals.HiddenAt]
	Summary       string        // a template that says what a call does, as in package summary; checked when tools are loaded
	Annotations   Annotations
	// Definition names how the tool is defined, for example by a digest; it is empty if that
	// cannot change while people are asked. An approval is for the definition by which people
	// were asked: they are asked again if it is another one when the call is to run.
	Definition string
	Preview    *Previewer // nil: nothing is said of what a call would change
	// Effect says what a second execution of a call would do; see [Agent] for who
	// else can say it. MCP's hints never set it.
	Effect Effect
	// Lookup asks whether a call that was begun took effect. It changes nothing.
	// An effect of [EffectLookup] needs it.
	Lookup func(ctx context.Context, c Call) (Looked, error)
	// Severity says how bad it is if a call runs that should not have run.
	// [Spec.Stated] is the one that counts.
	Severity approvals.Severity
}

// Stated returns how bad a call of the tool is, by the worse of its Severity and
// its Annotations. A hint that is left out states nothing.
func (s Spec) Stated() approvals.Severity {
	switch a := s.Annotations; {
	case a.ReadOnlyHint:
		return s.Severity.Worse(approvals.SeverityLow)
	case a.DestructiveHint != nil && *a.DestructiveHint:
		return s.Severity.Worse(approvals.SeverityHigh)
	}
	return s.Severity
}

// Asks says for which of its calls a tool asks for approval by its own
// definition. A policy knows it before there is a call; what the tool says of
// one call is its [approvals.Gate].
type Asks string

// What a definition can say. The zero value says nothing; it does not mean that
// calls may run unasked.
const (
	AsksNever    Asks = "never"
	AsksWhen     Asks = "when" // where its predicate says so
	AsksAlways   Asks = "always"
	AsksExternal Asks = "external" // none, and its calls run elsewhere
)

// Asks returns what the definition says.
func (s Spec) Asks() Asks {
	switch {
	case s.Kind == KindExternal:
		return AsksExternal
	case s.Kind == KindHosted:
		return AsksNever
	case s.Kind != KindFunction && s.Kind != "":
		return AsksAlways
	case s.NeedsApproval != nil:
		return AsksWhen
	case s.Kind == KindFunction:
		return AsksNever
	}
	return ""
}

// Annotations are what a tool says of its effects, by the words and defaults of
// MCP, where nil stands for true:
// https://modelcontextprotocol.io/specification/2025-06-18/schema#toolannotations.
// They are hints of the tool's author: a policy may use them.
type Annotations struct {
	ReadOnlyHint    bool  // it changes nothing
	DestructiveHint *bool // it may destroy what was there; means nothing if it only reads
	IdempotentHint  bool  // the same call twice changes nothing more
	OpenWorldHint   *bool // it reaches beyond a closed set of things
}

// DefaultToolTimeout ends an execution that hangs.
const DefaultToolTimeout = 2 * time.Minute

// A Call is one call as its tool sees it.
type Call struct {
	approvals.ToolCall                 // Args are those to run with
	Run                approvals.RunID // also the idempotency scope: (Run, ID) is executed at most once
	Agent              string
	Requester          approvals.UserID
	Approved           bool            // a person approved exactly these arguments
	Metadata           json.RawMessage // what came with the approval, a JSON object or nil
	Precondition       []byte          // what the [Preview] said that people approved; nil: there was none, or it does not have to hold
	// Key names the execution: an idempotent tool passes it to what it acts on, so
	// that the same call twice takes effect once. It stays the same when a call in
	// doubt is run again, and no other call has it.
	Key string
}

// A Result is what a tool returns. Value is any JSON; Content, if not empty,
// becomes a user prompt after the results; Metadata is kept and never sent. Parts are
// for those who show a result that is more than JSON; see [Part] for their bounds.
type Result struct {
	Value    json.RawMessage
	Content  string
	Metadata json.RawMessage
	Parts    []Part
}

// ApprovalRequired sets the call aside until someone approves it. Reason says
// why, to those who are asked: they read the first [approvals.MaxQuote]
// characters as the words of the tool. Metadata, a JSON object or nil, is
// stored with the batch and never shown.
type ApprovalRequired struct { //nolint:errname // upstream's word
	Reason   string
	Metadata json.RawMessage
}

// CallDeferred sets the call aside: its result comes from elsewhere.
type CallDeferred struct{ Metadata json.RawMessage } //nolint:errname // upstream's word

// RetryError asks the model to call again; it reads Message.
type RetryError struct{ Message string }

// FailedError is a failure that the model reads as Message. Of any other error
// the log keeps only the types, because its text may hold arguments. Metadata is
// that of a [Result].
type FailedError struct {
	Message  string
	Metadata json.RawMessage
}

// UnsureError says that it is not known whether the call took effect, such as
// when a server that was asked to do it did not answer. Message says why. What
// becomes of the call then, its [Effect] says: it is not repeated unless that is
// harmless or people let it run again.
type UnsureError struct{ Message string }

// An ArgumentError is what is wrong with the arguments of a call, in words.
// Pointer is the JSON pointer (RFC 6901) of the argument, also of one that is
// missing; the empty one is all of them. An error of [Tool].Validate may have
// several in its tree.
type ArgumentError struct {
	Pointer string
	Message string
}

// ArgumentMissing is the message about an argument that is not there.
const ArgumentMissing = "it is missing"

func (*ApprovalRequired) Error() string { return "approval required" }
func (*CallDeferred) Error() string     { return "call deferred" }
func (e *RetryError) Error() string     { return "model retry: " + e.Message }
func (e *FailedError) Error() string    { return "tool failed: " + e.Message }
func (e *UnsureError) Error() string    { return "outcome not known: " + e.Message }

// Error is the message with the place before it.
func (e *ArgumentError) Error() string {
	if e.Pointer == "" {
		return e.Message
	}
	return e.Pointer + ": " + e.Message
}

// Unwrap says that the arguments are [approvals.ErrInvalid].
func (*ArgumentError) Unwrap() error { return approvals.ErrInvalid }
