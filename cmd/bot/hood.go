package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/slackui/slacksim"
	"github.com/countersign/countersign/internal/state"
)

// What one look under the demo's hood reads at most.
const (
	hoodScanned   = 5000     // keys
	hoodDocuments = 200      // values
	hoodRead      = 400      // runs, to find the latest
	hoodRuns      = 40       // runs in the timeline
	hoodFacts     = 500      // facts in the timeline
	hoodEntries   = 100      // of a list, a stream or a sorted set
	hoodValue     = 64 << 10 // bytes of a value that are shown
	hoodWait      = 3 * time.Second
)

// hood shows a visitor of the demo what is in Redis. It only reads, and only
// `bot demo` has one.
type hood struct {
	client redis.UniversalClient
	prefix string
	names  map[string]string // first names of people, by id
}

func newHood(redisURL, prefix string, people []slacksim.Person) (*hood, error) {
	client, err := state.Dial(redisURL)
	if err != nil {
		return nil, fmt.Errorf("look into Redis: %w", err)
	}
	h := &hood{client: client, prefix: prefix, names: map[string]string{}}
	for _, p := range people {
		h.names[p.ID], _, _ = strings.Cut(p.RealName, " ")
	}
	return h, nil
}

func (h *hood) close() error { return h.client.Close() }

// look is the Hood of [slacksim.Config].
func (h *hood) look(ctx context.Context) (slacksim.Hood, error) {
	ctx, cancel := context.WithTimeout(ctx, hoodWait)
	defer cancel()
	store, err := state.Open(ctx, state.Options{Client: h.client, Prefix: h.prefix})
	if err != nil {
		return slacksim.Hood{}, fmt.Errorf("look into Redis: %w", err)
	}
	keys, err := h.keys(ctx, store.Prefix())
	if err != nil {
		return slacksim.Hood{}, err
	}
	timeline, err := h.timeline(ctx, store, keys)
	if err != nil {
		return slacksim.Hood{}, err
	}
	shown := keys[:min(len(keys), hoodDocuments)]
	documents, err := h.documents(ctx, shown)
	return slacksim.Hood{Timeline: timeline, Documents: documents, Omitted: len(keys) - len(shown)}, err
}

// keys are those of the store, the ones first that a visitor understands.
func (h *hood) keys(ctx context.Context, prefix string) ([]string, error) {
	var mu sync.Mutex
	var keys []string
	scan := func(ctx context.Context, c redis.Cmdable) error {
		found := c.Scan(ctx, 0, prefix+":*", 500).Iterator()
		for found.Next(ctx) {
			mu.Lock()
			keys = append(keys, found.Val())
			enough := len(keys) >= hoodScanned
			mu.Unlock()
			if enough {
				break
			}
		}
		return found.Err()
	}
	var err error
	if cluster, ok := h.client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return scan(ctx, c) })
	} else {
		err = scan(ctx, h.client)
	}
	if err != nil {
		return nil, fmt.Errorf("list the keys in Redis: %w", err)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	return slices.Compact(keys), nil // SCAN may say a key twice
}

// hoodOrder are the kinds of documents in the order of the story: what waits
// for people, the run that asked, what it said, and what keeps it going.
var hoodOrder = []string{"batch", "run", "thread", "messages", "journal", "args", "memo", "facts", "due", "attempts", "parked", "parkedruns", "sheet", "request"}

func rank(key string) int {
	at := slices.Index(hoodOrder, kindOf(key))
	if at < 0 {
		return len(hoodOrder)
	}
	return at
}

// kindOf is the word after the partition: "batch" of
// "countersign:{p17}:batch:...".
func kindOf(key string) string {
	kind, _, _ := strings.Cut(afterPartition(key), ":")
	return kind
}

func afterPartition(key string) string {
	_, rest, _ := strings.Cut(key, "}:")
	return rest
}

// documents reads the values of the keys.
func (h *hood) documents(ctx context.Context, keys []string) ([]slacksim.HoodDocument, error) {
	types := map[string]*redis.StatusCmd{}
	if err := h.pipelined(ctx, func(p redis.Pipeliner) {
		for _, k := range keys {
			types[k] = p.Type(ctx, k)
		}
	}); err != nil {
		return nil, fmt.Errorf("read the types of keys: %w", err)
	}
	readers := map[string]reading{}
	if err := h.pipelined(ctx, func(p redis.Pipeliner) {
		for _, k := range keys {
			readers[k] = readValue(ctx, p, k, types[k].Val())
		}
	}); err != nil {
		return nil, fmt.Errorf("read the values of keys: %w", err)
	}
	documents := []slacksim.HoodDocument{}
	for _, k := range keys {
		value, size, ok := readers[k]()
		if !ok {
			continue // it went meanwhile
		}
		documents = append(documents, slacksim.HoodDocument{Key: k, Type: types[k].Val(), Bytes: size, Value: pretty(value)})
	}
	return documents, nil
}

// pipelined does not mind the errors of single keys: their readings do.
func (h *hood) pipelined(ctx context.Context, fill func(redis.Pipeliner)) error {
	p := h.client.Pipeline()
	fill(p)
	_, err := p.Exec(ctx)
	if _, answered := errors.AsType[redis.Error](err); answered {
		return nil
	}
	return err
}
