package config

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhereRedisCannotBeFailsTheStart(t *testing.T) {
	problems := func(r Redis) error {
		c, found := Decode([]byte("agents:\n  - name: ops\npolicy: p.yaml\n"))
		require.Empty(t, found)
		c.Redis = r
		return c.Check()
	}
	one := []string{"redis.internal:6379"}
	for _, good := range []Redis{
		{},
		{Addresses: one},
		{Addresses: one, Cluster: true, User: "bot", TLS: RedisTLS{Enabled: true, CAFile: "ca.pem", ServerName: "r"}},
		{Addresses: []string{"a:1", "b:2"}, Sentinel: Sentinel{Master: "m"}},
	} {
		require.NoError(t, problems(good))
	}
	for want, r := range map[string]Redis{
		`"redis.internal" is no address`:             {Addresses: []string{"redis.internal"}},
		`"redis://h:1" is no address with a port`:    {Addresses: []string{"redis://h:1"}},
		"redis.user: has no effect":                  {User: "bot"},
		"redis.tls: has no effect":                   {TLS: RedisTLS{Enabled: true}},
		"redis.sentinel.master: has no effect":       {Sentinel: Sentinel{Master: "m"}},
		"Sentinels watch no cluster":                 {Addresses: one, Cluster: true, Sentinel: Sentinel{Master: "m"}},
		"redis.tls.enabled: not true":                {Addresses: one, TLS: RedisTLS{CAFile: "ca.pem"}},
		"redis.tls.cert_file and redis.tls.key_file": {Addresses: one, TLS: RedisTLS{Enabled: true, CertFile: "c.pem"}},
	} {
		require.ErrorContains(t, problems(r), want)
	}
}

// Either the environment or the file says where Redis is, and nothing that is
// printed tells the password.
func TestOnePlaceSaysWhereRedisIs(t *testing.T) {
	url := Environment{RedisURL: NewSecret("redis://:hunter22@h")}
	named := Redis{Addresses: []string{"h:1"}, User: "bot"}
	_, err := Redis{}.Target(Environment{})
	require.ErrorContains(t, err, "REDIS_URL: not set")
	_, err = named.Target(url)
	require.ErrorContains(t, err, "both are set")
	require.False(t, Redis{}.Named(Environment{}))
	require.True(t, Redis{}.Named(url))
	require.True(t, named.Named(Environment{}))

	at, err := named.Target(Environment{RedisPassword: NewSecret("hunter22")})
	require.NoError(t, err)
	require.Equal(t, "hunter22", at.Password())
	require.Nil(t, at.TLS)
	from, err := Redis{}.Target(url)
	require.NoError(t, err)
	for _, printed := range []string{fmt.Sprintf("%v %+v", at, at), from.String()} {
		require.NotContains(t, printed, "hunter22")
	}
	named.TLS = RedisTLS{Enabled: true, CAFile: write(t, "no certificate")}
	_, err = named.Target(Environment{})
	require.ErrorContains(t, err, "has no certificate in PEM")
	named.TLS.CAFile += ".gone"
	_, err = named.Target(Environment{})
	require.ErrorContains(t, err, "redis.tls.ca_file: open ")
}
