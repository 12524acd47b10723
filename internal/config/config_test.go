package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
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
runs: {lease: 5s, per_agent: 4, per_requester: 2}
agents:
  - name: ops
    instructions: You help.
    model: some-model
    timeout: 2m
    files: /srv/reports
    channels: [C0OPS]
    who: {users: [U0ALICE], groups: [S0SRE1]}
    limits: {requests: 5, tool_calls: 7, total_tokens: 9}
    approval: {when: "!annotations.readOnlyHint"}
    tools:
      read_file: {approval: true}
      list_files: {approval: false}
policy: rules
policy_reload: 2s
`

func TestTheWholeFileIsRead(t *testing.T) {
	path := write(t, good)
	c, err := Read(path)
	require.NoError(t, err)
	require.NoError(t, c.Check())
	require.Equal(t, "ours", c.Redis.Prefix)
	require.Equal(t, 30*time.Second, c.Slack.GroupsMaxAge)
	require.Equal(t, Runs{Lease: 5 * time.Second, PerAgent: 4, PerRequester: 2}, c.Runs)
	require.Equal(t, []Agent{{
		Name: "ops", Instructions: "You help.", Model: "some-model", Timeout: 2 * time.Minute, Files: "/srv/reports",
		Channels: []string{"C0OPS"}, Who: &People{Users: []approvals.UserID{"U0ALICE"}, Groups: []approvals.GroupID{"S0SRE1"}},
		Limits:   Limits{Requests: 5, ToolCalls: 7, TotalTokens: 9},
		Approval: Approval{Kind: ApprovalWhen, When: "!annotations.readOnlyHint"},
		Tools:    map[string]Tool{"read_file": {Approval: Approval{Kind: ApprovalAll}}, "list_files": {Approval: Approval{Kind: ApprovalNone}}},
	}}, c.Agents)
	require.Equal(t, filepath.Join(filepath.Dir(path), "rules"), c.Policy)
	require.Equal(t, 2*time.Second, c.Reload)
}

func TestAKeyThatIsNotKnownFailsTheStartWithItsLine(t *testing.T) {
	for _, c := range []struct{ text, line, word string }{
		{"agents:\n  - name: ops\n    tools_folder: x\n", "[3:", "tools_folder"},
		{"agent:\n  - name: ops\n", "[1:", "agent"},
		{"agents:\n  - name: ops\n    approval: {wen: x}\n", "[3:", "wen"},
	} {
		_, err := Read(write(t, c.text))
		require.ErrorContains(t, err, c.word)
		require.ErrorContains(t, err, c.line, "the place is said")
		require.ErrorContains(t, err, "config.yaml")
	}
	_, err := Read(write(t, ""))
	require.ErrorContains(t, err, "empty")
	_, err = Read(filepath.Join(t.TempDir(), "missing.yaml"))
	require.ErrorContains(t, err, "read the configuration")
}

func TestEveryProblemOfTheFormIsReportedAtOnceWithItsLine(t *testing.T) {
	_, err := Read(write(t, `agents:
  - name: 5
    toolz: x
    timeout: 24
    limits: {requests: 1.9, tool_calls: many}
    channels: []
    who:
  - files: reports
    approval: maybe
    tools: {read_file: {approval: {when: 5}}}
policy: 7
policy_reload: 1 day
runs: [1]
`))
	for _, want := range []string{
		"[2:11] agents[0].name: must be text, not a number; put it in quotes",
		"[3:5] agents[0].toolz: there is no such key; the keys here are name, instructions",
		"[4:14] agents[0].timeout: must be a duration with its unit",
		"[5:24] agents[0].limits.requests: must be a whole number",
		"[5:41] agents[0].limits.tool_calls: must be a whole number",
		"[6:15] agents[0].channels: is an empty list",
		"agents[0].who: has no value",
		"[9:15] agents[1].approval: must be true, false or {when: CONDITION}",
		"[10:42] agents[1].tools.read_file.approval.when: must be text, not a number; put it in quotes",
		"[11:9] policy: must be text, not a number; put it in quotes",
		"[12:16] policy_reload: must be a duration",
		"[13:7] runs: must be a mapping",
	} {
		require.ErrorContains(t, err, want)
	}
	for text, want := range map[string]string{
		"a: 1\n---\nb: 2\n":           "several YAML documents",
		"%YAML 1.1\n---\na: 1\n":      "directives are not supported",
		"agents: [{name: a}\n":        "[1:9]",
		"agents: 1\nagents: 2\n":      "already defined",
		"- agents\n":                  "the file: must be a mapping",
		"# nothing\n":                 "empty",
		"agents: [{name: *nobody}]\n": "nobody",
		"redis: &a\n  prefix: *a\n":   "redis.prefix",
		"x: [&a b, &a c]\n":           "[1:11] the anchor &a is set twice",
	} {
		_, err := Read(write(t, text))
		require.ErrorContains(t, err, want, text)
	}
}

// How many of a thing there may be is not left to the version of YAML that a reader knows.
func TestANumberIsWrittenInPlainDecimal(t *testing.T) {
	for _, written := range []string{"010", "0x10", "0b11", "0o17", "1_000", "+5"} {
		_, err := Read(write(t, "agents: [{name: ops, files: reports}]\npolicy: p.yaml\nruns: {per_agent: "+written+"}\n"))
		require.ErrorContains(t, err, "[3:19] runs.per_agent: ", written)
	}
}

func TestAnAnchorIsReadWhereItIsNamed(t *testing.T) {
	c, err := Read(write(t, `
policy: rules.yaml
agents: [{name: ops, who: &sre {groups: [S0SRE1]}, approval: &when {when: gate}}, {<<: &rest {model: m}, name: b, who: *sre, approval: *when, channels: [C1]}]
`))
	require.NoError(t, err)
	require.NoError(t, c.Check())
	require.Equal(t, "m", c.Agents[1].Model)
	require.Equal(t, Approval{Kind: ApprovalWhen, When: "gate"}, c.Agents[1].Approval)
	require.Equal(t, []approvals.GroupID{"S0SRE1"}, c.Agents[1].Who.Groups)
	_, err = Read(write(t, "x: &a {prefi: x}\nredis: *a\n"))
	require.ErrorContains(t, err, "redis.prefi: there is no such key", "what an anchor holds is checked too")
}

// What is written beside a merge counts, and a decoder may take the merge instead.
func TestAMergeReplacesNothing(t *testing.T) {
	const tools = "agents:\n- name: a\n  tools: &t\n    w: {approval: false}\n    v: {approval: false}\n- name: b\n  tools:\n"
	for text, want := range map[string]string{
		tools + "    w: {approval: true}\n    <<: *t\n":                                                    "[8:5] agents[1].tools.w: is replaced by the merge (<<) after it; put <<",
		tools + "    w: {approval: true}\n    <<: {<<: *t}\n":                                              "[8:5] agents[1].tools.w: is replaced by",
		"agents:\n- &a {name: a, files: x}\n- name: b\n  <<: *a\n":                                         "[3:3] agents[1].name: is set here and by the merge (<<); keep one of them",
		"agents:\n- &a {name: a, files: x}\n- <<: *a\n  name: b\n":                                         "[4:3] agents[1].name: is set here and by",
		"agents: [{external_tools: [{schema: {type: object, required: [x], <<: {required: [y]}}}]}]\n":     "agents[0].external_tools[0].schema: required is replaced by the merge (<<)",
		"agents: [{external_tools: [{schema: {properties: {p: {type: a, <<: &s {type: b, <<: *s}}}}}]}]\n": "agents[0].external_tools[0].schema: type is replaced by the merge (<<)",
	} {
		_, problems := Decode([]byte(text))
		require.ErrorContains(t, errors.Join(problems...), want, text)
	}
	c, problems := Decode([]byte(tools + "    <<: *t\n    w: {approval: true}\n"))
	require.Empty(t, problems)
	require.Equal(t, ApprovalAll, c.Agents[1].Tools["w"].Approval.Kind)
	require.Equal(t, ApprovalNone, c.Agents[1].Tools["v"].Approval.Kind)
}

// A key such as 0123 was the number 83, which may be the subject of somebody else.
func TestTheKeyOfAMapIsReadAsItIsWritten(t *testing.T) {
	for _, key := range []string{"0x10", "0123", "1_000", "1.0", "true", "~", "&k w", "!!str w", "0o17", "+5"} {
		_, problems := Decode([]byte("web:\n  issuers:\n  - subjects:\n      " + key + ": U0ANN\n"))
		require.ErrorContains(t, errors.Join(problems...), "the key is not text; put it in quotes", key)
	}
	for _, key := range []string{"123", "0", "w", "'0123'", "2020-01-01", "1e3", "repo:a/b", "U0ANN", "123456789012345678", "99999999999999999999"} {
		c, problems := Decode([]byte("web:\n  issuers:\n  - subjects:\n      " + key + ": U0ANN\n"))
		require.Empty(t, problems, key)
		require.Contains(t, c.Web.Issuers[0].Subjects, strings.Trim(key, "'"))
	}
}

// 010 was 8.
func TestAWholeNumberIsDecimal(t *testing.T) {
	for _, n := range []string{"010", "0x10", "1_000", "0b11", "0o17", "+5", "00"} {
		_, problems := Decode([]byte("agents: [{limits: {requests: " + n + "}}]\n"))
		require.ErrorContains(t, errors.Join(problems...), "agents[0].limits.requests: must be a whole number in decimal, without a leading 0", n)
	}
	_, problems := Decode([]byte("agents: [{limits: {requests: 10}}]\n"))
	require.Empty(t, problems)
}

// A limit of 0 was the default limit: an agent that may make no requests could make 60 a
// minute.
func TestALimitOfZeroIsNotTheDefault(t *testing.T) {
	for key, text := range map[string]string{
		"remote_agents[0].per_minute":     "remote_agents: [{per_minute: 0}]",
		"remote_agents[0].open_limit":     "remote_agents: [{open_limit: -0}]",
		"remote_agents[0].within":         "remote_agents: [{within: 0s}]",
		"agents[0].limits.tool_calls":     "agents: [{limits: {tool_calls: 0}}]",
		"agents[0].mcp.s.timeouts.t":      "agents: [{mcp: {s: {timeouts: {t: 0m}}}}]",
		"slack.groups_max_age":            "slack: {groups_max_age: 0s}",
		"runs.per_requester":              "x: &none 0\nruns: {per_requester: *none}",
		"gateways[0].mcp.s.max_result":    "gateways: [{mcp: {s: {max_result: 0}}}]",
		"agents[0].http.tools[0].timeout": "agents: [{http: {tools: [{timeout: 0h}]}}]",
	} {
		_, problems := Decode([]byte(text))
		require.ErrorContains(t, errors.Join(problems...), key+": must be more than 0")
	}
	_, problems := Decode([]byte("retention: {threads: 0s}"))
	require.Empty(t, problems, "it keeps conversations forever")
	_, problems = Decode([]byte("retention: {threads: 0}"))
	require.NotEmpty(t, problems)
}

// Notepad and PowerShell write it.
func TestAFileInUTF16IsNamedAsSuch(t *testing.T) {
	for _, mark := range []string{"", "\xff\xfe"} {
		text := mark
		for _, b := range []byte("agents:\r\n- name: a\r\n") {
			text += string([]byte{b, 0})
		}
		_, problems := Decode([]byte(text))
		require.EqualError(t, errors.Join(problems...), "the file is UTF-16; save it as UTF-8")
	}
}

// An editor may draw what follows it as a part of the comment.
func TestACarriageReturnAloneEndsNoLine(t *testing.T) {
	_, problems := Decode([]byte("agents:\r\n- name: a\r\n  # all of them\r  approval: false\r\n"))
	require.ErrorContains(t, errors.Join(problems...), "[3:16] contains a carriage return without a line feed; save the file with the line ends of one system")
	_, problems = Decode([]byte("agents:\r\n- name: a\r\n  instructions: \"x\\ry\"\r\n"))
	require.Empty(t, problems)
}

// A template that has nothing to fill in writes an empty text, and what it is to set would
// be as if it were not there: receipts without a signature, tools without a lock.
func TestATextIsNotEmpty(t *testing.T) {
	for text, want := range map[string]string{
		"receipts: {key_file: ''}\n":                         "[1:22] receipts.key_file: is empty; fill it in or remove the key",
		"mcp_lock: \"  \"\n":                                 "mcp_lock: is empty",
		"redis: {tls: {enabled: true, ca_file: ''}}\n":       "redis.tls.ca_file: is empty",
		"agents: [{mcp: {s: {include: ['']}}}]\n":            "agents[0].mcp.s.include[0]: is empty",
		"agents: [{mcp: {s: {headers: {A: ''}}}}]\n":         "agents[0].mcp.s.headers.A: is empty",
		"agents:\n- instructions: |\n\n  name: a\n":          "agents[0].instructions: is empty",
		"agents: [{tools: {t: {approval: {when: ''}}}}]\n":   "agents[0].tools.t.approval.when: is empty",
		"agents: [{tools: {t: {summary: ''}}}]\n":            "agents[0].tools.t.summary: ",
		"agents: [{name: &n '', model: *n}]\n":               "agents[0].model: is empty",
		"web: {issuers: [{subjects: {'': U0ANN}, keys: k}]}": "web.issuers[0].subjects.: the key is empty",
	} {
		_, problems := Decode([]byte(text))
		require.ErrorContains(t, errors.Join(problems...), want, text)
	}
	_, problems := Decode([]byte("agents: [{mcp: {s: {args: ['--sep', '']}}}]\n"))
	require.Empty(t, problems, "a program may have an empty argument")
}

// One person, or one of several agents, does not get all workers of a process.
func TestSomeWorkersAreLeftToOthers(t *testing.T) {
	for name, c := range map[string]struct {
		config                 Config
		perAgent, perRequester int
	}{
		"one agent":      {Config{Agents: make([]Agent, 1)}, 0, 12},
		"several agents": {Config{Agents: make([]Agent, 2)}, 12, 12},
		"as it is set":   {Config{Agents: make([]Agent, 2), Runs: Runs{PerAgent: 3, PerRequester: 16}}, 3, 16},
	} {
		perAgent, perRequester := c.config.Bounds()
		require.Equal(t, []int{c.perAgent, c.perRequester}, []int{perAgent, perRequester}, name)
	}
}

func TestAPathIsBesideTheFileUnlessItIsAbsolute(t *testing.T) {
	path := write(t, "policy: rules\nagents: [{name: a, files: reports}, {name: b, files: /srv}, {name: c}]")
	c, err := Read(path)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(filepath.Dir(path), "reports"), c.Agents[0].Files)
	require.Equal(t, filepath.Join(filepath.Dir(path), "rules"), c.Policy)
	require.Equal(t, "/srv", c.Agents[1].Files)
	require.Empty(t, c.Agents[2].Files)
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	c := Config{
		Slack: Slack{GroupsMaxAge: -1, CardsPerMinute: -1, MessagesPerMinute: -2}, Runs: Runs{Lease: 1, PerAgent: -1, PerRequester: -2}, Redis: Redis{Prefix: "a{b"}, Reload: 1,
		Agents: []Agent{
			{Name: "a"},
			{Name: "a", Timeout: -1, Who: &People{}},
			{Channels: []string{"C1"}, Limits: Limits{Requests: -1, ToolCalls: -2, TotalTokens: -3}},
			{Name: "d", Channels: []string{"C1", "#ops"}, Who: &People{Users: []approvals.UserID{"@ann"}, Groups: []approvals.GroupID{"sre"}}},
			{Name: "e", Channels: []string{"C2"}, Owners: &Owners{}},
			{Name: "f", Channels: []string{"C3"}, Owners: &Owners{Channel: "#ops", Users: []approvals.UserID{"ann"}, Groups: []approvals.GroupID{"C0OPS"}}},
		},
	}
	err := c.Check()
	for _, want := range []string{
		"slack.groups_max_age: must not be negative, but is -1ns", "slack.cards_per_minute: must not be negative, but is -1", "slack.messages_per_minute: must not be negative, but is -2", "runs.lease: must be at least 1s, but is 1ns", "runs.per_agent: must not be negative, but is -1", "runs.per_requester: must not be negative, but is -2", `redis.prefix: must not contain braces or spaces, but is "a{b"`,
		`agents[1].name: another agent is already called "a"`, "agents[1].timeout", "agents[1].channels: not set, but agents[0] already", "agents[1].who: names nobody",
		"agents[2].name: not set", "agents[2].limits.requests: must not be negative, but is -1", "agents[2].limits.tool_calls: must not be negative, but is -2", "agents[2].limits.total_tokens: must not be negative, but is -3",
		"agents[3].channels: C1 already belongs to agents[2]", `agents[3].channels: "#ops" is not a channel id`,
		`agents[3].who.users: "@ann" is not a user id`, `agents[3].who.groups: "sre" is not a user group id`,
		"agents[4].owners: names nobody", `agents[5].owners.users: "ann" is not a user id`, `agents[5].owners.groups: "C0OPS" is not a user group id`, `agents[5].owners.channel: "#ops" is not a channel id`,
		"policy: not set", "policy_reload: must be at least 1s, but is 1ns",
	} {
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, Config{}.Check(), "agents: there are none")
}

func TestTheOwnersOfAnAgentAreThoseOfTheFile(t *testing.T) {
	c, problems := Decode([]byte("agents: [{name: a, owners: {users: [U0ALICE], groups: [S0SRE1]}}, {name: b}]"))
	require.Empty(t, problems)
	require.Equal(t, approvals.From{Users: []approvals.UserID{"U0ALICE"}, Groups: []approvals.GroupID{"S0SRE1"}}, c.Agents[0].OwnedBy())
	require.Equal(t, approvals.From{}, c.Agents[1].OwnedBy())
	require.Empty(t, c.Agents[1].OwnersAsked())
	require.Equal(t, "C1", Agent{Channels: []string{"C1", "C2"}}.OwnersAsked())
	require.Equal(t, "C3", Agent{Channels: []string{"C1"}, Owners: &Owners{Channel: "C3"}}.OwnersAsked())
}

// Remote agents and gateways bring their own model.
func TestOnlyAgentsNeedTheKeyOfAModel(t *testing.T) {
	secret := write(t, "k")
	remote, own := Config{RemoteAgents: []RemoteAgent{{}}}, Config{Agents: []Agent{{}}}
	for environ, missing := range map[string]bool{"": true, "OPENAI_API_KEY=k": false, "OPENAI_API_KEY_FILE=" + secret: false} {
		e, _ := ReadEnvironment([]string{environ}) // what else is missing does not matter
		require.NoError(t, remote.CheckModelKey(e))
		require.Equal(t, missing, own.CheckModelKey(e) != nil, environ)
	}
	require.ErrorContains(t, Config{}.Check(), "agents: there are none; add at least one, or one of remote_agents or gateways")
	for _, c := range []Config{remote, {Gateways: []Gateway{{}}}} {
		require.NotContains(t, c.Check().Error(), "agents: there are none")
	}
}

func TestWhatIsMissingInTheEnvironmentIsSaidAtOnce(t *testing.T) {
	_, err := ReadEnvironment([]string{"COUNTERSIGN_ADR=:1", "COUNTERSIGN_LOG_LEVEL=loud"})
	for _, want := range []string{
		"SLACK_BOT_TOKEN: not set", "SLACK_SIGNING_SECRET: not set",
		"COUNTERSIGN_ADR: there is no such setting", `COUNTERSIGN_LOG_LEVEL: must be debug, info, warn or error, but is "loud"`,
	} {
		require.ErrorContains(t, err, want)
	}
}

// Whoever tries an agent in the shell of the bot has its variables there.
func TestTheVariablesOfClientsAreNoMisspellings(t *testing.T) {
	_, err := ReadEnvironment([]string{"COUNTERSIGN_URL=http://127.0.0.1:8090", "COUNTERSIGN_TOKEN=t", "COUNTERSIGN_TOKEN_FILE=f", "COUNTERSIGN_URI=x", "COUNTERSIGN_URL_FILE=f"})
	require.ErrorContains(t, err, "COUNTERSIGN_URI: there is no such setting")
	require.ErrorContains(t, err, "COUNTERSIGN_URL_FILE: there is no such setting")
	for _, name := range []string{"COUNTERSIGN_URL:", "COUNTERSIGN_TOKEN:", "COUNTERSIGN_TOKEN_FILE:"} {
		require.NotContains(t, err.Error(), name)
	}
}

func TestSecretsCannotBePrinted(t *testing.T) {
	e, err := ReadEnvironment([]string{
		"SLACK_BOT_TOKEN=xoxb-tell-no-one", "SLACK_SIGNING_SECRET=tell-no-one", "REDIS_URL=redis://:tell-no-one@h", "OPENAI_API_KEY=tell-no-one",
	})
	require.NoError(t, err)
	require.Equal(t, "xoxb-tell-no-one", e.SlackToken.Open())
	var out strings.Builder
	encoded, err := json.Marshal(map[string]any{"e": e, "p": &e})
	require.NoError(t, err)
	fmt.Fprintf(&out, "%v %+v %#v %s %s", e, e, e, e.SlackToken, encoded)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", slog.Any("e", e), slog.Any("token", e.SlackToken))
	require.NotContains(t, out.String(), "tell-no-one")
}

// A file that only costs memory is refused before it is parsed: the parser takes more
// than 20 GB for 200 kB of brackets.
func TestAFileThatIsTooLargeOrNestedTooDeeplyIsRefused(t *testing.T) {
	const deep = "the file is nested more than 1000 levels deep"
	for _, tt := range []struct{ text, says string }{
		{strings.Repeat("[", 2000), deep},
		{strings.Repeat("{a: ", 2000), deep},
		{strings.Repeat("- ", 4000), deep},
		{"#" + strings.Repeat("x", 5_000_000-1), "the file has more than 4194304 bytes"},
	} {
		_, problems := Decode([]byte(tt.text))
		require.Len(t, problems, 1, tt.says)
		require.ErrorContains(t, problems[0], tt.says)
	}
	_, err := Read("/dev/zero")
	require.ErrorContains(t, err, "/dev/zero: the file has more than 4194304 bytes", "no more is read")
}

// A proxy in front of Slack may have a password, which errors must not quote.
func TestTheAddressOfSlackIsCheckedBeforeItIsUsed(t *testing.T) {
	for _, wrong := range []string{"https://u:hunter2%zz@slack.example/api/", "ht tp://u:hunter2@slack.example/", "slack.example/api/", "https://", "ftp://slack.example/"} {
		e, err := ReadEnvironment([]string{"SLACK_API_URL=" + wrong})
		require.ErrorContains(t, err, "SLACK_API_URL: must begin with https:// or http:// and name a host")
		require.NotContains(t, err.Error(), "hunter2")
		require.Empty(t, e.SlackAPIURL, "nobody can use it")
	}
	e, _ := ReadEnvironment([]string{"SLACK_API_URL=https://slack.example/api"}) // the tokens are missing
	require.Equal(t, "https://slack.example/api/", e.SlackAPIURL)
}

func TestBotCheckSaysWhatIsWrongWithTraces(t *testing.T) {
	_, err := ReadEnvironment([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"})
	require.ErrorContains(t, err, "OTEL_EXPORTER_OTLP_PROTOCOL: must be http/protobuf")
	_, err = ReadEnvironment([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4318"})
	require.ErrorContains(t, err, "OTEL_EXPORTER_OTLP_ENDPOINT: must be a URL")
}
