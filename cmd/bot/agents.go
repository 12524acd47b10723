package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/tools"
)

// agents are the agents of the configuration as it was last loaded. Everything in it that
// can change while the bot runs concerns them.
type agents struct {
	now    atomic.Pointer[map[string]agentrun.Agent]
	age    atomic.Int64                                                                   // how long threads are kept, as a duration
	make   func(c config.Config, sets config.ToolSets) (map[string]agentrun.Agent, error) // as at the start
	tokens *config.Credentials                                                            // of agents that run elsewhere and of people; they follow the configuration

	changing sync.Mutex      // held while they are replaced; guards what follows
	of       config.Config   // that they were made of
	sets     config.ToolSets // that they have
}

func (a *agents) agent(name string) (agentrun.Agent, bool) {
	found, ok := (*a.now.Load())[name]
	return found, ok
}

// load makes the agents of the configuration, with these tools, the current ones.
func (a *agents) load(c config.Config, sets config.ToolSets) error {
	made, err := a.make(c, sets)
	if err != nil {
		return err
	}
	a.of, a.sets = c, sets
	a.tokens.Follow(c)
	a.now.Store(&made)
	a.age.Store(int64(c.Retention.ThreadAge()))
	return nil
}

// threadAge is how long threads are kept after their last use; 0 means for ever.
func (a *agents) threadAge() time.Duration { return time.Duration(a.age.Load()) }

// reload reads the configuration again and takes up what can change while the bot
// runs. If anything else is different too, nothing is taken up: what runs is always
// one whole file.
func (b *bot) reload(ctx context.Context) {
	b.agents.changing.Lock()
	defer b.agents.changing.Unlock()
	next, err := b.agents.of.Again()
	if err != nil {
		b.log.ErrorContext(ctx, "the configuration cannot be loaded; the previous one stays active", slog.Any("err", err))
		return
	}
	reloaded, restart := b.agents.of.Changes(next)
	switch {
	case len(restart) > 0:
		b.log.WarnContext(ctx, "the configuration has changes that need a restart; nothing of it was loaded", slog.Any("keys", restart))
	case len(reloaded) == 0:
		b.log.InfoContext(ctx, "the configuration has not changed")
	default:
		if err := b.agents.load(next, b.agents.sets); err != nil {
			b.log.ErrorContext(ctx, "the configuration cannot be loaded; the previous one stays active", slog.Any("err", err))
			return
		}
		b.log.InfoContext(ctx, "the configuration was loaded again; tokens count at once, and runs take up the rest when they continue", slog.Any("keys", reloaded))
	}
}

// newAgents returns the agents of the configuration. Their models are asked through
// what the function makes of them.
func newAgents(c config.Config, e config.Environment, sets config.ToolSets, through func(name string, m agentrun.Model) agentrun.Model, log *slog.Logger) (map[string]agentrun.Agent, error) {
	if err := openaimodel.CheckBaseURL(e.OpenAIBaseURL); err != nil {
		return nil, fmt.Errorf("OPENAI_BASE_URL: %w", err)
	}
	agents := map[string]agentrun.Agent{}
	var problems []error
	for _, a := range c.Agents {
		name := a.Model
		if name == "" {
			name = e.OpenAIModel
		}
		model, err := openaimodel.New(openaimodel.Config{
			APIKey: e.OpenAIKey.Open, BaseURL: e.OpenAIBaseURL, Model: name, API: openaimodel.API(a.ModelAPI), Hosted: hosted(a, e), Timeout: a.Timeout, Log: log, Now: time.Now,
		})
		if err != nil {
			problems = append(problems, fmt.Errorf("agent %s: %w", a.Name, err))
			continue
		}
		agents[a.Name] = agentrun.Agent{
			Name: a.Name, Instructions: a.Instructions, Model: through(name, model), Tools: sets[a.Name],
			Pending: a.Pending, Summaries: a.Summaries(), Effects: a.Effects(), Owners: a.OwnedBy(),
			Limits: agentrun.Limits{Requests: a.Limits.Requests, ToolCalls: a.Limits.ToolCalls, TotalTokens: a.Limits.TotalTokens},
		}
	}
	addGateways(agents, c, sets)
	return agents, errors.Join(problems...)
}

// hosted returns the MCP servers that the provider calls for the agent.
func hosted(a config.Agent, e config.Environment) []openaimodel.Hosted {
	var all []openaimodel.Hosted
	for _, name := range slices.Sorted(maps.Keys(a.HostedMCP)) {
		h := a.HostedMCP[name]
		values := h.HeadersOf(e)
		headers := func() map[string]string { return values }
		all = append(all, openaimodel.Hosted{
			Label: name, URL: h.URL, Description: h.Description, Tools: h.Tools, Headers: headers,
			Conceal: func(text string) string { return tools.Conceal(text, tools.HeaderSecrets(headers())...) },
		})
	}
	return all
}
