package doctor

import (
	"fmt"
	"strings"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/state"
)

// MayLose is the warning about the level everysec.
const MayLose = "everysec may lose up to two seconds of acknowledged decisions when the machine of Redis fails, and a call that ran in them may run again"

// JudgeRedis compares the settings of the servers with what the configuration
// promises.
func JudgeRedis(r config.Redis, servers []state.Server) []Finding {
	var f findings
	for _, s := range servers {
		c := serverCheck{findings: &f, Server: s, promised: r, at: strings.TrimSpace("Redis " + s.Addr)}
		c.checkVersion()
		if s.Replica {
			c.passing("name its master in REDIS_URL", "%s: is a replica, which takes no writes", c.at)
		}
		if s.Broken {
			c.passing("look at its disk and its log", "%s: its last write to its log failed", c.at)
		}
		c.checkReplicas()
		c.checkDurability()
		c.checkEviction()
	}
	return f.all
}

// serverCheck checks one Redis server.
type serverCheck struct {
	*findings
	state.Server
	promised config.Redis
	at       string // what the findings begin with
}

func (s serverCheck) checkVersion() {
	switch supported, known := state.Supported(s.Version); {
	case !known:
		s.unknown("it must be "+state.OldestRedis+" or newer", "%s: answers, but does not report its version", s.at)
	case !supported:
		s.problem("use "+state.OldestRedis+" or newer", "%s: is version %s", s.at, s.Version)
	default:
		s.fine("%s: answers, version %s", s.at, s.Version)
	}
}

func (s serverCheck) checkReplicas() {
	if s.promised.Level() != state.Replicated || s.Replicas >= s.promised.Replicas {
		return
	}
	has := "no replica"
	if s.Replicas > 0 {
		has = "only " + counted(s.Replicas, "replica", "replicas")
	}
	s.passing("start the replicas that are missing, or lower redis.replicas",
		"%s: has %s, but redis.replicas asks for %d", s.at, has, s.promised.Replicas)
}

// twoWays are the ways out of a server that is weaker than fsync.
const twoWays = "set appendonly yes and appendfsync always (CONFIG SET, then CONFIG REWRITE), or accept that loss with redis.durability: everysec"

func (s serverCheck) checkDurability() {
	level := s.promised.Level()
	switch {
	case !s.Told && s.promised.Durability == "":
		s.problem("ask its operator, and write redis.durability: fsync (appendfsync always), replicated or everysec",
			"%s: refuses to show its settings (CONFIG GET), and redis.durability is not set", s.at)
	case !s.Told && s.AppendOnly == "no":
		s.unknown("ask its operator: "+wants(level), "%s: whether it keeps what redis.durability %s promises (it refuses CONFIG GET, and INFO says that its log is off)", s.at, level)
	case !s.Told:
		s.unknown("ask its operator: "+wants(level), "%s: whether it keeps what redis.durability %s promises (it refuses CONFIG GET)", s.at, level)
	case s.AppendOnly != "yes":
		s.problem("set appendonly yes (CONFIG SET appendonly yes, then CONFIG REWRITE)",
			"%s: appendonly is %s: acknowledged clicks and all pending calls are lost when it stops", s.at, s.AppendOnly)
	case s.AppendFsync == "no":
		s.problem(twoWays, "%s: appendfsync is no: it may lose any number of acknowledged decisions when its machine fails", s.at)
	case level == state.Everysec:
		s.warn("set redis.durability to fsync or replicated if that is not acceptable", "%s: has a log (appendonly yes), and redis.durability is everysec: %s", s.at, MayLose)
	case s.AppendFsync != "always" && s.promised.Durability == "":
		s.problem(twoWays, "%s: appendfsync is %s, and redis.durability is not set: %s", s.at, s.AppendFsync, MayLose)
	case s.AppendFsync != "always":
		s.problem(twoWays, "%s: appendfsync is %s, and redis.durability %s needs always", s.at, s.AppendFsync, level)
	case s.NoFsyncOnRewrite != "no":
		s.problem("set no-appendfsync-on-rewrite no", "%s: no-appendfsync-on-rewrite is %s: while it rewrites its log, it acknowledges writes that are not on its disk", s.at, s.NoFsyncOnRewrite)
	case level == state.Replicated && s.Replicas < s.promised.Replicas: // already reported
	case level == state.Replicated:
		s.fine("%s: acknowledges a write once it is on its disk (appendfsync always) and on %s", s.at, ofReplicas(s.promised.Replicas, s.Replicas))
	default:
		s.fine("%s: keeps every acknowledged write (appendonly yes, appendfsync always)", s.at)
	}
}

// ofReplicas says how many replicas of those that there are must have a write.
func ofReplicas(need, all int) string {
	switch {
	case all == 1:
		return "its replica"
	case need == all:
		return fmt.Sprintf("all %d replicas", all)
	}
	return fmt.Sprintf("%d of its %d replicas", need, all)
}

// wants are the settings of a server for a level.
func wants(level state.Durability) string {
	if level == state.Everysec {
		return "appendonly yes, appendfsync everysec or always, maxmemory-policy noeviction"
	}
	return "appendonly yes, appendfsync always, no-appendfsync-on-rewrite no, maxmemory-policy noeviction"
}

func (s serverCheck) checkEviction() {
	switch s.Eviction {
	case "": // already reported: it tells nothing of its settings
	case "noeviction":
		s.fine("%s: evicts nothing (maxmemory-policy noeviction)", s.at)
	default:
		s.problem("set maxmemory-policy noeviction", "%s: maxmemory-policy is %s: it evicts pending calls when its memory is full", s.at, s.Eviction)
	}
}
