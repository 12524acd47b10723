package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/policy"
	"github.com/countersign/countersign/internal/tools"
)

// TestARuleThatGuardsNothingFailsTheStart: a misspelt name would let the tool
// that was meant run unsigned.
func TestARuleThatGuardsNothingFailsTheStart(t *testing.T) {
	w := newWorld(t)
	w.config = write(t, `
agents: [{name: ops, files: `+w.folder+`}]
policy:
  default:
    quorums: [{name: sre, need: 1, from: {groups: [S0SRE]}}]
  tools:
    Delete_File: {refuse: never}
    list_flies: {refuse: never}
`)
	p := w.launch()
	require.Error(t, p.cmd.Wait())
	require.Contains(t, p.out.String(), "policy.tools.Delete_File: no agent has such a tool")
	require.Contains(t, p.out.String(), "policy.tools.list_flies: no agent has such a tool")
}

func TestTwoToolsOfOneNameFailTheStart(t *testing.T) {
	tool, err := tools.New(tools.Spec[struct{}]{Name: "twin", Approval: tools.Always},
		func(context.Context, agentrun.Call, struct{}) (string, error) { return "", nil })
	require.NoError(t, err)
	agents := map[string]agentrun.Agent{"ops": {Tools: []agentrun.Tool{tool, tool}}, "other": {Tools: []agentrun.Tool{tool}}}
	require.EqualError(t, checkToolNames(policy.File{}, agents), "agent ops: two tools are called twin")
}
