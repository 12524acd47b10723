package config

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/tools"
	"github.com/countersign/countersign/internal/tools/mcptool"
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

// Settings may be written before the tools of a server are accepted.
func TestASettingOfAToolThatWasNotAcceptedSaysHowToAcceptIt(t *testing.T) {
	c := Config{Gateways: []Gateway{{Name: "desk", MCP: map[string]MCPServer{"srv": {Command: "x"}}, Tools: map[string]Tool{"srv.drop": {}}}}}.WithServers(mcptool.Open(nil, mcptool.Pins{}, slog.New(slog.DiscardHandler)))
	_, err := NewToolSets(c, Environment{}, nil)
	require.EqualError(t, err, "gateways[0].tools.srv.drop: desk has no such tool, so the setting would have no effect; it has those of the server srv that were accepted, with bot mcp pins accept")
}

// An endpoint is a tool like any other, and its secret is in the environment.
func TestHTTPEndpointsAreToolsOfTheAgent(t *testing.T) {
	const text = `
policy: policy.yaml
agents:
  - name: ops
    http:
      hosts: [a.example]
      tools:
        - name: refund
          method: POST
          url: https://a.example/orders/{order}
          headers: {Authorization: BILLING}
          schema: {type: object, properties: {order: {type: string}}, required: [order]}
        - name: look
          method: GET
          url: https://a.example/orders
          read_only: true
          schema: {type: object, additionalProperties: false}
`
	c, problems := Decode([]byte(text))
	require.Empty(t, problems)
	require.NoError(t, c.Check())
	sets, err := NewToolSets(c, Environment{}, nil)
	require.NoError(t, err, "who only judges calls needs no secret")
	o := PolicyOptions(c, sets)
	require.Len(t, o.Tools, 2)
	require.Equal(t, "refund", o.Tools[0].Name)
	require.Equal(t, "agents[0].http", o.Tools[0].Setting.Place)
	require.EqualValues(t, ApprovalAll, o.Tools[0].Setting.Approval)
	require.Empty(t, o.Tools[1].Setting.Approval)
	require.ErrorContains(t, c.HTTPSecrets(Environment{}), "agents[0].http.tools[0].headers.Authorization: BILLING is not set")
	require.NoError(t, c.HTTPSecrets(Environment{}.With("BILLING", "Bearer x")))

	c.Agents[0].HTTP.Hosts, c.Agents[0].HTTP.Allow = nil, []string{"10.1.2.3/8"}
	require.ErrorContains(t, c.Check(), "agents[0].http.tools[0].url: the host a.example is not listed under hosts")
	require.ErrorContains(t, c.Check(), `agents[0].http.allow[0]: "10.1.2.3/8" has an address in it`)
	c.Agents[0].HTTP = &HTTPTools{}
	require.ErrorContains(t, c.Check(), "agents[0].http.tools: there are none")
}
