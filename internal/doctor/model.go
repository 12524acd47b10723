package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel"
	"github.com/countersign/countersign/internal/config"
)

// modelPatience is how long a model may take over one word or one call.
const modelPatience = time.Minute

// What a model is asked to see whether a run could use it.
const (
	askForWord = "This checks a connection. Answer with the word ready."
	askForCall = "This checks a connection, and nothing is run. Answer with one call of the tool %s, with any arguments."
)

// tryModels asks each model as a run does: in a stream, with the tools of its
// agent. A provider that lists a model need not be able to do that.
func (c *checker) tryModels(ctx context.Context, at string) {
	sets, err := config.NewToolSets(c.config, c.env, c.Extra)
	if err != nil {
		return // said before
	}
	tried := map[string]bool{}
	for _, a := range c.config.Agents {
		name := a.Model
		if name == "" {
			name = c.env.OpenAIModel
		}
		var tools []agentrun.ToolDefinition
		key := []string{name}
		for _, t := range sets[a.Name] {
			s := t.Spec()
			tools = append(tools, agentrun.ToolDefinition{Name: s.Name, Description: s.Description, Parameters: s.Schema})
			key = append(key, s.Name)
		}
		if k := strings.Join(key, " "); !tried[k] {
			tried[k] = true
			c.tryModel(ctx, at, name, tools)
		}
	}
}

func (c *checker) tryModel(ctx context.Context, at, name string, tools []agentrun.ToolDefinition) {
	model, err := openaimodel.New(openaimodel.Config{
		APIKey: c.env.OpenAIKey.Open, BaseURL: c.env.OpenAIBaseURL, Model: name, HTTPClient: c.client(modelPatience),
		Timeout: modelPatience, Attempts: 1, Now: c.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return // said before
	}
	words := askForWord
	if len(tools) > 0 {
		words = fmt.Sprintf(askForCall, tools[0].Name)
	}
	answer, err := model.Request(ctx, agentrun.ModelRequest{
		Messages: []agentrun.Message{agentrun.Request{Parts: []agentrun.RequestPart{agentrun.UserPrompt{Content: words, At: c.Now()}}}},
		Tools:    tools,
	})
	var failed *agentrun.ModelError
	switch {
	case errors.As(err, &failed) && failed.Code == agentrun.RateLimited:
		c.unknown("try again in a moment", "%s: whether %s answers as a run needs it: %s", at, name, failed)
	case err != nil && len(tools) > 0:
		c.problem("use a model and a provider that stream answers (stream: true) and call tools", "%s: %s does not answer as a run asks it: %s", at, name, err)
	case err != nil:
		c.problem("use a model and a provider that stream answers (stream: true)", "%s: %s does not answer as a run asks it: %s", at, name, err)
	case len(tools) == 0:
		c.fine("%s: %s answers in a stream", at, name)
	case callsOneOf(answer, tools):
		c.fine("%s: %s answers in a stream and calls tools", at, name)
	default:
		c.unknown("mention the bot and see whether it uses its tools; if not, use another model",
			"%s: whether %s can call tools: it was asked to call %s, and answered without a call", at, name, tools[0].Name)
	}
}

// callsOneOf reports whether the answer calls one of the tools.
func callsOneOf(answer agentrun.Response, tools []agentrun.ToolDefinition) bool {
	return slices.ContainsFunc(answer.Parts, func(p agentrun.ResponsePart) bool {
		call, ok := p.(agentrun.CallPart)
		return ok && slices.ContainsFunc(tools, func(t agentrun.ToolDefinition) bool { return t.Name == call.Name })
	})
}
