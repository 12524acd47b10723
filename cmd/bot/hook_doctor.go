package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/countersign/countersign/internal/hook"
)

// runHookDoctor is bot hook doctor.
func runHookDoctor(ctx context.Context, in *call) error {
	c, file := hookFlags(in)
	var p hook.Place
	in.flags.StringVar(&p.Managed, "managed", hook.ManagedPath(), "The `FILE` of the managed settings.")
	in.flags.StringVar(&p.Claude, "claude", "", "The `PROGRAM` of Claude Code. Without it, the one in PATH.")
	in.flags.StringVar(&p.Project, "project", ".", "The `DIR` of the project whose settings are checked.")
	write := in.flags.Bool("write", false, "Writes the settings first: managed ones if it may, otherwise those of the user. It overwrites nothing.")
	show := in.flags.Bool("print", false, "Prints the settings, and checks nothing.")
	in.flags.Lookup("managed").DefValue = ""
	if _, err := in.parse(); err != nil {
		return err
	}
	if *show {
		raw, err := hook.Settings(c.URL, true)
		if err == nil {
			_, err = in.stdout.Write(raw)
		}
		return err
	}
	if err := hookToken(c, *file, in.environ); err != nil {
		return err
	}
	env := environment(in.environ)
	p.Home = cmp.Or(env["HOME"], env["USERPROFILE"]) // the second is that of Windows
	p.Config = env["CLAUDE_CONFIG_DIR"]
	if p.Claude == "" {
		p.Claude, _ = exec.LookPath("claude") // without it, the doctor says so
	}
	_, err := exec.LookPath("codex")
	_, there := os.Stat(p.Home + "/.codex")
	p.Codex = err == nil || there == nil
	_, err = exec.LookPath("gemini")
	_, there = os.Stat(p.Home + "/.gemini")
	p.Gemini = err == nil || there == nil
	_, err = exec.LookPath("copilot")
	_, there = os.Stat(p.Home + "/.copilot")
	if err == nil || there == nil {
		p.Copilot = hook.CopilotPolicy()
	}
	if p.Self, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if *write {
		path, err := hook.Write(c.URL, p)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(in.stdout, "wrote %s\n", path); err != nil {
			return err
		}
	}
	good, err := hook.Print(in.stdout, hook.Doctor(ctx, *c, p))
	if err != nil {
		return err
	}
	if !good {
		return errors.New("a tool could run without an approval here")
	}
	return nil
}
