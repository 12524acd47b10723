package main

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// environment is what comes from the process environment: addresses and
// secrets.
type environment struct {
	Addr          string
	SlackToken    secret
	SigningSecret secret
	AppToken      secret // empty: Slack is received over HTTP
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
	{"SLACK_BOT_TOKEN", "", "the bot's token (xoxb-…)", true, func(e *environment, v string) { e.SlackToken = newSecret(v) }},
	{"SLACK_SIGNING_SECRET", "", "the secret with which Slack signs its requests", true, func(e *environment, v string) { e.SigningSecret = newSecret(v) }},
	{"SLACK_APP_TOKEN", "", "the app-level token for Socket Mode (xapp-…)", false, func(e *environment, v string) { e.AppToken = newSecret(v) }},
	{"REDIS_URL", "", "the address of Redis (redis://…, rediss://… or unix://…)", true, func(e *environment, v string) { e.RedisURL = newSecret(v) }},
	{"OPENAI_API_KEY", "", "the API key of the model provider", true, func(e *environment, v string) { e.OpenAIKey = newSecret(v) }},
	{"OPENAI_BASE_URL", "https://api.openai.com/v1", "the address of any compatible provider", false, func(e *environment, v string) { e.OpenAIBaseURL = v }},
	{"OPENAI_MODEL", "gpt-5-mini", "the model of agents that name none", false, func(e *environment, v string) { e.OpenAIModel = v }},
	{"SLACK_API_URL", "https://slack.com/api/", "the address of another Slack, such as a simulator", false, func(e *environment, v string) { e.SlackAPIURL = v }},
	{"COUNTERSIGN_ADDR", ":8080", "the address on which the bot listens", false, func(e *environment, v string) { e.Addr = v }},
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
		unsigned := v.name == "SLACK_SIGNING_SECRET" && values["SLACK_APP_TOKEN"] != ""
		if value == "" && v.required && !unsigned {
			problems = append(problems, fmt.Errorf("%s: not set; it must be %s", v.name, v.what))
		}
		v.set(&e, value)
	}
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, e.LogLevel) {
		problems = append(problems, fmt.Errorf("COUNTERSIGN_LOG_LEVEL: must be debug, info, warn or error, but is %q", e.LogLevel))
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

// secrets are the values that may never be printed, the longest first.
func (e environment) secrets() []string {
	all := []string{e.SlackToken.open(), e.SigningSecret.open(), e.AppToken.open(), e.RedisURL.open(), e.OpenAIKey.open()}
	for _, address := range []string{e.RedisURL.open(), e.OpenAIBaseURL} {
		if u, err := url.Parse(address); err == nil && u.User != nil {
			password, _ := u.User.Password()
			all = append(all, u.User.String(), password)
		}
	}
	all = slices.DeleteFunc(all, func(s string) bool { return len(s) < 4 }) // too short to be told from other words
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}
