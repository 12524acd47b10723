package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/hook"
)

var gatewayCommands = &command{
	name: "mcp-gateway", short: "Serves MCP servers behind a gate.",
	about: `
For agents that you do not run: the MCP servers of a gateway are served to them
as one server, and people approve their calls. See docs/mcp-gateway.md. With
flags only, this is "bot mcp-gateway serve".`,
	example: "bot mcp-gateway --config config.yaml",
	sub: []*command{
		{
			name: "serve", short: "Serves the gateways of a configuration.", run: runGateway,
			about: `
Runs the bot like "bot serve", which serves the gateways too, and refuses a
configuration without one.`,
			needs:   []string{"config"},
			example: "bot mcp-gateway serve --config config.yaml",
		},
		{
			name: "bridge", short: "Reaches a gateway for a client that only starts programs.", run: runGatewayBridge,
			about: `
Passes the messages of MCP between standard input and output and a gateway, with
the token of the agent. It has nothing else, because the agent that starts it
can read it.

The token of the agent is in COUNTERSIGN_TOKEN, or in a file that only its owner
may read.`,
			example: "bot mcp-gateway bridge --url https://countersign.your-company.com",
		},
	},
}

// gatewayArgs makes "bot mcp-gateway" with flags into "bot mcp-gateway serve".
func gatewayArgs(args []string) []string {
	if len(args) < 2 || args[0] != gatewayCommands.name || isHelp(args[1]) || !strings.HasPrefix(args[1], "-") ||
		slices.ContainsFunc(args[1:], func(w string) bool { return gatewayCommands.find(w) != nil }) {
		return args
	}
	return append([]string{args[0], "serve"}, args[1:]...)
}

func runGateway(ctx context.Context, in *call) error {
	return serveConfig(ctx, in, func(c config.Config) error {
		if len(c.Gateways) == 0 {
			return errors.New("gateways: there are none in the configuration")
		}
		return nil
	})
}

func runGatewayBridge(ctx context.Context, in *call) error {
	c, file := hookFlags(in)
	if _, err := in.parse(); err != nil {
		return err
	}
	if err := hookToken(c, *file, in.environ); err != nil {
		return err
	}
	return withoutToken(c, hook.Relay(ctx, *c, os.Stdin, in.stdout))
}
