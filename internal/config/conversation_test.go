package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/manifests"
)

func TestHowAnAgentTakesMessagesIsRead(t *testing.T) {
	c, err := Read(write(t, "policy: rules\nagents: [{name: a, replies: all, pending: refuse}, {name: b, channels: [C1]}]"))
	require.NoError(t, err)
	require.NoError(t, c.Check())
	require.Equal(t, RepliesAll, c.Agents[0].Replies)
	require.Equal(t, agentrun.PendingRefuse, c.Agents[0].Pending)
	require.Equal(t, map[string]bool{"a": true}, c.Overhear())
	require.Subset(t, c.Scopes(), []string{"channels:history", "groups:history"})
	require.Subset(t, c.Events(), []string{"app_mention", "message.channels", "message.groups"})

	c, err = Read(write(t, "policy: rules\nagents: [{name: a, replies: always, pending: drop, model_api: grpc}]"))
	require.NoError(t, err)
	require.ErrorContains(t, c.Check(), `agents[0].replies: must be mention or all, but is "always"`)
	require.ErrorContains(t, c.Check(), `agents[0].pending: must be reject, keep or refuse, but is "drop"`)
	require.ErrorContains(t, c.Check(), `agents[0].model_api: must be chat or responses, but is "grpc"`)
	require.Equal(t, manifests.Scopes(), c.Scopes(), "nothing is asked for that is not used")
}
