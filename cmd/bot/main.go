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
	"time"

	"github.com/go-logr/logr"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel"

	"github.com/countersign/countersign/internal/config"
)

func main() {
	if isHook(os.Args[1:]) {
		os.Exit(hookMain(os.Args[1:], os.Environ()))
	}
	form := config.Environment{LogLevel: os.Getenv("COUNTERSIGN_LOG_LEVEL"), LogFormat: os.Getenv("COUNTERSIGN_LOG_FORMAT")}
	stderr := logsTo(os.Stderr, os.Args[1:], form)
	log := form.NewLogger(stderr)
	slog.SetDefault(log) // net/http and others write to the standard logger
	redis.SetLogger(redisLog{log})
	otel.SetLogger(logr.New(otelLog{log}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces", slog.Any("err", err)) }))
	os.Exit(exitCode(run(untilSignal(log), os.Args[1:], os.Environ(), os.Stdout, stderr), stderr))
}

// sameSignal is how long a repeated signal counts as the first one: timeout(1), and
// programs that pass signals on, send theirs twice.
const sameSignal = 500 * time.Millisecond

// untilSignal returns a context that ends with the first SIGINT or SIGTERM. A second one
// ends the process at once, whatever it waits for. To the next process that is the same as
// a kill -9.
func untilSignal(log *slog.Logger) context.Context {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		stop()
		for same := time.After(sameSignal); ; {
			select {
			case <-signals:
				continue
			case <-same:
			}
			break
		}
		second := <-signals
		signal.Reset(os.Interrupt, syscall.SIGTERM) // a third one does not wait for the log
		log.Warn("a second signal ended this before it had finished", slog.String("signal", second.String()))
		number, _ := second.(syscall.Signal)
		os.Exit(128 + int(number)) // as a shell reports it
	}()
	return ctx
}
