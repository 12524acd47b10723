package doctor_test

import (
	"bufio"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/doctor"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

func TestCheckOfRedis(t *testing.T) {
	client, ok := statetest.Redis(t).(*redis.Client)
	require.True(t, ok)
	i := newInstallation(t, slacksim.Config{})
	i.env["REDIS_URL"] = "unix://" + client.Options().Addr
	i.replace("redis: {durability: fsync}\n", "")
	set := func(key, value string) { require.NoError(t, client.ConfigSet(t.Context(), key, value).Err()) }

	found := i.check()
	require.Contains(t, found, "ok               Redis: answers, version ")
	require.Contains(t, found, "problem          Redis: appendonly is no: acknowledged clicks and all pending calls are lost when it stops")
	require.Contains(t, found, "ok               Redis: evicts nothing")

	set("appendonly", "yes")
	require.Contains(t, i.check(), "problem          Redis: appendfsync is everysec, and redis.durability is not set: everysec may lose up to two seconds")
	set("appendfsync", "always")
	require.Contains(t, i.check(), "ok               Redis: keeps every acknowledged write")
	set("appendfsync", "no")
	set("maxmemory-policy", "allkeys-lru")
	found = i.check()
	require.Contains(t, found, "problem          Redis: appendfsync is no")
	require.Contains(t, found, "problem          Redis: maxmemory-policy is allkeys-lru")
	require.Contains(t, found, "2 wrong")

	require.NoError(t, client.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
	found = i.check()
	require.Contains(t, found, "problem          Redis: is a replica")
	require.NotContains(t, found, "READONLY", "which is the same")
	require.NoError(t, client.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())

	set("maxmemory", "1")
	found = i.check()
	require.Contains(t, found, "problem          Redis: answers with an error: OOM ")
	require.Contains(t, found, "-> raise its maxmemory")
	set("maxmemory", "0")
	set("min-replicas-to-write", "1")
	found = i.check()
	require.Contains(t, found, "problem          Redis: answers with an error: NOREPLICAS ")
	require.Contains(t, found, "or lower min-replicas-to-write")
	set("min-replicas-to-write", "0")

	require.NoError(t, client.Do(t.Context(), "ACL", "SETUSER", "bot", "on", ">hunter22", "~*", "&*", "+@all", "-config", "-info").Err())
	i.env["REDIS_URL"] = "unix://bot:hunter22@" + client.Options().Addr
	found = i.check()
	require.Contains(t, found, "could not check  Redis: answers, but does not report its version")
	require.Contains(t, found, "problem          Redis: refuses to show its settings (CONFIG GET), and redis.durability is not set")
	i.text += "redis: {durability: fsync}\n"
	require.Contains(t, i.check(), "could not check  Redis: whether it keeps what redis.durability fsync promises (it refuses CONFIG GET)")
	require.Contains(t, i.check(), "ok               Redis: permits every command of a change")
	require.NoError(t, client.Do(t.Context(), "ACL", "SETUSER", "bot", "-xadd").Err())
	found = i.check()
	require.Contains(t, found, "problem          Redis: does not permit XADD to the bot")
	require.Contains(t, found, `-> give the user bot of Redis the rights that docs/settings.md names at redis.user, on keys and channels that begin with "countersign:"`)
	require.NoError(t, client.Do(t.Context(), "ACL", "SETUSER", "bot", "+xadd", "-multi").Err())
	require.Contains(t, i.check(), "could not check  Redis: whether it permits every command to the bot")
	require.Empty(t, client.Keys(t.Context(), "*").Val(), "a check stores nothing")
	for layout, says := range map[string]string{
		"64":   "ok               Redis: has a store of an older version, which bot admin convert would make faster",
		"64+":  "problem          Redis: the layout of the store is being changed, or that was interrupted, and no replica starts",
		"64/3": `problem          Redis: the store has a layout that this program does not know: "64/3", not "64/2"`,
	} {
		require.NoError(t, client.Set(t.Context(), "countersign:{p00}:layout", layout, 0).Err())
		require.Contains(t, i.check(), says)
	}
	require.NoError(t, client.Set(t.Context(), "countersign:{p00}:layout", "64/2", 0).Err())
	require.NotContains(t, i.check(), "store")
	i.env["REDIS_URL"] = "unix://bot:hunter33@" + client.Options().Addr
	found = i.check()
	require.Contains(t, found, "problem          Redis: answers with an error: WRONGPASS")
	require.Contains(t, found, "-> correct the user and password in REDIS_URL")
	require.NotContains(t, found, "hunter")
	i.env["REDIS_URL"] = "redis://127.0.0.1:1"
	require.Contains(t, i.check(), "-> check REDIS_URL")
}

// A Redis that is reached and does not work is not one that cannot be reached.
func TestCheckOfARedisThatAnswersWithAnError(t *testing.T) {
	for answer, advice := range map[string]string{
		"LOADING Redis is loading the dataset in memory":                           "wait until it has read its data",
		"MISCONF Errors writing to the AOF file: No space left on device":          "look at its disk and its log",
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL":       "SCRIPT KILL",
		"NOPERM this user has no permissions to run the 'ping' command":            "docs/settings.md names at redis.user",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is 'no'": "look at its log",
	} {
		t.Run(answer[:6], func(t *testing.T) {
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			require.NoError(t, err)
			t.Cleanup(func() { _ = l.Close() })
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer func() { _ = c.Close() }()
						for commands := bufio.NewScanner(c); commands.Scan(); {
							if strings.HasPrefix(commands.Text(), "*") {
								_, _ = c.Write([]byte("-" + answer + "\r\n"))
							}
						}
					}()
				}
			}()
			i := newInstallation(t, slacksim.Config{})
			i.env["REDIS_URL"] = "redis://" + l.Addr().String()
			found := i.check()
			require.Contains(t, found, "problem          Redis: answers with an error: "+answer)
			require.Contains(t, found, advice)
			require.NotContains(t, found, "check REDIS_URL")
		})
	}
}

func TestCheckOfEveryNodeOfACluster(t *testing.T) {
	client, ok := statetest.Cluster(t).(*redis.ClusterClient)
	require.True(t, ok)
	i := newInstallation(t, slacksim.Config{})
	addr := client.Options().Addrs[0]
	i.env["REDIS_URL"] = "redis://" + addr + "?addr=" + addr
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	require.Regexp(t, `problem +Redis \S*:`+port+`: appendonly is no`, i.check())
}

// The settings of a server are compared with what the configuration promises.
func TestServersAreComparedWithWhatIsPromised(t *testing.T) {
	good := state.Server{Version: "7.2.4", Told: true, AppendOnly: "yes", AppendFsync: "always", NoFsyncOnRewrite: "no", Eviction: "noeviction"}
	fsync, everysec := config.Redis{Durability: state.Fsync}, config.Redis{Durability: state.Everysec}
	replicated := func(n int) config.Redis { return config.Redis{Durability: state.Replicated, Replicas: n} }
	for name, c := range map[string]struct {
		promised config.Redis
		change   func(s *state.Server)
		mark     doctor.Mark
		want     string
	}{
		"as promised":           {fsync, func(*state.Server) {}, doctor.IsFine, "Redis: keeps every acknowledged write"},
		"an address":            {fsync, func(s *state.Server) { s.Addr = "h:1" }, doctor.IsFine, "Redis h:1: evicts nothing"},
		"an old version":        {fsync, func(s *state.Server) { s.Version = "6.0.9" }, doctor.IsProblem, "Redis: is version 6.0.9"},
		"no version":            {fsync, func(s *state.Server) { s.Version = "" }, doctor.NotChecked, "Redis: answers, but does not report its version"},
		"a broken log":          {fsync, func(s *state.Server) { s.Broken = true }, doctor.IsProblem, "Redis: its last write to its log failed"},
		"a replica":             {fsync, func(s *state.Server) { s.Replica = true }, doctor.IsProblem, "Redis: is a replica, which takes no writes"},
		"no replica":            {replicated(1), func(*state.Server) {}, doctor.IsProblem, "Redis: has no replica, but redis.replicas asks for 1"},
		"one of two":            {replicated(2), func(s *state.Server) { s.Replicas = 1 }, doctor.IsProblem, "Redis: has only 1 replica, but redis.replicas asks for 2"},
		"the one":               {replicated(1), func(s *state.Server) { s.Replicas = 1 }, doctor.IsFine, "Redis: acknowledges a write once it is on its disk (appendfsync always) and on its replica"},
		"both":                  {replicated(2), func(s *state.Server) { s.Replicas = 2 }, doctor.IsFine, "Redis: acknowledges a write once it is on its disk (appendfsync always) and on all 2 replicas"},
		"one of three":          {replicated(1), func(s *state.Server) { s.Replicas = 3 }, doctor.IsFine, "Redis: acknowledges a write once it is on its disk (appendfsync always) and on 1 of its 3 replicas"},
		"less, and it is known": {everysec, func(s *state.Server) { s.AppendFsync = "everysec" }, doctor.IsWarning, "Redis: has a log (appendonly yes), and redis.durability is everysec: " + doctor.MayLose},
		"a log that is off":     {everysec, func(s *state.Server) { s.AppendOnly = "no" }, doctor.IsProblem, "Redis: appendonly is no: acknowledged clicks and all pending calls are lost when it stops"},
		"no fsync":              {everysec, func(s *state.Server) { s.AppendFsync = "no" }, doctor.IsProblem, "Redis: appendfsync is no: it may lose any number of acknowledged decisions when its machine fails"},
		"no fsync on rewrite":   {fsync, func(s *state.Server) { s.NoFsyncOnRewrite = "yes" }, doctor.IsProblem, "Redis: no-appendfsync-on-rewrite is yes: while it rewrites its log, it acknowledges writes that are not on its disk"},
		"eviction":              {fsync, func(s *state.Server) { s.Eviction = "allkeys-lru" }, doctor.IsProblem, "Redis: maxmemory-policy is allkeys-lru: it evicts pending calls when its memory is full"},
		"nothing is told":       {fsync, func(s *state.Server) { *s = state.Server{Version: s.Version} }, doctor.NotChecked, "Redis: whether it keeps what redis.durability fsync promises (it refuses CONFIG GET)"},
		"its log is off":        {fsync, func(s *state.Server) { *s = state.Server{Version: s.Version, AppendOnly: "no"} }, doctor.NotChecked, "Redis: whether it keeps what redis.durability fsync promises (it refuses CONFIG GET, and INFO says that its log is off)"},
		"nor promised":          {config.Redis{}, func(s *state.Server) { *s = state.Server{Version: s.Version} }, doctor.IsProblem, "Redis: refuses to show its settings (CONFIG GET), and redis.durability is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			server := good
			c.change(&server)
			all := doctor.JudgeRedis(c.promised, []state.Server{server})
			said := false
			for _, f := range all {
				said = said || f.Mark == c.mark && strings.HasPrefix(f.Text, c.want)
				if f.Mark != doctor.IsFine {
					require.Equal(t, c.mark, f.Mark, f.Text)
					require.NotEmpty(t, f.Advice, f.Text)
				}
			}
			require.True(t, said, all)
		})
	}
}
