package state

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A Size is how much of the store is of one kind.
type Size struct {
	Kind  string `json:"kind"` // as in the table of [Store]'s keys; of a memo with its surface, as memo:cards
	Keys  int    `json:"keys"`
	Bytes int64  `json:"bytes"` // that Redis needs for them
	// Estimated says that Bytes follows from some of the keys.
	Estimated bool `json:"estimated,omitempty"`
}

// sampled is how many keys of a kind are measured.
const sampled = 200

// Sizes counts the keys of every kind, the largest kind first. It asks for the size
// of some of them, so that it costs the server little more than listing the keys.
func (b Browser) Sizes(ctx context.Context) ([]Size, error) {
	places, err := b.Places(ctx, int(^uint(0)>>1))
	if err != nil {
		return nil, err
	}
	keys := map[string][]string{}
	for _, p := range places {
		kind := p.Kind
		if _, rest, _ := strings.Cut(p.Key, "}:memo:"); rest != "" {
			surface, _, _ := strings.Cut(rest, ":")
			kind += ":" + surface
		}
		keys[kind] = append(keys[kind], p.Key)
	}
	var all []Size
	for _, kind := range slices.Sorted(maps.Keys(keys)) {
		s, err := b.sizeOf(ctx, kind, keys[kind])
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(x, y Size) int { return cmp.Compare(y.Bytes, x.Bytes) })
	return all, nil
}

// sizeOf measures keys at even distances.
func (b Browser) sizeOf(ctx context.Context, kind string, keys []string) (Size, error) {
	s := Size{Kind: kind, Keys: len(keys), Estimated: len(keys) > sampled}
	n := min(len(keys), sampled)
	cmds := make([]*redis.IntCmd, n)
	err := b.pipelined(ctx, func(p redis.Pipeliner) {
		for i := range n {
			cmds[i] = p.MemoryUsage(ctx, keys[i*len(keys)/n], 0) // 0: all elements
		}
	})
	if err != nil {
		return s, fmt.Errorf("measure the keys of %s: %w", kind, err)
	}
	there := 0
	for _, c := range cmds {
		if c.Err() == nil { // it has not expired meanwhile
			there++
			s.Bytes += c.Val()
		}
	}
	if there > 0 {
		s.Bytes = s.Bytes * int64(len(keys)) / int64(there)
	}
	return s, nil
}
