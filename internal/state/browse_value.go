package state

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A reading has the value of a key once its pipeline has run; ok is false for
// one that is not there any more.
type reading func() (value any, size int, ok bool)

// read asks for the value of a key of this type.
func (l ContentLimits) read(ctx context.Context, p redis.Pipeliner, key, kind string) reading {
	switch kind {
	case "string":
		whole, part := p.StrLen(ctx, key), p.GetRange(ctx, key, 0, l.Bytes)
		return func() (any, int, bool) { return stored(part.Val()), int(whole.Val()), whole.Val() > 0 }
	case "hash":
		return readHash(p.HGetAll(ctx, key))
	case "list":
		n, newest := p.LLen(ctx, key), p.LRange(ctx, key, -l.Entries, -1)
		return func() (any, int, bool) { return entries(newest.Val(), n.Val()) }
	case "zset":
		n, first := p.ZCard(ctx, key), p.ZRangeWithScores(ctx, key, 0, l.Entries-1)
		return func() (any, int, bool) { return scored(key, first.Val(), n.Val()) }
	case "stream":
		n, newest := p.XLen(ctx, key), p.XRevRangeN(ctx, key, "+", "-", l.Entries)
		return func() (any, int, bool) { return streamed(newest.Val(), n.Val()) }
	default:
		return func() (any, int, bool) { return nil, 0, false }
	}
}

func readHash(cmd *redis.MapStringStringCmd) reading {
	return func() (any, int, bool) {
		size, value := 0, map[string]any{}
		for field, text := range cmd.Val() {
			size += len(field) + len(text)
			value[field] = stored(text)
		}
		return value, size, len(value) > 0
	}
}

func entries(newest []string, all int64) (any, int, bool) {
	size, value := 0, []any{}
	value = append(value, older(all, len(newest))...)
	for _, text := range newest {
		size += len(text)
		value = append(value, stored(text))
	}
	return value, size, len(newest) > 0
}

// scored reads the store's sorted sets. Scores are points in time, but for those of lists.
func scored(key string, first []redis.Z, all int64) (any, int, bool) {
	type placed struct {
		Member string `json:"member"`
		At     string `json:"at,omitempty"`
	}
	size, value := 0, []any{}
	for _, z := range first {
		member := fmt.Sprint(z.Member)
		size += len(member) + 8
		at := score(z.Score)
		switch n := partitionIn(key); {
		case strings.HasSuffix(key, "}:due"):
			of := dueIndex{kind: kindAt(z.Score)}
			member, at = string(of.kind)+" "+of.id(n, member), of.at(z.Score)
		case strings.HasSuffix(key, "}:list"):
			list, _, _ := strings.Cut(member, endOfList)
			value = append(value, placed{Member: list + " " + listIndex{partition: n}.place(member)})
			continue
		case strings.Contains(key, "}:decided:"):
			member = longID(n, member)
		}
		value = append(value, placed{member, at.time().UTC().Format("2006-01-02T15:04:05.000Z07:00")})
	}
	if more := all - int64(len(first)); more > 0 {
		value = append(value, fmt.Sprintf("… and %d later ones", more))
	}
	return value, size, len(first) > 0
}

func streamed(newest []redis.XMessage, all int64) (any, int, bool) {
	type entry struct {
		ID     string         `json:"id"`
		Fields map[string]any `json:"fields"`
	}
	size, value := 0, older(all, len(newest))
	for _, m := range slices.Backward(newest) {
		fields := map[string]any{}
		for name, v := range m.Values {
			text := fmt.Sprint(v)
			size += len(name) + len(text)
			fields[name] = stored(text)
		}
		value = append(value, entry{m.ID, fields})
	}
	return value, size, len(newest) > 0
}

// older says how many entries come before those that are shown.
func older(all int64, shown int) []any {
	if more := all - int64(shown); more > 0 {
		return []any{fmt.Sprintf("%d older ones, then …", more)}
	}
	return nil
}

// stored is a document as JSON if it is one: its numbers stay as they are.
func stored(text string) any {
	if plain, err := unpack([]byte(text)); err == nil {
		text = string(plain)
	}
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
