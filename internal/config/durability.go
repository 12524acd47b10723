package config

import (
	"github.com/countersign/countersign/internal/state"
)

// checkDurability returns the problems of the setting, without asking Redis.
func (r Redis) checkDurability(wrong func(format string, args ...any)) {
	switch r.Durability {
	case "", state.Fsync, state.Everysec, state.Replicated:
	case state.None:
		wrong("redis.durability: none is for the demo and for tests: what was acknowledged would be lost with Redis; choose fsync, replicated or everysec")
	default:
		wrong("redis.durability: is %q, must be fsync, replicated or everysec", r.Durability)
	}
	switch {
	case r.Replicas < 0:
		wrong("redis.replicas: is %d, must not be negative", r.Replicas)
	case r.Durability == state.Replicated && r.Replicas == 0:
		wrong("redis.replicas: is missing: how many replicas must have a decision before it is acknowledged")
	case r.Durability != state.Replicated && r.Replicas > 0:
		wrong("redis.replicas: is %d, and redis.durability is not replicated: nothing would wait for them", r.Replicas)
	}
}

// Level is the durability that is meant: fsync, unless the configuration says
// otherwise.
func (r Redis) Level() state.Durability {
	if r.Durability == "" {
		return state.Fsync
	}
	return r.Durability
}
