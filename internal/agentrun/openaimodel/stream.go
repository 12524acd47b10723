package openaimodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/countersign/countersign/internal/agentrun"
)

// errFiltered is an answer that the provider's filter ended.
var errFiltered = errors.New("the finish reason is content_filter")

// A malformedError is an answer that breaks the protocol. It says how.
type malformedError struct{ how error }

func (e *malformedError) Error() string { return "malformed answer: " + e.how.Error() }

func malformed(format string, args ...any) error {
	return &malformedError{fmt.Errorf(format, args...)}
}

// A chunk is one event of a stream. Some servers report an error in it beside
// other things, where go-openai does not look, and Google's has more of a call.
type (
	chunk struct {
		openai.ChatCompletionStreamResponse
		Choices []choice         `json:"choices"`
		Error   *json.RawMessage `json:"error"`
	}
	choice struct {
		openai.ChatCompletionStreamChoice
		Delta delta `json:"delta"`
	}
	delta struct {
		openai.ChatCompletionStreamChoiceDelta
		ToolCalls []piece `json:"tool_calls"`
	}
	piece struct { // of a call
		openai.ToolCall
		Extra json.RawMessage `json:"extra_content"`
	}
)

// A chatAnswer is put together from the chunks of one stream.
type chatAnswer struct {
	text, refusal, thinking strings.Builder
	calls                   calls
	finish                  openai.FinishReason
	model                   string
	usage                   openai.Usage
	written                 func(agentrun.Delta) // nil: nobody watches
}

// add adds one chunk, a JSON document.
func (a *chatAnswer) add(raw []byte) error {
	var c chunk
	if err := json.Unmarshal(raw, &c); err != nil {
		return malformed("a chunk cannot be read: %w", err)
	}
	if c.Error != nil {
		return reported(*c.Error)
	}
	if err := lossless(raw); err != nil {
		return err
	}
	if c.Model != "" {
		a.model = c.Model
	}
	if c.Usage != nil {
		a.usage = *c.Usage // where it comes more than once, it is a running total
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			return malformed("one choice was asked for and there is one with index %d", choice.Index)
		}
		if err := a.addChoice(choice); err != nil {
			return err
		}
	}
	return nil
}

func (a *chatAnswer) addChoice(c choice) error {
	a.text.WriteString(c.Delta.Content)
	a.refusal.WriteString(c.Delta.Refusal)
	a.thinking.WriteString(c.Delta.ReasoningContent)
	a.tell(agentrun.DeltaThinking, c.Delta.ReasoningContent)
	a.tell(agentrun.DeltaText, c.Delta.Content+c.Delta.Refusal)
	for _, d := range c.Delta.ToolCalls {
		if err := a.calls.add(d); err != nil {
			return err
		}
		if a.written != nil {
			a.calls.latest.tell(a.written)
		}
	}
	if c.FinishReason != "" && c.FinishReason != openai.FinishReasonNull {
		a.finish = c.FinishReason
	}
	return nil
}

// tell reports what was added to the text or to the reasoning to those who watch.
func (a *chatAnswer) tell(kind agentrun.DeltaKind, text string) {
	if a.written != nil && text != "" {
		a.written(agentrun.Delta{Kind: kind, Text: text})
	}
}

// ran returns nothing: in this API the provider has no tools of its own.
func (*chatAnswer) ran() []agentrun.ProviderCall { return nil }

// begun reports whether the model has said anything.
func (a *chatAnswer) begun() bool {
	return a.text.Len()+a.refusal.Len()+a.thinking.Len()+len(a.calls.all) > 0
}

// response returns the answer if it is complete. A model that declines to
// answer says so in a field of its own; for people that is its text.
func (a *chatAnswer) response() (agentrun.Response, error) {
	finish, err := a.finishReason()
	if err != nil {
		return agentrun.Response{}, err
	}
	made, err := a.calls.parts()
	if err != nil {
		return agentrun.Response{}, err
	}
	if finish == agentrun.FinishToolCall && len(made) == 0 {
		return agentrun.Response{}, malformed("it ends in tool calls and there are none")
	}
	r := agentrun.Response{
		ModelName:    a.model,
		FinishReason: finish,
		Usage: agentrun.Usage{
			Requests:     1,
			InputTokens:  max(0, a.usage.PromptTokens),
			OutputTokens: max(0, a.usage.CompletionTokens),
		},
	}
	if a.thinking.Len() > 0 {
		r.Parts = append(r.Parts, agentrun.Thinking{Content: a.thinking.String()})
	}
	if text := a.text.String() + a.refusal.String(); text != "" {
		r.Parts = append(r.Parts, agentrun.Text{Content: text})
	}
	r.Parts = append(r.Parts, made...)
	return r, nil
}

func (a *chatAnswer) finishReason() (agentrun.FinishReason, error) {
	switch a.finish {
	case openai.FinishReasonStop:
		return agentrun.FinishStop, nil
	case openai.FinishReasonLength:
		return agentrun.FinishLength, nil
	case openai.FinishReasonToolCalls, openai.FinishReasonFunctionCall:
		return agentrun.FinishToolCall, nil
	case openai.FinishReasonContentFilter:
		return "", errFiltered
	case "":
		return "", malformed("the stream ended without a finish reason")
	default:
		return "", malformed("the finish reason %.40q is not one of the protocol's", string(a.finish))
	}
}
