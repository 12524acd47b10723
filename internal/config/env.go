package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/countersign/countersign/internal/strictyaml"
)

// Environment is what comes from the process environment: addresses and
// secrets.
type Environment struct {
	Addr             string
	SlackToken       Secret
	SigningSecret    Secret
	AppToken         Secret // empty: Slack is received over HTTP
	SlackAPIURL      string
	RedisURL         Secret // it may hold a password
	RedisPassword    Secret // for redis.addresses
	SentinelPassword Secret // of the Sentinels there
	Data             string // the folder of a private Redis, instead of one that is named; a flag says it
	OpenAIKey        Secret
	OpenAIBaseURL    string
	OpenAIModel      string
	LogLevel         string
	LogFormat        string

	others map[string]Secret // every variable, for those that the configuration names
}

// secret returns the value of the variable that the configuration names at a place, without
// the white space around it, or what is wrong with it.
func (e Environment) secret(at, name string) (string, error) {
	value, err := e.setting(at, name)
	value = strings.TrimSpace(value)
	switch {
	case err != nil:
		return "", err
	case value == "":
		return "", notSet(at, name)
	case strings.ContainsFunc(value, neverInSecrets):
		return "", fmt.Errorf("%s: %s: %s", at, name, notAlone)
	}
	return value, nil
}

// setting is the same for a value that may be any text, such as a key of several lines.
func (e Environment) setting(at, name string) (string, error) {
	value := e.others[name].Open()
	file := e.others[name+inFile].Open()
	switch {
	case value == "" && file == "":
		return "", notSet(at, name)
	case file == "":
		return value, nil
	case value != "":
		return "", fmt.Errorf("%s: %s and %s%s: both are set; set one of them", at, name, name, inFile)
	}
	value, err := readSecret(file)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %s%s: %w", at, name, inFile, err)
	case value == "":
		return "", fmt.Errorf("%s: %s%s: the file %s is empty", at, name, inFile, file)
	}
	return value, nil
}

// inFile ends the name of a variable that names the file with a secret, as
// orchestrators mount them.
const inFile = "_FILE"

// readSecret returns what is in the file, without the white space around it.
func readSecret(path string) (string, error) {
	text, err := strictyaml.ReadWhole(path)
	return strings.TrimSpace(string(text)), err
}

// secretFiles are the files that hold secrets, of the variables of the program and
// of these others.
func (e Environment) secretFiles(others []string) []string {
	for _, v := range Variables {
		if v.Secret {
			others = append(others, v.Name)
		}
	}
	var all []string
	for _, name := range others {
		if file := e.others[name+inFile].Open(); file != "" {
			all = append(all, file)
		}
	}
	return all
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

// A Variable is one that the process environment may hold. Instead of a secret, the
// variable NAME_FILE may name a file with it.
type Variable struct {
	Name, Preset, what string
	Required, Secret   bool
	set                func(*Environment, string)
}

const modelKey = "OPENAI_API_KEY"

// CheckModelKey returns an error if an agent needs a model and the environment has no key
// for one. Remote agents and gateways need none. [ReadEnvironment] says what is wrong with
// a key in a file.
func (c Config) CheckModelKey(e Environment) error {
	if len(c.Agents) > 0 && e.OpenAIKey.Open() == "" && e.others[modelKey+inFile].Open() == "" {
		return fmt.Errorf("%s: not set; it must be the API key of the model provider, which agents use", modelKey)
	}
	return nil
}

// Variables documents the environment; the README's table is checked against
// it.
var Variables = []Variable{
	{"SLACK_BOT_TOKEN", "", "the bot's token (xoxb-…)", true, true, func(e *Environment, v string) { e.SlackToken = NewSecret(v) }},
	{"SLACK_SIGNING_SECRET", "", "the secret with which Slack signs its requests", true, true, func(e *Environment, v string) { e.SigningSecret = NewSecret(v) }},
	{"SLACK_APP_TOKEN", "", "the app-level token for Socket Mode (xapp-…)", false, true, func(e *Environment, v string) { e.AppToken = NewSecret(v) }},
	{"REDIS_URL", "", "the address of Redis (redis://…, rediss://… or unix://…)", true, true, func(e *Environment, v string) { e.RedisURL = NewSecret(v) }},
	{"REDIS_PASSWORD", "", "the password of Redis, with redis.addresses", false, true, func(e *Environment, v string) { e.RedisPassword = NewSecret(v) }},
	{"REDIS_SENTINEL_PASSWORD", "", "the password of the Sentinels, with redis.addresses", false, true, func(e *Environment, v string) { e.SentinelPassword = NewSecret(v) }},
	{modelKey, "", "the API key of the model provider", true, true, func(e *Environment, v string) { e.OpenAIKey = NewSecret(v) }},
	{"OPENAI_BASE_URL", "https://api.openai.com/v1", "the address of any compatible provider", false, false, func(e *Environment, v string) { e.OpenAIBaseURL = v }},
	{"OPENAI_MODEL", "gpt-5-mini", "the model of agents that name none", false, false, func(e *Environment, v string) { e.OpenAIModel = v }},
	{"SLACK_API_URL", "https://slack.com/api/", "the address of another Slack, such as a simulator", false, false, func(e *Environment, v string) { e.SlackAPIURL = v }},
	{"COUNTERSIGN_ADDR", ":8080", "the address on which the bot listens", false, false, func(e *Environment, v string) { e.Addr = v }},
	{"COUNTERSIGN_LOG_LEVEL", "info", "debug, info, warn or error", false, false, func(e *Environment, v string) { e.LogLevel = v }},
	{"COUNTERSIGN_LOG_FORMAT", "text", "text or json", false, false, func(e *Environment, v string) { e.LogFormat = v }},
}

// clientVariables tell `bot hook`, and other programs that ask a bot, where it is and who
// they are. They may be set where a bot runs as well, and have no effect on it.
var clientVariables = []string{"COUNTERSIGN_URL", "COUNTERSIGN_TOKEN", "COUNTERSIGN_TOKEN_FILE"}

// ReadEnvironment returns the environment and everything that is missing in
// it. A variable that starts like ours and is not is a misspelling.
func ReadEnvironment(environ []string) (Environment, error) {
	values := map[string]string{}
	var problems []error
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
		if strings.HasPrefix(name, "COUNTERSIGN_") && !knownVariable(name) && !slices.Contains(clientVariables, name) {
			problems = append(problems, fmt.Errorf("%s: there is no such setting", name))
		}
	}
	e := Environment{others: map[string]Secret{}}
	for name, value := range values {
		e.others[name] = NewSecret(value)
	}
	for _, v := range Variables {
		value := values[v.Name]
		file := values[v.Name+inFile]
		if v.Secret && file != "" {
			text, err := readSecret(file)
			switch {
			case value != "":
				problems = append(problems, fmt.Errorf("%s and %s%s: both are set; set one of them", v.Name, v.Name, inFile))
			case err != nil:
				problems = append(problems, fmt.Errorf("%s%s: %w", v.Name, inFile, err))
			case text == "":
				problems = append(problems, fmt.Errorf("%s%s: the file %s is empty", v.Name, inFile, file))
			}
			value = cmp.Or(value, text)
		}
		if v.Secret && strings.ContainsFunc(value, neverInSecrets) {
			problems = append(problems, fmt.Errorf("%s: %s", v.Name, notAlone))
		}
		if value == "" {
			value = v.Preset
		}
		unsigned := v.Name == "SLACK_SIGNING_SECRET" && values["SLACK_APP_TOKEN"]+values["SLACK_APP_TOKEN"+inFile] != ""
		// [Redis.Target] says so if nothing else names Redis either, and [Config.CheckModelKey]
		// if an agent needs a model.
		elsewhere := v.Name == "REDIS_URL" || v.Name == modelKey
		if value == "" && v.Required && !unsigned && !elsewhere && (file == "" || !v.Secret) {
			problems = append(problems, fmt.Errorf("%s: not set; it must be %s", v.Name, v.what))
		}
		v.set(&e, value)
	}
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, e.LogLevel) {
		problems = append(problems, fmt.Errorf("COUNTERSIGN_LOG_LEVEL: must be debug, info, warn or error, but is %q", e.LogLevel))
	}
	if !slices.Contains([]string{"text", "json"}, e.LogFormat) {
		problems = append(problems, fmt.Errorf("COUNTERSIGN_LOG_FORMAT: must be text or json, but is %q", e.LogFormat))
	}
	if !isWebAddress(e.SlackAPIURL) {
		problems = append(problems, errors.New("SLACK_API_URL: must begin with https:// or http:// and name a host"))
		e.SlackAPIURL = "" // it can hold a password, which an error of a request would quote
	} else if !strings.HasSuffix(e.SlackAPIURL, "/") {
		e.SlackAPIURL += "/"
	}
	if _, err := e.TracesTo(); err != nil {
		problems = append(problems, err)
	}
	return e, errors.Join(problems...)
}

// neverInSecrets reports whether r comes from the way in which a secret was stored: no
// service gives one out with it, and it would only be refused later.
func neverInSecrets(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

const notAlone = "it has a line break or an invisible character in it, such as a byte order mark " +
	"or a carriage return of Windows; set it to the secret alone"

func knownVariable(name string) bool {
	for _, v := range Variables {
		if v.Name == name {
			return true
		}
	}
	return false
}

var nameOfVariable = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)

// notSet is the problem of a place that names a variable that is not set. What does not
// look like a name may be the secret itself, so it is not quoted.
func notSet(at, variable string) error {
	if !nameOfVariable.MatchString(variable) {
		return fmt.Errorf("%s: what is there is no name of a variable that is set; write such a name there, as MY_SECRET, and never the secret itself", at)
	}
	return fmt.Errorf("%s: %s is not set; it is the name of a variable of the bot, which holds the value", at, variable)
}

func isWebAddress(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}

// TracesTo returns the URL to which traces go, empty if the variables OTEL_* name no
// collector. The exporter reads the other ones of them by itself.
func (e Environment) TracesTo() (string, error) {
	named := func(name string) string { return e.others[name].Open() }
	variable := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	to := named(variable)
	if base := named("OTEL_EXPORTER_OTLP_ENDPOINT"); to == "" && base != "" {
		variable, to = "OTEL_EXPORTER_OTLP_ENDPOINT", strings.TrimSuffix(base, "/")+"/v1/traces"
	}
	if to == "" || strings.EqualFold(named("OTEL_SDK_DISABLED"), "true") || named("OTEL_TRACES_EXPORTER") == "none" {
		return "", nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if p := named(name); p != "" && p != "http/protobuf" {
			return "", fmt.Errorf("%s: must be http/protobuf, which every collector takes, but is %q", name, p)
		}
	}
	if !isWebAddress(to) {
		return "", fmt.Errorf("%s: must be a URL that begins with http:// or https://, such as http://localhost:4318", variable)
	}
	return to, nil
}

// Secrets are the values that may never be printed, the longest first.
func (e Environment) Secrets() []string {
	all := []string{e.SlackToken.Open(), e.SigningSecret.Open(), e.AppToken.Open(), e.RedisURL.Open(), e.RedisPassword.Open(), e.SentinelPassword.Open(), e.OpenAIKey.Open()}
	for _, address := range []string{e.RedisURL.Open(), e.OpenAIBaseURL, e.SlackAPIURL} {
		if u, err := url.Parse(address); err == nil && u.User != nil {
			password, _ := u.User.Password()
			all = append(all, u.User.String(), password)
		}
	}
	all = slices.DeleteFunc(all, func(s string) bool { return len(s) < 4 }) // too short to be told from other words
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}
