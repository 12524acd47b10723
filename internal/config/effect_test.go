package config

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/tools"
)

func TestAnEffectThatIsNotKnownFailsTheStart(t *testing.T) {
	err := Config{Policy: "p", Agents: []Agent{{Name: "ops", Tools: map[string]Tool{"pay": {Effect: "safe"}}}}}.Check()
	require.ErrorContains(t, err, `agents[0].tools.pay.effect: "safe" is none of`)
}

// An effect that would have no effect fails the start.
func TestALookupNeedsAToolThatHasOne(t *testing.T) {
	pay, err := tools.New(tools.Spec[struct{}]{Name: "pay", Approval: tools.Always},
		func(context.Context, agentrun.Call, struct{}) (string, error) { return "", nil })
	require.NoError(t, err)
	c := Config{Agents: []Agent{{Name: "ops", Tools: map[string]Tool{"pay": {Effect: agentrun.EffectLookup}}}}}
	_, err = NewToolSets(c, Environment{}, func(string) ([]agentrun.Tool, error) { return []agentrun.Tool{pay}, nil })
	require.ErrorContains(t, err, "agents[0].tools.pay.effect: lookup needs a tool that can say whether a call happened")
	require.Equal(t, map[string]agentrun.Effect{"pay": agentrun.EffectLookup}, c.Agents[0].Effects())
}
