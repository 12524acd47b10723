package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
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

// Certificates of clients live for days or hours where a service mesh or a cluster issues
// them, and the bot runs for longer.
func TestARenewedCertificateIsShownToRedisWithoutARestart(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	renew := func(serial int64, files ...string) {
		private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		form := x509.Certificate{SerialNumber: big.NewInt(serial)}
		der, err := x509.CreateCertificate(rand.Reader, &form, &form, &private.PublicKey, private)
		require.NoError(t, err)
		secret, err := x509.MarshalPKCS8PrivateKey(private)
		require.NoError(t, err)
		text := map[string][]byte{
			cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
		}
		for _, f := range files {
			require.NoError(t, os.WriteFile(f, text[f], 0o600))
		}
	}
	renew(1, cert, key)
	at, err := Redis{Addresses: []string{"h:1"}, TLS: RedisTLS{Enabled: true, CertFile: cert, KeyFile: key}}.Target(Environment{})
	require.NoError(t, err)
	var said error
	shown := func() int64 {
		t.Helper()
		connection, err := at.TLS()
		said = err
		c, err := connection.GetClientCertificate(nil)
		require.NoError(t, err)
		return c.Leaf.SerialNumber.Int64()
	}
	require.EqualValues(t, 1, shown())
	renew(2, cert, key)
	require.EqualValues(t, 2, shown())
	renew(3, cert)
	require.EqualValues(t, 2, shown(), "its key is not there yet")
	require.ErrorContains(t, said, "redis.tls.cert_file: tls: private key does not match")
	require.NoError(t, os.Remove(key))
	require.EqualValues(t, 2, shown())
	require.NoError(t, said, "it is said once")
	renew(4, cert, key)
	require.EqualValues(t, 4, shown())
	require.NoError(t, said)
	require.NoError(t, os.Remove(key))
	require.EqualValues(t, 4, shown())
	require.ErrorContains(t, said, "redis.tls.cert_file: open ", "it is another failure")
}

// Those who sign the certificates of Redis change too.
func TestARenewedAuthorityIsUsedWithoutARestart(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	renew := func() []byte {
		private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		form := x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
		der, err := x509.CreateCertificate(rand.Reader, &form, &form, &private.PublicKey, private)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
		return der
	}
	first := renew()
	at, err := Redis{Addresses: []string{"h:1"}, TLS: RedisTLS{Enabled: true, CAFile: ca, ServerName: "redis.internal"}}.Target(Environment{})
	require.NoError(t, err)
	trusts := func(der []byte) error {
		t.Helper()
		c, err := at.TLS()
		require.Equal(t, "redis.internal", c.ServerName)
		require.False(t, c.InsecureSkipVerify)
		cert, parseErr := x509.ParseCertificate(der)
		require.NoError(t, parseErr)
		want := x509.NewCertPool()
		want.AddCert(cert)
		require.True(t, want.Equal(c.RootCAs))
		return err
	}
	require.NoError(t, trusts(first))
	second := renew()
	require.NoError(t, trusts(second))
	require.NoError(t, os.WriteFile(ca, []byte("half"), 0o600))
	require.ErrorContains(t, trusts(second), "redis.tls.ca_file: "+ca+" has no certificate in PEM")
	require.NoError(t, trusts(second), "it is said once")
	require.NoError(t, trusts(renew()))
}
