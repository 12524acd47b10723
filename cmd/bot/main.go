// Command bot is Countersign: people approve, in Slack, what AI agents are about
// to do.
//
//	bot demo      the whole thing on this machine, with nothing set up
//	bot serve     the bot beside a real Slack, a Redis and a model
//	bot slacksim  a Slack workspace on this machine, for any app
//	bot policy    what a policy does, before it does it
//	bot receipt   whether a receipt verifies
//	bot admin     what is stuck, and what to do about it
//	bot hook      what a coding agent calls before it runs a tool
//
// The table of commands is in commands.go, with everything that their help
// says; command.go makes them work.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel"

	"github.com/countersign/countersign/internal/config"
)

func main() {
	if isHook(os.Args[1:]) {
		os.Exit(hookMain(os.Args[1:], os.Environ()))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	log := config.Environment{LogLevel: os.Getenv("COUNTERSIGN_LOG_LEVEL"), LogFormat: os.Getenv("COUNTERSIGN_LOG_FORMAT")}.NewLogger(os.Stderr)
	slog.SetDefault(log) // net/http and others write to the standard logger
	redis.SetLogger(redisLog{log})
	otel.SetLogger(logr.New(otelLog{log}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces", slog.Any("err", err)) }))
	err := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(exitCode(err, os.Stderr))
}
