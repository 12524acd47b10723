package openaisim

import (
	"crypto/rand"
	"encoding/json"
)

// ModelName is the name of the one model there is, whatever name a request
// asks for, and its fingerprint.
const ModelName = "scripted"

// created is the time in every answer; it does not move, so that transcripts
// can be compared.
const created = 1735689600 // 2025-01-01T00:00:00Z

// An answer is a reply with all that the protocol adds to it.
type answer struct {
	id, finish string
	text       string
	calls      []Call
	usage      usage
	noChoices  bool
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

func newAnswer(request []byte, r Reply, f Fault) answer {
	r, finish := f.bend(r)
	a := answer{id: "chatcmpl-" + rand.Text(), finish: finish, text: r.Text, noChoices: f.Kind == NoChoices}
	said := len(r.Text)
	for _, call := range r.Calls {
		if call.ID == "" {
			call.ID = callID()
		}
		a.calls = append(a.calls, call)
		said += len(call.Name) + len(call.Args)
	}
	a.usage = usage{PromptTokens: tokens(len(request)), CompletionTokens: tokens(said)}
	a.usage.TotalTokens = a.usage.PromptTokens + a.usage.CompletionTokens
	return a
}

func callID() string { return "call_" + rand.Text()[:24] }

// tokens is not how anything is priced: it only grows with the text.
func tokens(characters int) int { return (characters + 3) / 4 }

type completion struct {
	ID                string   `json:"id"`
	Object            string   `json:"object"`
	Created           int64    `json:"created"`
	Model             string   `json:"model"`
	Choices           []choice `json:"choices"`
	Usage             usage    `json:"usage"`
	ServiceTier       string   `json:"service_tier"`
	SystemFingerprint string   `json:"system_fingerprint"`
}

type choice struct {
	Index        int           `json:"index"`
	Message      answerMessage `json:"message"`
	Logprobs     any           `json:"logprobs"`
	FinishReason string        `json:"finish_reason"`
}

type answerMessage struct {
	Role      string       `json:"role"`
	Content   *string      `json:"content"`
	Refusal   any          `json:"refusal"`
	ToolCalls []answerCall `json:"tool_calls,omitempty"`
}

type answerCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function callFunction `json:"function"`
}

type callFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// whole returns the answer as one document.
func (a answer) whole() ([]byte, error) {
	c := completion{
		ID: a.id, Object: "chat.completion", Created: created, Model: ModelName, Choices: []choice{},
		Usage: a.usage, ServiceTier: "default", SystemFingerprint: ModelName,
	}
	if a.noChoices {
		return json.Marshal(c)
	}
	m := answerMessage{Role: "assistant", Content: &a.text}
	if a.text == "" && len(a.calls) > 0 {
		m.Content = nil
	}
	for _, call := range a.calls {
		m.ToolCalls = append(m.ToolCalls, answerCall{call.ID, "function", callFunction{call.Name, call.Args}})
	}
	c.Choices = append(c.Choices, choice{Message: m, FinishReason: a.finish})
	return json.Marshal(c)
}
