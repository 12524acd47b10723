package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/countersign/countersign/internal/redisserver"
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
		return state.Target{URL: e.RedisURL.Open()}, nil
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

func (t RedisTLS) load() (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		pem, err := strictyaml.ReadWhole(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("redis.tls.ca_file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("redis.tls.ca_file: %s has no certificate in PEM", t.CAFile)
		}
	}
	if t.CertFile != "" {
		own := &ownCertificate{cert: t.CertFile, key: t.KeyFile}
		if err := own.read(); err != nil {
			return nil, fmt.Errorf("redis.tls.cert_file: %w", err)
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own.now(), nil }
	}
	return c, nil
}

// An ownCertificate is the certificate that we show to Redis. Each connection reads it
// again, so that one that was renewed needs no restart.
type ownCertificate struct {
	cert, key string // files

	mu   sync.Mutex
	last *tls.Certificate
}

// now returns the certificate of now, or the last one that could be used: while one is
// renewed, the two files may not belong together.
func (o *ownCertificate) now() *tls.Certificate {
	_ = o.read()
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

func (o *ownCertificate) read() error {
	var pem [2][]byte
	for i, path := range []string{o.cert, o.key} {
		f, err := openRegular(path)
		if err != nil {
			return err
		}
		pem[i], err = io.ReadAll(io.LimitReader(f, maxPEM))
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	pair, err := tls.X509KeyPair(pem[0], pem[1])
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = &pair
	return nil
}

// maxPEM is how many bytes of a file with a certificate or a key are read.
const maxPEM = 1 << 20
