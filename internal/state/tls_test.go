package state_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/state"
)

// signedItself returns a certificate for an address that has signed itself.
func signedItself(t *testing.T, ip string) *tls.Certificate {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	form := x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.ParseIP(ip)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &form, &form, &private.PublicKey, private)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private, Leaf: leaf}
}

// A certificate of Redis, and who may have signed it, change while the bot runs. Each
// connection is made with what is true then, and only to the server that it names.
func TestEachConnectionIsMadeWithTheTLSOfNow(t *testing.T) {
	var shown, trusted atomic.Pointer[tls.Certificate]
	server, err := miniredis.RunTLS(&tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return shown.Load(), nil }})
	require.NoError(t, err)
	t.Cleanup(server.Close)
	var log bytes.Buffer
	var unreadable error
	client, err := state.Connect(state.Target{
		Addresses: []string{server.Addr()}, Log: slog.New(slog.NewTextHandler(&log, nil)),
		TLS: func() (*tls.Config, error) {
			pool := x509.NewCertPool()
			pool.AddCert(trusted.Load().Leaf)
			return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, unreadable
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	one, ok := client.(*redis.Client)
	require.True(t, ok)
	connects := func() error {
		t.Helper()
		c := one.Conn() // it is kept, so that the next one is another
		t.Cleanup(func() { _ = c.Close() })
		return c.Ping(t.Context()).Err()
	}
	first, second := signedItself(t, "127.0.0.1"), signedItself(t, "127.0.0.1")
	shown.Store(first)
	trusted.Store(first)
	require.NoError(t, connects())
	shown.Store(second)
	require.ErrorContains(t, connects(), "x509: ")
	trusted.Store(second)
	require.NoError(t, connects())
	require.Empty(t, log.String())
	unreadable = errors.New("half a file")
	require.NoError(t, connects(), "it is made all the same")
	require.Contains(t, log.String(), `level=WARN msg="a renewed file cannot be used; what was read before is used" err="half a file"`)

	elsewhere := signedItself(t, "127.0.0.2")
	shown.Store(elsewhere)
	trusted.Store(elsewhere)
	require.ErrorContains(t, connects(), "x509: certificate is valid for 127.0.0.2, not 127.0.0.1")
}
