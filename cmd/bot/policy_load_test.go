package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/policy"
	"github.com/countersign/countersign/internal/slacksim"
)

// A rule or a setting for a tool that is not there would let the tool that was
// meant run unsigned.
func TestWhatGuardsNothingFailsTheStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rules := writePolicy(t, t.TempDir(), oneOfSRE+`
rules:
  - {name: a, tools: [Delete_File], deny: never}
  - {name: b, tools: [list_flies], deny: never}
`)
	w.config = write(t, "agents: [{name: ops, files: "+w.folder+"}]\npolicy: "+rules+"\n")
	p := w.launch()
	require.Error(t, p.cmd.Wait())
	require.Contains(t, p.out.String(), `no agent has a tool "Delete_File", so the rule would match nothing`)
	require.Contains(t, p.out.String(), `no agent has a tool "list_flies", so the rule would match nothing`)

	w.config = write(t, "agents: [{name: ops, files: "+w.folder+", tools: {delete_flie: {approval: true}}}]\npolicy: "+rules+"\n")
	p = w.launch()
	require.Error(t, p.cmd.Wait())
	require.Contains(t, p.out.String(), "agents[0].tools.delete_flie: ops has no such tool, so the setting would have no effect; its tools are delete_file, list_files")
}

// agents[].approval and agents[].tools.NAME.approval rule where the file has no
// rule: the tool's before the agent's, and both before what the code says.
func TestTheSettingsOfToolsRuleWhereTheFileDoesNot(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, c := range map[string]struct {
		settings string
		want     map[string]string // by call
	}{
		"nothing is said":            {"", map[string]string{"read_file a": "allow", "write_file a": "ask", "list_files": "allow"}},
		"all of the agent's":         {"approval: true", map[string]string{"read_file a": "ask", "write_file a": "ask", "list_files": "ask"}},
		"the tool's goes first":      {"approval: true, tools: {list_files: {approval: false}}", map[string]string{"read_file a": "ask", "list_files": "allow"}},
		"a condition":                {`tools: {read_file: {approval: {when: 'args.path.startsWith("pay")'}}}`, map[string]string{"read_file a": "allow", "read_file pay": "ask"}},
		"a condition of the agent's": {`approval: {when: "!annotations.readOnlyHint"}`, map[string]string{"read_file a": "allow", "write_file a": "ask"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.settings != "" {
				c.settings = ", " + c.settings
			}
			path := write(t, "policy: "+writePolicy(t, t.TempDir(), oneOfSRE)+"\nagents: [{name: ops, files: "+folder+c.settings+"}]\n")
			read, err := config.Read(path)
			require.NoError(t, err)
			require.NoError(t, read.Check())
			require.NoError(t, read.CheckPolicy(config.Environment{}, nil, time.Now))
			sets, err := config.NewToolSets(read, config.Environment{}, nil)
			require.NoError(t, err)
			p, err := policy.Load(read.Policy, config.PolicyOptions(read, sets))
			require.NoError(t, err)
			for call, want := range c.want {
				tool, args := call, "{}"
				if i := len(call) - 2; call[i] == ' ' {
					tool, args = call[:i], `{"path":"a"}`
				}
				if call == "read_file pay" {
					tool, args = "read_file", `{"path":"pay"}`
				}
				gate := approvals.GateNone
				if tool == "write_file" {
					gate = approvals.GateDeclared
				}
				r, err := p.Rule(t.Context(), approvals.Proposal{Call: approvals.ToolCall{Name: tool, Args: []byte(args)}, Agent: "ops", Gate: gate})
				require.NoError(t, err)
				require.Equal(t, want, rulingWord(r), call)
			}
		})
	}
	path := write(t, "policy: "+writePolicy(t, t.TempDir(), oneOfSRE)+"\nagents: [{name: ops, files: "+folder+`, tools: {read_file: {approval: {when: "args.pth == 1"}}}}]`)
	read, err := config.Read(path)
	require.NoError(t, err)
	require.ErrorContains(t, read.CheckPolicy(config.Environment{}, nil, time.Now), `agents[0].tools.read_file.approval: there is no argument "pth"`)
}

// People leave groups and accounts are deactivated without a change of the file: what ran
// before starts again, and the log says what does not fit.
func TestWhoIsInSlackPreventsNoStart(t *testing.T) {
	t.Parallel()
	start := func(c slacksim.Config, change func(*installation)) (string, error) {
		i := newInstallation(t, c)
		i.o.Online = false
		change(i)
		i.check()
		read, err := config.Read(i.o.Path)
		require.NoError(t, err)
		e, err := config.ReadEnvironment(i.o.Environ)
		require.NoError(t, err)
		said := newOutput()
		b, err := newBot(t.Context(), read, e, nil, config.NewLogger(said, "info"), func(string) {})
		if b != nil {
			require.Contains(t, said.String(), `msg="the policy was loaded" version=`+b.policy.Current().Version()+"\n", "auditors find it in the log")
			require.NoError(t, b.close(context.WithoutCancel(t.Context())))
		}
		return said.String(), err
	}
	const misfit = "the policy does not fit the people and groups in Slack"
	said, err := start(slacksim.Config{}, func(*installation) {})
	require.NoError(t, err)
	require.NotContains(t, said, misfit)
	for rules, want := range map[string]string{
		"groups: {sre: S0SRE}\ndefault: {why: x, quorums: [{name: sre, need: 3, from: {groups: [sre]}}]}\n": "policy.yaml:2:29: default.quorums[0]: sre needs 3 of sre, and only 2 could approve",
		"groups: {sre: S0SRE}\ndefault: {why: x, quorums: [{name: sre, need: 2, from: {groups: [sre]}}]}\n": "is away, or asks, no one else can approve",
		"groups: {sre: S0GONE}\ndefault: {why: x, quorums: [{name: sre, from: {groups: [sre]}}]}\n":         "there is no group or channel S0GONE",
	} {
		said, err := start(slacksim.Config{}, func(i *installation) { i.rules = rules })
		require.NoError(t, err)
		require.Contains(t, said, `level=ERROR msg="`+misfit+`"`)
		require.Contains(t, said, want)
	}
	said, err = start(slacksim.Config{Scopes: []string{"users:read"}}, func(*installation) {})
	require.NoError(t, err, "Slack does not say who is in the group: the file is right by itself")
	require.Contains(t, said, "could not check whether enough people can approve")
	require.Contains(t, said, "missing_scope")

	for owner, want := range map[string]string{
		"U0ALICE": "", "U0BOT": "is deactivated or a bot",
		"U0ALCE": `could not check who is the requester of what the agent asks" agent=claude user=U0ALCE err="a person whom Slack does not know: slack: users.info: user_not_found`,
	} {
		said, err := start(slacksim.Config{}, func(i *installation) {
			i.text += "\nremote_agents: [{name: claude, owner: " + owner + ", channel: C0OPS, tokens: ['sha256:" + strings.Repeat("00", 32) + "']}]\n"
		})
		require.NoError(t, err)
		require.Contains(t, said, want)
		require.Equal(t, want != "", strings.Contains(said, "requester"), said)
	}
}

// A changed policy is taken while the bot runs, a broken one is not.
func TestAChangedPolicyIsTakenWhileTheBotRuns(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	i.replace("policy: policy.yaml", "policy: policy.yaml\npolicy_reload: 1s")
	b := i.bot()
	said := newOutput()
	b.log = config.NewLogger(said, "info")
	ctx, stop := context.WithCancel(t.Context())
	following := make(chan struct{})
	go func() { defer close(following); b.follow(ctx, 1, nil) }()
	t.Cleanup(func() { stop(); <-following })
	before := b.policy.Current().Version()

	path := filepath.Join(i.dir, policyName)
	require.NoError(t, os.WriteFile(path, []byte(wholePolicy+"\nnonsense: 1\n"), 0o600))
	said.await(t, `level=ERROR msg="policy change rejected; the previous version stays active" version=`+before+` err=.*nonsense: there is no such key`)
	require.Equal(t, before, b.policy.Current().Version())
	require.NoError(t, b.store.Ping(t.Context()))

	require.NoError(t, os.WriteFile(path, []byte(wholePolicy+"\n# more\n"), 0o600))
	said.await(t, `msg="the policy changed" before=`+before)
	require.NotEqual(t, before, b.policy.Current().Version())

	require.NoError(t, os.WriteFile(path, []byte("groups: {sre: S0SRE}\ndefault: {why: x, quorums: [{name: sre, need: 3, from: {groups: [sre]}}]}\n"), 0o600))
	said.await(t, `level=ERROR msg="the policy does not fit the people and groups in Slack"`)
}

// A policy that was rejected is still on disk: SIGHUP says so again, each time.
func TestSIGHUPSaysThatThePolicyOnDiskIsRejected(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	b := i.bot()
	said := newOutput()
	b.log = config.NewLogger(said, "info")
	hup := make(chan os.Signal)
	ctx, stop := context.WithCancel(t.Context())
	following := make(chan struct{})
	go func() { defer close(following); b.follow(ctx, time.Hour, hup) }()
	t.Cleanup(func() { stop(); <-following })

	rejected := `level=ERROR msg="policy change rejected; the previous version stays active" version=` + b.policy.Current().Version() + ` err=.*nonsense: there is no such key`
	require.NoError(t, os.WriteFile(filepath.Join(i.dir, policyName), []byte(wholePolicy+"\nnonsense: 1\n"), 0o600))
	for times := 1; times <= 3; times++ {
		hup <- syscall.SIGHUP
		said.await(t, strings.Repeat(`(?s:`+rejected+`.*the configuration has not changed.*)`, times))
	}
}

// A rule in shadow mode is logged with what it would have done, and never with
// arguments.
func TestAShadowRuleIsLoggedWithoutArguments(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	i.rules = oneOfSRE + "rules:\n  - {name: no-reads, mode: shadow, tools: [read_file], deny: Not today.}\n"
	b := i.bot()
	said := newOutput()
	b.log = slog.New(slog.NewTextHandler(said, nil))
	r, err := b.policy.Rule(t.Context(), approvals.Proposal{
		Call: approvals.ToolCall{Name: "read_file", Args: []byte(`{"path":"tell-no-one"}`)}, Agent: "ops",
	})
	require.NoError(t, err)
	require.Equal(t, "allow", rulingWord(r))
	require.Regexp(t, `msg="shadow ruling" rule=no-reads@[0-9a-f]{8} agent=ops tool=read_file would=deny did=allow`, said.String())
	require.NotContains(t, said.String(), "tell-no-one")
}
