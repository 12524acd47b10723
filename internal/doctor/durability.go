package doctor

import (
	"fmt"
	"strings"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/state"
)

// oldestMajor and oldestMinor are the oldest Redis that is known to do.
const oldestMajor, oldestMinor = 6, 2

// MayLose says what the level everysec costs, for everybody who chose it.
const MayLose = "everysec may lose up to two seconds of acknowledged decisions when the machine of Redis fails, and a call that ran in them may run again"

// JudgeRedis compares the servers with what the configuration says of them.
func JudgeRedis(r config.Redis, servers []state.Server) []Finding {
	var f findings
	for _, s := range servers {
		at := strings.TrimSpace("Redis " + s.Addr)
		f.version(at, s)
		if s.Replica {
			f.problem("name its master in REDIS_URL", "%s: is a replica, which takes no writes", at)
		}
		if s.Broken {
			f.problem("look at its disk and its log", "%s: its last write to its log failed", at)
		}
		f.durability(at, s, r)
		f.eviction(at, s)
	}
	return f.all
}

func (f *findings) version(at string, s state.Server) {
	switch major, minor, ok := versionOf(s.Version); {
	case !ok:
		f.unknown(fmt.Sprintf("it must be %d.%d or newer", oldestMajor, oldestMinor), "%s: it answers, and does not say its version", at)
	case major < oldestMajor || major == oldestMajor && minor < oldestMinor:
		f.problem(fmt.Sprintf("use %d.%d or newer", oldestMajor, oldestMinor), "%s: is version %s", at, s.Version)
	default:
		f.fine("%s: answers, version %s", at, s.Version)
	}
}

// twoWays are the ways out of a server that is weaker than fsync.
const twoWays = "set appendonly yes and appendfsync always (CONFIG SET, then CONFIG REWRITE), or accept that loss with redis.durability: everysec"

func (f *findings) durability(at string, s state.Server, r config.Redis) {
	level := r.Level()
	if level == state.Replicated && s.Replicas < r.Replicas {
		f.problem("start the replicas that are missing, or lower redis.replicas", "%s: has %d of the %d replicas that redis.replicas asks for", at, s.Replicas, r.Replicas)
	}
	switch {
	case !s.Told && r.Durability == "":
		f.problem("ask whoever runs it, and write redis.durability: fsync (appendfsync always), replicated or everysec",
			"%s: does not tell its settings (CONFIG GET is refused), and redis.durability is not set", at)
	case !s.Told:
		f.unknown("ask whoever runs it: "+wants(level), "%s: whether it keeps what redis.durability %s promises (CONFIG GET is refused)", at, level)
	case s.AppendOnly != "yes":
		f.problem("set appendonly yes (CONFIG SET appendonly yes, then CONFIG REWRITE)",
			"%s: appendonly is %s: when it ends, acknowledged clicks and all that waits are lost", at, s.AppendOnly)
	case s.AppendFsync == "no":
		f.problem(twoWays, "%s: appendfsync is no: it may lose any number of acknowledged decisions with its machine", at)
	case level == state.Everysec:
		f.warn("set redis.durability: fsync, or replicated, if that must not be", "%s: keeps what it is told (appendonly yes), and redis.durability is everysec: %s", at, MayLose)
	case s.AppendFsync != "always" && r.Durability == "":
		f.problem(twoWays, "%s: appendfsync is %s, and redis.durability is not set: %s", at, s.AppendFsync, MayLose)
	case s.AppendFsync != "always":
		f.problem(twoWays, "%s: appendfsync is %s, and redis.durability %s needs always", at, s.AppendFsync, level)
	case s.NoFsyncOnRewrite != "no":
		f.problem("set no-appendfsync-on-rewrite no", "%s: no-appendfsync-on-rewrite is %s: while it rewrites its log, it acknowledges what it has not synced", at, s.NoFsyncOnRewrite)
	case level == state.Replicated:
		f.fine("%s: acknowledges a write once it is on its disk (appendfsync always) and %d of its %d replicas have it", at, r.Replicas, s.Replicas)
	default:
		f.fine("%s: keeps every acknowledged write (appendonly yes, appendfsync always)", at)
	}
}

// wants are the settings of a server for a level.
func wants(level state.Durability) string {
	if level == state.Everysec {
		return "appendonly yes, appendfsync everysec or always, maxmemory-policy noeviction"
	}
	return "appendonly yes, appendfsync always, no-appendfsync-on-rewrite no, maxmemory-policy noeviction"
}

func (f *findings) eviction(at string, s state.Server) {
	switch s.Eviction {
	case "": // said before
	case "noeviction":
		f.fine("%s: throws nothing away (maxmemory-policy noeviction)", at)
	default:
		f.problem("set maxmemory-policy noeviction", "%s: maxmemory-policy is %s: when memory is short it throws away what waits for a signature", at, s.Eviction)
	}
}
