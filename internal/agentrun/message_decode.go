package agentrun

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/countersign/countersign/internal/approvals"
)

// DecodeMessage reads one message. An unknown `kind`, `part_kind` or `outcome`, like any
// other error, is [ErrUnreadable].
func DecodeMessage(b []byte) (Message, error) {
	m, err := decodeMessage(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return m, nil
}

func decodeMessage(b []byte) (_ Message, err error) {
	var in messageJSON
	if err := jsonv1.Unmarshal(b, &in); err != nil {
		return nil, err
	}
	switch in.Kind {
	case "request":
		m := Request{Instructions: in.Instructions, Authors: in.Authors, RunID: in.RunID, At: in.Timestamp}
		m.Parts, err = decodeParts(in.Parts, DecodeRequestPart)
		return m, err
	case "response":
		m := Response{
			ModelName: in.ModelName, FinishReason: in.FinishReason,
			RunID: in.RunID, At: in.Timestamp,
		}
		if in.Usage != nil {
			m.Usage = Usage{InputTokens: in.Usage.InputTokens, OutputTokens: in.Usage.OutputTokens}
		}
		m.Parts, err = decodeParts(in.Parts, decodeResponsePart)
		return m, err
	}
	return nil, fmt.Errorf("unknown message kind %q", in.Kind)
}

func decodeParts[P any](raw []json.RawMessage, decode func([]byte) (P, error)) (parts []P, err error) {
	for i, b := range raw {
		p, err := decode(b)
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// DecodeRequestPart reads what [EncodeRequestPart] wrote.
func DecodeRequestPart(b []byte) (RequestPart, error) {
	var in partJSON
	if err := jsonv1.Unmarshal(b, &in); err != nil {
		return nil, err
	}
	at := in.Timestamp
	switch in.PartKind {
	case "user-prompt":
		text, err := text(in.Content)
		return UserPrompt{Content: text, At: at}, err
	case "tool-return":
		outcome := in.Outcome
		switch outcome {
		case "": // what upstream wrote before it knew outcomes
			outcome = OutcomeSuccess
		case OutcomeSuccess, OutcomeFailed, OutcomeDenied, OutcomeInterrupted:
		default:
			return nil, fmt.Errorf("unknown outcome %q", outcome)
		}
		if err := named(in); err != nil {
			return nil, err
		}
		return ToolReturn{
			ToolName: in.ToolName, CallID: in.CallID, Content: in.Content,
			Outcome: outcome, Metadata: absent(in.Metadata), Parts: in.Parts, ProviderCall: in.ProviderCall, At: at,
		}, nil
	case "retry-prompt":
		content, err := text(in.Content)
		if err != nil && bytes.HasPrefix(bytes.TrimSpace(in.Content), []byte("[")) {
			content, err = string(in.Content), nil // upstream's list of validation errors
		}
		return RetryPrompt{ToolName: in.ToolName, CallID: in.CallID, Content: content, At: at}, err
	}
	return nil, fmt.Errorf("unknown part_kind %q in a request", in.PartKind)
}

func decodeResponsePart(b []byte) (ResponsePart, error) {
	var in partJSON
	if err := jsonv1.Unmarshal(b, &in); err != nil {
		return nil, err
	}
	switch in.PartKind {
	case "text":
		text, err := text(in.Content)
		return Text{Content: text}, err
	case "thinking":
		text, err := text(in.Content)
		return Thinking{Content: text, ID: in.ID, Signature: in.Signature}, err
	case "tool-call":
		if err := named(in); err != nil {
			return nil, err
		}
		args, err := arguments(in)
		part := CallPart{
			ToolCall: approvals.ToolCall{ID: in.CallID, Name: in.ToolName, Args: args},
			Rule:     in.Rule, ApprovalRequest: in.ApprovalRequest, ProviderDetails: absent(in.Details),
		}
		if in.Place != nil {
			part.Place = approvals.Place(*in.Place)
		}
		return part, err
	case "builtin-tool-return":
		if err := named(in); err != nil {
			return nil, err
		}
		args, err := arguments(in)
		if err != nil {
			return nil, err
		}
		output, err := text(in.Content)
		return ProviderCall{
			ToolCall:        approvals.ToolCall{ID: in.CallID, Name: in.ToolName, Args: args},
			ApprovalRequest: in.ApprovalRequest, Output: output, Failed: in.Failed,
		}, err
	}
	return nil, fmt.Errorf("unknown part_kind %q in a response", in.PartKind)
}

// arguments returns the bytes that the model wrote: what is in the string, an
// object as it stands, nil for null.
func arguments(in partJSON) (json.RawMessage, error) {
	if in.Bytes != nil {
		return in.Bytes, nil
	}
	raw := absent(in.Args)
	switch {
	case raw == nil:
		return nil, nil
	case raw[0] == '{':
		return raw, nil
	case raw[0] == '"':
		s, err := text(raw)
		return json.RawMessage(s), err
	}
	return nil, errors.New("args are a string, an object or null")
}

// named refuses a call, or a result, that does not say which: upstream would
// make an id up.
func named(in partJSON) error {
	if in.ToolName == "" || in.CallID == "" {
		return fmt.Errorf("%s without tool_name or tool_call_id", in.PartKind)
	}
	return nil
}

func text(raw json.RawMessage) (string, error) {
	var s *string
	if err := jsonv1.Unmarshal(raw, &s); err != nil || s == nil {
		return "", errors.New("content is not a string")
	}
	return *s, nil
}

func absent(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil
	}
	return raw
}
