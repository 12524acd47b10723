package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/countersign/countersign/internal/doctor"
)

// runCheck says everything that is wrong with an installation, at once.
func runCheck(ctx context.Context, in *call) error {
	o := doctor.Options{Extra: in.extra, Environ: in.environ, HTTP: http.DefaultTransport, Now: time.Now, Accepted: withAccepted, Rules: coverage}
	in.flags.StringVar(&o.Path, "config", "", "The configuration `FILE`.")
	in.flags.StringVar(&o.Address, "url", "", "The `URL` at which Slack reaches the bot. With --online, the running bot is asked there.")
	in.flags.BoolVar(&o.Online, "online", false, "Ask Slack, Redis, the model provider and the MCP servers too. Nothing is written anywhere; each model is asked for a few tokens, and each program that is an MCP server is started.")
	data := dataFlag(in)
	if _, err := in.parse(); err != nil {
		return err
	}
	o.Data = *data
	found := doctor.Check(ctx, o)
	if ctx.Err() != nil {
		return errors.New("interrupted before everything was checked")
	}
	return doctor.Report(in.stdout, found)
}
