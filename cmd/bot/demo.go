package main

import (
	"context"

	"github.com/countersign/countersign/internal/demo"
)

// runDemo runs the demo.
func runDemo(ctx context.Context, in *call) error {
	o := demo.Options{Level: "warn", Extra: in.extra, Environ: in.environ, Stdout: in.stdout, Stderr: in.stderr, Serve: serveBeside}
	in.flags.StringVar(&o.Redis, "redis", "", "Use the Redis at this `URL` instead of one in memory.")
	in.flags.StringVar(&o.Addr, "addr", "", "Serve the page at `HOST:PORT`. Without it, that is "+demo.Addr+", or a free port if it is taken.")
	in.flags.BoolVar(&o.Expose, "expose", false, "Allow an address that other machines can reach. The demo has no login: "+
		"anyone who can reach it can act as any person, and use the model of OPENAI_API_KEY.")
	in.flags.StringVar(&o.Folder, "folder", "", "Let the agent work on this `FOLDER`, which must be empty or not there yet, instead of a new one.")
	in.flags.Func("mcp", "Give the agent the tools of this MCP server: a `COMMAND` with its arguments, or a URL. Every call needs approval. May be repeated, with NAME= before the command.",
		func(line string) error { o.MCP = append(o.MCP, line); return nil })
	verbose := in.flags.Bool("v", false, "Log what the bot does.")
	if _, err := in.parse(); err != nil {
		return err
	}
	if *verbose {
		o.Level = "info"
	}
	if o.Addr != "" {
		if err := checkExposure(ctx, o.Addr, "the demo", o.Expose, in.stderr); err != nil {
			return err
		}
	}
	return demo.Run(ctx, o)
}
