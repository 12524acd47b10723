package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

// ErrInUse says that processes work on a store that nobody may use now.
var ErrInUse = errors.New("other processes work on the store: stop all replicas first")

// convertedAtOnce is how many entries one change moves.
const convertedAtOnce = 400

// How often, and after which time, [Store.Convert] asks who works on the store.
const aloneTimes = 4

var aloneEvery = 500 * time.Millisecond // a variable for tests

// Convert changes the layout of older versions to that of this one, and returns how many
// entries it has moved. Nothing may use the store until it has ended: it is [ErrInUse] while
// a process works on it. An error is [ErrConverting], too, if nobody may work on the store
// until it was called again and has ended. Replicas of older versions do not start on the
// store from then on. In a store that has the layout of this version it moves what was
// stored in the other one by a process that should have been stopped.
func (s *Store) Convert(ctx context.Context) (entries int, err error) {
	stored, err := s.layout(ctx)
	if errors.Is(err, ErrEmptied) {
		if held, err := s.heldApart(ctx, dueApart, listApart); err != nil || len(held) == 0 {
			return 0, cmp.Or(err, ErrEmptied)
		}
		stored, err = apart, s.label(ctx)
	}
	switch {
	case err != nil:
		return 0, err
	case stored == joined:
		return s.move(ctx, true)
	case stored == apart:
		if err := s.alone(ctx, 1); err != nil {
			return 0, err
		}
	}
	// From now on no process begins: one that has begun is heard of, see [Store.attend].
	if err := s.relabel(ctx, converting, apart, converting); err != nil {
		return 0, errors.Join(err, ErrConverting) // it may be stored
	}
	if err := s.alone(ctx, aloneTimes); err != nil {
		if stored == apart { // nothing is moved yet
			return 0, errors.Join(err, s.goBack(ctx))
		}
		return 0, errors.Join(err, ErrConverting)
	}
	entries, err = s.move(ctx, false)
	if err == nil {
		err = s.relabel(ctx, joined, converting, joined)
	}
	if err != nil {
		return entries, errors.Join(err, ErrConverting)
	}
	return entries, nil
}

// goBack stores that the layout is that of older versions again, also when ctx has ended,
// unless another process has moved something meanwhile.
func (s *Store) goBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settling)
	defer cancel()
	moved, err := s.mixed(ctx)
	if err == nil && !moved {
		err = s.relabel(ctx, apart, converting, apart)
	}
	if err != nil || moved {
		return errors.Join(err, ErrConverting)
	}
	return nil
}

// relabel stores a layout if one of these is stored.
func (s *Store) relabel(ctx context.Context, to string, from ...string) error {
	p := s.partition(0)
	for _, is := range from {
		ch := newRepeatable(p)
		ch.check(is, "GET", string(p.layout()))
		ch.write("SET", string(p.layout()), to)
		if err := s.applyBehind(ctx, ch); !errors.Is(err, approvals.ErrConflict) {
			return wrap(err, "store how the store is laid out")
		}
	}
	return fmt.Errorf("%w: another process changes the layout of the store at the same time", approvals.ErrConflict)
}

// move moves what is in the layout [apart], and confirms that it is durable. What is late was
// stored after the layout was changed: a request that was settled meanwhile is listed no more.
func (s *Store) move(ctx context.Context, late bool) (entries int, err error) {
	what := []string{dueApart, listApart}
	if !late {
		what = append(what, decidedBy)
	}
	sets, err := s.heldApart(ctx, what...)
	if err != nil {
		return 0, err
	}
	moved := make(map[int]bool)
	for _, set := range sets {
		n, err := set.convert(ctx, s, late)
		entries += n
		if err != nil {
			return entries, fmt.Errorf("change the layout of %s: %w", set.key, err)
		}
		moved[set.n] = moved[set.n] || n > 0
	}
	for n, some := range moved {
		if !some {
			continue
		}
		if err := s.confirm(ctx, n, s.barrier); err != nil {
			return entries, err
		}
	}
	return entries, nil
}

// mixed reports whether something is due or listed in the other layout than the one that the
// store has: a process has gone on of which [Store.Convert] did not hear, or an older copy
// was restored while processes worked.
func (s *conn) mixed(ctx context.Context) (bool, error) {
	pipe := s.client.Pipeline()
	found := make([]*redis.IntCmd, approvals.Partitions)
	for n := range found {
		p := s.partition(n)
		p.apart = !p.apart
		keys := []string{string(p.list(approvals.Everything).key), string(p.list(approvals.Doubtful).key)}
		for _, k := range Kinds() {
			keys = append(keys, string(p.due(k).key))
		}
		found[n] = pipe.Exists(ctx, keys...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return false, fmt.Errorf("look for work in another layout: %w", err)
	}
	return slices.ContainsFunc(found, func(c *redis.IntCmd) bool { return c.Val() > 0 }), nil
}

// attend makes this process heard of by [Store.Convert] before it works, until the store is
// closed.
func (s *Store) attend(ctx context.Context) error {
	if s.present != nil {
		return nil
	}
	sub := s.client.Subscribe(ctx, s.prefix+channelApart)
	if _, err := sub.ReceiveTimeout(ctx, settling); err != nil {
		if err = errors.Join(fmt.Errorf("say that this process works on the store: %w", err), sub.Close()); notPermitted(err) {
			s.log.WarnContext(ctx, "bot admin convert does not hear of this process: end it before", slog.Any("err", err))
			return nil
		}
		return err
	}
	s.present = sub
	go func() {
		for range sub.Channel() { // which connects again after an interruption
		}
	}()
	return nil
}

// alone is [ErrInUse] if a process works on the store. It asks so many times, because one may
// be about to connect again.
func (s *Store) alone(ctx context.Context, times int) error {
	for n := range times {
		if n > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(aloneEvery):
			}
		}
		switch others, err := s.heard(ctx, ":wake*"); {
		case err != nil:
			return err
		case others:
			return ErrInUse
		}
	}
	return nil
}

// Processes hear on the channel <prefix>:wakes that there is work, and those of older
// versions on <prefix>:wake:<kind>. One that works in the layout [apart] is heard of on a
// channel of its own, too.
const channelApart = ":wakes:apart"

// heard reports whether somebody listens on a channel of the store that matches one of the
// patterns.
func (s *conn) heard(ctx context.Context, patterns ...string) (bool, error) {
	var all atomic.Int64
	count := func(ctx context.Context, c *redis.Client) error {
		for _, pattern := range patterns {
			channels, err := c.PubSubChannels(ctx, literal.Replace(s.prefix)+pattern).Result()
			if err != nil {
				return err
			}
			all.Add(int64(len(channels)))
		}
		return nil
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
	return all.Load() > 0, wrap(err, "ask who works on the store")
}

// dueBy makes a document due at the latest then.
func (c *change) dueBy(d dueIndex, id string, at score) {
	c.write("ZADD", string(d.key), "LT", d.stored(at).String(), d.member(id))
}

// A setApart is a sorted set of the layout [apart]: of a kind of due work, or of a list, or
// otherwise of what a person decided.
type setApart struct {
	partition
	key  zsetKey
	due  Kind
	list approvals.ListKey
}

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

// convert moves what is in the set to where it is in the layout [joined]. Of what is late only
// requests are listed that are on the list.
func (a setApart) convert(ctx context.Context, s *Store, late bool) (entries int, err error) {
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
		on := func(string) bool { return true }
		if late && a.list != "" {
			if on, err = s.listed(ctx, a.list, found); err != nil {
				return entries, err
			}
		}
		ch := newRepeatable(to)
		for i, z := range found {
			member, _ := z.Member.(string)
			if i == 0 { // otherwise another process has moved these
				ch.wantScore(a.key, member, score(z.Score))
			}
			switch {
			case a.due != "":
				ch.dueBy(to.due(a.due), member, score(z.Score))
			case a.list != "":
				if on(member) {
					ch.enlist(to.list(a.list), member)
				}
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

// listed says which of these places are those of batches that are on the list.
func (s *Store) listed(ctx context.Context, list approvals.ListKey, found []redis.Z) (on func(place string) bool, err error) {
	var ids []string
	for _, z := range found {
		place, _ := z.Member.(string)
		ids = append(ids, batchAt(place))
	}
	batches, err := s.batches(ctx, ids)
	if err != nil {
		return nil, err
	}
	is := make(map[string]bool)
	for _, b := range batches {
		is[place(b)] = slices.Contains(b.Concerns(), list)
	}
	return func(place string) bool { return is[place] }, nil
}
