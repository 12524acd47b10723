package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/strictyaml"
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

func simFlags(f *flag.FlagSet) *simOptions {
	o := &simOptions{}
	f.StringVar(&o.addr, "addr", simAddr, "Serve at `HOST:PORT`. Port 0 takes a free one.")
	f.StringVar(&o.slack.BotToken, "bot-token", "", "The `TOKEN` that the app must send. Without it, a random one is printed at the start.")
	f.StringVar(&o.slack.SigningSecret, "signing-secret", "", "The `SECRET` with which requests to the app are signed. Without it, a random one is printed at the start.")
	f.StringVar(&o.slack.ClientSecret, "client-secret", "", "The `SECRET` with which the app exchanges the code of an installation (OAuth). Without it, a random one is printed at the start.")
	f.BoolVar(&o.slack.SocketMode, "socket-mode", false, "The app uses Socket Mode: it connects to the simulator, and nothing is sent to URLs.")
	f.StringVar(&o.slack.AppToken, "app-token", "", "The app-level `TOKEN` with which the app opens connections in Socket Mode. Without it, a random one is printed at the start.")
	f.StringVar(&o.slack.EventsURL, "events-url", "", "Send events to this `URL`. Without it, the app gets none.")
	f.StringVar(&o.slack.InteractivityURL, "interactivity-url", "", "Send clicks and submitted modals to this `URL`.")
	f.StringVar(&o.slack.CommandsURL, "commands-url", "", "Send slash commands to this `URL`.")
	f.StringVar(&o.slack.OptionsURL, "options-url", "", "Ask this `URL` for the options of external menus. Without it, the interactivity URL is asked.")
	f.StringVar(&o.slack.PublicURL, "public-url", "", "The `URL` at which the app reaches the simulator, if that is not its address.")
	f.StringVar(&o.scopes, "scopes", "", "The bot scopes that were granted: a comma-separated `LIST`. Without it, all but chat:write.public.")
	f.StringVar(&o.events, "events", "", "The bot events that the app subscribed to: a comma-separated `LIST`. Without it, these: "+strings.Join(slacksim.DefaultEvents(), ", ")+".")
	f.StringVar(&o.commands, "commands", "", "The slash commands that exist: a comma-separated `LIST`. Without it, every one does.")
	f.BoolVar(&o.slack.PostLimit, "post-limit", false, "Allow about one message per second and channel, as Slack does.")
	f.BoolVar(&o.slack.TierLimits, "tier-limits", false, "Limit the calls of each method per minute to those of its tier.")
	f.BoolVar(&o.slack.NoHome, "no-home", false, "The app has no Home tab.")
	f.BoolVar(&o.slack.NoMessages, "no-messages", false, "The app takes no direct messages.")
	f.BoolVar(&o.slack.EscapeCommands, "should-escape", false, "Escape people and channels in the text of slash commands.")
	f.Float64Var(&o.slack.RetryScale, "retry-scale", 1, "Multiply the time between two attempts to deliver an event by this `FACTOR`.")
	f.BoolVar(&o.second, "second-workspace", false, "Add the workspace of another company. The app is installed there with a token of its own, which is printed at the start.")
	f.BoolVar(&o.org, "org", false, "Add the same workspace as one of an organization, in which the app is installed as a whole.")
	f.BoolVar(&o.expose, "expose", false, "Allow an address that other machines can reach. The simulator has no login.")
	f.BoolVar(&o.verbose, "v", false, "Log what happens.")
	return o
}

// runSlacksim serves the simulator until ctx ends.
func runSlacksim(ctx context.Context, in *call) error {
	o := simFlags(in.flags)
	if _, err := in.parse(); err != nil {
		return err
	}
	if err := o.check(ctx, in.stderr); err != nil {
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
	// On a loopback address only pages of other sites would come under another name.
	exposed := o.expose && !isLoopback(l.Addr())
	o.slack.Logger, o.slack.AnyHost = config.NewLogger(in.stderr, level), exposed
	if o.slack.PublicURL == "" && !exposed {
		o.slack.PublicURL = "http://" + l.Addr().String()
	}
	return o.serve(ctx, l, in.stdout)
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
		if u.value != "" && !slacksim.IsURL(u.value) {
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
	problems = append(problems, checkExposure(ctx, o.addr, "the simulator", o.expose, stderr),
		warnOfUnknown(stderr, "--events: the simulator never sends the event", o.slack.Events, slacksim.KnownEvents()),
		warnOfUnknown(stderr, "--scopes: nothing in the simulator needs the scope", o.slack.Scopes, slacksim.KnownScopes()),
		warnOfMissingScopes(stderr, o.slack))
	return errors.Join(problems...)
}

// warnOfUnknown warns of each name that the simulator does not know. Slack may have it:
// the list of a real app is taken as it is.
func warnOfUnknown(stderr io.Writer, what string, names, known []string) error {
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		hint := cmp.Or(strictyaml.Hint(name, known), "; the names that it knows are "+strings.Join(known, ", "))
		if _, err := fmt.Fprintf(stderr, "Warning: %s %q%s\n", what, name, hint); err != nil {
			return err
		}
	}
	return nil
}

// warnOfMissingScopes warns of each event that the app subscribed to and never gets,
// because it was granted none of the scopes for it.
func warnOfMissingScopes(stderr io.Writer, c slacksim.Config) error {
	if c.Scopes == nil {
		return nil
	}
	events := c.Events
	if events == nil {
		events = slacksim.DefaultEvents()
	}
	for _, event := range events {
		needed := slacksim.EventScopes(event)
		granted := func(scope string) bool { return slices.Contains(c.Scopes, scope) }
		if len(needed) == 0 || slices.ContainsFunc(needed, granted) {
			continue
		}
		if _, err := fmt.Fprintf(stderr, "Warning: --events: the simulator never sends the event %q without the scope %s\n",
			event, strings.Join(needed, " or ")); err != nil {
			return err
		}
	}
	return nil
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
			"use 127.0.0.1, or pass --expose if that is what you want", addr, what)
	case !local:
		_, err = fmt.Fprintf(stderr, "Warning: %s has no login. Everyone who can reach %s can read everything in it and act as every person.\n", what, addr)
	}
	return err
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
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
