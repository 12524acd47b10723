package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const good = `
redis: {prefix: ours}
slack: {groups_max_age: 30s}
runs: {lease: 5s}
agents:
  - name: ops
    instructions: You help.
    model: some-model
    timeout: 2m
    files: /srv/reports
    channels: [C0OPS]
    limits: {requests: 5, tool_calls: 7, total_tokens: 9}
policy:
  default:
    quorums: [{name: sre, need: 2, from: {users: [U0BOB1], groups: [S0SRE1]}}]
    within: 1h30m
    deny: 2
    requester_may_sign: true
    why: Because.
  tools:
    drop_database: {refuse: By hand.}
`

func TestTheWholeFileIsRead(t *testing.T) {
	c, err := readConfig(write(t, good))
	require.NoError(t, err)
	require.NoError(t, c.check())
	require.Equal(t, "ours", c.Redis.Prefix)
	require.Equal(t, 30*time.Second, c.Slack.GroupsMaxAge)
	require.Equal(t, 5*time.Second, c.Runs.Lease)
	require.Equal(t, []agentConfig{{
		Name: "ops", Instructions: "You help.", Model: "some-model", Timeout: 2 * time.Minute, Files: "/srv/reports",
		Channels: []string{"C0OPS"}, Limits: limitsConfig{Requests: 5, ToolCalls: 7, TotalTokens: 9},
	}}, c.Agents)
	require.Equal(t, 90*time.Minute, c.Policy.Default.Within)
	require.True(t, c.Policy.Default.RequesterMaySign)
	require.Equal(t, "By hand.", c.Policy.Tools["drop_database"].Refuse)
}

func TestAKeyThatIsNotKnownFailsTheStartWithItsLine(t *testing.T) {
	for _, c := range []struct{ text, line, word string }{
		{"agents:\n  - name: ops\n    tools_folder: x\n", "[3:", "tools_folder"},
		{"agent:\n  - name: ops\n", "[1:", "agent"},
		{"policy:\n  default:\n    quorum: []\n", "[3:", "quorum"},
	} {
		_, err := readConfig(write(t, c.text))
		require.ErrorContains(t, err, c.word)
		require.ErrorContains(t, err, c.line, "the place is said")
		require.ErrorContains(t, err, "config.yaml")
	}
	_, err := readConfig(write(t, ""))
	require.ErrorContains(t, err, "empty")
	_, err = readConfig(filepath.Join(t.TempDir(), "missing.yaml"))
	require.ErrorContains(t, err, "read the configuration")
}

func TestAllProblemsOfTheAgentsAreReportedAtOnce(t *testing.T) {
	c := config{Slack: slackConfig{GroupsMaxAge: -1}, Runs: runsConfig{Lease: 1}, Agents: []agentConfig{
		{Name: "a"}, {Name: "a", Timeout: -1}, {Channels: []string{"C1"}}, {Name: "d", Channels: []string{"C1"}},
	}}
	err := c.check()
	for _, want := range []string{
		"slack.groups_max_age", "runs.lease", `agents[1].name: "a" is there twice`, "agents[1].timeout", "agents[1].channels: agents[0] already",
		"agents[2].name: is missing", "agents[3].channels: C1 already belongs to agents[2]",
	} {
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, config{}.check(), "agents: name at least one")
}

func TestWhatIsMissingInTheEnvironmentIsSaidAtOnce(t *testing.T) {
	_, err := readEnvironment([]string{"COUNTERSIGN_ADR=:1", "COUNTERSIGN_LOG_LEVEL=loud"})
	for _, want := range []string{
		"SLACK_BOT_TOKEN: is not set", "SLACK_SIGNING_SECRET: is not set", "REDIS_URL: is not set", "OPENAI_API_KEY: is not set",
		"COUNTERSIGN_ADR: there is no such setting", `COUNTERSIGN_LOG_LEVEL: is "loud"`,
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestSecretsCannotBePrinted(t *testing.T) {
	e, err := readEnvironment([]string{
		"SLACK_BOT_TOKEN=xoxb-tell-no-one", "SLACK_SIGNING_SECRET=tell-no-one", "REDIS_URL=redis://:tell-no-one@h", "OPENAI_API_KEY=tell-no-one",
	})
	require.NoError(t, err)
	require.Equal(t, "xoxb-tell-no-one", e.SlackToken.open())
	var out strings.Builder
	encoded, err := json.Marshal(map[string]any{"e": e, "p": &e})
	require.NoError(t, err)
	fmt.Fprintf(&out, "%v %+v %#v %s %s", e, e, e, e.SlackToken, encoded)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", slog.Any("e", e), slog.Any("token", e.SlackToken))
	require.NotContains(t, out.String(), "tell-no-one")
}

func TestTheReadmeNamesEveryVariable(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	for _, v := range variables {
		require.Contains(t, string(readme), "`"+v.name+"`")
		if v.preset != "" {
			require.Contains(t, string(readme), "`"+v.preset+"`", v.name)
		}
	}
}
