package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

// ErrInUse says that processes work on a store that nobody may use now.
var ErrInUse = errors.New("other processes work on the store: stop all replicas first")

// convertedAtOnce is how many entries one change moves.
const convertedAtOnce = 400

// Convert changes the layout of older versions to that of this one, and returns how many
// entries it has moved: none if the store has that layout. It is [ErrInUse] while a process
// works on the store. Nothing may use the store until it has ended; if it was interrupted,
// it goes on when it is called again. Replicas of older versions do not start on the store
// from then on.
func (s *Store) Convert(ctx context.Context) (entries int, err error) {
	stored, err := s.layout(ctx)
	if err != nil || stored == joined {
		return 0, err
	}
	others, err := s.atWork(ctx)
	if err != nil {
		return 0, err
	}
	if others > 0 {
		return 0, ErrInUse
	}
	if err := s.relabel(ctx, apart, converting); err != nil {
		return 0, err
	}
	sets, err := s.heldApart(ctx, dueApart, listApart, decidedBy)
	if err != nil {
		return 0, err
	}
	for _, set := range sets {
		n, err := set.convert(ctx, s.conn)
		entries += n
		if err != nil {
			return entries, fmt.Errorf("change the layout of %s: %w", set.key, err)
		}
	}
	return entries, s.relabel(ctx, converting, joined)
}

// atWork returns on how many channels somebody hears of due work, as each process does
// that works on it. Older versions have one for each kind.
func (s *conn) atWork(ctx context.Context) (int64, error) {
	pattern := literal.Replace(s.prefix) + ":wake*"
	var all atomic.Int64
	count := func(ctx context.Context, c *redis.Client) error {
		heard, err := c.PubSubChannels(ctx, pattern).Result()
		all.Add(int64(len(heard)))
		return err
	}
	var err error
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		err = c.ForEachShard(ctx, count)
	case *redis.Client:
		err = count(ctx, c)
	default:
		err = fmt.Errorf("%w: a client of the type %T", approvals.ErrInvalid, c)
	}
	return all.Load(), wrap(err, "ask who works on the store")
}

// relabel stores another layout if this one is stored.
func (s *Store) relabel(ctx context.Context, from, to string) error {
	p := s.partition(0)
	ch := newRepeatable(p)
	ch.check(from, "GET", string(p.layout()))
	ch.write("SET", string(p.layout()), to)
	if err := s.applyBehind(ctx, ch); err != nil && !errors.Is(err, approvals.ErrConflict) {
		return fmt.Errorf("store how the store is laid out: %w", err)
	}
	return nil
}

// A setApart is a sorted set of the layout [apart]: of a kind of due work, or of a list, or
// otherwise of what a person decided.
type setApart struct {
	partition
	key  zsetKey
	due  Kind
	list approvals.ListKey
}

// What keys begin with that hold due work, lists, and what people decided. In both layouts
// the last have the same names.
const (
	dueApart  = "due:"
	listApart = "list:"
	decidedBy = "decided:"
)

// heldApart returns the sorted sets whose keys begin so.
func (s *conn) heldApart(ctx context.Context, what ...string) (all []setApart, err error) {
	seen := make(map[string]bool)
	for _, begin := range what {
		err := s.eachKey(ctx, begin+"*", func(key string) bool {
			for n := range approvals.Partitions {
				p := s.partition(n)
				name, is := strings.CutPrefix(key, p.base+begin)
				if !is || seen[key] || begin == dueApart && !isKind(Kind(name)) {
					continue
				}
				seen[key] = true
				of := setApart{partition: p, key: zsetKey(key)}
				switch begin {
				case dueApart:
					of.due = Kind(name)
				case listApart:
					of.list = approvals.ListKey(name)
				}
				all = append(all, of)
			}
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// convert moves what is in the set to where it is in the layout [joined].
func (a setApart) convert(ctx context.Context, s *conn) (entries int, err error) {
	to := a.partition
	to.apart = false
	for {
		found, err := s.client.ZRangeWithScores(ctx, string(a.key), 0, convertedAtOnce-1).Result()
		if err != nil {
			return entries, err
		}
		found = slices.DeleteFunc(found, func(z redis.Z) bool {
			member, _ := z.Member.(string)
			return a.due == "" && a.list == "" && isShortID(member)
		})
		if len(found) == 0 {
			return entries, nil
		}
		ch := newRepeatable(to)
		for i, z := range found {
			member, _ := z.Member.(string)
			if i == 0 { // otherwise another process has moved these
				ch.wantScore(a.key, member, score(z.Score))
			}
			switch {
			case a.due != "":
				ch.due(to.due(a.due), member, score(z.Score))
			case a.list != "":
				ch.enlist(to.list(a.list), member)
			default:
				ch.zadd(a.key, shortID(member), score(z.Score))
			}
		}
		for _, z := range found {
			member, _ := z.Member.(string)
			ch.zrem(a.key, member)
		}
		switch err := s.apply(ctx, ch); {
		case errors.Is(err, approvals.ErrConflict):
		case err != nil:
			return entries, err
		default:
			entries += len(found)
		}
	}
}
