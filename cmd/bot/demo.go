package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/slackui/slacksim"
	"github.com/countersign/countersign/manifests"
)

// demoAddr is where the page of the demo is, unless it is taken.
const demoAddr = "127.0.0.1:8484"

// runDemo is `bot serve` with everything it talks to on this machine: a Slack,
// a model that follows a script, and a Redis in this process. Only addresses
// differ.
func runDemo(ctx context.Context, in *call) (err error) {
	redisURL := in.flags.String("redis", "", "Use the Redis at this `URL` instead of one in memory.")
	addr := in.flags.String("addr", "", "Serve the page at `HOST:PORT`. Without it, that is "+demoAddr+", or a free port if it is taken.")
	expose := in.flags.Bool("expose", false, "Allow an address that other machines can reach. The demo has no login: "+
		"whoever reaches it can act as every person, and use the model of OPENAI_API_KEY.")
	folder := in.flags.String("folder", "", "Let the agent work on this `FOLDER`, which must be empty or not there yet, instead of a new one.")
	verbose := in.flags.Bool("v", false, "Log what the bot does.")
	if _, err := in.parse(); err != nil {
		return err
	}
	d := &demo{extra: in.extra, level: "warn", stderr: in.stderr}
	defer func() { err = errors.Join(err, d.close()) }()
	if *verbose {
		d.level = "info"
	}
	if *addr != "" {
		if err := checkExposure(ctx, *addr, "the demo", *expose, in.stderr); err != nil {
			return err
		}
	}
	d.expose = *expose
	if err := d.prepare(ctx, in.environ, *redisURL, *addr, *folder); err != nil {
		return err
	}
	return d.run(ctx, in.stdout)
}

// demo owns everything that the demo starts. Its servers listen on loopback
// only; the page may be exposed.
type demo struct {
	extra   config.ToolsFor
	level   string
	expose  bool // the page may be served to other machines
	stderr  io.Writer
	env     config.Environment
	folder  string
	policy  string // the file
	slack   *slacksim.Server
	page    net.Listener
	bot     net.Listener
	servers []*http.Server
	serving sync.WaitGroup
	undo    []func() error
}

func (d *demo) prepare(ctx context.Context, environ []string, redisURL, addr, folder string) error {
	if err := errors.Join(d.prepareFolder(folder), d.preparePolicy()); err != nil {
		return err
	}
	d.env = config.Environment{LogLevel: d.level}
	if err := d.prepareModel(ctx, environ); err != nil {
		return err
	}
	if err := d.prepareRedis(redisURL); err != nil {
		return err
	}
	return d.prepareSlack(ctx, addr)
}

// prepareModel uses the model of the environment if there is a key for one,
// and the scripted one otherwise.
func (d *demo) prepareModel(ctx context.Context, environ []string) error {
	real, _ := config.ReadEnvironment(environ) // what is missing for serve is not needed here
	if real.OpenAIKey.Open() != "" {
		d.env.OpenAIKey, d.env.OpenAIBaseURL, d.env.OpenAIModel = real.OpenAIKey, real.OpenAIBaseURL, real.OpenAIModel
		return nil
	}
	l, err := d.listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	d.serve(l, openaisim.New(demoStories()...))
	d.env.OpenAIKey, d.env.OpenAIModel = config.NewSecret("scripted"), openaisim.ModelName
	d.env.OpenAIBaseURL = "http://" + l.Addr().String() + "/v1"
	return nil
}

func (d *demo) prepareRedis(url string) error {
	if url != "" {
		d.env.RedisURL = config.NewSecret(url)
		return nil
	}
	m := miniredis.NewMiniRedis()
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return fmt.Errorf("start the Redis in memory: %w", err)
	}
	// Its clock stands still by itself: keys would never expire.
	ticker, done := time.NewTicker(time.Second), make(chan struct{})
	d.serving.Go(func() {
		for {
			select {
			case <-ticker.C:
				m.FastForward(time.Second)
			case <-done:
				return
			}
		}
	})
	d.undo = append(d.undo, func() error { ticker.Stop(); close(done); m.Close(); return nil })
	d.env.RedisURL = config.NewSecret("redis://" + m.Addr())
	return nil
}

func (d *demo) prepareSlack(ctx context.Context, addr string) (err error) {
	if d.page, err = d.listenPage(ctx, addr); err != nil {
		return err
	}
	if d.bot, err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return fmt.Errorf("listen for the bot: %w", err)
	}
	url, bot := here(d.page), here(d.bot)
	inside, err := newHood(d.env.RedisURL.Open(), demoConfig(d.folder, d.policy).Redis.Prefix, demoPeople())
	if err != nil {
		return err
	}
	d.undo = append(d.undo, inside.close)
	app, err := demoSlack(bot)
	if err != nil {
		return err
	}
	app.PublicURL, app.AnyHost, app.Hood, app.Logger = url, d.expose, inside.look, config.NewLogger(d.stderr, d.level)
	d.slack = slacksim.New(app) //nolint:contextcheck // it ends with Close
	d.undo = append(d.undo, func() error { d.slack.Close(); return nil })
	d.env.SlackToken, d.env.SigningSecret = config.NewSecret(d.slack.BotToken()), config.NewSecret(d.slack.SigningSecret())
	d.env.SlackAPIURL = url + "/api/"
	d.serve(d.page, d.slack)
	return nil
}

// demoSlack is a Slack in which the app of our manifest is installed, so that
// what the demo can do an installation can.
func demoSlack(bot string) (slacksim.Config, error) {
	app, err := manifests.ReadSlack([]byte(manifests.Slack(bot)))
	if err != nil {
		return slacksim.Config{}, fmt.Errorf("prepare the demo's Slack: %w", err)
	}
	c := slacksim.Config{
		Scopes: app.OAuth.Scopes.Bot, Events: app.Settings.Events.Bot,
		EventsURL: app.Settings.Events.RequestURL, InteractivityURL: app.Settings.Interactivity.RequestURL,
		NoHome: !app.Features.AppHome.Home, NoMessages: !app.Features.AppHome.Messages,
		ReadMessages: app.Features.AppHome.ReadOnly,
	}
	c.People, c.Channels, c.Groups = demoPeople(), demoChannels(), demoGroups()
	for _, command := range app.Features.SlashCommands {
		c.Commands, c.CommandsURL = append(c.Commands, command.Command), command.URL
		c.EscapeCommands = command.ShouldEscape // the simulator has one answer for all
	}
	for _, s := range app.Features.Shortcuts {
		if s.Type == "message" {
			c.Shortcuts = append(c.Shortcuts, slacksim.MenuEntry{CallbackID: s.Callback, Name: s.Name})
		}
	}
	for _, s := range demoStories() {
		c.Suggestions = append(c.Suggestions, "@countersign "+s.Prompt)
	}
	return c, nil
}

// listenPage listens at the address, or near the usual one.
func (d *demo) listenPage(ctx context.Context, addr string) (net.Listener, error) {
	if addr != "" {
		return d.listen(ctx, addr)
	}
	if l, err := d.listen(ctx, demoAddr); err == nil {
		return l, nil
	}
	return d.listen(ctx, "127.0.0.1:0")
}

func (d *demo) listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for the demo: %w", err)
	}
	return l, nil
}

// here is the URL under which this machine reaches what listens.
func here(l net.Listener) string {
	host, port, err := net.SplitHostPort(l.Addr().String())
	if ip, bad := netip.ParseAddr(host); err == nil && bad == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip.Is6() {
			host = "::1"
		}
	}
	return "http://" + net.JoinHostPort(host, port)
}

func (d *demo) serve(l net.Listener, h http.Handler) {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	d.servers = append(d.servers, s)
	d.serving.Go(func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			config.NewLogger(d.stderr, d.level).Error("a server of the demo failed", slog.Any("err", err))
		}
	})
}

// run is the bot itself, as `bot serve` runs it.
func (d *demo) run(ctx context.Context, stdout io.Writer) error {
	welcome := func() {
		_, _ = fmt.Fprintf(stdout, demoWords, here(d.page), d.slack.BotToken(), d.folder, d.policy) // nobody reads it: nothing to do
	}
	return serve(ctx, d.bot, demoConfig(d.folder, d.policy), d.env, d.extra.And(demoTools(d.folder)), welcome, config.NewLogger(d.stderr, d.level))
}

const demoWords = `Countersign demo: everything runs on this machine, in memory; it ends with this command.

  Open    %[1]s

  Files   %[3]s
  Policy  %[4]s
          (edit it: a change is taken within two seconds)
  Web API %[1]s/api/  (token: %[2]s)
`

// close ends what was started, the last first.
func (d *demo) close() error {
	var problems []error
	for _, s := range d.servers {
		problems = append(problems, s.Close())
	}
	for _, undo := range slices.Backward(d.undo) {
		problems = append(problems, undo())
	}
	d.serving.Wait()
	return errors.Join(problems...)
}
