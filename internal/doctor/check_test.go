package doctor_test

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/slacksim"
)

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
		"policy.yaml: enough people can approve under every rule",
		"accepts the key and has " + openaisim.ModelName,
		"0 wrong",
	} {
		require.Contains(t, found, want)
	}
}

func TestCheckLooksUpTheOwnersOfAgents(t *testing.T) {
	i := newInstallation(t, slacksim.Config{})
	i.replace("    who:", "    owners: {users: [U0CAROL, U0GONE], groups: [S0NONE]}\n    who:")
	i.rules = oneOfSRE
	found := i.check()
	require.Contains(t, found, "agents[0].owners.users: U0CAROL is carol")
	require.Contains(t, found, "agents[0].owners.users: U0GONE is deactivated")
	require.Contains(t, found, "agents[0].owners.groups: there is no user group S0NONE")
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
		"policy.yaml:2:47: U0GUEST is gita, who is a guest and can approve where they are named",
		"policy.yaml: whether its rules fit the agents' tools",
	} {
		require.Contains(t, found, want)
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

// Only the tools on the folder are said to be on it, and none of an agent without one.
func TestCheckNamesTheToolsOfAnAgent(t *testing.T) {
	const refunds = `
    http:
      hosts: [billing.example.com]
      tools:
        - {name: refund_order, method: POST, url: "https://billing.example.com/refunds", schema: {type: object}}
`
	i := newInstallation(t, slacksim.Config{})
	i.o.Online = false
	i.rules = oneOfSRE
	i.replace("    files: reports\n", "    files: reports"+refunds)
	folder := filepath.Join(i.dir, "reports")
	require.Contains(t, i.check(), "agents[0]: ops has list_files, read_file, write_file, delete_file on "+folder+", and refund_order\n")

	i.replace("    files: reports", "")
	require.Contains(t, i.check(), "agents[0]: ops has refund_order\n")
}

func TestCheckWarnsOfACommandThatCanRunOtherPrograms(t *testing.T) {
	i := newInstallation(t, slacksim.Config{})
	i.o.Online = false
	i.rules = oneOfSRE + "rules: [{name: r, tools: [read_file], command: {argument: path, forms: [{run: env}]}, allow: true}]\n"
	found := i.check()
	require.Contains(t, found, "env runs other programs")
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

func TestAProblemOfSeveralAgentsIsSaidOnce(t *testing.T) {
	i := newInstallation(t, slacksim.Config{})
	i.o.Online = false
	i.replace("policy: policy.yaml", `  - {name: web, channels: [C0WEB], mcp: {srv: {command: srv}}}
  - {name: db, channels: [C0DB], mcp: {srv: {command: srv}}}
mcp_lock: none.lock
policy: policy.yaml`)
	require.Equal(t, 1, strings.Count(i.check(), "mcp_lock: open "))
}

// What serve can't listen on is found before it is started.
func TestCheckFindsAnAddressThatCannotBeListenedOn(t *testing.T) {
	i := newInstallation(t, slacksim.Config{})
	i.o.Online = false
	i.text += "http: {listen: \"127.0.0.1:8090\"}\nmetrics: {listen: \":9090\"}\n"
	for addr, want := range map[string]string{
		"127.0.0.1:8080\n": `COUNTERSIGN_ADDR: must be a host and a port, but is "127.0.0.1:8080\n"`,
		":99999":           `COUNTERSIGN_ADDR: must be a host and a port, but is ":99999"`,
		"127.0.0.1:8090":   `COUNTERSIGN_ADDR: is "127.0.0.1:8090", and so is http.listen`,
		":9090":            `COUNTERSIGN_ADDR: is ":9090", and so is metrics.listen`,
	} {
		i.env["COUNTERSIGN_ADDR"] = addr
		require.Contains(t, i.check(), want)
	}
	for _, addr := range []string{":http", "127.0.0.1:0", "[::1]:8080"} {
		i.env["COUNTERSIGN_ADDR"] = addr
		require.NotContains(t, i.check(), "COUNTERSIGN_ADDR", addr)
	}
}
