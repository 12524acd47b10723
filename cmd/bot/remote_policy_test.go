package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/policy"
	"github.com/countersign/countersign/internal/slacksim"
)

const claudeConfig = `
http: {listen: "127.0.0.1:8090"}
remote_agents:
  - name: claude
    owner: U0ALICE
    channel: C0OPS
    tokens: ["sha256:0000000000000000000000000000000000000000000000000000000000000001"]
    doors: [api]
`

const bashPolicy = oneOfSRE + `
rules:
  - name: looking
    tools: [Bash]
    command: {cwd: {under: [/srv/app]}, forms: [{run: git status}]}
    allow: true
  - {name: on-main, tools: [Bash], agents: [claude], when: 'call.branch == "main"', ask: {why: It is the main branch.}}
  - {name: edits, agents: [claude], when: 'tool == "Edit"', deny: Not from here.}
`

// remoteBash is an installation with an agent that runs elsewhere, and a policy
// that names its tools.
func remoteBash(t *testing.T) *installation {
	t.Helper()
	i := newInstallation(t, slacksim.Config{})
	i.text, i.rules = wholeConfig+claudeConfig, bashPolicy
	return i
}

func TestAPolicyMayNameToolsOfRemoteAgents(t *testing.T) {
	t.Parallel()
	i := remoteBash(t)
	require.NotContains(t, i.check(), "no agent has a tool")
	i.bot()
	i.text = wholeConfig
	i.rules = strings.ReplaceAll(bashPolicy, "agents: [claude], ", "")
	require.Contains(t, i.check(), `no agent has a tool "Bash", so the rule would match nothing`, "without remote agents it is a mistake")
	i.text, i.rules = wholeConfig+claudeConfig, oneOfSRE+"\nrules:\n  - {name: a, tools: [Bash], agents: [ops], deny: never}\n"
	require.Contains(t, i.check(), `no agent has a tool "Bash", so the rule would match nothing`, "the tools of ops are known")
	i.rules = oneOfSRE + "\nrules:\n  - {name: a, tools: [delete_flie], deny: never}\n"
	require.Contains(t, i.check(), `no agent of this program has a tool "delete_flie", so it is taken for one of a remote agent; did you mean delete_file?`)
}

func (i *installation) policySays(args ...string) string {
	i.t.Helper()
	var out bytes.Buffer
	args = append([]string{"policy"}, args...)
	require.NoError(i.t, run(i.t.Context(), args, i.o.Environ, &out, &out), "%s", &out)
	return out.String()
}

// A call of a remote agent runs where the agent says: that is what cwd judges, and
// what is judged again when the call is claimed.
func TestACommandOfARemoteAgentIsJudgedWhereItRuns(t *testing.T) {
	t.Parallel()
	i := remoteBash(t)
	b := i.bot()
	client := b.remote[0].client
	client.Credential = "token"
	ask := func(name, cwd, branch, args string) intake.CallStatus {
		t.Helper()
		r, err := b.intake.Ask(t.Context(), client, intake.Ask{Door: intake.DoorAPI, ExternalID: name, Calls: []intake.Call{
			{ID: "c", Tool: "Bash", Args: json.RawMessage(args), Cwd: cwd, Branch: branch},
			{ID: "d", Tool: "Write", Args: json.RawMessage(`{}`)},
		}})
		require.NoError(t, err)
		if r.Calls[0].Outcome == intake.OutcomeAllowed {
			_, err = b.intake.Claim(t.Context(), client, r.ID, "c")
			require.NoError(t, err, "it is permitted in the same place as before")
		}
		return r.Calls[0]
	}
	const plain, inApp = `{"command":"git status"}`, `{"command":"git status","cwd":"/srv/app"}`
	require.Equal(t, intake.OutcomeAllowed, ask("in it", "/srv/app", "work", plain).Outcome)
	require.Equal(t, intake.OutcomeAllowed, ask("on main", "/srv/app", "main", plain).Outcome)
	require.Equal(t, intake.OutcomeAllowed, ask("twice", "/srv/app", "", inApp).Outcome)
	require.Equal(t, intake.OutcomePending, ask("elsewhere", "/etc", "", plain).Outcome)
	require.Equal(t, intake.OutcomePending, ask("the model says where", "/etc", "", inApp).Outcome)
	require.Equal(t, intake.OutcomePending, ask("the agent says nothing", "", "", inApp).Outcome)
	require.Equal(t, intake.OutcomePending, ask("the argument leads out", "/srv/app", "", `{"command":"git status","cwd":"/etc"}`).Outcome)
	require.Equal(t, intake.OutcomePending, ask("nobody says", "", "", plain).Outcome)

	config := filepath.Join(i.dir, configName)
	explain := []string{"explain", "--config", config, "--agent", "claude", "--tool", "Bash", "--args", plain}
	require.Contains(t, i.policySays(append(explain, "--cwd", "/srv/app")...), "runs without approval (looking)")
	require.Contains(t, i.policySays(append(explain, "--cwd", "/etc")...), "it runs in a directory that is not listed")
	require.Contains(t, i.policySays(append(explain, "--cwd", "/etc", "--repository", "acme/app", "--branch", "main")...), "needs approval (on-main)")
	require.Contains(t, i.policySays("explain", "--config", config, "--agent", "ops", "--tool", "Bash"), "ops has no tool of this name")
	require.Contains(t, i.policySays("check", "--config", config), "  any tool, agent claude, which runs elsewhere\n    allow  looking\n    ask    on-main\n    deny   edits\n    ask    default\n")
	require.Contains(t, i.policySays("check", "--json", "--config", config), `{"agent":"claude","tool":"*","by":[{"rule":"looking"`)

	var places []policy.RecordedPlace
	for line := range strings.Lines(i.policySays("calls", "--config", config)) {
		var r policy.Recorded
		if json.Unmarshal([]byte(line), &r) == nil && r.Tool == "Bash" && r.Place != nil {
			require.Equal(t, "claude", r.Agent)
			places = append(places, *r.Place)
		}
	}
	require.Contains(t, places, policy.RecordedPlace{Cwd: "/srv/app", Branch: "main"}, "also of a call that needed nobody")
	require.Contains(t, places, policy.RecordedPlace{Cwd: "/etc"})
}
