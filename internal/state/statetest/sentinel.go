package statetest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// watched is the name under which Sentinels know the primary.
const watched = "main"

// lag is how many commands of the primary a replica misses.
const lag = 200

// A Watch is a primary with two replicas and three Sentinels that watch them.
type Watch struct {
	Addrs   []string // of the Sentinels
	Master  string   // the name of the primary
	Primary *Instance

	tb        testing.TB
	all       []*Instance
	sentinels []*redis.SentinelClient
}

// NewWatch starts all of them, and returns when each Sentinel knows the others. They
// end with the test.
func NewWatch(tb testing.TB) *Watch {
	tb.Helper()
	// A primary that is cut off takes no writes.
	primary := NewInstance(tb, "--min-replicas-to-write", "1", "--min-replicas-max-lag", "10")
	w := &Watch{Master: watched, Primary: primary, tb: tb, all: []*Instance{primary}}
	for range 2 {
		w.all = append(w.all, primary.Replica("--min-replicas-to-write", "1", "--min-replicas-max-lag", "10"))
	}
	host, port, err := net.SplitHostPort(primary.Addr)
	require.NoError(tb, err)
	for range 3 {
		dir, at := Folder(tb), freePort(tb)
		file := filepath.Join(dir, "sentinel.conf")
		require.NoError(tb, os.WriteFile(file, fmt.Appendf(nil, `port %s
bind 127.0.0.1
dir %s
sentinel monitor %[3]s %s %s 2
sentinel down-after-milliseconds %[3]s 4000
sentinel failover-timeout %[3]s 6000
sentinel parallel-syncs %[3]s 2
`, at, dir, watched, host, port), 0o600))
		run(tb, nil, file, "--sentinel")
		w.Addrs = append(w.Addrs, net.JoinHostPort("127.0.0.1", at))
	}
	for _, addr := range w.Addrs {
		s := redis.NewSentinelClient(&redis.Options{Addr: addr, MaintNotificationsConfig: quiet()})
		tb.Cleanup(func() { _ = s.Close() })
		w.sentinels = append(w.sentinels, s)
	}
	w.ready()
	return w
}

// ready returns when all Sentinels know each other, agree on the primary, and know that
// the replicas are up. The primary may be another than it was: on a busy machine they
// may find that one is down which is not.
func (w *Watch) ready() {
	w.tb.Helper()
	Await(w.tb, "the Sentinels to agree", func() bool {
		primary := w.agreed()
		if primary == nil || !primary.isPrimary() {
			return false
		}
		w.Primary = primary
		return !slices.ContainsFunc(w.sentinels, func(s *redis.SentinelClient) bool {
			others, err := s.Sentinels(w.tb.Context(), watched).Result()
			replicas, errs := s.Replicas(w.tb.Context(), watched).Result()
			return err != nil || errs != nil || len(others) != len(w.sentinels)-1 || len(replicas) != len(w.all)-1 ||
				slices.ContainsFunc(replicas, func(r map[string]string) bool { return r["flags"] != "slave" || r["master-link-status"] != "ok" })
		})
	})
}

// replicas returns the other servers.
func (w *Watch) replicas() []*Instance {
	return slices.DeleteFunc(slices.Clone(w.all), func(i *Instance) bool { return i == w.Primary })
}

// agreed returns the server that all Sentinels take for the primary, if there is one.
func (w *Watch) agreed() (primary *Instance) {
	for i, s := range w.sentinels {
		at, err := s.GetMasterAddrByName(w.tb.Context(), watched).Result()
		if err != nil || i > 0 && primary.Addr != net.JoinHostPort(at[0], at[1]) {
			return nil
		}
		n := slices.IndexFunc(w.all, func(s *Instance) bool { return s.Addr == net.JoinHostPort(at[0], at[1]) })
		primary = w.all[n]
	}
	return primary
}

// FailOver kills the primary while the nth replica lags behind it, and returns when the
// Sentinels have made another primary that both others follow.
func (w *Watch) FailOver(n int) {
	w.tb.Helper()
	w.ready()
	old := w.Primary
	lags := w.replicas()[n%2]
	goOn := lags.Stop()
	end := old.commands() + lag
	Await(w.tb, "clients to work", func() bool { return old.commands() >= end || !old.isPrimary() })
	old.Kill()
	goOn()
	Await(w.tb, "the Sentinels to fail over", func() bool {
		w.Primary = w.agreed()
		return w.Primary != nil && w.Primary != old && w.Primary.isPrimary()
	})
	old.Start()
	for _, r := range w.replicas() {
		r.Follow(w.Primary)
	}
	w.ready()
}
