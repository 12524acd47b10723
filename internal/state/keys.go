package state

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// Every key of the store is made in this file. Its Go type is its Redis type,
// and a key never changes it.
type (
	hashKey    string
	listKey    string
	zsetKey    string
	stringKey  string
	streamKey  string
	requestKey stringKey // remembers a request, always with a TTL
)

// The fields of a document's hash, and of a journal's with the call after it.
const (
	fieldVersion = "v"
	fieldDoc     = "d"
	fieldOwner   = "o" // of a run
	fieldSeal    = "s" // of a sheet
	fieldEvent   = "e" // of a fact
	fieldRun     = "r" // of a thread, with the run after it
	fieldPart    = "p" // of a memo, with the name of the part after it
	// What commit.lua writes, which reads v too.
	fieldChanges  = "q" // the last changes of a document
	fieldRequests = "r" // of a batch: the requests that changed it
)

// What keys begin with in the layout [apart] that hold due work and lists, and in both
// layouts those that hold what people decided.
const (
	dueApart  = "due:"
	listApart = "list:"
	decidedBy = "decided:"
)

// A partition makes the keys of one partition; all of them are in one slot.
type partition struct {
	n     int
	base  string // "countersign:{p17}:"
	apart bool   // see [apart]
}

func (s *conn) partition(n int) partition {
	return partition{n: n, base: s.prefix + ":" + hashTags[n] + ":", apart: s.apart}
}

// pattern matches the keys of all partitions that end in rest, and none of an installation
// with another prefix.
func (s *conn) pattern(rest string) string {
	return literal.Replace(s.prefix) + ":{p*}:" + rest
}

// literal takes the meaning that Redis gives some characters of a pattern.
var literal = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// hashTags are those of the keys of each partition.
var hashTags = func() (all [approvals.Partitions]string) {
	for n := range all {
		all[n] = fmt.Sprintf("{p%02d}", n)
	}
	return all
}()

// partitionOf returns the partition that all the ids are in.
func (s *conn) partitionOf(ids ...string) (partition, error) {
	at := -1
	for _, id := range ids {
		n, err := approvals.Partition(id)
		if err != nil {
			return partition{}, err
		}
		if at >= 0 && n != at {
			return partition{}, fmt.Errorf("%w: %s is not in partition %d", approvals.ErrInvalid, id, at)
		}
		at = n
	}
	if at < 0 {
		return partition{}, fmt.Errorf("%w: a commit without documents", approvals.ErrInvalid)
	}
	return s.partition(at), nil
}

func (p partition) thread(id string) hashKey   { return hashKey(p.base + "thread:" + id) }
func (p partition) messages(id string) listKey { return listKey(p.base + "messages:" + id) }
func (p partition) run(id string) hashKey      { return hashKey(p.base + "run:" + id) }
func (p partition) journal(run string) hashKey { return hashKey(p.base + "journal:" + run) }
func (p partition) batch(id string) hashKey    { return hashKey(p.base + "batch:" + id) }
func (p partition) parkedRuns() zsetKey        { return zsetKey(p.base + "parkedruns") }
func (p partition) idle() zsetKey              { return zsetKey(p.base + "idle") }
func (p partition) facts() streamKey           { return streamKey(p.base + "facts") }
func (p partition) layout() stringKey          { return stringKey(p.base + "layout") }
func (p partition) attempts() hashKey          { return hashKey(p.base + "attempts") }
func (p partition) parked() hashKey            { return hashKey(p.base + "parked") }
func (p partition) sheet(id string) hashKey    { return hashKey(p.base + "sheet:" + id) }
func (p partition) ledger(u approvals.UserID) hashKey {
	return hashKey(p.base + "ledger:" + string(u))
}

func (p partition) due(k Kind) dueIndex {
	if p.apart {
		return dueIndex{zsetKey(p.base + dueApart + string(k)), k, true}
	}
	return dueIndex{zsetKey(p.base + "due"), k, false}
}

func (p partition) list(k approvals.ListKey) listIndex {
	if p.apart {
		return listIndex{zsetKey(p.base + listApart + string(k)), k, p.n, true}
	}
	return listIndex{zsetKey(p.base + "list"), k, p.n, false}
}

func (p partition) decided(u approvals.UserID) decidedIndex {
	return decidedIndex{zsetKey(p.base + decidedBy + string(u)), p.apart}
}

func (p partition) memo(surface, id string) hashKey {
	return hashKey(p.base + "memo:" + surface + ":" + id)
}

func (p partition) args(batch string, d approvals.Digest) stringKey {
	return stringKey(p.base + "args:" + batch + ":" + d.String())
}

// request is scoped: a request that is known for one batch is unknown for
// another, so that a caller's repetition never swallows a change. Commits of
// runs have the empty scope.
func (p partition) request(scope string, r approvals.RequestID) requestKey {
	return requestKey(p.base + "request:" + scope + ":" + string(r))
}

// wakes is the channel on which commits say that there is work, see [wakeMessage]. It
// is no key.
func (s *conn) wakes() string { return s.prefix + ":wakes" }

// item is the field of a due entry in attempts and parked.
func item(k Kind, id string) string { return string(k) + "|" + id }

func splitItem(field string) (Kind, string) {
	k, id, _ := strings.Cut(field, "|")
	return Kind(k), id
}

// A score is a point in time in a sorted set: microseconds since 1970, in steps of 20,
// and one more. So it is odd: conditions compare scores as text, and an odd integer below
// 2^53 is written digit by digit by every server, where 1.7e15 may become just that. What
// older versions have stored may be any odd number.
type score int64

const (
	scoreSteps = 2 * timeSteps
	maxScore   = (1<<kindBits-1)/2*scoreSteps + 1
)

func scoreOf(t time.Time) score {
	return score(min(max(t.UnixMicro(), 0)/scoreSteps*scoreSteps+1, maxScore))
}

// scoreAfter is the first score that is not before t.
func scoreAfter(t time.Time) score {
	s := scoreOf(t)
	if s.time().Before(t) {
		s = min(s+scoreSteps, maxScore)
	}
	return s
}

func (s score) String() string  { return strconv.FormatInt(int64(s), 10) }
func (s score) time() time.Time { return time.UnixMicro(int64(s)) }
