package state

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

//go:embed commit.lua
var commitSource string

// remembered is how long a request is known at least when the caller does not say.
const remembered = 10 * time.Minute

// rememberedUndated is how long a request to a batch is known if people may answer
// without a deadline.
const rememberedUndated = 90 * 24 * time.Hour

// chunk bounds how many values one command of a change carries: miniredis
// unpacks fewer than Redis does.
const chunk = 100

// A change is the input of one run of the script: what must hold, and what is
// written if all of it does. All keys are in one slot. Its methods take the
// typed keys of keys.go, so that no command can meet a key of another type:
// a script would fail half way, and Redis does not roll back. So it would at a
// command that the user of the bot may not run, which [Store.LayOut] rules out at the
// start, and the script itself from Redis 7.0 on.
type change struct {
	partition int
	attempt   string // eight letters that name this change among all with its request
	first     bool   // a request that was applied before is no answer to this change
	memory    string // what remembers that it was applied, see commit.lua
	document  []any  // if a document remembers it: the version that it must have, and the words of its HSET
	request   []any  // if memory is fieldRequests: the words about it that follow
	keys      names
	seen      names // documents
	checks    []any
	count     int // of the checks, including that of document
	writes    []any
	sets      []setCommand
	wakes     []wake
	channel   string // of the wakes
	from      string // see wakeMessage
	moves     []move
}

func newChange(p partition, r requestKey, keep time.Duration) *change {
	if keep <= 0 {
		keep = remembered
	}
	c := newRepeatable(p)
	c.memory = strconv.FormatInt(keep.Milliseconds(), 10)
	c.key(string(r))
	return c
}

// newChangeOf is for a change that its caller does not repeat. It must put the document k,
// which remembers the names of its last eight changes. A client that had no answer sends
// the change again within a second or so, and learns that it was applied.
func newChangeOf(p partition, k hashKey) *change {
	c := newRepeatable(p)
	c.memory, c.count = fieldChanges, 1
	c.key(string(k))
	return c
}

// newChangeOfBatch is for a change of a batch. The batch remembers its first sixteen
// requests for as long as it is stored. Further ones have keys of their own, which are
// kept for as long as people may decide: a client may send an old answer again whose
// person has taken the decision back. So have those with a time for which the caller wants
// them to be kept.
func newChangeOfBatch(p partition, b approvals.Batch, r approvals.RequestID, keep time.Duration, now time.Time) *change {
	id := string(b.ID)
	c := newRepeatable(p)
	c.memory, c.first, c.count = fieldRequests, true, 1
	alone := ""
	if keep > 0 {
		alone = "key"
	} else {
		keep = rememberedFor(b, now)
	}
	c.request = []any{requestName(r), keep.Milliseconds(), alone}
	c.key(string(p.batch(id)))
	c.key(string(p.request(id, r)))
	return c
}

// rememberedFor is how long a request to a batch is known that no document remembers: until
// the last deadline of what people may still decide.
func rememberedFor(b approvals.Batch, now time.Time) time.Duration {
	keep := remembered
	for _, a := range b.Approvals {
		switch d := a.Requirement.Deadline; {
		case a.Status != approvals.Pending:
		case d.IsZero():
			return rememberedUndated
		default:
			keep = max(keep, d.Sub(now))
		}
	}
	return keep
}

// requestName is the name of a request in a document that remembers it.
func requestName(r approvals.RequestID) string {
	sum := sha256.Sum256([]byte(r))
	return base64.RawURLEncoding.EncodeToString(sum[:8])
}

// remembersRequest reports whether the field of a batch has the request.
func remembersRequest(field string, r approvals.RequestID) bool {
	const name, entry = 11, 19 // with the name of the attempt
	_, all, _ := strings.Cut(field, ":")
	for wanted := requestName(r); len(all) >= entry; all = all[entry:] {
		if all[:name] == wanted {
			return true
		}
	}
	return false
}

// newRepeatable is for a change that may be applied twice: the second time its writes
// change nothing, or its checks fail and its caller treats that as success.
func newRepeatable(p partition) *change {
	return &change{partition: p.n, attempt: rand.Text()[:8], checks: make([]any, 0, 16), writes: make([]any, 0, 80)} // those of a click
}

// inDocument reports whether a document remembers the change: that of the first key.
func (c *change) inDocument() bool { return c.memory == fieldChanges || c.memory == fieldRequests }

func (c *change) key(k string) int {
	i, _ := c.keys.add(k)
	return i + 1
}

// names are different names in the order in which they were added.
type names struct {
	all []string
	at  map[string]int // nil while there are few
}

// add returns the place of a name, and whether it was added just now.
func (n *names) add(name string) (at int, added bool) {
	const few = 16
	if n.at == nil {
		at = slices.Index(n.all, name)
	} else if known, ok := n.at[name]; ok {
		at = known
	} else {
		at = -1
	}
	if at >= 0 {
		return at, false
	}
	at = len(n.all)
	n.all = append(n.all, name)
	switch {
	case n.at != nil:
		n.at[name] = at
	case len(n.all) > few:
		n.at = make(map[string]int, 2*few)
		for i, x := range n.all {
			n.at[x] = i
		}
	}
	return at, true
}

func (c *change) check(want, command, key string, args ...any) {
	c.count++
	c.checks = append(c.checks, len(args)+3, command, c.key(key))
	c.checks = append(c.checks, args...)
	c.checks = append(c.checks, want)
}

func (c *change) write(command, key string, args ...any) {
	c.writes = append(c.writes, len(args)+2, command, c.key(key))
	c.writes = append(c.writes, args...)
}

// wantField: the field holds want; "" for a field or key that is not there.
func (c *change) wantField(k hashKey, field, want string) { c.check(want, "HGET", string(k), field) }

// wantVersion: the field holds this version; 0 for none.
func (c *change) wantVersion(k hashKey, field string, v int64) {
	c.wantField(k, field, formatVersion(v))
}

func (c *change) wantLen(k listKey, n int) { c.check(strconv.Itoa(n), "LLEN", string(k)) }

func (c *change) wantScore(k zsetKey, member string, s score) {
	c.check(s.String(), "ZSCORE", string(k), member)
}

func (c *change) hset(k hashKey, pairs ...any)       { c.write("HSET", string(k), pairs...) }
func (c *change) hdel(k hashKey, fields ...any)      { c.write("HDEL", string(k), fields...) }
func (c *change) setOnce(k stringKey, value string)  { c.write("SET", string(k), value, "NX") }
func (c *change) xadd(k streamKey, field, value any) { c.write("XADD", string(k), "*", field, value) }

// unlink takes a key of any type away.
func (c *change) unlink(key string) { c.write("UNLINK", key) }

// words is how many keys and arguments the script is given.
func (c *change) words() int {
	n := len(c.keys.all) + 4 + len(c.document) + len(c.request) + len(c.checks) + len(c.writes) + publishWords
	for _, x := range c.sets {
		n += 3 + len(x.args)
	}
	return n
}

// A setCommand changes members of one sorted set. These commands are run after the other
// writes, those on one key in the order in which the change was given them.
type setCommand struct {
	name string
	key  int // its number
	args []any
}

func (c *change) zadd(k zsetKey, member string, s score) { c.changeSet("ZADD", k, s.String(), member) }
func (c *change) zrem(k zsetKey, member string)          { c.changeSet("ZREM", k, member) }

// ztrim keeps the members with the highest scores.
func (c *change) ztrim(k zsetKey, keep int) {
	c.sets = append(c.sets, setCommand{"ZREMRANGEBYRANK", c.key(string(k)), []any{0, -keep - 1}})
}

// changeSet adds to the last command on the key, if that is the same one.
func (c *change) changeSet(name string, k zsetKey, args ...any) {
	key := c.key(string(k))
	for i := range slices.Backward(c.sets) {
		last := &c.sets[i]
		if last.key != key {
			continue
		}
		if last.name == name && len(last.args)+len(args) <= chunk {
			last.args = append(last.args, args...)
			return
		}
		break
	}
	c.sets = append(c.sets, setCommand{name, key, args})
}

func (c *change) rpush(k listKey, values []any) {
	for len(values) > 0 {
		n := min(chunk, len(values))
		c.write("RPUSH", string(k), values[:n]...)
		values = values[n:]
	}
}

// ifAny adds the writes that f adds, on the condition that one of the keys exists. Mostly
// none does, and the script then runs one command instead of all of them.
func (c *change) ifAny(f func(), keys ...hashKey) {
	c.writes = append(c.writes, len(keys)+3, "EXISTS", 0, 0)
	left := len(c.writes) - 1
	for _, k := range keys {
		c.writes = append(c.writes, c.key(string(k)))
	}
	begin := len(c.writes)
	f()
	c.writes[left] = len(c.writes) - begin
}

// once reports whether this is the first request for this document.
func (c *change) once(doc string) bool {
	_, first := c.seen.add(doc)
	return first
}

// publish adds wake-ups.
func (c *change) publish(s *conn, wakes ...wake) {
	c.channel, c.from = s.wakes(), s.works.name()
	c.wakes = append(c.wakes, wakes...)
}

// publishWords is how many words the wake-ups have. They have no key: a channel is in no slot.
const publishWords = 5

// args are the words of the change for the script. The wake-ups come last, so that a
// loop that receives them finds the work.
func (c *change) args(ctx context.Context) []any {
	args := make([]any, 0, c.words()-len(c.keys.all))
	args = append(args, c.attempt, c.memory)
	listed := c.count
	if c.inDocument() {
		args = append(args, c.document[0], len(c.document)-1)
		args = append(args, c.document[1:]...)
		args = append(args, c.request...)
		listed--
	}
	args = append(args, listed)
	args = append(args, c.checks...)
	args = append(args, c.writes...)
	for _, x := range c.sets {
		args = append(append(args, len(x.args)+2, x.name, x.key), x.args...)
	}
	if len(c.wakes) > 0 {
		args = append(args, publishWords-1, "PUBLISH", 0, c.channel, wakeMessage(c.partition, c.wakes, Awaited(ctx), c.from))
	}
	return args
}

// commit runs the change. It returns the number of the check that failed, from
// 1, or 0: applied, by this change, which the client may have sent more than once,
// or by an earlier one with the same request. The latter is [repeated] for a
// change that is to be the first. After an error it is unknown whether the change
// was applied; the same request may be sent again. A change that is acknowledged
// to people or tools needs commitBehind.
func (s *conn) commit(ctx context.Context, c *change) (failed int, err error) {
	defer s.written(ctx, c)
	defer func() { c.noteMoves(ctx, failed, err) }()
	args := c.args(ctx)
	cmd := along(ctx, s, func(client redis.Cmdable) *redis.Cmd { return s.script.EvalSha(ctx, client, c.keys.all, args...) })
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		cmd = s.script.Eval(ctx, s.client, c.keys.all, args...)
	}
	failed, err = c.verdictOf(cmd.Int64Slice())
	if err != nil || !s.barrier.asks() { // otherwise it is not known whether the change is durable
		s.writes.note(c.partition, s.now(), err)
	}
	return failed, err
}

// repeated is the failure of a change that was to be the first of its request.
const repeated = -1

// verdictOf reads the answer of the script.
func (c *change) verdictOf(reply []int64, err error) (failed int, _ error) {
	switch {
	case err != nil:
		return 0, err
	case c.first && len(reply) == 1 && reply[0] == 2:
		return repeated, nil
	case len(reply) == 1 && (reply[0] == 1 || reply[0] == 2):
		return 0, nil
	case len(reply) == 2 && reply[0] == 0:
		return int(reply[1]), nil
	default:
		return 0, fmt.Errorf("the commit script answered %v", reply)
	}
}

// apply is commit for callers to whom every failed check is the same.
func (s *conn) apply(ctx context.Context, c *change) error {
	return conflict(s.commit(ctx, c))
}

// applyBehind is apply with the store's barrier after it.
func (s *conn) applyBehind(ctx context.Context, c *change) error {
	return conflict(s.commitBehind(ctx, c, s.barrier))
}

func conflict(failed int, err error) error {
	switch {
	case err != nil || failed == 0:
		return err
	case failed == repeated:
		return approvals.ErrAnswered
	}
	return approvals.ErrConflict
}

// newRequest is for changes whose caller does not repeat them; the client does
// when a reply is lost.
func newRequest(r approvals.RequestID) approvals.RequestID {
	if r == "" {
		return approvals.RequestID(rand.Text())
	}
	return r
}

func parseVersion(v string) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("a stored version is %q", v)
	}
	return n, nil
}

func formatVersion(v int64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatInt(v, 10)
}
