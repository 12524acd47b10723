package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

// A Place is where something is stored, for showing the store to people.
type Place struct {
	Key  string          // to be shown as it is
	Kind string          // what is there, in a word: batch, run, facts and so on
	Run  approvals.RunID // if the document of a run is there
}

// A Content is what is stored at a place.
type Content struct {
	Place
	Type  string // of the key in Redis
	Bytes int    // of what was read, or of all if that is one text
	Value any    // for JSON: a document is a [json.RawMessage], and a long list says what is left out
}

// browseOrder are the kinds in the order in which they are worth reading: what
// waits for people, the run that asked, what it said, and what keeps it going.
var browseOrder = []string{"batch", "run", "thread", "messages", "journal", "args", "memo", "facts", "due", "attempts", "parked", "parkedruns", "sheet", "request"}

// A Browser shows people what a store keeps, and changes nothing.
type Browser struct{ store *Store }

// NewBrowser returns a browser of the store.
func NewBrowser(s *Store) Browser { return Browser{s} }

// Places lists what is stored, in the order in which it is worth reading. It
// stops once it has found at least most places on a server.
func (b Browser) Places(ctx context.Context, most int) ([]Place, error) {
	var keys []string
	err := b.store.eachKey(ctx, "*", func(key string) bool {
		keys = append(keys, key)
		return len(keys) < most
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(keys)
	keys = slices.Compact(keys) // SCAN may say a key twice
	places := make([]Place, 0, len(keys))
	for _, k := range keys {
		places = append(places, placeOf(k))
	}
	slices.SortStableFunc(places, func(a, b Place) int { return cmp.Compare(browseRank(a), browseRank(b)) })
	return places, nil
}

// eachKey calls f with the keys of each server that end in rest, see [conn.pattern], one at
// a time, until it returns false for one of that server. A key can come twice while Redis'
// table of keys grows.
func (s *conn) eachKey(ctx context.Context, rest string, f func(key string) bool) error {
	pattern := s.pattern(rest)
	var mu sync.Mutex
	scan := func(ctx context.Context, c redis.Cmdable) error {
		for more, cursor := true, uint64(0); more; {
			keys, next, err := c.Scan(ctx, cursor, pattern, 1000).Result()
			if err != nil {
				return err
			}
			mu.Lock()
			for _, key := range keys {
				if more = f(key); !more {
					break
				}
			}
			mu.Unlock()
			cursor, more = next, more && next != 0
		}
		return nil
	}
	var err error
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return scan(ctx, c) })
	} else {
		err = scan(ctx, s.client)
	}
	return wrap(err, "list the keys in Redis")
}

func browseRank(p Place) int {
	at := slices.Index(browseOrder, p.Kind)
	if at < 0 {
		return len(browseOrder)
	}
	return at
}

// placeOf reads a key: of "countersign:{p17}:batch:..." the kind is batch.
func placeOf(key string) Place {
	_, rest, _ := strings.Cut(key, "}:")
	kind, id, _ := strings.Cut(rest, ":")
	p := Place{Key: key, Kind: kind}
	if kind == "run" {
		p.Run = approvals.RunID(id)
	}
	return p
}

// partitionIn reads the partition in a key.
func partitionIn(key string) int {
	_, rest, _ := strings.Cut(key, "{")
	tag, _, _ := strings.Cut(rest, "}")
	return slices.Index(hashTags[:], "{"+tag+"}")
}

// ContentLimits bound what is read of one place.
type ContentLimits struct {
	Entries int64 // of a list, a stream or a sorted set
	Bytes   int64 // of a text; one byte more is read of a longer one
}

// Contents reads what is stored at the places. What has gone meanwhile is left
// out.
func (b Browser) Contents(ctx context.Context, places []Place, l ContentLimits) ([]Content, error) {
	types := make([]*redis.StatusCmd, len(places))
	if err := b.pipelined(ctx, func(p redis.Pipeliner) {
		for i, at := range places {
			types[i] = p.Type(ctx, at.Key)
		}
	}); err != nil {
		return nil, fmt.Errorf("read the types of keys: %w", err)
	}
	readers := make([]reading, len(places))
	if err := b.pipelined(ctx, func(p redis.Pipeliner) {
		for i, at := range places {
			readers[i] = l.read(ctx, p, at.Key, types[i].Val())
		}
	}); err != nil {
		return nil, fmt.Errorf("read the values of keys: %w", err)
	}
	var all []Content
	for i, at := range places {
		if value, size, ok := readers[i](); ok {
			all = append(all, Content{Place: at, Type: types[i].Val(), Bytes: size, Value: value})
		}
	}
	return all, nil
}

// pipelined ignores the errors of single keys: they are in the replies.
func (b Browser) pipelined(ctx context.Context, fill func(redis.Pipeliner)) error {
	p := b.store.client.Pipeline()
	fill(p)
	_, err := p.Exec(ctx)
	if _, answered := errors.AsType[redis.Error](err); answered {
		return nil
	}
	return err
}
