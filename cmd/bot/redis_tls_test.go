package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state/statetest"
)

// certificate writes a certificate for redis.internal that has signed itself, and its
// key, and returns their paths.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	form := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redis"}, DNSNames: []string{"redis.internal"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &form, &form, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	return cert, key
}

// serves starts redis-server with a configuration, and returns once it says ready.
func serves(t *testing.T, ready, conf string, flags ...string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "redis.conf")
	require.NoError(t, os.WriteFile(path, []byte(conf), 0o600))
	server := exec.CommandContext(t.Context(), "redis-server", append([]string{path}, flags...)...)
	said := newOutput()
	server.Stdout = said
	require.NoError(t, server.Start())
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	said.await(t, ready)
}

// The bot does all its work on a Redis that speaks only TLS with certificates, as a
// user with the rights that the documentation names, and with passwords from files:
// on one that it is told of, and on one that a Sentinel with a password tells it of.
func TestTheBotWorksOverTLSAsAUserWithFewRights(t *testing.T) {
	t.Parallel()
	for name, watched := range map[string]bool{"one server": false, "behind a Sentinel": true} {
		t.Run(name, func(t *testing.T) { worksOverTLS(t, watched) })
	}
}

func worksOverTLS(t *testing.T, watched bool) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "settings.md"))
	require.NoError(t, err)
	rights := regexp.MustCompile("`(resetchannels [^`]*)` is enough").FindStringSubmatch(string(page))
	require.NotNil(t, rights)
	cert, key := certificate(t)
	addr := statetest.FreeAddr(t)
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	tls := fmt.Sprintf("bind 127.0.0.1\nport 0\ntls-cert-file %s\ntls-key-file %s\ntls-ca-cert-file %s\ntls-auth-clients yes\n", cert, key, cert)
	serves(t, "(?i)ready to accept connections", tls+fmt.Sprintf("tls-port %s\ndir %s\nappendonly yes\nappendfsync always\nuser default off\n"+
		"user sentinel on >watching allchannels +multi +slaveof +ping +exec +subscribe +config|rewrite +role +publish +info +client|setname +client|kill +script|kill\nuser bot on >hunter22 %s\n",
		port, t.TempDir(), strings.ReplaceAll(rights[1], `\|`, "|")))
	secret := func(words string) (path string) {
		path = filepath.Join(t.TempDir(), "password")
		require.NoError(t, os.WriteFile(path, []byte(words+"\n"), 0o600))
		return path
	}

	i := newInstallation(t, slacksim.Config{})
	i.rules = oneOfSRE
	i.env["REDIS_PASSWORD_FILE"] = secret("hunter22")
	sentinel := ""
	if watched {
		redis := port
		addr = statetest.FreeAddr(t)
		_, port, err = net.SplitHostPort(addr)
		require.NoError(t, err)
		serves(t, `\+monitor master mine`, tls+fmt.Sprintf("tls-port %s\ntls-replication yes\ndir %s\nrequirepass guard\nsentinel monitor mine 127.0.0.1 %s 1\n"+
			"sentinel auth-user mine sentinel\nsentinel auth-pass mine watching\n", port, t.TempDir(), redis), "--sentinel")
		i.env["REDIS_SENTINEL_PASSWORD_FILE"] = secret("guard")
		sentinel = "sentinel: {master: mine}, "
	}
	i.replace("redis: {durability: fsync}", fmt.Sprintf(
		"redis: {addresses: [%q], %suser: bot, tls: {enabled: true, ca_file: %q, cert_file: %q, key_file: %q, server_name: redis.internal}}", addr, sentinel, cert, cert, key))
	delete(i.env, "REDIS_URL")
	i.deletes()
	require.Contains(t, i.check(), "ok               Redis: keeps every acknowledged write")
	f := &follower{installation: i, b: i.bot()}
	i.reconciles(f.b)
	i.mentions(f.b, slacksim.Post{User: alice, Channel: ops})
	messages, err := i.slack.Messages(alice, ops, "")
	require.NoError(t, err)
	f.root = messages[0].TS
	f.sees("the card", func() bool { return f.reads(alice, ops, f.root, "Delete a.txt") })
	f.approves()
	require.Contains(t, f.admin("list"), "0 requests wait\n")
	require.Contains(t, f.admin("size"), "under countersign\n")
	require.Contains(t, f.admin("parked"), "0 parked\n")

	i.env["REDIS_URL"] = "redis://" + addr
	require.Contains(t, i.check(), "REDIS_URL and redis.addresses: both are set; set one of them")
}
