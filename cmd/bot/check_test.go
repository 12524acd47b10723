package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/doctor"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state/statetest"
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

// oneOfSRE is a policy in which somebody of @sre signs what a tool asks for.
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
	model := httptest.NewServer(openaisim.New(callsWhatItIsAsked()))
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

func TestCheckOfAnInstallationInOrderFindsNothing(t *testing.T) {
	i := newInstallation(t, slacksim.Config{})
	found := i.check()
	require.NotContains(t, found, "problem  ")
	for _, want := range []string{
		"config.yaml: 1 agent\n",
		"policy.yaml: 1 rule, version ",
		"agents[0]: ops has list_files, read_file, write_file, delete_file on " + filepath.Join(i.dir, "reports"),
		"environment: everything that is required is set",
		"Slack: the bot is @countersign in Acme (T0COUNTER)",
		"Slack: the bot has all scopes that it needs",
		"agents[0].channels: C0OPS: the bot is in #ops",
		"agents[0].who.groups: S0SRE is @sre, with 2 people",
		"agents[0].who.users: U0ALICE is alice",
		"policy.yaml:3:17: U0CAROL is carol",
		"policy.yaml: enough people can sign under every rule",
		"accepts the key and has " + openaisim.ModelName,
		"0 wrong",
	} {
		require.Contains(t, found, want)
	}
}

func TestCheckOfflineAsksNobody(t *testing.T) {
	i := newInstallation(t, slacksim.Config{})
	i.o.Online, i.o.HTTP = false, nil // a question would panic
	for _, k := range []string{"SLACK_API_URL", "OPENAI_BASE_URL"} {
		delete(i.env, k)
	}
	i.env["REDIS_URL"] = "redis://nobody.invalid:1"
	found := i.check()
	require.Contains(t, found, "0 could not be checked, 0 wrong")
	require.NotContains(t, found, "Slack:")
}

func TestCheckReportsEveryProblemAtOnce(t *testing.T) {
	i := newInstallation(t, slacksim.Config{Scopes: []string{"chat:write", "users:read", "usergroups:read", "channels:read"}})
	i.text = `
agents:
  - {name: ops, toolz: x, files: nowhere, channels: [C0NOWHERE]}
  - {name: ops, files: config.yaml, channels: [C0OPS], who: {users: [bob, U0GONE]}}
policy: policy.yaml
runs: {lease: 1ms}
`
	i.rules = `groups: {none: S0NONE}
people: {bot: U0BOT, nobody: U0NOBODY, guest: U0GUEST}
default: {why: x, quorums: [{name: sre, need: 3, from: {groups: [none], people: [bot, nobody, guest]}}]}
`
	i.env["COUNTERSIGN_ADDR"] = "8080"
	i.env["COUNTERSIGN_ADR"] = ":8080"
	i.env["SLACK_SIGNING_SECRET"] = ""
	i.env["REDIS_URL"] = "localhost:6379"
	i.env["OPENAI_BASE_URL"] = "model.internal"
	i.o.Address = "http://bot.internal"
	found := i.check()
	for _, want := range []string{
		"[3:17] agents[0].toolz: there is no such key",
		`agents[1].name: another agent is already called "ops"`,
		`agents[1].who.users: "bob" is not a user id`,
		"runs.lease: must be at least 1s, but is 1ms",
		"agents[0].files: there is no folder " + filepath.Join(i.dir, "nowhere"),
		"agents[1].files: " + filepath.Join(i.dir, "config.yaml") + " is a file",
		"SLACK_SIGNING_SECRET: not set", "COUNTERSIGN_ADR: there is no such setting", `COUNTERSIGN_ADDR: must be a host and a port, but is "8080"`,
		"REDIS_URL: this is no Redis URL",
		"OPENAI_BASE_URL: must begin with",
		"--url: must begin with https://", "--url: must name a host that Slack can reach",
		"Slack: the bot lacks the scopes app_mentions:read, commands, groups:read, im:history, im:write",
		"agents[0].channels: C0NOWHERE: there is no such channel",
		"policy.yaml:1:16: there is no user group S0NONE",
		"agents[1].who.users: U0GONE is deactivated",
		"policy.yaml:2:15: U0BOT is a bot",
		"policy.yaml:2:30: U0NOBODY is not in this workspace",
		"policy.yaml:2:47: U0GUEST is gita, who is a guest and may sign where the policy names them",
		"policy.yaml: whether its rules fit the agents' tools",
	} {
		require.Contains(t, found, want)
	}
}

func TestCheckOfSlack(t *testing.T) {
	groups := slacksim.DefaultGroups()
	for name, c := range map[string]struct {
		sim    slacksim.Config
		change func(*installation)
		want   []string
	}{
		"a wrong token": {slacksim.Config{}, func(i *installation) { i.env["SLACK_BOT_TOKEN"] = "xoxb-other" }, []string{
			"problem          Slack: cannot find out who the bot is (auth.test): invalid_auth", `-> copy the "Bot User OAuth Token"`,
		}},
		"a token of another kind": {slacksim.Config{}, func(i *installation) { i.env["SLACK_BOT_TOKEN"] = "xapp-1-tell" }, []string{
			"SLACK_BOT_TOKEN: this is not a bot token", "not_allowed_token_type",
		}},
		"Slack is not there": {slacksim.Config{}, func(i *installation) { i.env["SLACK_API_URL"] = "http://127.0.0.1:1/api/" }, []string{
			"Slack: cannot find out who the bot is", "-> check that this machine can reach SLACK_API_URL",
		}},
		"no scope to look at channels": {slacksim.Config{Scopes: []string{"chat:write", "users:read", "usergroups:read"}}, nil, []string{
			"could not check  agents[0].channels: C0OPS: whether the bot is in it", "/invite @countersign",
			"the bot lacks the scopes app_mentions:read, channels:read,",
		}},
		"no scope to look at groups": {slacksim.Config{Scopes: []string{"users:read"}}, nil, []string{
			"problem          Slack: cannot look up user groups", "-> grant the scope usergroups:read",
		}},
		"not in the channel": {slacksim.Config{Channels: []slacksim.Channel{{ID: "C0OPS", Name: "ops", Members: []string{"U0BOB"}}}}, nil, []string{
			"problem          agents[0].channels: C0OPS: the bot is not in #ops", "-> write /invite @countersign there",
		}},
		"the channel is archived": {slacksim.Config{Channels: []slacksim.Channel{{ID: "C0OPS", Name: "ops", Archived: true, Members: []string{slacksim.BotUser}}}}, nil, []string{
			"problem          agents[0].channels: C0OPS: #ops is archived",
		}},
		"a disabled group": {slacksim.Config{Groups: []slacksim.Group{{ID: "S0SRE", Handle: "sre", Users: groups[0].Users, Disabled: true}}}, nil, []string{
			"problem          agents[0].who.groups: the user group @sre (S0SRE) is disabled",
		}},
		"an empty group": {slacksim.Config{Groups: []slacksim.Group{{ID: "S0SRE", Handle: "sre"}}}, nil, []string{
			"problem          agents[0].who.groups: the user group @sre (S0SRE) is empty",
		}},
		"one person cannot fill two places": {slacksim.Config{Groups: []slacksim.Group{{ID: "S0SRE", Handle: "sre", Users: []string{"U0CAROL", "U0GUEST"}}}}, nil, []string{
			"policy.yaml:11:7: rules[0].ask: cannot be met even if everybody signs, because one person fills one place",
		}},
		"people who are not heard": {slacksim.Config{People: []slacksim.Person{
			{ID: "U0ALICE", Name: "alice", Stranger: true}, {ID: "U0BOB", Name: "bob"}, {ID: "U0CAROL", Name: "carol", Deleted: true},
		}}, nil, []string{
			"problem          agents[0].who.users: U0ALICE belongs to another workspace",
			"policy.yaml:3:17: U0CAROL is deactivated",
		}},
		"our clock is wrong": {slacksim.Config{}, func(i *installation) {
			i.o.Now = func() time.Time { return time.Now().Add(10 * time.Minute) }
		}, []string{"problem          the clock of this machine is 10m"}},
		"a rule for a tool that is not there": {slacksim.Config{}, func(i *installation) { i.rules = strings.ReplaceAll(i.rules, "delete_file", "delte_file") }, []string{
			`policy.yaml:9:13: rules[0].tools[0]: no agent has a tool "delte_file", so the rule would guard nothing; did you mean delete_file?`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t, c.sim)
			if c.change != nil {
				c.change(i)
			}
			found := i.check()
			for _, want := range c.want {
				require.Contains(t, found, want)
			}
		})
	}
}

func TestCheckLooksUpOnlySoManyPeople(t *testing.T) {
	people := []slacksim.Person{{ID: "U0ALICE", Name: "alice"}, {ID: "U0CAROL", Name: "carol"}}
	var members []string
	for n := range doctor.MostPeople {
		id := fmt.Sprintf("U0MANY%03d", n)
		members = append(members, id)
		people = append(people, slacksim.Person{ID: id, Name: strings.ToLower(id)})
	}
	found := newInstallation(t, slacksim.Config{People: people, Groups: []slacksim.Group{{ID: "S0SRE", Handle: "sre", Users: members}}}).check()
	require.Contains(t, found, "could not check  Slack: 1 more person who may sign, assumed to be a member\n")
	require.Contains(t, found, "0 wrong")
}

// The running bot is asked as Slack asks it.
func TestCheckOfTheRunningBot(t *testing.T) {
	const at = "the running bot: https://bot.example.com/slack/events "
	own := func(i *installation) http.Handler { return realBot(i, i.env["SLACK_SIGNING_SECRET"]) }
	another := func(i *installation) http.Handler { return realBot(i, "another") }
	somebody := func(h http.HandlerFunc) func(*installation) http.Handler {
		return func(*installation) http.Handler { return h }
	}
	elsewhere := http.RedirectHandler("https://other.example.com/", http.StatusFound)
	for name, c := range map[string]struct {
		bot  func(*installation) http.Handler
		want string
	}{
		"the bot, with our secret":     {own, "ok               " + at + "accepts"},
		"the bot, with another secret": {another, "problem          " + at + "uses another SLACK_SIGNING_SECRET"},
		"somebody else":                {somebody(http.NotFound), "problem          " + at + "answers 404"},
		"a redirect":                   {somebody(elsewhere.ServeHTTP), "problem          " + at + "redirects (302)"},
		"one who answers everything":   {somebody(func(http.ResponseWriter, *http.Request) {}), "answers 200, which is not what the bot answers"},
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
	i.env["SLACK_API_URL"] = "https://slack.com/api/"
	i.o.Online = false
	require.Contains(t, i.check(), "--url: must begin with https://", "the real one does not")

	i = newInstallation(t, slacksim.Config{})
	i.o.Address = "https://nobody.invalid"
	require.Contains(t, i.check(), "--url: must name a host")
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
	b, err := newBot(i.t.Context(), c, e, nil, slog.New(slog.DiscardHandler))
	require.NoError(i.t, err)
	i.t.Cleanup(func() { require.NoError(i.t, b.close(context.WithoutCancel(i.t.Context()))) })
	return b
}

func TestCheckOfRedis(t *testing.T) {
	client, ok := statetest.Redis(t).(*redis.Client)
	require.True(t, ok)
	i := newInstallation(t, slacksim.Config{})
	i.env["REDIS_URL"] = "unix://" + client.Options().Addr
	i.replace("redis: {durability: fsync}\n", "")
	set := func(key, value string) { require.NoError(t, client.ConfigSet(t.Context(), key, value).Err()) }

	found := i.check()
	require.Contains(t, found, "ok               Redis: answers, version ")
	require.Contains(t, found, "problem          Redis: appendonly is no: when it ends, acknowledged clicks and all that waits are lost")
	require.Contains(t, found, "ok               Redis: throws nothing away")

	set("appendonly", "yes")
	require.Contains(t, i.check(), "problem          Redis: appendfsync is everysec, and redis.durability is not set: everysec may lose up to two seconds")
	set("appendfsync", "always")
	require.Contains(t, i.check(), "ok               Redis: keeps every acknowledged write")
	set("appendfsync", "no")
	set("maxmemory-policy", "allkeys-lru")
	found = i.check()
	require.Contains(t, found, "problem          Redis: appendfsync is no")
	require.Contains(t, found, "problem          Redis: maxmemory-policy is allkeys-lru")
	require.Contains(t, found, "2 wrong")

	require.NoError(t, client.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
	require.Contains(t, i.check(), "problem          Redis: is a replica")
	require.NoError(t, client.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())

	require.NoError(t, client.Do(t.Context(), "ACL", "SETUSER", "bot", "on", ">hunter22", "~*", "+@all", "-config", "-info").Err())
	i.env["REDIS_URL"] = "unix://bot:hunter22@" + client.Options().Addr
	found = i.check()
	require.Contains(t, found, "could not check  Redis: it answers, and does not say its version")
	require.Contains(t, found, "problem          Redis: does not tell its settings (CONFIG GET is refused), and redis.durability is not set")
	i.text += "redis: {durability: fsync}\n"
	require.Contains(t, i.check(), "could not check  Redis: whether it keeps what redis.durability fsync promises (CONFIG GET is refused)")
	i.env["REDIS_URL"] = "unix://bot:hunter33@" + client.Options().Addr
	found = i.check()
	require.Contains(t, found, "problem          Redis: does not answer: WRONGPASS")
	require.Contains(t, found, "-> correct the user and password in REDIS_URL")
	require.NotContains(t, found, "hunter")
	i.env["REDIS_URL"] = "redis://127.0.0.1:1"
	require.Contains(t, i.check(), "-> look at REDIS_URL")
}

func TestCheckOfEveryNodeOfACluster(t *testing.T) {
	client, ok := statetest.Cluster(t).(*redis.ClusterClient)
	require.True(t, ok)
	i := newInstallation(t, slacksim.Config{})
	addr := client.Options().Addrs[0]
	i.env["REDIS_URL"] = "redis://" + addr + "?addr=" + addr
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	require.Regexp(t, `problem +Redis \S*:`+port+`: appendonly is no`, i.check())
}

func TestCheckOfTheModel(t *testing.T) {
	i := newInstallation(t, slacksim.Config{})
	i.env["OPENAI_MODEL"] = "no-such-model"
	require.Contains(t, i.check(), "accepts the key but does not list the model no-such-model")
	for status, want := range map[int]string{
		http.StatusUnauthorized: "refuses the key (401)", http.StatusNotFound: "does not list its models (404)",
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		i.env["OPENAI_BASE_URL"] = strings.Replace(srv.URL, "http://", "http://user:tell-no-one@", 1)
		found := i.check()
		require.Contains(t, found, want)
		require.NotContains(t, found, "tell-no-one")
		srv.Close()
		found = i.check()
		require.Contains(t, found, "does not answer")
		require.NotContains(t, found, "tell-no-one")
	}
}

func TestCheckOfTheManifestBesideTheFile(t *testing.T) {
	i := newInstallation(t, slacksim.Config{})
	i.o.Online = false
	manifest := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(i.dir, doctor.ManifestName), []byte(text), 0o600))
	}
	good := manifests.Slack("https://bot.acme.com")
	manifest(good)
	i.o.Address = "https://bot.acme.com/"
	require.Contains(t, i.check(), "its addresses and scopes are what the bot needs")
	i.o.Address = "https://other.acme.com"
	require.Contains(t, i.check(), "settings.interactivity.request_url: points to https://bot.acme.com, but --url is https://other.acme.com")
	i.o.Address = ""
	for text, want := range map[string]string{
		manifests.Slack(manifests.Example):                                   "is the example; write your own",
		strings.Replace(good, "url: https", "url: http", 1):                  "features.slash_commands: /countersign: url: must begin with https://",
		strings.Replace(good, "/slack/events", "/events", 1):                 "settings.event_subscriptions.request_url: must be the address of the bot followed by /slack/events, but is \"https://bot.acme.com/events\"",
		strings.Replace(good, "- usergroups:read", "- team:read", 1):         "oauth_config.scopes.bot: usergroups:read is missing",
		strings.Replace(good, "- app_mention\n", "- app_home_opened\n", 1):   "app_mention is missing",
		strings.Replace(good, "is_enabled: true", "is_enabled: false", 1):    "Slack sends no clicks",
		strings.Replace(good, "command: /countersign", "command: /other", 1): "features.slash_commands: /countersign: url: must be the address of the bot followed by /slack/commands, but is \"\"",
		"features: [": "read the Slack manifest",
	} {
		manifest(text)
		require.Contains(t, i.check(), want)
	}
}

func TestCheckTellsNoSecret(t *testing.T) {
	i := newInstallation(t, slacksim.Config{})
	maps.Copy(i.env, map[string]string{
		"SLACK_BOT_TOKEN": "xapp-tell-no-one", "SLACK_SIGNING_SECRET": "xoxb-tell-no-one ", "OPENAI_API_KEY": "tell-no-one",
		"REDIS_URL": "redis://tell-no-one:tell-no-one@127.0.0.1:1/x", "OPENAI_BASE_URL": "http://tell-no-one:tell-no-one@127.0.0.1:1/v1",
	})
	require.NotContains(t, i.check(), "tell-no-one")
}

func TestTheCheckCommandEndsWithOneIfThereAreProblems(t *testing.T) {
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

func TestCheckWarnsOfAnAgentWithoutTools(t *testing.T) {
	i := newInstallation(t, slacksim.Config{})
	i.o.Online = false
	i.replace("    files: reports\n", "")
	i.rules = oneOfSRE
	found := i.check()
	require.Contains(t, found, "warning          agents[0]: ops has no tools, so it can only talk\n")
	require.Contains(t, found, "-> set files to the folder")
	require.Contains(t, found, "1 warning, 0 could not be checked, 0 wrong")
}

// What is counted reads as people say it.
func TestWhatIsCountedIsInTheRightNumber(t *testing.T) {
	i := newInstallation(t, slacksim.Config{})
	found := i.check()
	require.Contains(t, found, ": 1 agent\n")
	require.Contains(t, found, ": 1 rule, version")
	require.Contains(t, found, "is @sre, with 2 people\n")
	require.Contains(t, found, "0 warnings")
	i.rules = strings.ReplaceAll(i.rules, "S0SRE", "S0SEC")
	i.replace("S0SRE", "S0SEC")
	require.Contains(t, i.check(), "is @security, with 1 person\n")
}

// write returns the path of a configuration with this text.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
