package config

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

const goodWeb = `
agents: [{name: ops}]
policy: p
http: {listen: ":8090"}
web:
  agent: ops
  channel: C0OPS
  people:
    - {user: U0ALICE, tokens: ["sha256:0000000000000000000000000000000000000000000000000000000000000000"]}
  issuers:
    - {issuer: "https://id.example", audience: chat, keys: "https://id.example/keys", subjects: {"auth0|1": U0ALICE}, emails: true}
`

func TestTheSettingsOfTheWebAreEnforced(t *testing.T) {
	c, problems := Decode([]byte(goodWeb))
	require.Empty(t, problems)
	require.NoError(t, c.Check())
	require.Equal(t, approvals.UserID("U0ALICE"), c.Web.Issuers[0].Subjects["auth0|1"])
	require.Contains(t, c.Scopes(), "users:read.email")

	for want, change := range map[string]func(*Config){
		`web.agent: there is no agent "x"`:                     func(c *Config) { c.Web.Agent = "x" },
		"web.agent: not set, so the other settings":            func(c *Config) { c.Web.Agent = "" },
		`web.channel: "ops" is not a channel id`:               func(c *Config) { c.Web.Channel = "ops" },
		`web.dialect: must be one of common, v7, v7.0.82, v5`:  func(c *Config) { c.Web.Dialect = "v8" },
		`web.manage_system_prompt: must be one of server, cli`: func(c *Config) { c.Web.System = "user" },
		"web.hold: must be at least 1s":                        func(c *Config) { c.Web.Hold = time.Millisecond },
		"web.streams: must not be negative":                    func(c *Config) { c.Web.Streams = -1 },
		"http.listen: not set, so no frontend":                 func(c *Config) { c.HTTP = HTTP{} },
		`web.origins: "https://*.example" is no origin`:        func(c *Config) { c.Web.Origins = []string{"https://*.example"} },
		`web.origins: "http://ops.example.com" is not https`: func(c *Config) {
			c.Web.Cookies, c.Web.Origins = true, []string{"http://localhost:1", "http://ops.example.com"}
		},
		"web.origins: not set, so web.cookies has no":       func(c *Config) { c.Web.Cookies = true },
		`web.page: "https://x.example/chats" is no address`: func(c *Config) { c.Web.Page = "https://x.example/chats" },
		`web.page: "https://{id}.example/" is no address`:   func(c *Config) { c.Web.Page = "https://{id}.example/" },
		`web.page: "javascript:x/{id}" is no address`:       func(c *Config) { c.Web.Page = "javascript:x/{id}" },
		`web.page: "https://u@x.example/{id}" is no`:        func(c *Config) { c.Web.Page = "https://u@x.example/{id}" },
		`web.page: "https://x.example/{id}/{id}" is no`:     func(c *Config) { c.Web.Page = "https://x.example/{id}/{id}" },
		"web: nobody can sign in":                           func(c *Config) { c.Web.People, c.Web.Issuers = nil, nil },
		`web.people[0].user: "ann" is not a user id`:        func(c *Config) { c.Web.People[0].User = "ann" },
		"web.people[0]: one of the tokens is also one of remote_agents[0]": func(c *Config) {
			c.RemoteAgents = []RemoteAgent{{Tokens: c.Web.People[0].Tokens}}
		},
		"web.people[0]: one of the tokens is also one of gateways[0].clients[0]": func(c *Config) {
			c.Gateways = []Gateway{{Clients: []GatewayClient{{Tokens: c.Web.People[0].Tokens}}}}
		},
		"web.issuers[0].subjects.auth0|1: remote_agents[0].jwt has the same issuer, audience and subject": func(c *Config) {
			c.RemoteAgents = []RemoteAgent{{JWT: &JWT{Issuer: "https://id.example", Audience: "chat", Subject: "auth0|1"}}}
		},
		"web.people[0]: has no token":                        func(c *Config) { c.Web.People[0].Tokens = nil },
		"web.people[0].tokens[0]: is not sha256":             func(c *Config) { c.Web.People[0].Tokens = []string{"secret"} },
		"web.people[1]: one of the tokens is also":           func(c *Config) { c.Web.People = append(c.Web.People, c.Web.People[0]) },
		"web.issuers[0].audience: not set; without it, any":  func(c *Config) { c.Web.Issuers[0].Audience = "" },
		"web.issuers[0].keys: must begin with https":         func(c *Config) { c.Web.Issuers[0].Keys = "http://id.example/keys" },
		"web.issuers[0]: maps no token to a person":          func(c *Config) { c.Web.Issuers[0].Subjects, c.Web.Issuers[0].Emails = nil, false },
		"web.issuers[0].subjects: a token without a sub":     func(c *Config) { c.Web.Issuers[0].Subjects[""] = "U0ALICE" },
		`web.issuers[0].subjects.x: "@ann" is not a user id`: func(c *Config) { c.Web.Issuers[0].Subjects["x"] = "@ann" },
		`web.issuers[1].issuer: "https://id.example" is lis`: func(c *Config) { c.Web.Issuers = append(c.Web.Issuers, c.Web.Issuers[0]) },
	} {
		c, _ := Decode([]byte(goodWeb))
		change(&c)
		err := c.Check()
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret", "a token is never quoted")
	}
}

func TestTheAddressOfAChatStaysOnItsPage(t *testing.T) {
	for page, want := range map[string]string{
		"https://x.example/chats/{id}":   "https://x.example/chats/a%3Ab.c",
		"http://localhost:3000/?c={id}#": "http://localhost:3000/?c=a%3Ab.c#",
		"https://x.example/#{id}":        "https://x.example/#a%3Ab.c",
	} {
		c, _ := Decode([]byte(goodWeb))
		c.Web.Page = page
		require.NoError(t, c.Check())
		require.Equal(t, want, c.Web.PageOf("a:b.c"))
		require.Empty(t, c.Web.PageOf(".."))
		require.Empty(t, c.Web.PageOf(""))
	}
	require.Empty(t, Web{}.PageOf("a"))
}

func TestSettingsOfTheWebThatAreNotForProductionAreWarnedOf(t *testing.T) {
	warnings := func(change func(*Config)) []string {
		c, problems := Decode([]byte(goodWeb))
		require.Empty(t, problems)
		change(&c)
		require.NoError(t, c.Check(), "a warning does not stop the start")
		var all []string
		for _, w := range c.Warnings() {
			require.NotEmpty(t, w.Advice)
			all = append(all, strings.Split(w.Text, ":")[0])
		}
		return all
	}
	someone := &People{Users: []approvals.UserID{"U0ALICE"}}
	require.Equal(t, []string{"web.people", "web.issuers[0].emails"}, warnings(func(*Config) {}))
	require.Equal(t, []string{"web.people"}, warnings(func(c *Config) { c.Agents[0].Who = someone }))
	require.Equal(t, []string{"web.people"}, warnings(func(c *Config) { c.Web.Issuers[0].Emails = false }))
	require.Empty(t, warnings(func(c *Config) { c.Agents[0].Who, c.Web.People = someone, nil }))
	require.Empty(t, warnings(func(c *Config) { c.Web, c.HTTP = Web{}, HTTP{} }))
}
