// Command bot is Countersign: people sign, in Slack, what AI agents are about
// to do.
//
//	bot demo      the whole thing on this machine, with nothing set up
//	bot serve     the bot beside a real Slack, a Redis and a model
//	bot slacksim  a Slack workspace on this machine, for any app
//	bot policy    what a policy does, before it does it
//	bot admin     what is stuck, and what to do about it
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	redis.SetLogger(redisLog{newLogger(os.Stderr, os.Getenv("COUNTERSIGN_LOG_LEVEL"))})
	err := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bot: %v\n", err)
		os.Exit(1)
	}
}

const usage = `Countersign: a person's signature on what an AI agent is about to do.

  bot demo  [--redis URL] [--addr HOST:PORT]
            Everything on this machine: a small Slack in the browser, an agent
            with a folder of files, and the bot between them. Needs no keys.
  bot init  [--url URL] [--dir DIR]
            Writes a starting configuration, a policy, and the manifest of the
            Slack app for the URL under which Slack will reach the bot.
  bot check --config FILE [--url URL] [--online]
            Everything that is wrong, at once: with the file and the
            environment; with --online with Slack, Redis and the model too.
  bot serve --config FILE
            The bot for a real workspace. Addresses and secrets come from the
            environment, see the README.
  bot policy check | explain | test | replay | calls
            What is wrong with a policy, what it says of one call and why,
            whether its examples hold, and what another version of it would
            have ruled on recorded calls. Each says with --help what it takes.
  bot slacksim [--addr HOST:PORT] [--bot-token TOKEN] [--signing-secret SECRET]
            [--events-url URL] [--interactivity-url URL] [--commands-url URL]
            Only the small Slack, for any Slack app; see docs/slacksim.md.
  bot admin [--config FILE] parked | retry KIND ID | abandon RUN |
                            fulfil BATCH CALL JSON
            What is stuck, and what to do about it. Needs REDIS_URL.
  bot help  This text.
`

// run is the program. It returns when ctx ends and everything is stored.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	command := "help"
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	switch command {
	case "demo":
		return runDemo(ctx, args, environ, stdout, stderr)
	case "init":
		return runInit(args, stdout, stderr)
	case "check":
		return runCheck(ctx, args, environ, stdout, stderr)
	case "serve":
		return runServe(ctx, args, environ, stderr)
	case "slacksim":
		return runSlacksim(ctx, args, stdout, stderr)
	case "policy":
		return runPolicy(ctx, args, environ, stdout, stderr)
	case "admin":
		return runAdmin(ctx, args, environ, stdout, stderr)
	case "help", "-h", "--help":
		_, err := io.WriteString(stdout, usage)
		return err
	}
	return errors.Join(fmt.Errorf("there is no command %q", command), errors.New("bot help lists the commands"))
}
