package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/countersign/countersign/internal/policy"
)

// config is the configuration file. Every key is enforced; one that is not
// listed here fails the start.
type config struct {
	Redis  redisConfig   `yaml:"redis"`
	Slack  slackConfig   `yaml:"slack"`
	Runs   runsConfig    `yaml:"runs"`
	Agents []agentConfig `yaml:"agents"`
	Policy policy.File   `yaml:"policy"`
}

type redisConfig struct {
	Prefix string `yaml:"prefix"` // of all keys; "countersign" if left out
}

type runsConfig struct {
	Lease time.Duration `yaml:"lease"` // after how long a run whose process died goes on elsewhere; 30s if left out
}

type slackConfig struct {
	GroupsMaxAge time.Duration `yaml:"groups_max_age"` // how old a looked-up membership may be; 60s if left out
}

type agentConfig struct {
	Name         string        `yaml:"name"`
	Instructions string        `yaml:"instructions"`
	Model        string        `yaml:"model"`    // overrides OPENAI_MODEL
	Channels     []string      `yaml:"channels"` // where a mention starts this agent; everywhere if left out
	Files        string        `yaml:"files"`    // the folder that the built-in file tools work on
	Limits       limitsConfig  `yaml:"limits"`
	Timeout      time.Duration `yaml:"timeout"` // of one answer of the model; 5m if left out
}

type limitsConfig struct {
	Requests    int `yaml:"requests"`
	ToolCalls   int `yaml:"tool_calls"`
	TotalTokens int `yaml:"total_tokens"`
}

// readConfig reads the file. A message says file, line and what is wrong.
func readConfig(path string) (config, error) {
	b, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return config{}, fmt.Errorf("read the configuration: %w", err)
	}
	var c config
	err = yaml.NewDecoder(bytes.NewReader(b), yaml.DisallowUnknownField()).Decode(&c)
	if errors.Is(err, io.EOF) {
		return config{}, fmt.Errorf("%s: the file is empty", path)
	}
	if err != nil {
		return config{}, fmt.Errorf("%s: %s", path, strings.TrimSpace(yaml.FormatError(err, false, true)))
	}
	return c, nil
}

// check returns everything that is wrong with the agents.
func (c config) check() error {
	var problems []error
	if len(c.Agents) == 0 {
		problems = append(problems, errors.New("agents: name at least one"))
	}
	if c.Slack.GroupsMaxAge < 0 {
		problems = append(problems, fmt.Errorf("slack.groups_max_age: is %s, must not be negative", c.Slack.GroupsMaxAge))
	}
	if l := c.Runs.Lease; l != 0 && l < time.Second {
		problems = append(problems, fmt.Errorf("runs.lease: is %s, must be 1s or more", l))
	}
	everywhere := -1
	for i, a := range c.Agents {
		at := fmt.Sprintf("agents[%d]", i)
		if a.Name == "" {
			problems = append(problems, errors.New(at+".name: is missing"))
		}
		if slices.ContainsFunc(c.Agents[:i], func(o agentConfig) bool { return o.Name == a.Name }) {
			problems = append(problems, fmt.Errorf("%s.name: %q is there twice", at, a.Name))
		}
		if a.Timeout < 0 {
			problems = append(problems, fmt.Errorf("%s.timeout: is %s, must not be negative", at, a.Timeout))
		}
		if len(a.Channels) == 0 {
			if everywhere >= 0 {
				problems = append(problems, fmt.Errorf("%s.channels: agents[%d] already answers everywhere; name the channels of this one", at, everywhere))
			}
			everywhere = i
		}
		for _, ch := range a.Channels {
			for j, o := range c.Agents[:i] {
				if slices.Contains(o.Channels, ch) {
					problems = append(problems, fmt.Errorf("%s.channels: %s already belongs to agents[%d]", at, ch, j))
				}
			}
		}
	}
	return errors.Join(problems...)
}

// environment is what comes from the process environment: addresses and
// secrets.
type environment struct {
	Addr          string
	SlackToken    secret
	SigningSecret secret
	SlackAPIURL   string
	RedisURL      secret // it may hold a password
	OpenAIKey     secret
	OpenAIBaseURL string
	OpenAIModel   string
	LogLevel      string
}

// variables documents the environment; the README's table is checked against
// it.
var variables = []struct {
	name, preset, what string
	required           bool
	set                func(*environment, string)
}{
	{"SLACK_BOT_TOKEN", "", "the bot's token, xoxb-…", true, func(e *environment, v string) { e.SlackToken = newSecret(v) }},
	{"SLACK_SIGNING_SECRET", "", "what Slack signs its requests with", true, func(e *environment, v string) { e.SigningSecret = newSecret(v) }},
	{"REDIS_URL", "", "redis://…, rediss://… or unix://…", true, func(e *environment, v string) { e.RedisURL = newSecret(v) }},
	{"OPENAI_API_KEY", "", "of the model provider", true, func(e *environment, v string) { e.OpenAIKey = newSecret(v) }},
	{"OPENAI_BASE_URL", "https://api.openai.com/v1", "of any compatible provider", false, func(e *environment, v string) { e.OpenAIBaseURL = v }},
	{"OPENAI_MODEL", "gpt-5-mini", "the model of agents that name none", false, func(e *environment, v string) { e.OpenAIModel = v }},
	{"SLACK_API_URL", "https://slack.com/api/", "of another Slack, such as a simulator", false, func(e *environment, v string) { e.SlackAPIURL = v }},
	{"COUNTERSIGN_ADDR", ":8080", "where the bot listens", false, func(e *environment, v string) { e.Addr = v }},
	{"COUNTERSIGN_LOG_LEVEL", "info", "debug, info, warn or error", false, func(e *environment, v string) { e.LogLevel = v }},
}

// readEnvironment returns the environment and everything that is missing in
// it. A variable that starts like ours and is not is a misspelling.
func readEnvironment(environ []string) (environment, error) {
	values := map[string]string{}
	var problems []error
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
		if strings.HasPrefix(name, "COUNTERSIGN_") && !knownVariable(name) {
			problems = append(problems, fmt.Errorf("%s: there is no such setting", name))
		}
	}
	var e environment
	for _, v := range variables {
		value := values[v.name]
		if value == "" {
			value = v.preset
		}
		if value == "" && v.required {
			problems = append(problems, fmt.Errorf("%s: is not set: %s", v.name, v.what))
		}
		v.set(&e, value)
	}
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, e.LogLevel) {
		problems = append(problems, fmt.Errorf("COUNTERSIGN_LOG_LEVEL: is %q, must be debug, info, warn or error", e.LogLevel))
	}
	return e, errors.Join(problems...)
}

func knownVariable(name string) bool {
	for _, v := range variables {
		if v.name == name {
			return true
		}
	}
	return false
}
