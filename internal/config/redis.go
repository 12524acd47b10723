package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/countersign/countersign/internal/redisserver"
	"github.com/countersign/countersign/internal/regular"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/strictyaml"
)

// Sentinel says which of the masters that Sentinels watch is ours.
type Sentinel struct {
	Master string `yaml:"master"`
}

// RedisTLS is how Redis is reached over TLS.
type RedisTLS struct {
	Enabled    bool   `yaml:"enabled"`
	CAFile     string `yaml:"ca_file"`     // who may have signed its certificate; the system's if left out
	CertFile   string `yaml:"cert_file"`   // our certificate, for a server that asks for one
	KeyFile    string `yaml:"key_file"`    // its key
	ServerName string `yaml:"server_name"` // in the server's certificate, if it is not that of the address
}

// checkServers returns the problems of where Redis is, without asking it.
func (r Redis) checkServers(wrong func(format string, args ...any)) {
	if len(r.Addresses) == 0 {
		for key, set := range map[string]bool{
			"redis.cluster": r.Cluster, "redis.user": r.User != "", "redis.sentinel.master": r.Sentinel.Master != "", "redis.tls": r.TLS != RedisTLS{},
		} {
			if set {
				wrong("%s: has no effect without redis.addresses: REDIS_URL says it all", key)
			}
		}
		return
	}
	for _, a := range r.Addresses {
		if host, port, err := net.SplitHostPort(a); err != nil || host == "" || port == "" {
			wrong("redis.addresses: %q is no address with a port, such as redis.internal:6379", a)
		}
	}
	if r.Cluster && r.Sentinel.Master != "" {
		wrong("redis.cluster: is true, but redis.sentinel.master names a master: Sentinels watch no cluster")
	}
	t := r.TLS
	if !t.Enabled && t != (RedisTLS{}) {
		wrong("redis.tls.enabled: not true, so the other settings of redis.tls have no effect")
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		wrong("redis.tls.cert_file and redis.tls.key_file: one needs the other")
	}
}

// Named reports whether the configuration, the environment or a flag says where Redis is.
func (r Redis) Named(e Environment) bool {
	return len(r.Addresses) > 0 || e.RedisURL.Open() != "" || e.Data != ""
}

// Target returns where Redis is, or everything that is wrong with what says so.
func (r Redis) Target(e Environment) (state.Target, error) {
	if e.Data != "" {
		return state.Target{URL: redisserver.URL(e.Data)}, r.checkPrivate(e)
	}
	if len(r.Addresses) == 0 {
		if e.RedisURL.Open() == "" {
			return state.Target{}, errors.New("REDIS_URL: not set; it must be the address of Redis (redis://…, rediss://… or unix://…), or set redis.addresses, or give --data a folder")
		}
		t := state.Target{URL: e.RedisURL.Open()}
		client, err := state.Connect(t) // which makes no connection
		if err != nil {
			return t, fmt.Errorf("REDIS_URL: %w", err)
		}
		return t, client.Close()
	}
	if e.RedisURL.Open() != "" {
		return state.Target{}, errors.New("REDIS_URL and redis.addresses: both are set; set one of them")
	}
	t := state.Target{
		Addresses: r.Addresses, Master: r.Sentinel.Master, Cluster: r.Cluster, User: r.User,
		Password: e.RedisPassword.Open, SentinelPassword: e.SentinelPassword.Open,
	}
	var err error
	t.TLS, err = r.TLS.load()
	return t, err
}

// checkPrivate returns what does not go with a private Redis in a folder.
func (r Redis) checkPrivate(e Environment) error {
	var all []error
	const remove = "--data FOLDER keeps everything in a Redis of its own; remove %s, or remove --data to use the Redis that you have"
	if e.RedisURL.Open() != "" {
		all = append(all, fmt.Errorf("REDIS_URL: is set, but "+remove, "REDIS_URL"))
	}
	if len(r.Addresses) > 0 {
		all = append(all, fmt.Errorf("redis.addresses: is set, but "+remove, "redis.addresses and what belongs to it"))
	}
	if level := r.Level(); level != state.Fsync && level != state.None { // a command that only reads asks for none
		all = append(all, fmt.Errorf("redis.durability: is %s, but --data FOLDER always has fsync; remove redis.durability, or write fsync", r.Durability))
	}
	return errors.Join(all...)
}

// load reads the files, and returns what each connection to Redis is made with: it reads
// them again, so that those that were renewed need no restart. It returns nil without TLS.
func (t RedisTLS) load() (func() (*tls.Config, error), error) {
	if !t.Enabled {
		return nil, nil
	}
	f := &tlsFiles{name: t.ServerName}
	if t.CAFile != "" {
		pem, err := strictyaml.ReadWhole(t.CAFile)
		if err == nil {
			f.ca.last, err = poolOf(t.CAFile, pem)
		}
		if err != nil {
			return nil, fmt.Errorf("redis.tls.ca_file: %w", err)
		}
		if info, err := os.Stat(t.CAFile); err == nil && info.Mode().IsRegular() { // a pipe is read once
			f.ca.read = func() (*x509.CertPool, error) { return readPool(t.CAFile) }
		}
	}
	if t.CertFile != "" {
		f.own.read = func() (*tls.Certificate, error) { return readPair(t.CertFile, t.KeyFile) }
		var err error
		if f.own.last, err = f.own.read(); err != nil {
			return nil, fmt.Errorf("redis.tls.cert_file: %w", err)
		}
	}
	return f.now, nil
}

// tlsFiles are the files of [RedisTLS].
type tlsFiles struct {
	name string // of the server

	mu  sync.Mutex
	ca  renewed[x509.CertPool]   // who may have signed the certificate of Redis
	own renewed[tls.Certificate] // what we show to Redis
}

// now returns the TLS configuration for a connection that is made now. An error names the
// files that have just become unusable: the connection is made with what they held before.
func (f *tlsFiles) now() (*tls.Config, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ca, err1 := f.ca.now("redis.tls.ca_file")
	own, err2 := f.own.now("redis.tls.cert_file")
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.name, RootCAs: ca}
	if own != nil {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own, nil }
	}
	return c, errors.Join(err1, err2)
}

// A renewed is what is read from files that are renewed while the bot runs.
type renewed[T any] struct {
	read   func() (*T, error) // nil: what was read first stays
	last   *T                 // that could be used
	failed bool               // the files cannot be used since then
}

// now returns what the files have, or what they had last: while they are renewed, a
// certificate and its key may not belong together. The first time it says why.
func (r *renewed[T]) now(key string) (*T, error) {
	if r.read == nil {
		return r.last, nil
	}
	got, err := r.read()
	if err == nil {
		r.last, r.failed = got, false
		return got, nil
	}
	before := r.failed
	if r.failed = true; before {
		return r.last, nil
	}
	return r.last, fmt.Errorf("%s: %w", key, err)
}

func readPool(path string) (*x509.CertPool, error) {
	pem, err := regular.Read(path, maxPEM)
	if err != nil {
		return nil, err
	}
	return poolOf(path, pem)
}

func poolOf(path string, pem []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate in PEM", path)
	}
	return pool, nil
}

func readPair(cert, key string) (*tls.Certificate, error) {
	c, err := regular.Read(cert, maxPEM)
	if err != nil {
		return nil, err
	}
	k, err := regular.Read(key, maxPEM)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(c, k)
	return &pair, err
}

// maxPEM is how many bytes of a file with a certificate or a key are read.
const maxPEM = 4 << 20
