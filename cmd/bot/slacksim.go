package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/slackui/slacksim"
)

// simAddr is where the simulator is, unless --addr says otherwise.
const simAddr = "127.0.0.1:8485"

// simOptions are the flags of `bot slacksim`.
type simOptions struct {
	addr, events, scopes, commands string
	expose, verbose                bool
	second, org                    bool
	slack                          slacksim.Config
}

const simAbout = `bot slacksim: a Slack workspace on this machine, for any Slack app.

The Web API is under /api/, a page to click in under /, and what the page does
is JSON under /sim/ (docs/slacksim.md). It talks to the app's URLs and to nobody
else, stores nothing, and has no login: whoever reaches it can act as everybody.

  bot slacksim --events-url http://127.0.0.1:3000/slack/events \
               --interactivity-url http://127.0.0.1:3000/slack/events \
               --commands-url http://127.0.0.1:3000/slack/events

`

func simFlags(stderr io.Writer) (*flag.FlagSet, *simOptions) {
	o := &simOptions{}
	f := flag.NewFlagSet("slacksim", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.addr, "addr", simAddr, "serve at `HOST:PORT`; port 0 takes a free one")
	f.StringVar(&o.slack.BotToken, "bot-token", "", "the `TOKEN` that the app must send (default: random, printed at the start)")
	f.StringVar(&o.slack.SigningSecret, "signing-secret", "", "sign requests to the app with this `SECRET` (default: random, printed at the start)")
	f.StringVar(&o.slack.ClientSecret, "client-secret", "", "the `SECRET` with which the app exchanges the code of an installation (default: random, printed at the start)")
	f.BoolVar(&o.slack.SocketMode, "socket-mode", false, "the app is set to Socket Mode: it connects, and nothing is sent to URLs")
	f.StringVar(&o.slack.AppToken, "app-token", "", "the app-level `TOKEN` with which the app opens connections in Socket Mode (default: random, printed at the start)")
	f.StringVar(&o.slack.EventsURL, "events-url", "", "send events to this `URL`; without one the app gets none")
	f.StringVar(&o.slack.InteractivityURL, "interactivity-url", "", "send clicks and modals to this `URL`")
	f.StringVar(&o.slack.CommandsURL, "commands-url", "", "send slash commands to this `URL`")
	f.StringVar(&o.slack.OptionsURL, "options-url", "", "ask this `URL` for the options of external menus (default: the interactivity URL)")
	f.StringVar(&o.slack.PublicURL, "public-url", "", "the `URL` by which the app reaches the simulator, if that is not its address")
	f.StringVar(&o.scopes, "scopes", "", "the bot scopes that were granted, a comma-separated `LIST` (default: all)")
	f.StringVar(&o.events, "events", "", "the bot events that the app subscribed to, a comma-separated `LIST`")
	f.StringVar(&o.commands, "commands", "", "the slash commands that exist, a comma-separated `LIST` (default: any)")
	f.BoolVar(&o.slack.PostLimit, "post-limit", false, "allow about one message per second and channel, as Slack does")
	f.BoolVar(&o.slack.TierLimits, "tier-limits", false, "allow each method as often per minute as its tier says")
	f.BoolVar(&o.slack.NoHome, "no-home", false, "the app has no Home tab")
	f.BoolVar(&o.slack.NoMessages, "no-messages", false, "the app takes no direct messages")
	f.BoolVar(&o.slack.EscapeCommands, "should-escape", false, "escape people and channels in the text of slash commands")
	f.Float64Var(&o.slack.RetryScale, "retry-scale", 1, "multiply the time between two attempts at an event by this `FACTOR`")
	f.BoolVar(&o.second, "second-workspace", false, "add the workspace of another company, where the app is installed with a token of its own, printed at the start")
	f.BoolVar(&o.org, "org", false, "add that workspace as one of an organization, where the app is installed as a whole")
	f.BoolVar(&o.expose, "expose", false, "allow an address that other machines can reach")
	f.BoolVar(&o.verbose, "v", false, "log what happens")
	f.Usage = func() {
		_, _ = io.WriteString(f.Output(), simAbout)
		f.PrintDefaults()
	}
	return f, o
}

// runSlacksim serves the simulator until ctx ends.
func runSlacksim(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags, o := simFlags(stderr)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return fmt.Errorf("slacksim: %w", err)
	case flags.NArg() > 0:
		return fmt.Errorf("slacksim takes no argument %q", flags.Arg(0))
	}
	if err := o.check(ctx, stderr); err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.addr)
	if err != nil {
		return fmt.Errorf("listen for the simulator: %w", err)
	}
	level := "warn"
	if o.verbose {
		level = "info"
	}
	o.slack.Logger, o.slack.AnyHost = newLogger(stderr, level), o.expose
	if o.slack.PublicURL == "" && !o.expose {
		o.slack.PublicURL = "http://" + l.Addr().String()
	}
	return o.serve(ctx, l, stdout)
}

// check refuses what cannot work and completes the options.
func (o *simOptions) check(ctx context.Context, stderr io.Writer) error {
	var problems []error
	for _, u := range []struct{ name, value string }{
		{"events-url", o.slack.EventsURL},
		{"interactivity-url", o.slack.InteractivityURL},
		{"commands-url", o.slack.CommandsURL},
		{"options-url", o.slack.OptionsURL},
		{"public-url", o.slack.PublicURL},
	} {
		if u.value == "" {
			continue
		}
		if parsed, err := url.Parse(u.value); err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
			problems = append(problems, fmt.Errorf("--%s: %q is not an http or https URL", u.name, u.value))
		}
	}
	if o.slack.BotToken != "" && !strings.HasPrefix(o.slack.BotToken, "xoxb-") {
		problems = append(problems, errors.New("--bot-token: a bot's token starts with xoxb-"))
	}
	if o.slack.AppToken != "" && !strings.HasPrefix(o.slack.AppToken, "xapp-") {
		problems = append(problems, errors.New("--app-token: an app-level token starts with xapp-"))
	}
	if urls := o.slack.EventsURL + o.slack.InteractivityURL + o.slack.CommandsURL + o.slack.OptionsURL; o.slack.SocketMode && urls != "" {
		problems = append(problems, errors.New("--socket-mode: nothing is sent to URLs then; leave them out"))
	}
	if o.slack.RetryScale <= 0 {
		problems = append(problems, errors.New("--retry-scale: must be more than 0"))
	}
	o.slack.Scopes, o.slack.Events, o.slack.Commands = commaList(o.scopes), commaList(o.events), commaList(o.commands)
	if o.second && o.org {
		problems = append(problems, errors.New("--second-workspace and --org: only one of them makes sense"))
	}
	problems = append(problems, checkExposure(ctx, o.addr, "the simulator", o.expose, stderr))
	return errors.Join(problems...)
}

// checkExposure refuses an address that other machines can reach, unless that
// is what the person wants: whatever is served there has no login.
func checkExposure(ctx context.Context, addr, what string, expose bool, stderr io.Writer) error {
	local, err := loopback(ctx, addr)
	switch {
	case err != nil:
		return fmt.Errorf("--addr: %w", err)
	case !local && !expose:
		return fmt.Errorf("--addr: other machines can reach %s, and %s has no login; "+
			"use 127.0.0.1, or say --expose if that is what you want", addr, what)
	case !local:
		_, err = fmt.Fprintf(stderr, "Warning: %s has no login. Whoever reaches %s can read everything in it and act as every person.\n", what, addr)
	}
	return err
}

// commaList is nil, which means the preset, for an empty list.
func commaList(list string) []string {
	if list == "" {
		return nil
	}
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// loopback reports whether only this machine can reach the address.
func loopback(ctx context.Context, addr string) (bool, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false, fmt.Errorf("%q is not HOST:PORT", addr)
	}
	if host == "" {
		return false, nil // every interface
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return false, fmt.Errorf("look up %q: %w", host, err)
	}
	for _, ip := range found {
		if !netip.Addr.IsLoopback(ip.Unmap()) {
			return false, nil
		}
	}
	return true, nil
}

func (o *simOptions) serve(ctx context.Context, l net.Listener, stdout io.Writer) error {
	config := o.slack
	switch {
	case o.org:
		config = config.WithOrg()
	case o.second:
		config = config.WithGlobex()
	}
	sim := slacksim.New(config) //nolint:contextcheck // it ends with Close
	server := &http.Server{Handler: sim, ReadHeaderTimeout: 5 * time.Second}
	if _, err := io.WriteString(stdout, o.welcome("http://"+l.Addr().String(), sim)); err != nil {
		sim.Close()
		return errors.Join(fmt.Errorf("say where the simulator is: %w", err), l.Close())
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	var err error
	select {
	case err = <-failed:
		err = fmt.Errorf("serve the simulator: %w", err)
	case <-ctx.Done():
		o.slack.Logger.InfoContext(ctx, "stopping", slog.String("addr", l.Addr().String()))
	}
	sim.Close()
	return errors.Join(err, server.Close())
}

// welcome says where everything is, and what the app has to be given.
func (o *simOptions) welcome(at string, sim *slacksim.Server) string {
	var out strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&out, "  %-8s %s\n", name, fmt.Sprintf(format, args...))
	}
	out.WriteString("A Slack workspace on this machine. It ends with this command.\n\n")
	line("Page", "%s", at)
	line("Web API", "%s/api/  (token: %s)", at, shownSecret(o.slack.BotToken, sim.BotToken(), "--bot-token"))
	if token := sim.TokenOf(slacksim.Globex); token != "" {
		line("Globex", "%s/api/  (token: %s)", at, token)
	}
	if o.slack.SocketMode {
		line("Sockets", "Socket Mode, app-level token: %s", shownSecret(o.slack.AppToken, sim.AppToken(), "--app-token"))
	} else {
		line("Signing", "secret: %s", shownSecret(o.slack.SigningSecret, sim.SigningSecret(), "--signing-secret"))
	}
	line("OAuth", "client: slacksim-client, secret: %s", shownSecret(o.slack.ClientSecret, sim.ClientSecret(), "--client-secret"))
	line("Control", "%s/sim/  (docs/slacksim.md)", at)
	return out.String()
}

// shownSecret shows what was made up for this start. What a person chose may be
// a real secret, and only its flag is named.
func shownSecret(chosen, random, flag string) string {
	if chosen == "" {
		return random
	}
	return "as given with " + flag
}
