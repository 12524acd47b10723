package state

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

// A dueIndex is the due work of one kind in one partition. All kinds share a sorted set,
// in which each has a range of scores, so that a commit that makes several kinds of work
// due is one command. Where the layout is [apart], each kind has a sorted set.
type dueIndex struct {
	key   zsetKey
	kind  Kind
	apart bool
}

// kindNumbers say where the range of each kind begins. What is stored has them: a number
// never changes, and a kind that is removed leaves its number unused.
var kindNumbers = map[Kind]score{
	Runs: 0, Replies: 1, Resumes: 2, Deliveries: 3, Cards: 4, Deadlines: 5, Notices: 6, Homes: 7, Sheets: 8,
	Answers: 9, Announcements: 10, Webhooks: 11, ToolChanges: 12, Removals: 13,
}

// Sixteen kinds fit into the integers that a score holds exactly. Within its range an
// entry is at its time in steps of 10 µs, which is odd as every score, so that a
// range reaches to the year 2148.
const (
	kindBits  = 49
	timeSteps = 10 // µs
)

func isKind(k Kind) bool { _, is := kindNumbers[k]; return is }

// kindAt is the kind in whose range a score is, and empty if this version knows none.
func kindAt(stored float64) Kind {
	for k, n := range kindNumbers {
		if score(stored)>>kindBits == n {
			return k
		}
	}
	return ""
}

// member stands for the document with this id.
func (d dueIndex) member(id string) string {
	if d.apart {
		return id
	}
	return d.letter() + shortID(id)
}

// letter begins the members of the kind: a document may have work of several.
func (d dueIndex) letter() string {
	const letters = "ABCDEFGHIJKLMNOP" // by number
	n := kindNumbers[d.kind]
	return letters[n : n+1]
}

// id is the document of a member.
func (d dueIndex) id(partition int, member string) string {
	if d.apart {
		return member
	}
	return longID(partition, strings.TrimPrefix(member, d.letter()))
}

// stored is the score of what is due then.
func (d dueIndex) stored(at score) score {
	if d.apart {
		return at
	}
	return kindNumbers[d.kind]<<kindBits | min(at, maxScore)/timeSteps | 1
}

// at is when an entry with this score is due.
func (d dueIndex) at(stored float64) score {
	if d.apart {
		return score(stored)
	}
	return (score(stored)&(1<<kindBits-1)-1)*timeSteps + 1
}

// from is the least score of the kind.
func (d dueIndex) from() string {
	if d.apart {
		return "0"
	}
	return (kindNumbers[d.kind] << kindBits).String()
}

// to is the score of what is due then, or at any time for maxScore.
func (d dueIndex) to(at score) string {
	if d.apart && at == maxScore {
		return strconv.Itoa(1<<53 - 1) // older versions go as far
	}
	return d.stored(at).String()
}

// until asks for the first entries, at most so many, that are due until then. A count of -1
// is for all.
func (d dueIndex) until(ctx context.Context, c redis.Cmdable, at score, count int64) *redis.ZSliceCmd {
	return c.ZRangeByScoreWithScores(ctx, string(d.key), &redis.ZRangeBy{Min: d.from(), Max: d.to(at), Count: count})
}

// entries are what until found.
func (d dueIndex) entries(partition int, found []redis.Z) []entry {
	all := make([]entry, len(found))
	for i, z := range found {
		member, _ := z.Member.(string)
		all[i] = entry{partition, d.id(partition, member), d.at(z.Score)}
	}
	return all
}

// score asks when a document is due. Its answer is for [dueIndex.at].
func (d dueIndex) score(ctx context.Context, c redis.Cmdable, id string) *redis.FloatCmd {
	return c.ZScore(ctx, string(d.key), d.member(id))
}

func (c *change) due(d dueIndex, id string, at score) { c.zadd(d.key, d.member(id), d.stored(at)) }
func (c *change) notDue(d dueIndex, id string)        { c.zrem(d.key, d.member(id)) }
func (c *change) wantDue(d dueIndex, id string, at score) {
	c.wantScore(d.key, d.member(id), d.stored(at))
}

func (c *change) wantNotDue(d dueIndex, id string) {
	c.check("", "ZSCORE", string(d.key), d.member(id))
}

// A listIndex is one list of open batches in one partition, in the order in which they
// were opened. All lists share a sorted set whose members have the same score, so that a
// commit that settles a batch takes it off all of its lists with one command. Where the
// layout is [apart], each list has a sorted set.
type listIndex struct {
	key       zsetKey
	of        approvals.ListKey
	partition int
	apart     bool
}

// openedBytes is how long a member says when the batch was opened. The first byte of the
// eight is 0.
const openedBytes = 7

// endOfList separates the name of a list from the place of a batch. No name has it.
const endOfList = "\x00"

// member stands for the batch at a place.
func (l listIndex) member(place string) string {
	if l.apart {
		return place
	}
	digits, id, _ := strings.Cut(place, "|")
	at, _ := strconv.ParseUint(digits, 10, 64)
	return string(l.of) + endOfList + openedAs(at) + shortID(id)
}

// openedAs is how a member says when the batch was opened.
func openedAs(at uint64) string {
	return string(binary.BigEndian.AppendUint64(nil, at)[8-openedBytes:])
}

// place is that of the batch for which a member stands.
func (l listIndex) place(member string) string {
	_, short, _ := strings.Cut(member, endOfList)
	if l.apart || len(short) < openedBytes {
		return member
	}
	opened := append(make([]byte, 8-openedBytes), short[:openedBytes]...)
	return placeAt(binary.BigEndian.Uint64(opened), longID(l.partition, short[openedBytes:]))
}

// after asks for the first batches of the list after a place, from its beginning if that
// is empty.
func (l listIndex) after(ctx context.Context, c redis.Cmdable, place string, count int) *redis.StringSliceCmd {
	from, to := "-", "+"
	if !l.apart {
		from, to = "["+string(l.of)+endOfList, l.end()
	}
	if place != "" {
		from = l.behind(place)
	}
	return c.ZRangeByLex(ctx, string(l.key), &redis.ZRangeBy{Min: from, Max: to, Count: int64(count)})
}

// behind is where what follows a place begins in the partition. Places are in the order of
// when their batches were opened, and then of the ids, in which the partition comes first. A
// member does not have it: what was opened at the same time as a batch of another partition
// comes before or behind it as a whole.
func (l listIndex) behind(place string) string {
	digits, id, _ := strings.Cut(place, "|")
	n, err := approvals.Partition(id)
	if l.apart || err != nil || n == l.partition {
		return "(" + l.member(place)
	}
	at, _ := strconv.ParseUint(digits, 10, 64)
	if n > l.partition {
		at++
	}
	return "[" + string(l.of) + endOfList + openedAs(at)
}

// length asks how many batches are on the list.
func (l listIndex) length(ctx context.Context, c redis.Cmdable) *redis.IntCmd {
	if l.apart {
		return c.ZCard(ctx, string(l.key))
	}
	return c.ZLexCount(ctx, string(l.key), "["+string(l.of)+endOfList, l.end())
}

// end is behind all members of the list.
func (l listIndex) end() string { return "(" + string(l.of) + "\x01" }

func (c *change) enlist(l listIndex, place string) { c.zadd(l.key, l.member(place), sameScore) }
func (c *change) delist(l listIndex, place string) { c.zrem(l.key, l.member(place)) }

// A decidedIndex has the batches in which a person decided in one partition, by when that was.
type decidedIndex struct {
	key   zsetKey
	apart bool
}

func (d decidedIndex) member(id string) string {
	if d.apart {
		return id
	}
	return shortID(id)
}

func (d decidedIndex) id(partition int, member string) string {
	if d.apart {
		return member
	}
	return longID(partition, member)
}

// Most ids are the name of a kind of document, the partition, and a UUID. In a sorted set
// of the partition these are a letter and the bytes of the UUID, in the order of the ids.
// Any other id is as it is, after a sign that is none of the letters.
const idAsItIs = "="

// lettersOfIDs are the letters of the kinds of documents. What is stored has them.
var lettersOfIDs = []struct{ kind, letter string }{{"batch", "b"}, {"run", "r"}, {"sheet", "s"}, {"thread", "t"}}

// shortID is how an id is written in the sorted sets of its partition.
func shortID(id string) string {
	kind, rest, _ := strings.Cut(id, "-")
	_, unique, _ := strings.Cut(rest, "-")
	for _, of := range lettersOfIDs {
		if of.kind != kind || len(unique) != uuidDigits || !isUUID([]byte(unique)) {
			continue
		}
		raw, err := hex.DecodeString(strings.ReplaceAll(unique, "-", ""))
		if err == nil {
			return of.letter + string(raw)
		}
	}
	return idAsItIs + id
}

// isShortID reports whether [shortID] made it.
func isShortID(s string) bool { return longID(0, s) != s }

// longID is the id that [shortID] has shortened in a partition.
func longID(partition int, short string) string {
	for _, of := range lettersOfIDs {
		if raw, is := strings.CutPrefix(short, of.letter); is && len(raw) == uuidBytes {
			return approvals.NewID(of.kind, partition, string(appendUUID(nil, []byte(raw))))
		}
	}
	return strings.TrimPrefix(short, idAsItIs)
}
