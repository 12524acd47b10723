package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Environment is what comes from the process environment: addresses and
// secrets.
type Environment struct {
	Addr          string
	SlackToken    Secret
	SigningSecret Secret
	AppToken      Secret // empty: Slack is received over HTTP
	SlackAPIURL   string
	RedisURL      Secret // it may hold a password
	OpenAIKey     Secret
	OpenAIBaseURL string
	OpenAIModel   string
	LogLevel      string

	others map[string]Secret // every variable, for those that the configuration names
}

// Named returns the value of the variable that the configuration names, and whether
// it is set to something.
func (e Environment) Named(name string) (Secret, bool) {
	s := e.others[name]
	return s, s.Open() != ""
}

// With returns the environment with another variable that the configuration can
// name.
func (e Environment) With(name, value string) Environment {
	e.others = maps.Clone(e.others)
	if e.others == nil {
		e.others = map[string]Secret{}
	}
	e.others[name] = NewSecret(value)
	return e
}

// A Variable is one that the process environment may hold.
type Variable struct {
	Name, Preset, what string
	Required           bool
	set                func(*Environment, string)
}

// Variables documents the environment; the README's table is checked against
// it.
var Variables = []Variable{
	{"SLACK_BOT_TOKEN", "", "the bot's token (xoxb-…)", true, func(e *Environment, v string) { e.SlackToken = NewSecret(v) }},
	{"SLACK_SIGNING_SECRET", "", "the secret with which Slack signs its requests", true, func(e *Environment, v string) { e.SigningSecret = NewSecret(v) }},
	{"SLACK_APP_TOKEN", "", "the app-level token for Socket Mode (xapp-…)", false, func(e *Environment, v string) { e.AppToken = NewSecret(v) }},
	{"REDIS_URL", "", "the address of Redis (redis://…, rediss://… or unix://…)", true, func(e *Environment, v string) { e.RedisURL = NewSecret(v) }},
	{"OPENAI_API_KEY", "", "the API key of the model provider", true, func(e *Environment, v string) { e.OpenAIKey = NewSecret(v) }},
	{"OPENAI_BASE_URL", "https://api.openai.com/v1", "the address of any compatible provider", false, func(e *Environment, v string) { e.OpenAIBaseURL = v }},
	{"OPENAI_MODEL", "gpt-5-mini", "the model of agents that name none", false, func(e *Environment, v string) { e.OpenAIModel = v }},
	{"SLACK_API_URL", "https://slack.com/api/", "the address of another Slack, such as a simulator", false, func(e *Environment, v string) { e.SlackAPIURL = v }},
	{"COUNTERSIGN_ADDR", ":8080", "the address on which the bot listens", false, func(e *Environment, v string) { e.Addr = v }},
	{"COUNTERSIGN_LOG_LEVEL", "info", "debug, info, warn or error", false, func(e *Environment, v string) { e.LogLevel = v }},
}

// ReadEnvironment returns the environment and everything that is missing in
// it. A variable that starts like ours and is not is a misspelling.
func ReadEnvironment(environ []string) (Environment, error) {
	values := map[string]string{}
	var problems []error
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
		if strings.HasPrefix(name, "COUNTERSIGN_") && !knownVariable(name) {
			problems = append(problems, fmt.Errorf("%s: there is no such setting", name))
		}
	}
	e := Environment{others: map[string]Secret{}}
	for name, value := range values {
		e.others[name] = NewSecret(value)
	}
	for _, v := range Variables {
		value := values[v.Name]
		if value == "" {
			value = v.Preset
		}
		unsigned := v.Name == "SLACK_SIGNING_SECRET" && values["SLACK_APP_TOKEN"] != ""
		if value == "" && v.Required && !unsigned {
			problems = append(problems, fmt.Errorf("%s: not set; it must be %s", v.Name, v.what))
		}
		v.set(&e, value)
	}
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, e.LogLevel) {
		problems = append(problems, fmt.Errorf("COUNTERSIGN_LOG_LEVEL: must be debug, info, warn or error, but is %q", e.LogLevel))
	}
	return e, errors.Join(problems...)
}

func knownVariable(name string) bool {
	for _, v := range Variables {
		if v.Name == name {
			return true
		}
	}
	return false
}

// Secrets are the values that may never be printed, the longest first.
func (e Environment) Secrets() []string {
	all := []string{e.SlackToken.Open(), e.SigningSecret.Open(), e.AppToken.Open(), e.RedisURL.Open(), e.OpenAIKey.Open()}
	for _, address := range []string{e.RedisURL.Open(), e.OpenAIBaseURL} {
		if u, err := url.Parse(address); err == nil && u.User != nil {
			password, _ := u.User.Password()
			all = append(all, u.User.String(), password)
		}
	}
	all = slices.DeleteFunc(all, func(s string) bool { return len(s) < 4 }) // too short to be told from other words
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}
