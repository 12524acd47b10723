package intake

import "sync"

// kept is a cache of what a process can read from the store again.
type kept[K comparable, V any] struct {
	mu  sync.Mutex
	all map[K]V
}

// maxKept bounds the memory.
const maxKept = 10_000

func (k *kept[K, V]) get(of K) (V, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	v, ok := k.all[of]
	return v, ok
}

func (k *kept[K, V]) put(of K, v V) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.all[of]; !known && (k.all == nil || len(k.all) >= maxKept) {
		k.all = map[K]V{}
	}
	k.all[of] = v
}

func (k *kept[K, V]) drop(of K) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.all, of)
}
