package state_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/state/statetest"
)

func TestOnMiniredis(t *testing.T) {
	t.Parallel()
	statetest.Run(t, statetest.Miniredis)
}

func TestOnRedis(t *testing.T) {
	t.Parallel()
	statetest.Run(t, statetest.Redis)
}

func TestOnCluster(t *testing.T) {
	t.Parallel()
	statetest.Run(t, statetest.Cluster)
}

func TestOnGivenRedis(t *testing.T) {
	t.Parallel()
	c, ok := statetest.Addr(t)
	if !ok {
		return // nobody asked for it
	}
	statetest.Run(t, func(*testing.T) redis.UniversalClient { return c })
}
