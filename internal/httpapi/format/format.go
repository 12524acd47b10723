// Package format reads the requests of agent frameworks and writes the answers
// that they take back. It is pure: JSON in, JSON out.
//
// A framework's request is read strictly: a key that is not known, a value of
// another type and an id that occurs twice are a [*RequestError] with its place. A
// framework that has no ids for its calls gets ids, and one that takes answers by
// position gets them in the order of its request, all at once: an answer in which
// a call is missing is never written. No answer names another tool than the
// request, so that a change of arguments cannot become a change of the tool.
package format

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
)

// A Name is how a client writes the format.
type Name string

// The formats.
const (
	PydanticAI   Name = "pydantic-ai"
	LangChain    Name = "langchain"
	OpenAIAgents Name = "openai-agents"
)

// ErrOpen is returned for an answer while a call of it has no outcome.
var ErrOpen = errors.New("not every call has an outcome")

// ErrOther is returned for an answer in a format that the request was not
// handed in with, and that needs something which only that format has.
var ErrOther = errors.New("the request was handed in with another format")

// A RequestError is what is wrong with a request, and where: a JSON pointer into it.
type RequestError struct{ At, Problem string }

func (f *RequestError) Error() string { return fmt.Sprintf("%s: %s", orRoot(f.At), f.Problem) }

// Unwrap says that a fault is [approvals.ErrInvalid].
func (*RequestError) Unwrap() error { return approvals.ErrInvalid }

func orRoot(at string) string {
	if at == "" {
		return "the document"
	}
	return at
}

func fault(at, format string, args ...any) error {
	return &RequestError{At: at, Problem: fmt.Sprintf(format, args...)}
}

// A Form is what must be kept of a framework's request to answer in its format.
// The order of the calls is that of the request.
type Form struct {
	Format Name    `json:"format,omitempty"`
	Style  Style   `json:"style,omitempty"`
	Groups []Group `json:"groups,omitempty"` // of the calls, if the framework asks in several groups

	External []approvals.ToolCallID `json:"external,omitempty"` // calls that are to be fulfilled

	// ByClaim says that the caller runs the arguments that a claim returns, not those
	// that its framework has: so a call with changed arguments may be approved.
	ByClaim bool `json:"by_claim,omitempty"`
}

// A Group is a number of calls that are answered together.
type Group struct {
	ID     string `json:"id,omitempty"`
	Calls  int    `json:"calls"`
	Ignore []bool `json:"ignore,omitempty"` // by call: a denial cannot be answered with words
}

// A Style tells the spellings of one format apart.
type Style string

// The styles of [LangChain].
const (
	Camel Style = "camel" // the JavaScript library
	Snake Style = "snake" // the Python library
	Inbox Style = "inbox" // the older HumanInterrupt of Agent Inbox
)

// A Reading is a framework's request.
type Reading struct {
	Form    Form
	Calls   []intake.Call
	Carries intake.Carries
}

// Read reads a request in a format. Names are the ids of its calls, in their
// order, for a format that has none; without them the calls are numbered. The
// document must have passed [approvals.CheckJSON].
func Read(name Name, body json.RawMessage, names []approvals.ToolCallID) (Reading, error) {
	var r Reading
	var err error
	switch name {
	case PydanticAI:
		r, err = readPydantic(body)
	case OpenAIAgents:
		r, err = readOpenAI(body)
	case LangChain:
		return readLangChain(body, names)
	default:
		return Reading{}, fault("", "there is no format %.40q", string(name))
	}
	if err == nil && names != nil {
		err = fault("", "calls of this format have ids of their own")
	}
	return r, err
}

// Write writes the answer to a request whose calls all have an outcome.
func (f Form) Write(name Name, calls []intake.CallStatus) (json.RawMessage, error) {
	for _, c := range calls {
		if c.Outcome == intake.OutcomePending {
			return nil, fmt.Errorf("call %q: %w", string(c.ID), ErrOpen)
		}
	}
	switch name {
	case PydanticAI:
		return f.writePydantic(calls)
	case OpenAIAgents:
		return f.writeOpenAI(calls)
	case LangChain:
		if f.Format != LangChain {
			return nil, ErrOther
		}
		return f.writeLangChain(calls)
	}
	return nil, fault("", "there is no format %.40q", string(name))
}

// approved reports whether the call may run.
func approved(c intake.CallStatus) bool {
	return c.Outcome == intake.OutcomeApproved || c.Outcome == intake.OutcomeAllowed
}

// Words are what the model reads about a call that may not run.
func Words(c intake.CallStatus) string {
	if c.Reason != "" {
		return c.Reason
	}
	switch c.Outcome {
	case intake.OutcomeApproved, intake.OutcomeAllowed:
		return "This tool call may run, but nobody has given its result."
	case intake.OutcomeRefused:
		return "The policy does not permit this tool call. Nobody was asked."
	case intake.OutcomeExpired:
		return "Nobody decided about this tool call in time. It was not denied, and it must not run."
	case intake.OutcomeWithdrawn:
		return "The request for this tool call was withdrawn before anybody decided."
	case intake.OutcomeSuperseded:
		return "Another request replaced this tool call before anybody decided."
	case intake.OutcomePending, intake.OutcomeDenied, intake.OutcomeFulfilled:
	}
	return approvals.DeniedMessage
}
