package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/tools/mcpreview"
	"github.com/countersign/countersign/internal/tools/mcptool"
)

// MCPName is what a server of the visitor's is called that has no name: its tools are
// mcp.TOOL.
const MCPName = "mcp"

var namedServer = regexp.MustCompile(`^([A-Za-z0-9_-]{1,32})=(.*)$`)

// server is a server of the visitor's, from a command line, and its name. It gets what
// programs that people install for themselves look for, and no other variable.
func server(line string) (name string, s config.MCPServer, err error) {
	name = MCPName
	if m := namedServer.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
		name, line = m[1], m[2]
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return name, s, errors.New("--mcp: must be a command with its arguments, such as \"npx -y @modelcontextprotocol/server-everything\", or NAME= and a command")
	}
	if strings.HasPrefix(words[0], "http://") || strings.HasPrefix(words[0], "https://") {
		return name, config.MCPServer{URL: words[0]}, nil
	}
	program, err := exec.LookPath(words[0])
	if err != nil {
		return name, s, fmt.Errorf("--mcp: %w", err)
	}
	if program, err = filepath.Abs(program); err != nil {
		return name, s, fmt.Errorf("--mcp: %w", err)
	}
	s = config.MCPServer{Command: program, Args: words[1:], Env: map[string]string{}}
	for _, name := range []string{"PATH", "HOME"} {
		if os.Getenv(name) != "" {
			s.Env[name] = name
		}
	}
	return name, s, nil
}

// prepareServers starts each of the visitor's servers once and accepts the tools that
// it lists. What it lists later the owners of the agent are asked about.
func (d *demo) prepareServers(ctx context.Context) error {
	for _, line := range d.MCP {
		name, s, err := server(line)
		if err != nil {
			return err
		}
		if _, twice := d.mcp[name]; twice {
			return fmt.Errorf("--mcp: two servers are called %s; write NAME= before the command of one", name)
		}
		if d.mcp == nil {
			d.mcp = map[string]config.MCPServer{}
		}
		d.mcp[name] = s
	}
	if len(d.mcp) == 0 {
		return nil
	}
	servers, err := d.configuration().Servers(d.env)
	if err != nil {
		return err
	}
	for _, s := range servers {
		if err := d.acceptTools(ctx, s); err != nil {
			return fmt.Errorf("--mcp: %s: %w", s.Name, err)
		}
	}
	return nil
}

func (d *demo) acceptTools(ctx context.Context, s mcptool.Server) error {
	listed, err := mcptool.List(ctx, s, config.NewLogger(d.Stderr, d.Level))
	if err != nil {
		return err
	}
	var usable []mcptool.Definition
	for _, l := range listed {
		if l.Why == nil {
			usable = append(usable, l.Definition)
			d.added = append(d.added, s.Name+"."+l.Name)
		}
	}
	if len(usable) == 0 {
		return errors.New("the server has no tool that can be used")
	}
	d.pins.Accept(mcptool.Place{Agent: s.Agent, Server: s.Name}, usable)
	return nil
}

// storePins keeps what was accepted where the bot looks for it, in place of what an
// earlier demo accepted.
func (d *demo) storePins(ctx context.Context) error {
	if len(d.mcp) == 0 {
		return nil
	}
	client, err := state.Dial(d.env.RedisURL.Open())
	if err != nil {
		return fmt.Errorf("store the tools of --mcp: %w", err)
	}
	store, err := state.Open(ctx, state.Options{Client: client, Prefix: d.configuration().Redis.Prefix, Durability: state.None})
	if err != nil {
		return fmt.Errorf("store the tools of --mcp: %w", err)
	}
	_, version, err := store.Memo(ctx, mcpreview.PinsID, mcpreview.PinsSurface)
	if err == nil {
		err = store.CommitMemo(ctx, mcpreview.PinsID, mcpreview.PinsSurface, d.pins.Bytes(), version, 0)
	}
	if err = errors.Join(err, store.Close()); err != nil {
		return fmt.Errorf("store the tools of --mcp: %w", err)
	}
	return nil
}

// configuration is that of the demo, with the visitor's servers.
func (d *demo) configuration() config.Config {
	c := configuration(d.folder, d.policy)
	c.Agents[0].MCP = d.mcp
	if len(d.mcp) > 0 {
		c.Agents[0].Owners = &config.Owners{Groups: []approvals.GroupID{"S0SRE"}, Channel: "C0OPS"}
	}
	d.web.settings(&c)
	d.addAgent(&c)
	return c
}

// callIt is what the scripted model does with the visitor's servers: it calls the
// tool that it is told to, with the arguments that it is told.
func (d *demo) callIt() openaisim.Story {
	names := strings.Join(slices.Sorted(maps.Keys(d.mcp)), "|")
	typed := regexp.MustCompile(`(?i)\bcall\s+((?:` + names + `)\.[A-Za-z0-9_./-]+)\s*(\{.*\})?`)
	return openaisim.Story{
		Name: "servers", Prompt: "call " + d.added[0] + " {}", Match: typed.MatchString,
		Turn: func(c openaisim.Conversation) openaisim.Reply {
			// Each call that the message names is one.
			var calls []openaisim.Call
			for _, said := range typed.FindAllStringSubmatch(c.User, -1) {
				tool := agentrun.CallableName(said[1])
				if !c.Offers(tool) {
					return openaisim.Reply{Text: "I have no tool " + said[1] + ". Your servers have " + strings.Join(d.added, ", ") + "."}
				}
				calls = append(calls, openaisim.Call{Name: tool, Args: cmp.Or(said[2], "{}")})
			}
			if len(c.Results) == 0 {
				return openaisim.Reply{Calls: calls}
			}
			answers := make([]string, len(c.Results))
			for i, r := range c.Results {
				answers[i] = r.Name + " returned: " + r.Content
			}
			return openaisim.Reply{Text: strings.Join(answers, "\n\n")}
		},
	}
}
