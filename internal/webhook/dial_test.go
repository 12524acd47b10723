package webhook_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/webhook"
)

// names answers name lookups with one list of addresses after the other; the last
// one stays.
type names struct {
	mu      sync.Mutex
	answers [][]string
	asked   int
}

func resolver(t *testing.T, answers ...[]string) *net.Resolver {
	t.Helper()
	n := &names{answers: answers}
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		for query := make([]byte, 1500); ; {
			size, from, err := conn.ReadFrom(query)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(n.answer(query[:size]), from)
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-served })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// answer is the response to a query with one question: the next addresses for A, none
// for other types.
func (n *names) answer(query []byte) []byte {
	end := 12
	for query[end] != 0 {
		end += 1 + int(query[end])
	}
	end += 5
	var addresses []string
	if binary.BigEndian.Uint16(query[end-4:]) == 1 {
		n.mu.Lock()
		addresses = n.answers[min(n.asked, len(n.answers)-1)]
		n.asked++
		n.mu.Unlock()
	}
	out := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, byte(len(addresses)), 0, 0, 0, 0}, query[12:end]...)
	for _, a := range addresses {
		out = append(out, 0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		out = append(out, netip.MustParseAddr(a).AsSlice()...)
	}
	return out
}

// inside is a service on another loopback address that counts who connects.
func inside(t *testing.T, port int) *atomic.Int32 {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.2:%d", port))
	require.NoError(t, err)
	var hits atomic.Int32
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			hits.Add(1)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-served })
	return &hits
}

// A name that is public when it is looked at and internal when it is dialed reaches
// nothing: what counts is the address that is dialed.
func TestANameThatChangesItsAddressReachesNothingInside(t *testing.T) {
	r := receive(t, status(200), false)
	hits := inside(t, r.port(t))
	cfg := reaching(t, r)
	cfg.PlainHosts = []string{"rebind.test"}
	cfg.Resolver = resolver(t, []string{"127.0.0.1"}, []string{"127.0.0.2"}, []string{"169.254.169.254"}, []string{"10.0.0.1", "192.168.0.1"}, []string{"127.0.0.2", "127.0.0.1"})
	s := sender(t, cfg)
	e := to(t, fmt.Sprintf("http://rebind.test:%d/", r.port(t)))
	require.NoError(t, s.Check(e))
	for _, want := range []webhook.Outcome{
		{Kind: webhook.Delivered, Status: 200},
		{Kind: webhook.Retry, Reason: "The host has an address that is not allowed: 127.0.0.0/8 (loopback)."},
		{Kind: webhook.Retry, Reason: "The host has an address that is not allowed: 169.254.169.254/32 (a metadata service)."},
		{Kind: webhook.Retry, Reason: "The host has an address that is not allowed: 10.0.0.0/8 (private)."},
		{Kind: webhook.Delivered, Status: 200}, // by the address that is allowed
	} {
		require.Equal(t, want, s.Send(t.Context(), e, settled))
	}
	require.Zero(t, hits.Load())
}

// Forms of an address that only some resolvers understand are judged by what they
// turn out to be.
func TestOddFormsOfAnAddressReachNothingInside(t *testing.T) {
	r := receive(t, status(200), false)
	cfg := webhook.Config{Ports: []int{r.port(t)}, Resolver: resolver(t, []string{"127.0.0.1"})}
	for _, host := range []string{"localhost", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "127.0.0.1.", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "１２７.0.0.1"} {
		cfg.PlainHosts = []string{host}
		got := sender(t, cfg).Send(t.Context(), to(t, fmt.Sprintf("http://%s:%d/", host, r.port(t))), settled)
		require.Equal(t, webhook.Retry, got.Kind, host)
		require.Zero(t, got.Status, host)
	}
	_, connections := r.counts()
	require.Zero(t, connections)
}

// TestMain puts a proxy into the environment that takes no connection. The standard
// library reads that once, so that it has to be there before the first test.
func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"} {
		if err := os.Setenv(name, "http://127.0.0.1:1"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func TestTheProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	used, err := http.ProxyFromEnvironment(httptest.NewRequest(http.MethodPost, "http://direct.test/", nil))
	require.NoError(t, err)
	require.NotNil(t, used)
	r := receive(t, status(200), false)
	cfg := reaching(t, r)
	cfg.PlainHosts, cfg.Resolver = []string{"direct.test"}, resolver(t, []string{"127.0.0.1"})
	require.Equal(t, webhook.Outcome{Kind: webhook.Delivered, Status: 200}, sender(t, cfg).Send(t.Context(), to(t, fmt.Sprintf("http://direct.test:%d/", r.port(t))), settled))
}

// With a proxy of its own, the sender leaves names to the proxy and still refuses
// the addresses that it can see.
func TestAConfiguredProxyIsUsed(t *testing.T) {
	proxy := receive(t, status(200), false)
	at, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	cfg := webhook.Config{Proxy: at, PlainHosts: []string{"far.test", "10.0.0.1"}}
	s := sender(t, cfg)
	require.Equal(t, webhook.Delivered, s.Send(t.Context(), to(t, "http://far.test/hooks"), settled).Kind)
	require.Equal(t, "http://far.test/hooks", proxy.got[0].RequestURI)
	require.Equal(t, webhook.Retry, s.Send(t.Context(), to(t, "http://10.0.0.1/hooks"), settled).Kind)
	requests, _ := proxy.counts()
	require.Equal(t, 1, requests)

	cfg.Proxy = &url.URL{Scheme: "socks5", Host: "x"}
	cfg.Now = time.Now
	_, err = webhook.New(cfg)
	require.ErrorContains(t, err, "proxy: must be a URL")
}
