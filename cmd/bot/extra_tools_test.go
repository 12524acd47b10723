package main

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/tools"
)

// exports gives every agent a tool that only code adds.
func exports(t *testing.T) config.ToolsFor {
	t.Helper()
	type arguments struct {
		Table string `json:"table"`
	}
	tool, err := tools.New(tools.Spec[arguments]{Name: "export_table", Approval: tools.Always},
		func(context.Context, agentrun.Call, arguments) (string, error) { return "", nil })
	require.NoError(t, err)
	return func(string) ([]agentrun.Tool, error) { return []agentrun.Tool{tool}, nil }
}

// ruleForExport is a rule for that tool, whose condition needs its schema.
const ruleForExport = `  - {name: payroll, tools: [export_table], when: args.table == "payroll", deny: Nobody exports it.}
`

// exporting is an installation with a rule, and a setting, for such a tool.
func exporting(t *testing.T) *installation {
	t.Helper()
	i := newInstallation(t, slacksim.Config{})
	i.o.Online = false
	i.rules = oneOfSRE + "rules:\n" + ruleForExport
	i.replace("    files: reports\n", "    files: reports\n    tools: {export_table: {approval: true}}\n")
	i.env["COUNTERSIGN_ADDR"] = "127.0.0.1:0"
	i.check() // writes the files
	return i
}

// What one command accepts no other refuses: all judge with the same tools.
func TestARuleForAToolThatOnlyCodeAddsIsAccepted(t *testing.T) {
	t.Parallel()
	i := exporting(t)
	with := func(args ...string) (string, error) {
		var out, stderr bytes.Buffer
		err := runWith(t.Context(), exports(t), append(args, "--config", i.o.Path), i.o.Environ, &out, &stderr)
		return out.String(), err
	}
	said, err := with("check")
	require.NoError(t, err, said)
	require.Contains(t, said, "delete_file on "+i.config().Agents[0].Files+", and export_table")
	require.Contains(t, said, "0 could not be checked, 0 wrong")

	for _, args := range [][]string{{"policy", "check"}, {"policy", "test"}, {"policy", "explain", "--tool", "export_table", "--args", `{"table":"payroll"}`}} {
		said, err = with(args...)
		require.NoError(t, err, said)
	}
	require.Contains(t, said, "payroll")

	ctx, stop := context.WithCancel(t.Context())
	stderr, ended, extra := newOutput(), make(chan error, 1), exports(t)
	go func() {
		ended <- runWith(ctx, extra, []string{"serve", "--config", i.o.Path}, i.o.Environ, newOutput(), stderr)
	}()
	stderr.await(t, `msg=listening`)
	stop()
	require.NoError(t, <-ended)
	require.Contains(t, stderr.String(), "msg=listening")
}

func TestTheDemoJudgesWithTheToolsThatOnlyCodeAdds(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	stdout, stderr, ended, extra := newOutput(), newOutput(), make(chan error, 1), exports(t)
	go func() {
		ended <- runWith(ctx, extra, []string{"demo", "-v", "--addr", "127.0.0.1:0"}, nil, stdout, stderr)
	}()
	path := stdout.await(t, `/\S+/`+policyName)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	changed := bytes.Replace(text, []byte("\nrules:\n"), []byte("\nrules:\n"+ruleForExport), 1)
	require.NotEqual(t, text, changed)
	require.NoError(t, os.WriteFile(path, changed, 0o600))
	said := stderr.await(t, `msg="the (changed policy|policy changed).*`)
	stop()
	require.NoError(t, <-ended)
	require.Contains(t, said, `msg="the policy changed"`, "and is taken")
}

// Without the tool all of them say that the rule guards nothing.
func TestARuleForAToolThatNothingAddsIsRefusedByAll(t *testing.T) {
	t.Parallel()
	i := exporting(t)
	for _, args := range [][]string{{"check"}, {"policy", "check"}, {"serve"}} {
		var out, stderr bytes.Buffer
		err := run(t.Context(), append(args, "--config", i.o.Path), i.o.Environ, &out, &stderr)
		require.Error(t, err, args)
		require.Contains(t, out.String()+err.Error(), "agents[0].tools.export_table: ops has no such tool", args)
	}
}

// An agent needs no folder to have tools.
func TestCheckNamesTheToolsThatOnlyCodeAdds(t *testing.T) {
	t.Parallel()
	i := exporting(t)
	i.replace("    files: reports\n", "")
	i.o.Extra = exports(t)
	require.Contains(t, i.check(), "agents[0]: ops has export_table\n")
}

// config is the configuration as it was written last.
func (i *installation) config() config.Config {
	i.t.Helper()
	c, err := config.Read(i.o.Path)
	require.NoError(i.t, err)
	return c
}
