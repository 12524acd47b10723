package state

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
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

// sampled is how many keys of a kind are measured, and elements how many of the elements
// of a key: one may have thousands, and Redis does nothing else meanwhile.
const (
	sampled  = 200
	elements = 100
)

// Sizes counts the keys of every kind, the largest kind first. It asks for the size
// of some of them, so that it costs the server little more than listing the keys.
func (b Browser) Sizes(ctx context.Context) ([]Size, error) {
	kinds := map[string]*sample{}
	err := b.store.eachKey(ctx, "*", func(key string) bool {
		kind := kindOf(key)
		if kinds[kind] == nil {
			kinds[kind] = &sample{}
		}
		kinds[kind].add(key)
		return true
	})
	if err != nil {
		return nil, err
	}
	var all []Size
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		s, err := b.sizeOf(ctx, kind, *kinds[kind])
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(x, y Size) int { return cmp.Compare(y.Bytes, x.Bytes) })
	return all, nil
}

// kindOf is what [Size] calls the kind of a key.
func kindOf(key string) string {
	kind := placeOf(key).Kind
	if _, rest, _ := strings.Cut(key, "}:memo:"); rest != "" {
		surface, _, _ := strings.Cut(rest, ":")
		kind += ":" + surface
	}
	return kind
}

// A sample holds some of many keys, each chosen with the same probability, because a
// store may have more keys than this process has room for.
type sample struct {
	some []string
	of   int
}

func (s *sample) add(key string) {
	s.of++
	if len(s.some) < sampled {
		s.some = append(s.some, key)
	} else if i := rand.IntN(s.of); i < sampled { //nolint:gosec // nobody gains from guessing which keys are measured
		s.some[i] = key
	}
}

// sizeOf measures the keys of the sample.
func (b Browser) sizeOf(ctx context.Context, kind string, keys sample) (Size, error) {
	s := Size{Kind: kind, Keys: keys.of, Estimated: keys.of > len(keys.some)}
	cmds := make([]*redis.IntCmd, len(keys.some))
	err := b.pipelined(ctx, func(p redis.Pipeliner) {
		for i, key := range keys.some {
			cmds[i] = p.MemoryUsage(ctx, key, elements)
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
		s.Bytes = s.Bytes * int64(keys.of) / int64(there)
	}
	return s, nil
}
