package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/doctor"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/manifests"
)

// installation is everything around a bot that is to be checked.
type installation struct {
	t     *testing.T
	slack *slacksim.Server
	redis *miniredis.Miniredis
	dir   string
	text  string // of the configuration
	rules string // of the policy
	env   map[string]string
	o     doctor.Options
}

const wholeConfig = `
agents:
  - name: ops
    files: reports
    channels: [C0OPS]
    who: {groups: [S0SRE], users: [U0ALICE]}
policy: policy.yaml
redis: {durability: fsync}
`

const wholePolicy = `
groups: {sre: S0SRE}
people: {carol: U0CAROL}
default:
  why: It changes something.
  quorums: [{name: sre, need: 1, from: {groups: [sre]}}]
rules:
  - name: deletions
    tools: [delete_file]
    ask:
      fragile: true
      quorums:
        - {name: sre, need: 1, from: {groups: [sre]}}
        - {name: security, need: 1, from: {people: [carol]}}
`

// oneOfSRE is a policy in which someone in @sre approves what a tool asks for.
const oneOfSRE = `
groups: {sre: S0SRE}
default:
  why: It changes something.
  quorums: [{name: sre, need: 1, from: {groups: [sre]}}]
`

// writePolicy returns the path of a policy in the folder.
func writePolicy(tb testing.TB, folder, text string) string {
	tb.Helper()
	path := filepath.Join(folder, policyName)
	require.NoError(tb, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// newInstallation is one in which nothing is wrong, but for what miniredis
// cannot say.
func newInstallation(t *testing.T, c slacksim.Config) *installation {
	t.Helper()
	if c.Scopes == nil {
		c.Scopes = append(manifests.Scopes(), "channels:read")
	}
	slack := slacksim.New(c)
	slackServer := httptest.NewServer(slack)
	t.Cleanup(func() { slack.Close(); slackServer.Close() })
	model := httptest.NewServer(openaisim.New())
	t.Cleanup(model.Close)
	memory := miniredis.RunT(t)
	i := &installation{t: t, slack: slack, redis: memory, dir: t.TempDir(), text: wholeConfig, rules: wholePolicy, env: map[string]string{
		"SLACK_BOT_TOKEN": slack.BotToken(), "SLACK_SIGNING_SECRET": slack.SigningSecret(), "SLACK_API_URL": slackServer.URL + "/api/",
		"REDIS_URL": "redis://" + memory.Addr(), "OPENAI_API_KEY": "sk-scripted",
		"OPENAI_BASE_URL": model.URL + "/v1", "OPENAI_MODEL": openaisim.ModelName,
	}}
	i.o = doctor.Options{Online: true, HTTP: http.DefaultTransport, Now: time.Now}
	require.NoError(t, os.Mkdir(filepath.Join(i.dir, "reports"), 0o700))
	return i
}

// check returns what is found, a line each.
func (i *installation) check() string {
	i.t.Helper()
	i.o.Path = filepath.Join(i.dir, configName)
	require.NoError(i.t, os.WriteFile(i.o.Path, []byte(i.text), 0o600))
	writePolicy(i.t, i.dir, i.rules)
	i.o.Environ = nil
	for k, v := range i.env {
		i.o.Environ = append(i.o.Environ, k+"="+v)
	}
	var out bytes.Buffer
	_ = doctor.Report(&out, doctor.Check(i.t.Context(), i.o))
	return out.String()
}

func (i *installation) replace(old, by string) {
	i.t.Helper()
	require.Contains(i.t, i.text, old)
	i.text = strings.ReplaceAll(i.text, old, by)
}

// The bot answers a check as it answers Slack.
func TestCheckOfTheRunningBot(t *testing.T) {
	t.Parallel()
	const at = "the running bot: https://bot.example.com/slack/events "
	own := func(i *installation) http.Handler { return realBot(i, i.env["SLACK_SIGNING_SECRET"]) }
	another := func(i *installation) http.Handler { return realBot(i, "another") }
	for name, c := range map[string]struct {
		bot  func(*installation) http.Handler
		want string
	}{
		"the bot, with our secret":     {own, "ok               " + at + "accepts"},
		"the bot, with another secret": {another, "problem          " + at + "uses another SLACK_SIGNING_SECRET"},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t, slacksim.Config{})
			front := httptest.NewTLSServer(c.bot(i))
			t.Cleanup(front.Close)
			delete(i.env, "SLACK_BOT_TOKEN") // its client reaches only the front
			delete(i.env, "OPENAI_API_KEY")
			i.o.Address, i.o.HTTP = "https://bot.example.com/", front.Client().Transport
			require.Contains(t, i.check(), c.want)
		})
	}
	i := newInstallation(t, slacksim.Config{})
	front := httptest.NewServer(own(i))
	t.Cleanup(front.Close)
	i.o.Address = front.URL
	require.Contains(t, i.check(), "the running bot: "+front.URL+"/slack/events accepts", "a Slack on this machine reaches it")
}

// realBot is the bot itself, with this signing secret.
func realBot(i *installation, secret string) http.Handler {
	i.env["SLACK_SIGNING_SECRET"], secret = secret, i.env["SLACK_SIGNING_SECRET"]
	b := i.bot()
	i.env["SLACK_SIGNING_SECRET"] = secret
	return b.handler()
}

// bot is the bot of this installation. It is closed when the test ends.
func (i *installation) bot() *bot {
	i.t.Helper()
	online := i.o.Online
	i.o.Online = false
	i.check() // writes the file
	i.o.Online = online
	c, err := config.Read(i.o.Path)
	require.NoError(i.t, err)
	require.NoError(i.t, c.Check())
	e, err := config.ReadEnvironment(i.o.Environ)
	require.NoError(i.t, err)
	b, err := newBot(i.t.Context(), c, e, nil, slog.New(slog.DiscardHandler), func(string) {})
	require.NoError(i.t, err)
	i.t.Cleanup(func() { require.NoError(i.t, b.close(context.WithoutCancel(i.t.Context()))) })
	return b
}

func TestTheCheckCommandEndsWithOneIfThereAreProblems(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	i.check()
	var out, stderr bytes.Buffer
	call := func(args ...string) error {
		return run(t.Context(), append([]string{"check"}, args...), i.o.Environ, &out, &stderr)
	}
	require.NoError(t, call("--config", i.o.Path))
	require.NoError(t, call("--config", i.o.Path, "--online"))
	require.ErrorContains(t, call("--config", i.o.Path, "--url", "http://x"), "there are 2 problems")
	require.ErrorContains(t, call("--config", filepath.Join(i.dir, "no.yaml")), "there is a problem")
	require.ErrorContains(t, call(), "--config FILE is missing")
	require.ErrorContains(t, call("--config", i.o.Path, "more"), `takes no argument "more"`)
	require.ErrorContains(t, call("--what"), "check:")
	require.Contains(t, out.String(), "-> ")
}

// write returns the path of a configuration with this text.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// A check that is interrupted does not say that what it has not asked is broken.
func TestAnInterruptedCheckReportsNothing(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	i.check()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var out, stderr bytes.Buffer
	require.EqualError(t, run(ctx, []string{"check", "--config", i.o.Path, "--online"}, i.o.Environ, &out, &stderr), "interrupted before everything was checked")
	require.Empty(t, out.String()+stderr.String())
}
