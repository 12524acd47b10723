package config

import (
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/tools"
)

// A HostedMCP is an MCP server that the provider of the model calls.
type HostedMCP struct {
	URL         string            `yaml:"url"`
	Description string            `yaml:"description"` // what the model reads about it
	Headers     map[string]string `yaml:"headers"`     // that the provider sends to it; each names a variable of the bot that holds the value
	Tools       []string          `yaml:"tools"`       // that the model may call
}

// checkHosted reports what is wrong with the hosted servers of an agent, as far as that
// can be said without the environment.
func (a Agent) checkHosted(at string, wrong func(format string, args ...any)) {
	if len(a.HostedMCP) > 0 && a.ModelAPI != APIResponses {
		wrong("%s.hosted_mcp: needs model_api: %s; other APIs have no hosted servers", at, APIResponses)
	}
	for _, name := range slices.Sorted(maps.Keys(a.HostedMCP)) {
		h, place := a.HostedMCP[name], at+".hosted_mcp."+name
		if _, ours := a.MCP[name]; ours {
			wrong("%s: mcp has a server of this name too, so their tools could not be told apart", place)
		}
		if u, err := url.Parse(h.URL); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
			wrong("%s.url: must begin with https:// and name a host without a password; secrets go into headers", place)
		}
		if len(h.Tools) == 0 {
			wrong("%s.tools: there are none; name those that the model may call", place)
		}
	}
	_, problems := a.hostedTools(at)
	for _, p := range problems {
		wrong("%w", p)
	}
}

// hostedTools returns the tools of the hosted servers of an agent.
func (a Agent) hostedTools(at string) (all []agentrun.Tool, problems []error) {
	for _, name := range slices.Sorted(maps.Keys(a.HostedMCP)) {
		for i, tool := range a.HostedMCP[name].Tools {
			t, err := tools.NewHosted(name, tool)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s.hosted_mcp.%s.tools[%d]: %w", at, name, i, err))
				continue
			}
			all = append(all, t)
		}
	}
	return all, problems
}

// HeadersOf returns the headers of a hosted server with their values.
func (h HostedMCP) HeadersOf(e Environment) map[string]string {
	headers := map[string]string{}
	for name, variable := range h.Headers {
		headers[name], _ = e.secret(name, variable) // [Config.HTTPSecrets] reports what is wrong with it
	}
	return headers
}
