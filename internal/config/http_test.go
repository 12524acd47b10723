package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatTheListenerForAgentsCannotBeFailsTheStart(t *testing.T) {
	problems := func(h HTTP) error {
		c, found := Decode([]byte("agents:\n  - name: ops\npolicy: p.yaml\n"))
		require.Empty(t, found)
		c.HTTP = h
		return c.Check()
	}
	require.NoError(t, problems(HTTP{}))
	require.NoError(t, problems(HTTP{Listen: "127.0.0.1:8090", Origins: []string{"https://ops.example.com", "http://localhost:3000"}, Hosts: []string{"agents.example.com"}}))
	require.NoError(t, problems(HTTP{Listen: ":8090", Proxies: []string{"10.1.0.0/16", "192.0.2.7", "fd00::/8"}}))
	require.NoError(t, problems(HTTP{Listen: ":8090"}))
	for want, h := range map[string]HTTP{
		"http.listen: not set":                    {Origins: []string{"https://a.example"}},
		`address with a port, such as`:            {Listen: "localhost"},
		`but is ":http"`:                          {Listen: ":http"},
		`"*" is no origin`:                        {Listen: ":1", Origins: []string{"*"}},
		`"https://*.example" is no origin`:        {Listen: ":1", Origins: []string{"https://*.example"}},
		`"https://a.example/" is no origin`:       {Listen: ":1", Origins: []string{"https://a.example/"}},
		`"null" is no origin`:                     {Listen: ":1", Origins: []string{"null"}},
		`"a.example:80" is no name of a host`:     {Listen: ":1", Hosts: []string{"a.example:80"}},
		`"http://a" is no name of a host`:         {Listen: ":1", Hosts: []string{"http://a"}},
		`"https:///x" is no address of keys`:      {},
		"keys: must begin with https://":          {},
		"jwt.audience: not set":                   {},
		"the same issuer, audience and subject":   {},
		`http.trusted_proxies[1]: "proxy" is not`: {Listen: ":1", Proxies: []string{"10.1.0.0/16", "proxy"}},
		`the network is 10.1.0.0/16`:              {Listen: ":1", Proxies: []string{"10.1.2.3/16"}},
		`"0.0.0.0/0" is every address`:            {Listen: ":1", Proxies: []string{"0.0.0.0/0"}},
		`"::/0" is every address`:                 {Listen: ":1", Proxies: []string{"::/0"}},
		"so the other settings of http have":      {Origins: []string{}, Proxies: []string{"10.1.0.0/16"}},
	} {
		if h.Listen != "" || h.Origins != nil {
			require.ErrorContains(t, problems(h), want)
			continue
		}
		old := "    tokens: [" + hashOf("one") + "]\n"
		jwt := map[string]string{
			`"https:///x" is no address of keys`:    "jwt: {issuer: i, audience: a, subject: s, keys: 'https:///x'}",
			"keys: must begin with https://":        "jwt: {issuer: i, audience: a, subject: s, keys: 'http://a.example/k'}",
			"jwt.audience: not set":                 "jwt: {issuer: i, subject: s, keys: k.json}",
			"the same issuer, audience and subject": "jwt: {issuer: i, audience: a, subject: s, keys: k.json}\n  - {name: twin, owner: U0ALICE, channel: C0OPS, doors: [api], jwt: {issuer: i, audience: a, subject: s, keys: l.json}}\n  - name: rest\n    owner: U0ALICE\n    channel: C0OPS\n    tokens_file: ci.tokens",
		}[want]
		require.ErrorContains(t, remote(t, old, "    "+jwt+"\n"), want)
	}
	require.NoError(t, remote(t, "    tokens: ["+hashOf("one")+"]\n", "    jwt: {issuer: i, audience: a, subject: s, keys: 'https://ci.example/keys'}\n"))
}
