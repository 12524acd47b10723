// Package demo is the world of `bot demo`: a Slack in the browser, a model that
// follows a script, a Redis in memory, a folder of files to work on, and the
// inspector that shows a visitor what is in Redis. The bot between them is the
// caller's, who runs it as `bot serve` does.
package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/tools/mcptool"
	"github.com/countersign/countersign/manifests"
)

// Addr is where the page of the demo is, unless it is taken.
const Addr = "127.0.0.1:8484"

// Options say what the demo runs with.
type Options struct {
	Redis   string          // the URL of a Redis; one in memory if it is empty
	Addr    string          // where the page is served; [Addr], or a free port, if it is empty
	Expose  bool            // the page may be served to other machines
	Folder  string          // that the agent works on; a new one if it is empty
	MCP     []string        // MCP servers whose tools the agent has: [NAME=] and a command, or a URL
	Level   string          // of the log
	Extra   config.ToolsFor // the tools that the program adds
	Environ []string        // may name a model
	Stdout  io.Writer
	Stderr  io.Writer
	// Serve runs the bot until ctx ends, with Slack at one listener and agents at the
	// other, and calls ready once it is at work.
	Serve func(ctx context.Context, l, agents net.Listener, c config.Config, e config.Environment, extra config.ToolsFor, ready func(), log *slog.Logger) error
}

// Run is `bot serve` with everything it talks to on this machine: a
// Slack, a model that follows a script, and a Redis in this process. Only
// addresses differ. It ends with ctx.
func Run(ctx context.Context, o Options) (err error) {
	d := &demo{Options: o, token: rand.Text()}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := d.prepare(ctx); err != nil {
		return err
	}
	return d.run(ctx)
}

// demo owns everything that the demo starts. Its servers listen on loopback
// only; the page may be exposed.
type demo struct {
	Options

	env     config.Environment
	folder  string
	policy  string // the file
	mcp     map[string]config.MCPServer
	pins    mcptool.Pins // the tools of mcp
	added   []string     // their names, with those of the servers
	web     web
	token   string // of the visitor's agent
	slack   *slacksim.Server
	page    net.Listener
	bot     net.Listener
	servers []*http.Server
	serving sync.WaitGroup
	undo    []func() error
}

func (d *demo) prepare(ctx context.Context) error {
	if err := errors.Join(d.prepareFolder(d.Folder), d.preparePolicy()); err != nil {
		return err
	}
	d.env = config.Environment{LogLevel: d.Level}.With("PATH", os.Getenv("PATH")).With("HOME", os.Getenv("HOME"))
	if err := d.prepareServers(ctx); err != nil {
		return err
	}
	if err := d.prepareModel(ctx, d.Environ); err != nil {
		return err
	}
	if err := errors.Join(d.prepareRedis(d.Redis), d.prepareChat(ctx)); err != nil {
		return err
	}
	if err := d.storePins(ctx); err != nil {
		return err
	}
	return d.prepareSlack(ctx, d.Addr)
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
	stories := Stories()
	if len(d.added) > 0 {
		stories = append(stories, d.callIt())
	}
	d.serve(l, openaisim.New(stories...).Paced(writingPace))
	d.env.OpenAIKey, d.env.OpenAIModel = config.NewSecret("scripted"), openaisim.ModelName
	d.env.OpenAIBaseURL = "http://" + l.Addr().String() + "/v1"
	return nil
}

// writingPace is how long the scripted model takes for a few letters, so that a
// visitor sees it write.
const writingPace = 30 * time.Millisecond

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
	d.undo = append(d.undo, func() error { _ = d.page.Close(); return nil }) // its server may have closed it
	if d.bot, err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return fmt.Errorf("listen for the bot: %w", err)
	}
	url, bot := here(d.page), here(d.bot)
	inside, err := newInspector(d.env.RedisURL.Open(), d.configuration().Redis.Prefix, people())
	if err != nil {
		return err
	}
	d.undo = append(d.undo, inside.close)
	app, err := slackOf(bot)
	if err != nil {
		return err
	}
	app.PublicURL, app.AnyHost, app.Inspect, app.Logger = url, d.Expose && !isLoopback(d.page.Addr()), inside.look, config.NewLogger(d.Stderr, d.Level)
	d.slack = slacksim.New(app) //nolint:contextcheck // it ends with Close
	d.undo = append(d.undo, func() error { d.slack.Close(); return nil })
	d.env.SlackToken, d.env.SigningSecret = config.NewSecret(d.slack.BotToken()), config.NewSecret(d.slack.SigningSecret())
	api, err := d.listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	d.env.SlackAPIURL = here(api) + "/api/"
	d.serve(api, d.slack)
	return nil
}

// slackOf is a Slack in which the app of our manifest is installed, so that
// what the demo can do an installation can.
func slackOf(bot string) (slacksim.Config, error) {
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
	c.People, c.Channels, c.Groups = people(), channels(), groups()
	for _, command := range app.Features.SlashCommands {
		c.Commands, c.CommandsURL = append(c.Commands, command.Command), command.URL
		c.EscapeCommands = command.ShouldEscape // the simulator has one answer for all
	}
	for _, s := range app.Features.Shortcuts {
		if s.Type == "message" {
			c.Shortcuts = append(c.Shortcuts, slacksim.MenuEntry{CallbackID: s.Callback, Name: s.Name})
		}
	}
	for _, s := range Stories() {
		c.Suggestions = append(c.Suggestions, "@countersign "+s.Prompt)
	}
	return c, nil
}

// listenPage listens at the address, or near the usual one.
func (d *demo) listenPage(ctx context.Context, addr string) (net.Listener, error) {
	if addr != "" {
		return d.listen(ctx, addr)
	}
	if l, err := d.listen(ctx, Addr); err == nil {
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
			config.NewLogger(d.Stderr, d.Level).Error("a server of the demo failed", slog.Any("err", err))
		}
	})
}

// run is the bot itself, as `bot serve` runs it. The page is served once the bot is at
// work: Slack sends a bot that does not answer yet a message again after a minute.
func (d *demo) run(ctx context.Context) error {
	welcome := func() {
		d.serve(d.page, d.beside(d.slack))
		_, _ = fmt.Fprintf(d.Stdout, welcomeWords, here(d.page), d.slack.BotToken(), d.folder, d.policy, d.web.listen, d.token) // nothing can be done about an error
		if len(d.added) > 0 {
			_, _ = fmt.Fprintf(d.Stdout, addedWords, strings.Join(d.added, ", ")) // as above
		}
	}
	return d.Serve(ctx, d.bot, d.web.on, d.configuration(), d.env, d.Extra.And(addedTools(d.folder)), welcome, config.NewLogger(d.Stderr, d.Level))
}

const welcomeWords = `Countersign demo: everything runs on this machine, in memory; it ends with this command.

  Open    %[1]s
  Chat    %[1]s/chat/  (on useChat of the AI SDK; what waits in one waits in the other)

  Files   %[3]s
  Policy  %[4]s
          (edit it: changes apply within two seconds)
  Web API %[1]s/api/  (token: %[2]s)

  An agent of yours asks for approval with
          export COUNTERSIGN_URL=http://%[5]s COUNTERSIGN_TOKEN=%[6]s
          (try examples/curl/refund.sh R-17 4200; docs/api.md)
`

const addedWords = `  MCP     every call of these tools waits for approval, unless you write a rule for
          them into the policy: %s
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

// isLoopback reports whether only this machine reaches the address: then pages of
// other sites are all that would come under another name.
func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
