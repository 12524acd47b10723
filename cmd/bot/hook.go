package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/countersign/countersign/internal/hook"
)

var hookCommands = &command{
	name: "hook", short: "Asks for a coding agent before it runs a tool.",
	about: `
For coding agents such as Claude Code, on the machine where they run. These
commands speak the HTTP API with the token of the agent, and need nothing else.
Without a command, or with flags only, this is "bot hook ask".`,
	example: "bot hook doctor --url https://countersign.your-company.com",
	sub: []*command{
		{
			name: "ask", short: "Answers the hook of a coding agent.", run: runHook,
			about: `
Reads the question of a coding agent from standard input, waits until people
have decided, and writes the answer. Every failure exits with 2 and says why on
standard error, because agents take other codes for a yes.

The token of the agent is in COUNTERSIGN_TOKEN, or in a file that only its owner
may read.`,
			example: "bot hook ask --kind claude-code --url https://countersign.your-company.com",
		},
		{
			name: "mcp", short: "Is the permission prompt of Claude Code.", run: runHookBridge,
			about: `
Serves MCP on standard input and output, with one tool: the permission prompt
that "claude --permission-prompt-tool mcp__countersign__approve" calls. It waits
until people have decided. Whatever is no permission denies.`,
			example: "bot hook mcp --url https://countersign.your-company.com",
		},
		{
			name: "doctor", short: "Checks that no tool runs without an answer.", run: runHookDoctor,
			about: `
Checks on the machine of an agent that nothing lets a tool run unasked: the
version of Claude Code, its settings, the token, and that calls are refused. Its
own calls to Countersign are refused before anybody is asked. With --write it
writes the settings first. It exits with 1 if anything is bad.`,
			example: "bot hook doctor --url https://countersign.your-company.com --write",
		},
	},
}

// isHook reports whether the program is what an agent calls before a tool: then
// every failure must exit with 2.
func isHook(args []string) bool {
	return len(args) > 0 && args[0] == hookCommands.name && (len(args) < 2 || args[1] != "doctor")
}

// hookArgs makes "bot hook", also with flags, into "bot hook ask".
func hookArgs(args []string) []string {
	if !isHook(args) || len(args) > 1 && (isHelp(args[1]) || !strings.HasPrefix(args[1], "-")) {
		return args
	}
	return append([]string{hookCommands.name, "ask"}, args[1:]...)
}

// hookMain is the program as an agent calls it. No signal that can be caught ends
// it with another code than 2, and neither does an answer that nobody reads.
func hookMain(args, environ []string) int {
	// Signals are caught until the process has ended: the second of two may arrive last.
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE) // writing fails then, and does not end the program
	if exitCode(run(ctx, args, environ, os.Stdout, os.Stderr), os.Stderr) != 0 {
		return exitUsage
	}
	return 0
}

// hookFlags are the flags of the commands that speak the API for an agent.
func hookFlags(in *call) (*hook.Config, *string) {
	c := &hook.Config{Now: time.Now}
	env := environment(in.environ)
	in.flags.StringVar(&c.URL, "url", env["COUNTERSIGN_URL"], "The `URL` of Countersign. Without it, COUNTERSIGN_URL names it.")
	file := in.flags.String("token-file", env["COUNTERSIGN_TOKEN_FILE"], "The `FILE` with the token of the agent, which only its owner may read. Without it, COUNTERSIGN_TOKEN_FILE names it, or COUNTERSIGN_TOKEN is the token.")
	for _, name := range []string{"url", "token-file"} {
		in.flags.Lookup(name).DefValue = "" // help is the same everywhere
	}
	return c, file
}

// hookToken reads the token of the agent.
func hookToken(c *hook.Config, file string, environ []string) error {
	if file == "" {
		c.Token = strings.TrimSpace(environment(environ)["COUNTERSIGN_TOKEN"])
		return nil
	}
	var err error
	c.Token, err = hook.ReadToken(file)
	return err
}

// parseWaiting reads the flags and the token of a command whose agent waits.
func parseWaiting(in *call, c *hook.Config, file *string) error {
	in.flags.BoolVar(&c.Keep, "keep", false, "Leaves a request open when the agent stops waiting for it.")
	if _, err := in.parse(); err != nil {
		return err
	}
	if c.Hold < 0 {
		return in.wrong("--hold is negative")
	}
	return hookToken(c, *file, in.environ)
}

// withoutToken keeps the token of the agent out of what is printed.
func withoutToken(c *hook.Config, err error) error {
	if err == nil || c.Token == "" {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), c.Token, "[token]"))
}

func environment(environ []string) map[string]string {
	all := map[string]string{}
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		all[name] = value
	}
	return all
}

// runHook is bot hook ask.
func runHook(ctx context.Context, in *call) error {
	c, file := hookFlags(in)
	kind := in.flags.String("kind", string(hook.ClaudeCode), "The `KIND` of agent that asks: "+hook.Kinds()+".")
	in.flags.DurationVar(&c.Hold, "hold", 0, "How long the agent waits, as a `DURATION` such as 9m. It must be less than the time after which the agent gives up its hook. 0s is what the kind allows without a setting.")
	err := parseWaiting(in, c, file)
	c.Kind = hook.Kind(*kind)
	if err == nil {
		err = withoutToken(c, hook.Run(ctx, *c, os.Stdin, in.stdout))
	}
	if err != nil && !errors.Is(err, errHelped) {
		hook.Refuse(c.Kind, err, in.stdout)
	}
	return err
}

// runHookBridge is bot hook mcp.
func runHookBridge(ctx context.Context, in *call) error {
	c, file := hookFlags(in)
	in.flags.DurationVar(&c.Hold, "hold", 0, "How long a call waits, as a `DURATION` such as 9m. 0s is 23 hours.")
	if err := parseWaiting(in, c, file); err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find where this program runs: %w", err)
	}
	return withoutToken(c, hook.Bridge(ctx, *c, dir, 10*time.Second, os.Stdin, os.Stdout))
}
