package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/tools/mcptool"
)

// MCPName is what the visitor's server is called: its tools are mcp.TOOL.
const MCPName = "mcp"

// server is the visitor's MCP server, from a command line. It gets what programs
// that people install for themselves look for, and no other variable.
func server(line string) (config.MCPServer, error) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return config.MCPServer{}, errors.New("--mcp: must be a command with its arguments, such as \"npx -y @modelcontextprotocol/server-everything\"")
	}
	if strings.HasPrefix(words[0], "http://") || strings.HasPrefix(words[0], "https://") {
		return config.MCPServer{URL: words[0]}, nil
	}
	program, err := exec.LookPath(words[0])
	if err != nil {
		return config.MCPServer{}, fmt.Errorf("--mcp: %w", err)
	}
	if program, err = filepath.Abs(program); err != nil {
		return config.MCPServer{}, fmt.Errorf("--mcp: %w", err)
	}
	s := config.MCPServer{Command: program, Args: words[1:], Env: map[string]string{}}
	for _, name := range []string{"PATH", "HOME"} {
		if os.Getenv(name) != "" {
			s.Env[name] = name
		}
	}
	return s, nil
}

// prepareServer starts the visitor's server once, accepts the tools that it
// lists, and writes them into a lock file: what it lists later is not accepted.
func (d *demo) prepareServer(ctx context.Context) error {
	if d.MCP == "" {
		return nil
	}
	s, err := server(d.MCP)
	if err != nil {
		return err
	}
	d.mcp = map[string]config.MCPServer{MCPName: s}
	d.lock = filepath.Join(filepath.Dir(d.policy), "mcp.lock")
	c := d.configuration()
	servers, err := c.Servers(d.env)
	if err != nil {
		return err
	}
	listed, err := mcptool.List(ctx, servers[0], config.NewLogger(d.Stderr, d.Level))
	if err != nil {
		return fmt.Errorf("--mcp: %w", err)
	}
	var usable []mcptool.Definition
	for _, l := range listed {
		if l.Why == nil {
			usable = append(usable, l.Definition)
			d.added = append(d.added, l.Name)
		}
	}
	if len(usable) == 0 {
		return errors.New("--mcp: the server has no tool that can be used")
	}
	var pins mcptool.Pins
	pins.Accept(mcptool.Place{Agent: servers[0].Agent, Server: MCPName}, usable)
	if err := os.WriteFile(d.lock, pins.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write the lock file: %w", err)
	}
	return nil
}

// configuration is that of the demo, with the visitor's server.
func (d *demo) configuration() config.Config {
	c := configuration(d.folder, d.policy)
	c.Agents[0].MCP, c.MCPLock = d.mcp, d.lock
	return c
}

// callIt is what the scripted model does with the visitor's server: it calls the
// tool that it is told to, with the arguments that it is told.
func (d *demo) callIt() openaisim.Story {
	typed := regexp.MustCompile(`(?i)\bcall\s+` + MCPName + `\.([A-Za-z0-9_./-]+)\s*(\{.*\})?`)
	return openaisim.Story{
		Name: MCPName, Prompt: "call " + MCPName + "." + d.added[0] + " {}", Match: typed.MatchString,
		Turn: func(c openaisim.Conversation) openaisim.Reply {
			said := typed.FindStringSubmatch(c.User)
			tool := agentrun.CallableName(MCPName + "." + said[1])
			if !c.Offers(tool) {
				return openaisim.Reply{Text: "I have no tool " + said[1] + " of your server. It has " + strings.Join(d.added, ", ") + "."}
			}
			if r, ok := c.Last(tool); ok {
				return openaisim.Reply{Text: "The call is answered: " + r.Content}
			}
			return openaisim.Reply{Calls: []openaisim.Call{{Name: tool, Args: cmp.Or(said[2], "{}")}}}
		},
	}
}
