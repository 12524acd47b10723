package agentrun

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
)

// messageJSON is both kinds of message; kind says which fields are meant.
type messageJSON struct {
	Kind         string            `json:"kind"`
	Parts        []json.RawMessage `json:"parts"`
	Instructions string            `json:"instructions,omitempty"`
	// Authors is ours, not upstream's.
	Authors      []approvals.UserID `json:"authors,omitzero"`
	Usage        *usageJSON         `json:"usage,omitempty"`
	ModelName    string             `json:"model_name,omitempty"`
	FinishReason FinishReason       `json:"finish_reason,omitempty"`
	RunID        approvals.RunID    `json:"run_id,omitempty"`
	Timestamp    time.Time          `json:"timestamp,omitzero"`
}

type usageJSON struct {
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
}

// partJSON is every kind of part; part_kind says which fields are meant. Bytes
// holds arguments that are not UTF-8 and so fit in no JSON string; Args is
// then only what a reader can make of them.
type partJSON struct {
	PartKind  string               `json:"part_kind"`
	ToolName  string               `json:"tool_name,omitempty"`
	CallID    approvals.ToolCallID `json:"tool_call_id,omitempty"`
	Content   json.RawMessage      `json:"content,omitempty"`
	Args      json.RawMessage      `json:"args,omitempty"`
	Bytes     []byte               `json:"args_bytes,omitempty"`
	Outcome   Outcome              `json:"outcome,omitempty"`
	Metadata  json.RawMessage      `json:"metadata,omitempty"`
	Timestamp time.Time            `json:"timestamp,omitzero"`
	ID        string               `json:"id,omitempty"`
	Signature string               `json:"signature,omitempty"`
	Details   json.RawMessage      `json:"provider_details,omitempty"`
	// Parts, Place and Rule are ours, not upstream's.
	Parts []Part     `json:"parts,omitempty"`
	Place *placeJSON `json:"place,omitempty"`
	Rule  string     `json:"rule,omitempty"`
	// ApprovalRequest, ProviderCall and Failed are of calls that the provider of the
	// model runs; they are ours too.
	ApprovalRequest string `json:"approval_request_id,omitempty"`
	ProviderCall    string `json:"provider_call_id,omitempty"`
	Failed          bool   `json:"failed,omitempty"`
}

type placeJSON struct {
	Cwd        string `json:"cwd,omitempty"`
	Repository string `json:"repository,omitempty"`
	Branch     string `json:"branch,omitempty"`
	Server     string `json:"server,omitempty"`
}

// EncodeMessage writes one message.
func EncodeMessage(m Message) ([]byte, error) {
	switch m := m.(type) {
	case Request:
		out := messageJSON{
			Kind: "request", Parts: make([]json.RawMessage, len(m.Parts)),
			Instructions: m.Instructions, Authors: m.Authors, RunID: m.RunID, Timestamp: m.At.UTC(),
		}
		for i, p := range m.Parts {
			b, err := EncodeRequestPart(p)
			if err != nil {
				return nil, fmt.Errorf("part %d: %w", i, err)
			}
			out.Parts[i] = b
		}
		return json.Marshal(out)
	case Response:
		out := messageJSON{
			Kind: "response", Parts: make([]json.RawMessage, len(m.Parts)),
			ModelName: m.ModelName, FinishReason: m.FinishReason, RunID: m.RunID, Timestamp: m.At.UTC(),
			Usage: &usageJSON{InputTokens: m.Usage.InputTokens, OutputTokens: m.Usage.OutputTokens},
		}
		for i, p := range m.Parts {
			b, err := encodeResponsePart(p)
			if err != nil {
				return nil, fmt.Errorf("part %d: %w", i, err)
			}
			out.Parts[i] = b
		}
		return json.Marshal(out)
	}
	return nil, fmt.Errorf("unknown message %T", m)
}

// EncodeRequestPart writes one part of a request, as a journal entry keeps it.
func EncodeRequestPart(p RequestPart) ([]byte, error) {
	switch p := p.(type) {
	case UserPrompt:
		return json.Marshal(partJSON{PartKind: "user-prompt", Content: jsonString(p.Content), Timestamp: p.At.UTC()})
	case ToolReturn:
		content := p.Content
		if content == nil {
			content = json.RawMessage("null")
		}
		return json.Marshal(partJSON{
			PartKind: "tool-return", ToolName: p.ToolName, CallID: p.CallID, Content: content,
			Outcome: p.Outcome, Metadata: p.Metadata, Parts: p.Parts, ProviderCall: p.ProviderCall, Timestamp: p.At.UTC(),
		})
	case RetryPrompt:
		return json.Marshal(partJSON{
			PartKind: "retry-prompt", ToolName: p.ToolName, CallID: p.CallID,
			Content: jsonString(p.Content), Timestamp: p.At.UTC(),
		})
	}
	return nil, fmt.Errorf("unknown part %T", p)
}

func encodeResponsePart(p ResponsePart) ([]byte, error) {
	switch p := p.(type) {
	case Text:
		return json.Marshal(partJSON{PartKind: "text", Content: jsonString(p.Content)})
	case Thinking:
		return json.Marshal(partJSON{PartKind: "thinking", Content: jsonString(p.Content), ID: p.ID, Signature: p.Signature})
	case CallPart:
		out := partJSON{PartKind: "tool-call", ToolName: p.Name, CallID: p.ID, Args: json.RawMessage("null"), Rule: p.Rule, ApprovalRequest: p.ApprovalRequest, Details: p.ProviderDetails}
		out.arguments(p.Args)
		if p.Place != (approvals.Place{}) {
			place := placeJSON(p.Place)
			out.Place = &place
		}
		return json.Marshal(out)
	case ProviderCall:
		out := partJSON{
			PartKind: "builtin-tool-return", ToolName: p.Name, CallID: p.ID, Args: json.RawMessage("null"),
			Content: jsonString(p.Output), Failed: p.Failed, ApprovalRequest: p.ApprovalRequest,
		}
		out.arguments(p.Args)
		return json.Marshal(out)
	}
	return nil, fmt.Errorf("unknown part %T", p)
}

// arguments writes the bytes that the model wrote, if there are any.
func (p *partJSON) arguments(args json.RawMessage) {
	if args != nil {
		p.Args = jsonString(string(args))
	}
	if !utf8.Valid(args) {
		p.Bytes = args
	}
}

// jsonString never fails: a string always has a JSON form, in which bytes that
// are not UTF-8 are replaced.
func jsonString(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("agentrun: marshal a string: %v", err)) // unreachable
	}
	return b
}
