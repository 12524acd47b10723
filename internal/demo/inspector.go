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

// What the inspector reads at most for one page.
const (
	mostKeys         = 5000     // keys
	mostDocuments    = 200      // values
	mostRunsRead     = 400      // runs, to find the latest
	mostRuns         = 40       // runs in the timeline
	mostFacts        = 500      // facts in the timeline
	mostEntries      = 100      // of a list, a stream or a sorted set
	mostBytes        = 64 << 10 // bytes of a value that are shown
	inspectorTimeout = 3 * time.Second
)

// inspector shows a visitor of the demo what is in Redis. It only reads, and only
// `bot demo` has one.
type inspector struct {
	client redis.UniversalClient
	prefix string
	names  map[string]string // first names of people, by id
}

func newInspector(redisURL, prefix string, people []slacksim.Person) (*inspector, error) {
	client, err := state.Dial(redisURL)
	if err != nil {
		return nil, fmt.Errorf("look into Redis: %w", err)
	}
	h := &inspector{client: client, prefix: prefix, names: map[string]string{}}
	for _, p := range people {
		h.names[p.ID], _, _ = strings.Cut(p.RealName, " ")
	}
	return h, nil
}

func (h *inspector) close() error { return h.client.Close() }

// look is the Inspect of [slacksim.Config].
func (h *inspector) look(ctx context.Context) (slacksim.Inspection, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectorTimeout)
	defer cancel()
	store, err := state.Open(ctx, state.Options{Client: h.client, Prefix: h.prefix})
	if err != nil {
		return slacksim.Inspection{}, fmt.Errorf("look into Redis: %w", err)
	}
	browser := state.NewBrowser(store)
	places, err := browser.Places(ctx, mostKeys)
	if err != nil {
		return slacksim.Inspection{}, err
	}
	timeline, err := h.timeline(ctx, store, places)
	if err != nil {
		return slacksim.Inspection{}, err
	}
	shown := places[:min(len(places), mostDocuments)]
	contents, err := browser.Contents(ctx, shown, state.ContentLimits{Entries: mostEntries, Bytes: mostBytes})
	documents := make([]slacksim.InspectionDocument, 0, len(contents))
	for _, c := range contents {
		documents = append(documents, slacksim.InspectionDocument{Key: c.Key, Type: c.Type, Bytes: c.Bytes, Value: pretty(c.Value)})
	}
	return slacksim.Inspection{Timeline: timeline, Documents: documents, Omitted: len(places) - len(shown)}, err
}
