package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel"
	"github.com/countersign/countersign/internal/config"
)

// modelTimeout is how long a model may take over one word or one call.
const modelTimeout = time.Minute

// What a model is asked to see whether a run could use it.
const (
	askForWord = "This checks a connection. Answer with the word ready."
	askForCall = "This checks a connection, and nothing is run. Answer with one call of the tool %s, with any arguments."
)

// modelCheck checks the model provider.
type modelCheck struct {
	*checker
	at     string // what the findings begin with
	absent bool   // there is no list of models at the address, as there is below /v1 of most APIs
}

// check asks the provider which models it has, which costs nothing, and
// then each model for one word.
func (m modelCheck) check(ctx context.Context) {
	if len(m.config.Agents) == 0 {
		return // none is needed
	}
	base, err := url.Parse(m.env.OpenAIBaseURL)
	if err != nil || base.Host == "" || m.env.OpenAIKey.Open() == "" {
		return // said before
	}
	m.at = "model: " + base.Host
	header := http.Header{"Authorization": {"Bearer " + m.env.OpenAIKey.Open()}}
	status, answer, err := m.ask(ctx, http.MethodGet, strings.TrimSuffix(m.env.OpenAIBaseURL, "/")+"/models", nil, header)
	var list struct{ Data []listedModel }
	switch {
	case err != nil:
		m.problem("check OPENAI_BASE_URL, and that this machine can reach it", "%s does not answer: %s", m.at, err)
		return
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		m.problem("correct OPENAI_API_KEY", "%s refuses the key (%d)", m.at, status)
		return
	case status != http.StatusOK || json.Unmarshal(answer, &list) != nil || len(list.Data) == 0:
		m.unknown("", "%s: whether it has the models of the agents; it does not list its models (%d)", m.at, status)
		m.absent = status == http.StatusNotFound
		m.tryAll(ctx)
		return
	}
	for _, name := range m.names() {
		has := slices.Contains(list.Data, listedModel{name})
		if has {
			m.fine("%s accepts the key and has %s", m.at, name)
		} else {
			m.unknown("correct OPENAI_MODEL or agents[].model, unless the provider has models that it does not list", "%s accepts the key but does not list the model %s", m.at, name)
		}
	}
	m.tryAll(ctx)
}

type listedModel struct{ ID string }

// names are the models of the agents.
func (m modelCheck) names() []string {
	var names []string
	for _, a := range m.config.Agents {
		name := a.Model
		if name == "" {
			name = m.env.OpenAIModel
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// tryAll asks each model as a run does: in a stream, with the tools of its
// agent. A provider that lists a model need not be able to do that.
func (m modelCheck) tryAll(ctx context.Context) {
	sets, err := config.NewToolSets(m.config, m.env, m.Extra)
	if err != nil {
		return // said before
	}
	tried := map[string]bool{}
	for _, a := range m.config.Agents {
		name := a.Model
		if name == "" {
			name = m.env.OpenAIModel
		}
		var tools []agentrun.ToolDefinition
		limited := a.Limits.TotalTokens > 0
		key := []string{name, a.ModelAPI, strconv.FormatBool(limited)}
		for _, t := range sets[a.Name] {
			s := t.Spec()
			if s.Kind == agentrun.KindHosted { // the provider knows these
				continue
			}
			tools = append(tools, callable(s))
			key = append(key, s.Name)
		}
		if k := strings.Join(key, " "); !tried[k] {
			tried[k] = true
			m.try(ctx, name, openaimodel.API(a.ModelAPI), tools, limited)
		}
	}
}

// try asks a model. limited says that its tokens have to be counted.
func (m modelCheck) try(ctx context.Context, name string, api openaimodel.API, tools []agentrun.ToolDefinition, limited bool) {
	model, err := openaimodel.New(openaimodel.Config{
		APIKey: m.env.OpenAIKey.Open, BaseURL: m.env.OpenAIBaseURL, Model: name, API: api, HTTPClient: m.client(modelTimeout),
		Timeout: modelTimeout, Attempts: 1, Now: m.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return // said before
	}
	words := askForWord
	if len(tools) > 0 {
		words = fmt.Sprintf(askForCall, tools[0].Name)
	}
	answer, err := model.Request(ctx, agentrun.ModelRequest{
		Messages: []agentrun.Message{agentrun.Request{Parts: []agentrun.RequestPart{agentrun.UserPrompt{Content: words, At: m.Now()}}}},
		Tools:    tools,
	})
	var failed *agentrun.ModelError
	switch {
	case errors.As(err, &failed) && failed.Code == agentrun.RateLimited:
		m.unknown("try again in a moment", "%s: whether %s answers as a run needs it: %s", m.at, name, failed)
	case err != nil:
		advice := "use a model and a provider that stream answers (stream: true)"
		if len(tools) > 0 {
			advice += " and call tools"
		}
		if m.absent && errors.As(err, &failed) && failed.Code == agentrun.ModelRefused {
			advice = "correct OPENAI_BASE_URL, which includes the /v1 of most providers; or " + advice
		}
		m.problem(advice, "%s: %s does not answer the way a run needs: %s", m.at, name, err)
	case len(tools) == 0:
		m.fine("%s: %s answers in a stream", m.at, name)
	case callsOneOf(answer, tools):
		m.fine("%s: %s answers in a stream and calls tools", m.at, name)
	default:
		m.unknown("mention the bot and see whether it uses its tools; if not, use another model",
			"%s: whether %s can call tools: it was asked to call %s, and answered without a call", m.at, name, tools[0].Name)
	}
	if err == nil && limited && answer.Usage.InputTokens+answer.Usage.OutputTokens == 0 {
		m.problem("have the provider report usage in streams (stream_options), or remove limits.total_tokens",
			"%s: %s does not say how many tokens it uses, so a run with limits.total_tokens ends at its first call", m.at, name)
	}
}

// callsOneOf reports whether the answer calls one of the tools.
func callsOneOf(answer agentrun.Response, tools []agentrun.ToolDefinition) bool {
	return slices.ContainsFunc(answer.Parts, func(p agentrun.ResponsePart) bool {
		call, ok := p.(agentrun.CallPart)
		return ok && slices.ContainsFunc(tools, func(t agentrun.ToolDefinition) bool { return t.Name == call.Name })
	})
}
