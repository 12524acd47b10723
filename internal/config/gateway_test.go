package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func gatewayText() string {
	return `agents: [{name: ops}]
policy: policy.yaml
http: {listen: "127.0.0.1:8090"}
remote_agents: [{name: ci, owner: U0ALICE, channel: C0OPS, tokens: ["` + hashOf("one") + `"], doors: [api]}]
gateways:
  - name: desk
    channel: C0OPS
    mcp: {files: {command: ./server}}
    clients:
      - {owner: U0ALICE, tokens: ["` + hashOf("two") + `"]}
      - {triggers: {users: [U0BOB01, U0CAROL]}, tokens_file: desk.tokens}
    gone: keep
`
}

func checkGateway(t *testing.T, old, changed string) (Config, error) {
	t.Helper()
	require.Contains(t, gatewayText(), old)
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "desk.tokens"), []byte(hashOf("three")+"\n"), 0o600))
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(gatewayText(), old, changed, 1)), 0o600))
	c, err := Read(path)
	require.NoError(t, err)
	return c, c.Check()
}

func TestWhatAGatewayCannotBeFailsTheStart(t *testing.T) {
	c, err := checkGateway(t, "name: desk", "name: desk")
	require.NoError(t, err)
	require.True(t, c.HasMCP())
	require.True(t, filepath.IsAbs(c.Gateways[0].MCP["files"].Command), "it is beside the file")
	servers, err := c.Servers(Environment{})
	require.NoError(t, err)
	require.True(t, servers[0].Whole)
	require.Equal(t, "desk", servers[0].Agent)
	for want, c := range map[string][2]string{
		`gateways[0].name: agents[0] is already called "ops"`:                        {"name: desk", "name: ops"},
		`gateways[0].name: remote_agents[0] is already called "ci"`:                  {"name: desk", "name: ci"},
		"gateways[0].name: not set":                                                  {"name: desk\n    channel", "channel"},
		"gateways[0].channel":                                                        {"    channel: C0OPS\n", ""},
		"gateways[0].mcp: not set":                                                   {"    mcp: {files: {command: ./server}}\n", ""},
		"gateways[0].mcp.files: set command":                                         {"{command: ./server}", "{timeout: 1m}"},
		`gateways[0].gone: must be withdraw or keep, but is "run"`:                   {"gone: keep", "gone: run"},
		"gateways[0].clients[0]: set owner to the person":                            {`{owner: U0ALICE, tokens: ["` + hashOf("two"), `{tokens: ["` + hashOf("two")},
		"gateways[0].clients[0]: one of its tokens is also one of remote_agents[0]":  {hashOf("two"), hashOf("one")},
		"gateways[0].clients[1]: one of its tokens is also one of gateways[0].clien": {hashOf("two"), hashOf("three")},
		`gateways[0].clients[0].owner: "alice" is not a user id`:                     {"{owner: U0ALICE, tokens: [\"" + hashOf("two"), "{owner: alice, tokens: [\"" + hashOf("two")},
		"gateways[0].clients[1]: has no credential":                                  {", tokens_file: desk.tokens", ""},
		"no client can reach the gateways":                                           {"http: {listen: \"127.0.0.1:8090\"}\n", ""},
	} {
		_, err := checkGateway(t, c[0], c[1])
		require.ErrorContains(t, err, want)
	}
	_, err = Read(write(t, strings.Replace(gatewayText(), "gone:", "gome:", 1)))
	require.ErrorContains(t, err, "gateways[0].gome: there is no such key")
}
