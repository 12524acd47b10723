package config

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hooked reads a configuration with a webhook, after one change of its text.
func hooked(t *testing.T, old, changed string) (Config, error) {
	t.Helper()
	text := `agents:
  - name: ops
policy: policy.yaml
http: {listen: "127.0.0.1:8090"}
remote_agents:
  - name: claude
    owner: U0ALICE
    channel: C0OPS
    tokens: [` + hashOf("one") + `]
    doors: [api]
    webhooks:
      - name: ci
        url: https://ci.example.com/hooks/1
        secrets: [CI_NEW, CI_OLD]
        events: [approval.created, approval.settled]
        arguments: true
      - name: inside
        url: http://10.1.2.3:8080/hooks
        secrets: [INSIDE]
webhooks:
  allow: [10.1.0.0/16]
  deny: [192.88.99.7]
  plain_hosts: [10.1.2.3]
  ports: [8080]
  proxy: http://proxy.example.com:3128
  timeout: 10s
`
	require.Contains(t, text, old)
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(text, old, changed, 1)), 0o600))
	c, err := Read(path)
	require.NoError(t, err)
	return c, c.Check()
}

func TestAWebhookThatCannotBeFailsTheStart(t *testing.T) {
	_, err := hooked(t, "name: ci", "name: ci")
	require.NoError(t, err)
	const first = "remote_agents[0].webhooks[0]."
	for want, c := range map[string][2]string{
		first + "name: must be":             {"name: ci", `name: "C I"`},
		`webhooks[1].name: another webhook`: {"name: inside", "name: ci"},
		first + "url: the receiver is not usable: http is not allowed to this host: use https, or list the host in webhooks.plain_hosts": {"https://ci.", "http://ci."},
		first + "url: the receiver is not usable: the URL":                                            {"https://ci.", "https://u:p@ci."},
		first + "url: the receiver is not usable: the port is not allowed: list it in webhooks.ports": {"ci.example.com", "ci.example.com:22"},
		first + "url: the receiver is not usable: the host has an address":                            {"ci.example.com", "169.254.169.254"},
		"webhooks[1].url: the receiver is not usable: the host has an addre":                          {"allow: [10.1.0.0/16]", "allow: [10.2.0.0/16]"},
		first + "secrets: name one environment variable":                                              {"        secrets: [CI_NEW, CI_OLD]\n", ""},
		first + "secrets[1]: is not the name":                                                         {"CI_OLD", "whsec_hunter2/"},
		first + "secrets[1]: names that begin":                                                        {"CI_OLD", "COUNTERSIGN_CI"},
		first + "secrets: has CI_NEW twice":                                                           {"CI_OLD", "CI_NEW"},
		first + `events: there is no "approval.denied"`:                                               {"approval.created,", "approval.denied,"},
		first + `events: has "approval.settled" twice`:                                                {"approval.created,", "approval.settled,"},
		`webhooks.allow[0]: "10.1.0" is not a network`:                                                {"10.1.0.0/16", "10.1.0"},
		`webhooks.allow[0]: "10.1.2.0/16" has an address in it`:                                       {"10.1.0.0/16", "10.1.2.0/16"},
		"webhooks.allow: cannot be 0.0.0.0/0: allow smaller":                                          {"10.1.0.0/16", "0.0.0.0/0"},
		`webhooks.deny[0]: "none" is not a network`:                                                   {"192.88.99.7", "none"},
		`webhooks.deny[0]: "::ffff:8.8.8.8" is an IPv4 address`:                                       {"192.88.99.7", `"::ffff:8.8.8.8"`},
		`webhooks.deny[0]: "::ffff:8.8.8.0/120" is an IPv4 address`:                                   {"192.88.99.7", `"::ffff:8.8.8.0/120"`},
		"webhooks.ports: there is no port 80800":                                                      {"ports: [8080]", "ports: [80800]"},
		"webhooks.proxy: must not have a name or a password":                                          {"http://proxy", "http://u:p@proxy"},
		"webhooks.proxy: must be a URL that begins with http:// or https://":                          {"http://proxy", "socks5://proxy"},
		"webhooks.timeout: must be at most 30s, but is 1m0s":                                          {"timeout: 10s", "timeout: 1m"},
	} {
		_, err := hooked(t, c[0], c[1])
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestSecretsOfWebhooksComeFromTheEnvironment(t *testing.T) {
	c, err := hooked(t, "name: ci", "name: ci")
	require.NoError(t, err)
	key := func(b string) string {
		return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(b, 32)))
	}
	environ := []string{"CI_NEW=" + key("n"), "CI_OLD=" + key("o") + "\n", "INSIDE=" + key("i")}
	e, _ := ReadEnvironment(environ)
	all, err := c.Endpoints(e)
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Len(t, all[EndpointKey{"claude", "ci"}].Secrets, 2, "both sign while one is replaced")
	require.Equal(t, "http://10.1.2.3:8080/hooks", all[EndpointKey{"claude", "inside"}].URL)
	require.NotContains(t, fmt.Sprintf("%+v %#v", e, e), key("n"))

	e, _ = ReadEnvironment([]string{"CI_NEW=hunter2", "CI_OLD="})
	_, err = c.Endpoints(e)
	require.ErrorContains(t, err, "webhooks[0].secrets[0]: CI_NEW: the webhook secret is not usable: it does not begin with whsec_")
	require.ErrorContains(t, err, "webhooks[0].secrets[1]: CI_OLD is not set")
	require.ErrorContains(t, err, "webhooks[1].secrets[0]: INSIDE is not set")
	require.NotContains(t, err.Error(), "hunter2")
}

// Whoever writes a secret where its variable belongs finds it in no log.
func TestWhatIsNoNameOfAVariableIsNotQuoted(t *testing.T) {
	for _, secret := range []string{"Bearer hunter2", "ghp_hunter2", "whsec_hunter2", "hunter2"} {
		var c Config
		c.RemoteAgents = []RemoteAgent{{Name: "claude", Webhooks: []Webhook{{Name: "ci", URL: "https://ci.example/", Secrets: []string{secret}}}}}
		c.Agents = []Agent{{
			Name: "ops", MCP: map[string]MCPServer{"docs": {URL: "https://docs.example/mcp", Headers: map[string]string{"Authorization": secret}}},
			HostedMCP: map[string]HostedMCP{"hosted": {Headers: map[string]string{"Authorization": secret}}},
		}}
		_, endpoints := c.Endpoints(Environment{})
		_, servers := c.Servers(Environment{})
		for _, err := range []error{endpoints, servers, c.HTTPSecrets(Environment{})} {
			require.ErrorContains(t, err, "what is there is no name of a variable that is set")
			require.NotContains(t, err.Error(), "hunter2")
		}
	}
}

func TestAnEndpointIsToldWhatItAsksFor(t *testing.T) {
	require.True(t, Webhook{}.Tells("approval.settled"))
	require.False(t, Webhook{}.Tells("approval.created"))
	require.True(t, Webhook{Events: WebhookEvents}.Tells("approval.created"))
	require.False(t, Webhook{Events: WebhookEvents[:1]}.Tells("approval.settled"))
	sender, err := Webhooks{}.Sender(time.Now)
	require.NoError(t, err)
	require.NotNil(t, sender)
}
