package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/slacksim"
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
	browser := state.NewBrowser(store)
	places, err := browser.Places(ctx, hoodScanned)
	if err != nil {
		return slacksim.Hood{}, err
	}
	timeline, err := h.timeline(ctx, store, places)
	if err != nil {
		return slacksim.Hood{}, err
	}
	shown := places[:min(len(places), hoodDocuments)]
	contents, err := browser.Contents(ctx, shown, state.ContentLimits{Entries: hoodEntries, Bytes: hoodValue})
	documents := make([]slacksim.HoodDocument, 0, len(contents))
	for _, c := range contents {
		documents = append(documents, slacksim.HoodDocument{Key: c.Key, Type: c.Type, Bytes: c.Bytes, Value: pretty(c.Value)})
	}
	return slacksim.Hood{Timeline: timeline, Documents: documents, Omitted: len(places) - len(shown)}, err
}
