package intake

import "sync"

// A cache holds what a process can read from the store again.
type cache[K comparable, V any] struct {
	mu  sync.Mutex
	all map[K]V
}

// maxCached bounds the memory.
const maxCached = 10_000

func (c *cache[K, V]) get(of K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.all[of]
	return v, ok
}

func (c *cache[K, V]) put(of K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.all[of]; !known && (c.all == nil || len(c.all) >= maxCached) {
		c.all = map[K]V{}
	}
	c.all[of] = v
}

func (c *cache[K, V]) drop(of K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, of)
}
