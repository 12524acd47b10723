package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const transcriptPolicy = `groups: {sre: S0SRE, security: S0SEC}
people: {alice: U0ALICE, dave: U0DAVE}
default:
  why: It changes something.
  quorums: [{name: operations, need: 1, from: {groups: [sre]}}]
rules:
  - name: no-keys
    tools: ["*_file"]
    when: args.path.endsWith(".key")
    deny: Keys are not for an agent.
  - name: deletions
    tools: [delete_file]
    ask:
      why: A deleted file cannot be brought back.
      quorums: [{name: operations, need: 2, from: {groups: [sre]}}]
      within: 8h
      remind: [2h]
      fragile: true
  - name: no-drafts
    mode: shadow
    tools: [write_file]
    when: args.path.startsWith("drafts/")
    deny: Drafts are people's own.
examples:
  - name: a key is not deleted
    call: {tool: delete_file, args: {path: a.key}}
    agent: ops
    requester: alice
    expect: {deny: no-keys}
  - name: a report is deleted by two
    call: {tool: delete_file, args: {path: a.txt}}
    agent: ops
    requester: alice
    expect: {ask: deletions}
`

const transcriptShell = `groups: {sre: S0SRE}
default: {why: It runs on a laptop., quorums: [{name: operations, from: {groups: [sre]}}]}
rules:
  - name: reads
    tools: [Bash]
    command:
      forms:
        - {run: git log, flags: [--oneline]}
        - {run: make, operands: [{is: [test]}]}
    allow: true
`

const transcriptCalls = `{"tool":"delete_file","args":{"path":"a.txt"},"agent":"ops","requester":"U0ALICE","at":"2026-03-02T09:00:00Z","gate":"declared"}
{"tool":"delete_file","args":{"path":"a.key"},"agent":"ops","requester":"U0ALICE","at":"2026-03-02T09:00:01Z","gate":"declared"}
{"tool":"read_file","args":{"path":"tell-no-one.txt"},"agent":"ops","requester":"U0DAVE","at":"2026-03-02T09:00:02Z"}
{"tool":"list_files","args":{},"agent":"ops","requester":"U0DAVE","at":"2026-03-02T09:00:03Z"}
`

// What the commands say, whole. Run with -update to rewrite the golden files.
func TestTheTranscriptsOfThePolicyCommands(t *testing.T) {
	golden, err := filepath.Abs(filepath.Join("testdata", "policy"))
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("reports", 0o700))
	for name, text := range map[string]string{
		configName:        "policy: policy.yaml\nagents: [{name: ops, files: reports}]\n",
		policyName:        transcriptPolicy,
		"roster.yaml":     "people: {U0ALICE: member, U0BOB: member, U0CAROL: member, U0DAVE: member}\ngroups: {S0SRE: [U0BOB, U0CAROL], S0SEC: [U0CAROL]}\n",
		"small.yaml":      "people: {U0ALICE: member, U0BOB: member, U0DAVE: member}\ngroups: {S0SRE: [U0BOB], S0SEC: [U0DAVE]}\n",
		"calls.jsonl":     transcriptCalls,
		"call.json":       strings.SplitAfter(transcriptCalls, "\n")[1],
		"wrong.yaml":      strings.NewReplacer("need: 2", "need: 0", "endsWith", "endWith", "[delete_file]", "[delte_file]", "within: 8h", "wihtin: 8h").Replace(transcriptPolicy),
		"fails.yaml":      strings.Replace(transcriptPolicy, "{ask: deletions}", "{allow: deletions}", 1),
		"lenient.yaml":    strings.NewReplacer("need: 2", "need: 1", `endsWith(".key")`, `endsWith(".pem")`, "      fragile: true\n", "").Replace(strings.Split(transcriptPolicy, "examples:")[0]),
		"strict.yaml":     strings.Replace(transcriptPolicy, "examples:", "  - name: reads\n    tools: [read_file]\n    ask: {why: People look first.}\nexamples:", 1),
		"shell.yaml":      transcriptShell,
		"not-calls.jsonl": "{\"tool\": \"read_file\"}\n",
		"no-calls.jsonl":  "\n",
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	against := []string{"--config", configName, "--roster", "roster.yaml"}
	for name, c := range map[string]struct {
		args []string
		fail string // the error, if it is one
	}{
		"check":               {append([]string{"check"}, against...), ""},
		"check-json":          {append([]string{"check", "--json"}, against...), ""},
		"check-no-tools":      {[]string{"check", policyName}, ""},
		"check-wrong":         {[]string{"check", "--config", configName, "wrong.yaml"}, "delte_file"},
		"check-small":         {[]string{"check", "--config", configName, "--roster", "small.yaml"}, "only 1 could approve"},
		"check-command":       {[]string{"check", "shell.yaml"}, ""},
		"explain-command":     {[]string{"explain", "shell.yaml", "--tool", "Bash", "--args", `{"command":"git -c core.pager=tell-no-one log"}`, "--at", "2026-03-02T09:00:00Z"}, ""},
		"explain":             {append([]string{"explain", "--tool", "delete_file", "--args", `{"path":"a.txt"}`, "--requester", "U0ALICE", "--gate", "--at", "2026-03-02T09:00:00Z"}, against...), ""},
		"explain-json":        {append([]string{"explain", "--json", "--call", "call.json"}, against...), ""},
		"explain-ask-json":    {append([]string{"explain", "--json", "--tool", "delete_file", "--args", `{"path":"a.txt"}`, "--at", "2026-03-02T09:00:00Z"}, against...), ""},
		"explain-shadow":      {append([]string{"explain", "--tool", "write_file", "--args", `{"path":"drafts/a","content":"x"}`, "--at", "2026-03-02T09:00:00Z"}, against...), ""},
		"explain-misfit":      {append([]string{"explain", "--tool", "delete_file", "--args", `{"pth":"a.txt"}`}, against...), ""},
		"explain-misfit-json": {append([]string{"explain", "--json", "--tool", "delete_file", "--args", `{"path":1}`}, against...), ""},
		"explain-allowed":     {append([]string{"explain", "--tool", "list_files", "--args", "{}"}, against...), ""},
		"test":                {append([]string{"test"}, against...), ""},
		"test-fails":          {append(append([]string{"test"}, against...), "fails.yaml"), "one example does not hold"},
		"replay-lenient":      {[]string{"replay", "--config", configName, "--new", "lenient.yaml", "calls.jsonl"}, "more lenient with 2 calls"},
		"replay-accepted":     {[]string{"replay", "--config", configName, "--new", "lenient.yaml", "--fail-on", "nothing", "calls.jsonl"}, ""},
		"replay-strict":       {[]string{"replay", "--config", configName, "--new", "strict.yaml", "calls.jsonl"}, ""},
		"replay-any":          {[]string{"replay", "--config", configName, "--new", "strict.yaml", "--fail-on", "any", "calls.jsonl"}, "rule differently on 1 call"},
		"replay-json":         {[]string{"replay", "--json", "--config", configName, "--new", "strict.yaml", "calls.jsonl"}, ""},
		"replay-no-calls":     {[]string{"replay", "--config", configName, "--new", "strict.yaml", "no-calls.jsonl"}, "there are no calls to compare"},
		"replay-not-calls":    {[]string{"replay", "--config", configName, "--new", "strict.yaml", "not-calls.jsonl"}, "line 1: is not a recorded call"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, stderr bytes.Buffer
			err := run(t.Context(), append([]string{"policy"}, c.args...), nil, &out, &stderr)
			said := "$ bot policy " + strings.Join(quoted(c.args), " ") + "\n" + out.String()
			if c.fail == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.fail)
				said += "bot: " + err.Error() + "\n"
			}
			said = regexp.MustCompile(`[0-9.]+ s, [0-9]+ calls a second|"seconds":[0-9.e-]+`).ReplaceAllString(said, "(how long)")
			require.NotContains(t, strings.SplitN(said, "\n", 2)[1], "tell-no-one", "no arguments")
			path := filepath.Join(golden, name+".txt")
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(said), 0o600))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), said)
		})
	}
	files, err := os.ReadDir(golden)
	require.NoError(t, err)
	require.Len(t, files, 23, "a transcript that nothing writes")
}

// The rules for a remote agent decide about its calls, so a call is not taken for one of
// nobody.
func TestACallIsExplainedForTheAgentThatMayMakeIt(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("reports", 0o700))
	const remote = "remote_agents: [{name: claude, owner: U0ALICE, channel: C0OPS, doors: [hooks], tokens: ['sha256:" +
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855']}]\npolicy: policy.yaml\nhttp: {listen: '127.0.0.1:8443'}\n"
	for name, text := range map[string]string{
		"remote.yaml": remote,
		"both.yaml":   remote + "agents: [{name: ops, files: reports}]\n",
		policyName:    oneOfSRE + "rules: [{name: no, agents: [claude], deny: No.}]\n",
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	for _, c := range []struct{ config, tool, agent, says string }{
		{"remote.yaml", "Bash", "", "Bash, by claude\n"},
		{"remote.yaml", "Bash", "claude", "-> is refused (no): No.\n"},
		{"both.yaml", "Bash", "", "Bash, by claude\n"},
		{"both.yaml", "read_file", "", "read_file, by ops\n"},
		{"both.yaml", "Bash", "claud", `--agent: there is no agent "claud"; did you mean claude?`},
		{"both.yaml", "Bash", "x", `--agent: there is no agent "x"; use one of claude, ops`},
	} {
		var out, stderr bytes.Buffer
		args := []string{"policy", "explain", "--config", c.config, "--tool", c.tool, "--args", `{"path":"a"}`}
		if c.agent != "" {
			args = append(args, "--agent", c.agent)
		}
		said := ""
		if err := run(t.Context(), args, nil, &out, &stderr); err != nil {
			said = err.Error()
		}
		require.Contains(t, said+out.String(), c.says)
	}
}

// With a name, a rule for that person or channel would seem not to match.
func TestACallIsExplainedForIDsOnly(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile(policyName, []byte(oneOfSRE+"people: {alice: U0ALICE}\nrules: [{name: hers, requesters: {people: [alice]}, deny: No.}]\n"), 0o600))
	for _, c := range []struct{ flag, value, says string }{
		{"--requester", "U0ALICE", "-> is refused (hers): No.\n"},
		{"--requester", "service:nightly", "-> needs approval (default)"},
		{"--requester", "alice", "it must be a user id of Slack such as U0123456789"},
		{"--channel", "C0OPS", "-> needs approval (default)"},
		{"--channel", "D0ALICE", "-> needs approval (default)"},
		{"--channel", "#ops", "it must be a channel id of Slack such as C0123456789"},
	} {
		var out, stderr bytes.Buffer
		said := ""
		if err := run(t.Context(), []string{"policy", "explain", policyName, "--tool", "Bash", c.flag, c.value}, nil, &out, &stderr); err != nil {
			said = err.Error()
		}
		require.Contains(t, said+out.String(), c.says, "%s %s", c.flag, c.value)
	}
}

// A veto is a way to deny: it is weaker if it needs more people, or names fewer.
func TestAPolicyThatWeakensAVetoIsMoreLenient(t *testing.T) {
	const policy = `
groups: {sre: S0SRE, sec: S0SEC}
people: {bo: U0BOB}
default: {why: Mind., denials: 3, quorums: [{name: ops, from: {groups: [sre], people: [bo]}}]%s}
`
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("calls.jsonl", []byte(`{"tool":"x","at":"2026-03-02T09:00:00Z"}`), 0o600))
	write := func(name, veto string) {
		if veto != "" {
			veto = ", veto: [" + veto + "]"
		}
		text := fmt.Sprintf(policy, veto)
		if !strings.Contains(veto, "sec]") {
			text = strings.Replace(text, ", sec: S0SEC", "", 1)
		}
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	const (
		two  = "{name: security, need: 2, from: {groups: [sec]}}"
		wide = "{name: security, need: 2, from: {groups: [sec], people: [bo]}}"
	)
	for change, lenient := range map[[2]string]bool{
		{two, ""}: true,
		{two, "{name: security, need: 3, from: {groups: [sec]}}"}:               true,
		{two, "{name: security, from: {people: [bo]}}"}:                         true,
		{two, "{name: security, need: 3, from: {groups: [sec], people: [bo]}}"}: true,
		{wide, two}: true,
		{two, wide}: false,
		{two, "{name: security, from: {groups: [sec]}}"}:    false,
		{two, two + ", {name: lead, from: {people: [bo]}}"}: false,
		{"", two}: false,
	} {
		write("old.yaml", change[0])
		write("new.yaml", change[1])
		var out, stderr bytes.Buffer
		err := run(t.Context(), []string{"policy", "replay", "--old", "old.yaml", "--new", "new.yaml", "calls.jsonl"}, nil, &out, &stderr)
		if lenient {
			require.ErrorContains(t, err, "more lenient with 1 call", change)
		} else {
			require.NoError(t, err, change)
		}
	}
}

func quoted(args []string) []string {
	var out []string
	for _, a := range args {
		if strings.ContainsAny(a, ` {"`) {
			a = "'" + a + "'"
		}
		out = append(out, a)
	}
	return out
}

// An escalation widens the quorum that it names, and names may be exchanged.
func TestAPolicyThatEscalatesToAnotherQuorumIsMoreLenient(t *testing.T) {
	const policy = `groups: {sre: S0SRE, sec: S0SEC, all: S0ALL}
default:
  quorums: [{name: %s, from: {groups: [sre]}}, {name: %s, from: {groups: [sec]}}]
  escalate: [{after: 1h, quorum: %s, add: {groups: [all]}}]
`
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("calls.jsonl", []byte(`{"tool":"drop","at":"2026-03-02T09:00:00Z"}`+"\n"), 0o600))
	require.NoError(t, os.WriteFile("old.yaml", fmt.Appendf(nil, policy, "operations", "security", "operations"), 0o600))
	for names, lenient := range map[[3]string]bool{
		{"operations", "security", "operations"}: false,
		{"sre", "sec", "sre"}:                    false,
		{"operations", "security", "security"}:   true,
		{"security", "operations", "operations"}: true,
	} {
		require.NoError(t, os.WriteFile("new.yaml", fmt.Appendf(nil, policy, names[0], names[1], names[2]), 0o600))
		var out, stderr bytes.Buffer
		err := run(t.Context(), []string{"policy", "replay", "--old", "old.yaml", "--new", "new.yaml", "calls.jsonl"}, nil, &out, &stderr)
		if lenient {
			require.ErrorContains(t, err, "more lenient with 1 call", names)
			continue
		}
		require.NoError(t, err, names)
	}
}

func TestThePolicyCommandsSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	path := writePolicy(t, t.TempDir(), oneOfSRE)
	calls := filepath.Join(t.TempDir(), "calls.jsonl")
	require.NoError(t, os.WriteFile(calls, []byte(transcriptCalls), 0o600))
	listed := filepath.Join(t.TempDir(), "tools.json")
	require.NoError(t, os.WriteFile(listed, []byte(`{"tools": [{"name": "delete_file"}]}`), 0o600))
	for _, c := range []struct {
		want string
		args []string
	}{
		{`tools.json: says of no agent which tools it has; write agents beside tools, such as "agents": {"ops": ["delete_file"]}`, []string{"check", "--tools", listed, path}},
		{"calls.jsonl holds more than one call", []string{"explain", "--call", calls, path}},
		{`there is no command "chek"`, []string{"chek"}},
		{"POLICY is missing", []string{"check"}},
		{`takes no argument "more"`, []string{"check", path, "more"}},
		{"both say which tools there are", []string{"check", "--config", "a", "--tools", "b"}},
		{"SLACK_BOT_TOKEN is not set", []string{"check", "--online", path}},
		{"--tool NAME is missing", []string{"explain", path}},
		{"--at:", []string{"explain", "--tool", "x", "--at", "noon", path}},
		{"--args:", []string{"explain", "--tool", "x", "--args", "{", path}},
		{"already says the tool and its arguments", []string{"explain", "--tool", "x", "--call", "y", path}},
		{"--new PATH is missing", []string{"replay", "--old", path}},
		{"--old PATH is missing", []string{"replay", "--new", path, "calls.jsonl"}},
		{"it must be lenient, any or nothing", []string{"replay", "--old", path, "--new", path, "--fail-on", "all", "x"}},
		{"open the calls", []string{"replay", "--old", path, "--new", path, "missing.jsonl"}},
		{"REDIS_URL is not set", []string{"calls"}},
		{"there is no unit for days", []string{"calls", "--since", "3d"}},
		{"it must be a duration with its unit, such as 30m or 48h", []string{"calls", "--since", "168"}},
		{"it must be a duration with its unit, such as 30m or 48h", []string{"calls", "--since", "-1h"}},
		{"the file has more than", []string{"check", "--tools", "/dev/zero", path}},
		{"the file: has more than", []string{"check", "--roster", "/dev/zero", path}},
		{"the file has more than", []string{"explain", "--call", "/dev/zero", path}},
	} {
		var out, stderr bytes.Buffer
		err := run(t.Context(), append([]string{"policy"}, c.args...), nil, &out, &stderr)
		require.ErrorContains(t, err, c.want, "%v", c.args)
	}
}

// A pipe has its text once. A test that has run no example must not say that all hold.
func TestThePolicyOfAPipeIsTested(t *testing.T) {
	t.Parallel()
	for expect, fails := range map[string]string{"deny: no-keys": "", "ask: default": "one example does not hold"} {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		_, err = fmt.Fprintf(w, `
groups: {sre: S0SRE}
default: {why: It changes something., quorums: [{name: operations, need: 1, from: {groups: [sre]}}]}
rules: [{name: no-keys, tools: [write_file], deny: Keys are not for an agent.}]
examples: [{name: a key, call: {tool: write_file}, requester: U0ALICE, expect: {%s}}]
`, expect)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		out, stderr, _ := said(t, "policy", "test", fmt.Sprintf("/dev/fd/%d", r.Fd()))
		require.NoError(t, r.Close())
		require.Contains(t, out, "of 1 example holds", stderr)
		require.Contains(t, stderr, fails)
	}
}
