package config

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/regular"
	"github.com/countersign/countersign/internal/tools/mcptool"
)

// MCPServer is an MCP server whose tools an agent has.
type MCPServer struct {
	Command string            `yaml:"command"` // a program on this machine
	Args    []string          `yaml:"args"`
	Env     map[string]string `yaml:"env"` // of the program, by the names of variables of the bot

	URL     string            `yaml:"url"`     // of a server over streamable HTTP
	Headers map[string]string `yaml:"headers"` // by the names of variables of the bot

	Include          []string                 `yaml:"include"`           // patterns of tools; all if left out
	Exclude          []string                 `yaml:"exclude"`           // patterns of tools that the agent does not have
	Timeout          time.Duration            `yaml:"timeout"`           // of a call; 1m if left out
	Timeouts         map[string]time.Duration `yaml:"timeouts"`          // the same, by tool
	MaxResult        int                      `yaml:"max_result"`        // bytes of a result that the model reads; 65536 if left out
	TrustAnnotations bool                     `yaml:"trust_annotations"` // whether what the server says of its tools may make us less careful
}

// HasMCP reports whether an agent or a gateway has MCP servers.
func (c Config) HasMCP() bool {
	return slices.ContainsFunc(c.withTools(), func(a placed) bool { return len(a.MCP) > 0 })
}

// Servers are the MCP servers of all agents and gateways, or everything that is wrong with
// them. Of the environment they get the variables that they name.
func (c Config) Servers(e Environment) ([]mcptool.Server, error) {
	var all []mcptool.Server
	var problems []error
	for _, a := range c.withTools() {
		for _, name := range slices.Sorted(maps.Keys(a.MCP)) {
			at, m := fmt.Sprintf("%s.mcp.%s", a.at, name), a.MCP[name]
			s := m.server(a.Name, name)
			s.Whole = strings.HasPrefix(a.at, "gateways")
			for _, p := range Problems(s.Check()) {
				problems = append(problems, fmt.Errorf("%s: %w", at, p))
			}
			for _, name := range slices.Sorted(maps.Keys(s.Env)) {
				value, err := e.setting(fmt.Sprintf("%s.env.%s", at, name), s.Env[name])
				problems, s.Env[name] = append(problems, err), value
			}
			for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
				value, err := e.secret(fmt.Sprintf("%s.headers.%s", at, name), s.Headers[name])
				problems, s.Headers[name] = append(problems, err), value
			}
			all = append(all, s)
		}
	}
	return all, errors.Join(problems...)
}

func (m MCPServer) server(agent, name string) mcptool.Server {
	return mcptool.Server{
		Agent: agent, Name: name, Command: m.Command, Args: m.Args, Env: maps.Clone(m.Env), URL: m.URL, Headers: maps.Clone(m.Headers),
		Include: m.Include, Exclude: m.Exclude, Timeout: m.Timeout, Timeouts: m.Timeouts, MaxResult: m.MaxResult,
		TrustAnnotations: m.TrustAnnotations,
	}
}

// checkMCP says what is wrong with the servers of an agent, whatever the
// environment is.
func (a Agent) checkMCP(at string, wrong func(format string, args ...any)) {
	for _, name := range slices.Sorted(maps.Keys(a.MCP)) {
		for _, p := range Problems(a.MCP[name].server(a.Name, name).Check()) {
			wrong("%s.mcp.%s: %w", at, name, p)
		}
	}
}

// ErrNoPins says that it is not known here which tools of MCP servers were
// accepted.
var ErrNoPins = errors.New("which tools of the MCP servers are accepted is in Redis; set REDIS_URL, or mcp_lock to a lock file")

// Pins reads the lock file; ErrNoPins if the configuration names none.
func (c Config) Pins() (mcptool.Pins, error) {
	if c.MCPLock == "" {
		return mcptool.Pins{}, ErrNoPins
	}
	b, err := regular.Read(c.MCPLock, maxLock+1)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return mcptool.Pins{}, fmt.Errorf("mcp_lock: %w; bot mcp pins accept writes it", err)
	case err != nil:
		return mcptool.Pins{}, fmt.Errorf("mcp_lock: %w", err)
	case len(b) > maxLock:
		return mcptool.Pins{}, fmt.Errorf("mcp_lock: %s: has more than %d bytes", c.MCPLock, maxLock)
	}
	pins, err := mcptool.ReadPins(b)
	if err != nil {
		return mcptool.Pins{}, fmt.Errorf("mcp_lock: %s: %w", c.MCPLock, err)
	}
	return pins, nil
}

// maxLock is how many bytes a lock file may have.
const maxLock = 16 << 20

// WithServers is the configuration with the set that its agents use. Without
// one, the tools of MCP servers are known by the lock file, and cannot be called.
func (c Config) WithServers(set *mcptool.Set) Config {
	c.servers = set
	return c
}

// mcpTools returns the tools of the MCP servers of an agent.
func (c Config) mcpTools(a Agent) ([]agentrun.Tool, error) {
	if len(a.MCP) == 0 {
		return nil, nil
	}
	if c.servers != nil {
		return c.servers.Tools(a.Name), nil
	}
	pins, err := c.Pins()
	if err != nil {
		return nil, err
	}
	return c.Accepted(pins).Tools(a.Name), nil
}

// Accepted is the set of servers with the tools of the pins, whose calls fail:
// for those who judge calls and make none. Their secrets are not needed.
func (c Config) Accepted(pins mcptool.Pins) *mcptool.Set {
	servers, _ := c.Servers(Environment{}) // what is wrong with them, Check says
	return mcptool.Open(servers, pins, slog.New(slog.DiscardHandler))
}
