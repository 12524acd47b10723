package config

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/tools"
)

func TestTwoToolsOfOneNameFailTheStart(t *testing.T) {
	tool, err := tools.New(tools.Spec[struct{}]{Name: "twin", Approval: tools.Always},
		func(context.Context, agentrun.Call, struct{}) (string, error) { return "", nil })
	require.NoError(t, err)
	_, err = NewToolSets(Config{Agents: []Agent{{Name: "ops"}, {Name: "other"}}}, Environment{}, func(agent string) ([]agentrun.Tool, error) {
		if agent == "ops" {
			return []agentrun.Tool{tool, tool}, nil
		}
		return []agentrun.Tool{tool}, nil
	})
	require.EqualError(t, err, "agent ops: two tools are called twin")
}
