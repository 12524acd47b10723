package state

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// A Target says which Redis: its URL, or its addresses with the rest. The secrets are
// functions, so that a printed Target does not tell them.
type Target struct {
	URL string

	Addresses        []string      // host:port: of one server, of seeds of a cluster, or of Sentinels
	Master           string        // the name of the master that the Sentinels know; empty: they are no Sentinels
	Cluster          bool          // also if there is one address
	User             string        // of the ACL; empty is the default user
	Password         func() string // may be nil
	SentinelPassword func() string // may be nil

	// TLS is asked for each connection; nil means without TLS. An error goes to the log,
	// and the connection is made with the configuration that came with it.
	TLS func() (*tls.Config, error)
	Log *slog.Logger // where that is said; nil means nowhere
}

var errURL = errors.New("this is no Redis URL; use redis://host:port, rediss://host:port or unix:///path, " +
	"with addr= for a cluster or master_name= for a Sentinel; in a password write / as %2F, ? as %3F, # as %23 and % as %25")

// quiet turns off what only some hosted servers offer.
func quiet() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// connections is how many a client may have to a server, unless the URL says it. The
// default of go-redis, ten a core, is fewer than a replica on a small machine works
// with at once: clicks would wait for due work to give one back.
const connections = 64

// reload is how often a client looks where the slots of a cluster are: a dead node
// sends no MOVED, so that only this finds its heir.
const reload = time.Second

// Dial returns a client with the settings that the store counts on, and makes
// no connection yet. No error of it quotes the URL: there is a password in it.
func Dial(raw string) (redis.UniversalClient, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errURL
	}
	switch q := u.Query(); {
	case q.Has("master_name"):
		o, err := redis.ParseFailoverURL(raw)
		if err != nil {
			return nil, errURL
		}
		o.ContextTimeoutEnabled, o.DisableIdentity, o.PoolSize = true, true, cmp.Or(o.PoolSize, connections)
		return redis.NewFailoverClient(o), nil
	case q.Has("addr"):
		o, err := redis.ParseClusterURL(raw)
		if err != nil {
			return nil, errURL
		}
		o.ContextTimeoutEnabled, o.DisableIdentity, o.MaintNotificationsConfig = true, true, quiet()
		o.ClusterStateReloadInterval, o.PoolSize = reload, cmp.Or(o.PoolSize, connections)
		return redis.NewClusterClient(o), nil
	default:
		o, err := redis.ParseURL(raw)
		if err != nil {
			return nil, errURL
		}
		o.ContextTimeoutEnabled, o.DisableIdentity, o.MaintNotificationsConfig = true, true, quiet()
		o.PoolSize = cmp.Or(o.PoolSize, connections)
		return redis.NewClient(o), nil
	}
}

// Connect is [Dial] for any target.
func Connect(t Target) (redis.UniversalClient, error) {
	if len(t.Addresses) == 0 {
		return Dial(t.URL)
	}
	secret := func(s func() string) string {
		if s == nil {
			return ""
		}
		return s()
	}
	u := &redis.UniversalOptions{
		Addrs: t.Addresses, MasterName: t.Master, Username: t.User, Password: secret(t.Password), SentinelPassword: secret(t.SentinelPassword),
		ContextTimeoutEnabled: true, DisableIdentity: true, PoolSize: connections,
	}
	if t.TLS != nil {
		u.Dialer = t.dialTLS
	}
	switch {
	case t.Master != "":
		return redis.NewFailoverClient(u.Failover()), nil
	case t.Cluster || len(t.Addresses) > 1:
		o := u.Cluster()
		o.ClusterStateReloadInterval, o.MaintNotificationsConfig = reload, quiet()
		return redis.NewClusterClient(o), nil
	}
	o := u.Simple()
	o.MaintNotificationsConfig = quiet()
	return redis.NewClient(o), nil
}

// dialTLS makes one connection with the current TLS configuration.
func (t Target) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := t.TLS()
	if err != nil && t.Log != nil {
		t.Log.WarnContext(ctx, "a renewed file cannot be used; what was read before is used", slog.Any("err", err))
	}
	return redis.NewDialer(&redis.Options{TLSConfig: c, DialTimeout: dialTime})(ctx, network, addr)
}

// dialTime is how long a connection may take, as by default.
const dialTime = 5 * time.Second

// String names the target without who we are and without parameters.
func (t Target) String() string {
	if len(t.Addresses) > 0 {
		return strings.Join(t.Addresses, ", ")
	}
	u, err := url.Parse(t.URL)
	if err != nil || t.URL == "" {
		return "the given client"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
