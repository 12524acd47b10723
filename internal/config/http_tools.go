package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/tools/httptool"
)

// HTTPTools are the HTTP endpoints that are tools of an agent.
type HTTPTools struct {
	Hosts []string   `yaml:"hosts"` // that the tools may name
	Allow []string   `yaml:"allow"` // networks that are not public and may be dialed
	Tools []HTTPTool `yaml:"tools"`
}

// HTTPTool is one of them.
type HTTPTool struct {
	Name        string            `yaml:"name"`
	Description string            `yaml:"description"`
	Method      string            `yaml:"method"`
	URL         string            `yaml:"url"`
	Schema      Schema            `yaml:"schema"`
	Headers     map[string]string `yaml:"headers"`    // by the names of variables of the bot
	ReadOnly    bool              `yaml:"read_only"`  // whether a call changes nothing
	Effect      agentrun.Effect   `yaml:"effect"`     // what a second call would do
	Timeout     time.Duration     `yaml:"timeout"`    // of a call; 30s if left out
	MaxResult   int               `yaml:"max_result"` // bytes of an answer that the model reads; 65536 if left out
}

// checkHTTP says what is wrong with the endpoints of an agent, whatever the
// environment is.
func (a Agent) checkHTTP(at string, wrong func(format string, args ...any)) {
	if a.HTTP == nil {
		return
	}
	if len(a.HTTP.Tools) == 0 {
		wrong("%s.http.tools: there are none; add one, or remove http", at)
	}
	_, problems := a.endpoints(at+".http", Environment{})
	for _, p := range problems {
		wrong("%w", p)
	}
}

// HTTPSecrets reports what is wrong with the variables that endpoints and hosted servers
// name. Commands that only judge calls do not need them.
func (c Config) HTTPSecrets(e Environment) error {
	var problems []error
	check := func(at string, headers map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(headers)) {
			if _, err := e.secret(fmt.Sprintf("%s.headers.%s", at, name), headers[name]); err != nil {
				problems = append(problems, err)
			}
		}
	}
	for i, a := range c.Agents {
		if a.HTTP != nil {
			for j, d := range a.HTTP.Tools {
				check(fmt.Sprintf("agents[%d].http.tools[%d]", i, j), d.Headers)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(a.HostedMCP)) {
			check(fmt.Sprintf("agents[%d].hosted_mcp.%s", i, name), a.HostedMCP[name].Headers)
		}
	}
	return errors.Join(problems...)
}

// endpoints returns the endpoints of an agent. Of the environment they get the
// variables that they name.
func (a Agent) endpoints(at string, e Environment) (all []agentrun.Tool, problems []error) {
	if a.HTTP == nil {
		return nil, nil
	}
	var allow []netip.Prefix
	for i, text := range a.HTTP.Allow {
		p, err := prefix(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s.allow[%d]: %w", at, i, err))
			continue
		}
		allow = append(allow, p)
	}
	for i, d := range a.HTTP.Tools {
		place := fmt.Sprintf("%s.tools[%d]", at, i)
		headers := map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(d.Headers)) {
			headers[name], _ = e.secret(at, d.Headers[name]) // [Config.HTTPSecrets] reports what is wrong with it
		}
		t, err := httptool.New(httptool.Config{
			Name: d.Name, Description: d.Description, Method: d.Method, URL: d.URL, Schema: json.RawMessage(d.Schema), Headers: headers,
			Hosts: a.HTTP.Hosts, Allow: allow, ReadOnly: d.ReadOnly, Effect: d.Effect, Timeout: d.Timeout, MaxResult: d.MaxResult,
		})
		for _, p := range Problems(err) {
			problems = append(problems, fmt.Errorf("%s.%w", place, p))
		}
		if err == nil {
			all = append(all, t)
		}
	}
	return all, problems
}
