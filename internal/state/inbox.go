package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

const (
	// decidedKept is the least number of batches that each partition remembers of those
	// in which a person decided.
	decidedKept = 50
	// About one in trimmed batches removes the older ones, chosen by its id.
	trimmed = 8
)

// putInbox writes what a new state of a batch means for the lists, no more than
// what has changed: the batch is on exactly the lists of [approvals.Batch.Concerns].
func putInbox(ch *change, p partition, before, b approvals.Batch) {
	was, is := before.Concerns(), b.Concerns()
	for _, k := range was {
		if _, still := slices.BinarySearch(is, k); !still {
			ch.delist(p.list(k), place(before))
		}
	}
	for _, k := range is {
		// An older version does not know the list of what is in doubt.
		if _, already := slices.BinarySearch(was, k); !already || k == approvals.Doubtful {
			ch.enlist(p.list(k), place(b))
		}
	}
	had, has := before.Deciders(), b.Deciders()
	for _, u := range slices.Sorted(maps.Keys(had)) {
		if _, still := has[u]; !still {
			ch.zrem(p.decided(u).key, p.decided(u).member(string(b.ID)))
		}
	}
	for _, u := range slices.Sorted(maps.Keys(has)) {
		if at, already := had[u]; already && at.Equal(has[u]) {
			continue
		}
		d := p.decided(u)
		ch.zadd(d.key, d.member(string(b.ID)), scoreOf(has[u]))
		if b.ID[len(b.ID)-1]%trimmed == 0 {
			ch.ztrim(d.key, decidedKept)
		}
	}
}

// sameScore is the score of every member of a list, so that they are in the order of
// their bytes. That order is total: a page ends exactly where the next one begins,
// however many batches were opened in one microsecond.
const sameScore score = 1

// place is that of a batch in a list: when it was opened, in microseconds since 1970, always
// odd and of as many digits, and its id. Neither ever changes.
func place(b approvals.Batch) string {
	const latest = 1<<53 - 1
	return placeAt(uint64(min(max(b.OpenedAt.UnixMicro(), 0), latest)|1), string(b.ID)) //nolint:gosec // it is not negative
}

func placeAt(opened uint64, id string) string { return fmt.Sprintf("%016d|%s", opened, id) }

func isPlace(s string) bool {
	at, id, ok := strings.Cut(s, "|")
	_, err := strconv.ParseUint(at, 10, 64)
	return ok && err == nil && len(at) == 16 && id != ""
}

func batchAt(place string) string {
	_, id, _ := strings.Cut(place, "|")
	return id
}

// Inbox returns a page of the batches that are on any of these lists, each
// once, the oldest first, and where the next page begins: nowhere if that is
// empty. A page has at most limit batches and may have fewer before the end,
// because what has left the lists since is not on it.
//
// The work for a page depends on how many lists and how large a page, not on
// how many batches are open. What is unreadable is said in the log and left
// out, so that it hides nothing else. A cursor that is none is
// [approvals.ErrInvalid]: its page would be empty, and look like the last one.
func (s *Store) Inbox(ctx context.Context, keys []approvals.ListKey, after approvals.Cursor, limit int,
) ([]approvals.Batch, approvals.Cursor, error) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	if after != "" && !isPlace(string(after)) {
		return nil, "", fmt.Errorf("%w: a page begins nowhere after %.40q", approvals.ErrInvalid, string(after))
	}
	if limit <= 0 || len(keys) == 0 {
		return nil, "", nil
	}
	places, next, err := s.places(ctx, keys, after, limit)
	if err != nil {
		return nil, "", fmt.Errorf("read lists: %w", err)
	}
	ids := make([]string, len(places))
	for i, at := range places {
		ids[i] = batchAt(at)
	}
	batches, err := s.batches(ctx, ids)
	if err != nil {
		return nil, "", fmt.Errorf("read listed batches: %w", err)
	}
	return slices.DeleteFunc(batches, func(b approvals.Batch) bool {
		return !slices.ContainsFunc(b.Concerns(), func(k approvals.ListKey) bool { return slices.Contains(keys, k) })
	}), next, nil
}

// places returns the first places on any of the lists, each once, and where the next
// page begins. What is listed is spread over the partitions, so each is asked for a few,
// and again only if it may have more on this page.
func (s *Store) places(ctx context.Context, keys []approvals.ListKey, after approvals.Cursor, limit int,
) (first []string, next approvals.Cursor, err error) {
	lists := s.lists(keys)
	read := make(map[listIndex][]string)
	for _, most := range []int{min(limit+1, max(16, limit/8)), limit + 1} { // one more says whether there is more
		if err := s.readLists(ctx, lists, read, after, most); err != nil {
			return nil, "", err
		}
		first = slices.Compact(slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(read))...))))
		lists = slices.DeleteFunc(lists, func(l listIndex) bool {
			got := read[l]
			return len(got) < most || len(first) > limit && got[most-1] >= first[limit]
		})
	}
	if len(first) > limit {
		first = first[:limit]
		next = approvals.Cursor(first[limit-1])
	}
	return first, next, nil
}

// lists are these lists in all partitions, those of a partition together.
func (s *Store) lists(keys []approvals.ListKey) []listIndex {
	var all []listIndex
	for n := range approvals.Partitions {
		for _, k := range keys {
			all = append(all, s.partition(n).list(k))
		}
	}
	return all
}

// readLists reads the first places after the cursor of each list.
func (s *Store) readLists(ctx context.Context, lists []listIndex, into map[listIndex][]string, after approvals.Cursor, most int) error {
	if len(lists) == 0 {
		return nil
	}
	pipe := s.client.Pipeline()
	read := make([]*redis.StringSliceCmd, len(lists))
	for i, l := range lists {
		read[i] = l.after(ctx, pipe, string(after), most)
	}
	_, err := pipe.Exec(ctx)
	for i, l := range lists {
		places := read[i].Val()
		for at, member := range places {
			places[at] = l.place(member)
		}
		into[l] = places
	}
	return err
}

// Lengths returns how many batches are on each of these lists, without reading any of
// them. A batch that is on several counts for each.
func (s *Store) Lengths(ctx context.Context, keys []approvals.ListKey) ([]int, error) {
	lengths := make([]int, len(keys))
	if len(keys) == 0 {
		return lengths, nil
	}
	pipe := s.client.Pipeline()
	var parts []*redis.IntCmd
	for _, l := range s.lists(keys) {
		parts = append(parts, l.length(ctx, pipe))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("count what is on lists: %w", err)
	}
	for i, n := range parts {
		lengths[i%len(keys)] += int(n.Val())
	}
	return lengths, nil
}

// Decided returns at most limit batches in which the person has a decision,
// where they decided last first. What is older than the last 50 or so of a partition
// is forgotten.
func (s *Store) Decided(ctx context.Context, user approvals.UserID, limit int) ([]approvals.Batch, error) {
	last := func(a, b redis.Z) int { return cmp.Compare(b.Score, a.Score) }
	ids, _, err := s.ranked(ctx, redis.Pipeliner.ZRevRangeWithScores, func(p partition) zsetKey { return p.decided(user).key },
		func(p partition, member string) string { return p.decided(user).id(p.n, member) }, last, limit)
	if err != nil {
		return nil, fmt.Errorf("list what %s decided: %w", user, err)
	}
	batches, err := s.batches(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read what %s decided: %w", user, err)
	}
	return slices.DeleteFunc(batches, func(b approvals.Batch) bool {
		_, ok := b.Deciders()[user]
		return !ok
	}), nil
}

// ranked returns the first members, at most limit, of a sorted set of all partitions, and
// their scores. read reads the first of one partition in the same order, and id says which
// document a member stands for.
func (s *Store) ranked(ctx context.Context, read func(pipe redis.Pipeliner, ctx context.Context, key string, from, to int64) *redis.ZSliceCmd,
	of func(partition) zsetKey, id func(p partition, member string) string, order func(a, b redis.Z) int, limit int,
) (ids []string, at []score, err error) {
	if limit <= 0 {
		return nil, nil, nil
	}
	pipe := s.client.Pipeline()
	var lists [approvals.Partitions]*redis.ZSliceCmd
	for n := range lists {
		lists[n] = read(pipe, ctx, string(of(s.partition(n))), 0, int64(limit)-1)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, nil, err
	}
	var found []redis.Z
	for n, l := range lists {
		for _, z := range l.Val() {
			member, _ := z.Member.(string)
			found = append(found, redis.Z{Member: id(s.partition(n), member), Score: z.Score})
		}
	}
	slices.SortStableFunc(found, order)
	for _, z := range found[:min(limit, len(found))] {
		of, _ := z.Member.(string)
		ids, at = append(ids, of), append(at, score(z.Score))
	}
	return ids, at, nil
}

// readEach reads the documents with these ids in one round trip.
func (s *Store) readEach(ctx context.Context, ids []string, key func(p partition, id string) hashKey) ([]*redis.SliceCmd, error) {
	pipe := s.client.Pipeline()
	docs := make([]*redis.SliceCmd, len(ids))
	for i, id := range ids {
		p, err := s.partitionOf(id)
		if err != nil {
			return nil, err
		}
		docs[i] = readDocument(ctx, pipe, key(p, id))
	}
	_, err := pipe.Exec(ctx)
	return docs, err
}

// batches reads these batches, leaving out what is gone or unreadable.
func (s *Store) batches(ctx context.Context, ids []string) ([]approvals.Batch, error) {
	docs, err := s.readEach(ctx, ids, partition.batch)
	if err != nil {
		return nil, err
	}
	var out []approvals.Batch
	for i, doc := range docs {
		b, err := batchOf(documentOf(doc))
		switch {
		case errors.Is(err, approvals.ErrUnreadable):
			s.log.WarnContext(ctx, "a listed batch cannot be read", slog.String("batch", ids[i]), slog.Any("err", err))
		case errors.Is(err, approvals.ErrNotFound):
		case err != nil:
			return nil, err
		default:
			out = append(out, b)
		}
	}
	return out, nil
}
