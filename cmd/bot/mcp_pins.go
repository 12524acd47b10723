package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/tools/mcpreview"
	"github.com/countersign/countersign/internal/tools/mcptool"
)

var mcpCommands = &command{
	name: "mcp", short: "Accepts the tools of MCP servers.",
	about: `
For those who operate agents with MCP servers; see docs/mcp.md. An agent has the
tools that were accepted, as they were accepted.`,
	example: "bot mcp pins --config config.yaml",
	sub: []*command{{
		name: "pins", short: "Compares what MCP servers list with what was accepted.", run: mcpPins,
		about: `
Starts or reaches every MCP server of the configuration, and shows how the tools
that it lists differ from those that were accepted, with their definitions as
the server sent them. Characters that do not show are written as escapes. It
exits with 1 if there is a difference.

What was accepted is in the lock file that mcp_lock names, and otherwise in
Redis: then it needs REDIS_URL or --data.`,
		args: []argument{{
			name: "ACTION", optional: true, check: isPinAction,
			what: "With accept, what the servers list now is accepted. With export, what was accepted is printed as a lock file, and no server is asked.",
		}},
		needs:   []string{"config"},
		example: "bot mcp pins --config config.yaml accept",
	}},
}

const (
	pinsAccept = "accept"
	pinsExport = "export"
)

func isPinAction(value string) error {
	if value != pinsAccept && value != pinsExport {
		return errors.New("must be accept or export")
	}
	return nil
}

// pinned is one use of the command.
type pinned struct {
	config  config.Config
	env     config.Environment
	servers []mcptool.Server
	pins    mcptool.Pins
	version int64 // of the pins in Redis
	stdout  io.Writer
	log     *slog.Logger
}

func mcpPins(ctx context.Context, in *call) error {
	path := in.flags.String("config", "", "The configuration `FILE`.")
	asJSON := in.flags.Bool("json", false, "Print what was accepted, by whom and when, and how it differs, as JSON.")
	data := dataFlag(in)
	args, err := in.parse()
	if err != nil {
		return err
	}
	p := pinned{stdout: in.stdout}
	p.env, _ = config.ReadEnvironment(in.environ) // what is missing for serve is not needed here
	p.env.Data = *data
	p.log = p.env.NewLogger(in.stderr)
	if p.config, err = config.Read(*path); err != nil {
		return err
	}
	if !p.config.HasMCP() {
		return errors.New("no agent of the configuration has MCP servers")
	}
	if p.servers, err = p.config.Servers(p.env); err != nil {
		return err
	}
	p.pins, p.version, err = readPins(ctx, p.config, p.env, p.log)
	if p.config.MCPLock != "" && errors.Is(err, os.ErrNotExist) && !slices.Contains(args, pinsExport) {
		err = nil // nothing was accepted yet
	}
	if err != nil {
		return err
	}
	switch {
	case *asJSON && len(args) > 0:
		return errors.New("--json goes with no action")
	case *asJSON:
		return p.printJSON(ctx)
	case slices.Contains(args, pinsExport):
		_, err := p.stdout.Write(p.pins.Lock())
		return err
	case slices.Contains(args, pinsAccept):
		return p.accept(ctx)
	}
	differ, err := p.compare(ctx)
	if err == nil && differ {
		err = errors.New("not everything is as it was accepted; read the differences, then run bot mcp pins accept")
	}
	return err
}

// compare writes how what the servers list differs from what was accepted, and
// makes it what is accepted here.
func (p *pinned) compare(ctx context.Context) (differ bool, err error) {
	var places []mcptool.Place
	for _, s := range p.servers {
		at := mcptool.Place{Agent: s.Agent, Server: s.Name}
		places = append(places, at)
		live, listErr := mcptool.List(ctx, s, p.log)
		if listErr != nil {
			err = errors.Join(err, fmt.Errorf("%s of %s: %w", s.Name, s.Agent, listErr))
			continue
		}
		changes := p.pins.Compare(s, live)
		known := p.pins.Knows(at)
		var usable []mcptool.Definition
		for _, l := range live {
			if l.Why == nil {
				usable = append(usable, l.Definition)
			}
		}
		proposed := p.pins.Propose(s, live)
		p.pins.Accept(at, usable)
		if !known || proposed.Asks() {
			p.pins.Note(proposed.ByOperator(time.Now()))
		}
		if err := p.show(s, changes, len(usable), known); err != nil {
			return false, err
		}
		differ = differ || !known || slices.ContainsFunc(changes, func(c mcptool.Change) bool { return c.Kind != mcptool.ToolUnusable })
	}
	p.pins.Forget(places)
	return differ, err
}

func (p *pinned) show(s mcptool.Server, changes []mcptool.Change, usable int, known bool) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s of %s: %d tools", s.Name, s.Agent, usable)
	switch {
	case !known:
		out.WriteString("; none was accepted yet")
	case len(changes) == 0:
		out.WriteString(", all as they were accepted")
	}
	out.WriteString("\n")
	for _, c := range changes {
		fmt.Fprintf(&out, "\n  %s: %s", approvals.Visible(c.Tool), c.Kind)
		if c.Why != nil {
			fmt.Fprintf(&out, ": %s; it cannot be accepted", approvals.Visible(c.Why.Error()))
		}
		out.WriteString("\n")
		for line := range bytes.Lines([]byte(mcptool.Diff(c.Before, c.After))) {
			out.WriteString("    " + approvals.Visible(string(bytes.TrimRight(line, "\n"))) + "\n")
		}
	}
	_, err := p.stdout.Write(out.Bytes())
	return err
}

// accept makes what the servers list what is accepted. If one of them does not
// answer, nothing changes.
func (p *pinned) accept(ctx context.Context) error {
	if _, err := p.compare(ctx); err != nil {
		return fmt.Errorf("nothing was accepted: %w", err)
	}
	where := p.config.MCPLock
	if where != "" {
		if err := writeLock(where, p.pins.Lock()); err != nil {
			return err
		}
	} else {
		where = "Redis"
		if err := p.store(ctx); err != nil {
			return err
		}
	}
	what := "A bot that runs takes it within seconds."
	if p.config.MCPLock != "" {
		what = "Restart the bot, which reads it when it starts."
	}
	_, err := fmt.Fprintf(p.stdout, "\nAccepted; it is in %s. %s\n", where, what)
	return err
}

func (p *pinned) store(ctx context.Context) error {
	store, err := openPins(ctx, p.config, p.env, p.log)
	if err != nil {
		return err
	}
	err = store.CommitMemo(ctx, mcpreview.PinsID, mcpreview.PinsSurface, p.pins.Bytes(), p.version, 0)
	if errors.Is(err, approvals.ErrConflict) {
		err = errors.New("someone else has accepted something in the meantime; nothing was stored, try again")
	}
	return errors.Join(err, store.Close())
}

// writeLock writes the file whole or not at all.
func writeLock(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".mcp-lock-*")
	if err != nil {
		return fmt.Errorf("write the lock file: %w", err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it is renamed, or of no use
	_, err = f.Write(b)
	// The bot may run as another user, who must be able to read it.
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write the lock file: %w", err)
	}
	return nil
}
