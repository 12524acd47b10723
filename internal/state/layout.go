package state

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

// ErrLayout says that the store was laid out by a program with another number of
// partitions. Ids have their partition in them, and a sweep looks at all partitions
// that there are, so work in the others would never be found.
var ErrLayout = errors.New("the store has another number of partitions than this program")

// ErrEmptied says that what [Store.LayOut] stored is not in Redis any more, and so
// presumably nothing that was stored before.
var ErrEmptied = errors.New("redis does not hold what this process stored at its start: it was emptied, or is another one")

// checkLayout compares the number of partitions with the one that is stored, if one
// is.
func (s *conn) checkLayout(ctx context.Context) error {
	if err := s.Holds(ctx); !errors.Is(err, ErrEmptied) {
		return err
	}
	return nil
}

// Holds reports with [ErrEmptied] that Redis has lost everything since LayOut, and with
// [ErrLayout] that it holds what another program stored.
func (s *conn) Holds(ctx context.Context) error {
	stored, err := s.client.Get(ctx, string(s.partition(0).layout())).Result()
	if errors.Is(err, redis.Nil) {
		return ErrEmptied
	}
	if err != nil {
		return fmt.Errorf("read how the store is laid out: %w", err)
	}
	if stored != strconv.Itoa(approvals.Partitions) {
		return fmt.Errorf("%w: %.20q, not %d", ErrLayout, stored, approvals.Partitions)
	}
	return nil
}

// LayOut stores the number of partitions, which [Open] compares from then on. A
// process that will write calls it once. It is an error if Redis does not permit a
// command of a change.
func (s *conn) LayOut(ctx context.Context) error {
	if err := s.client.SetNX(ctx, string(s.partition(0).layout()), strconv.Itoa(approvals.Partitions), 0).Err(); err != nil {
		return fmt.Errorf("store how the store is laid out: %w", err)
	}
	if err := s.checkPermissions(ctx); err != nil {
		return err
	}
	return s.checkLayout(ctx)
}

// checkPermissions asks whether Redis permits the commands of the scripts. Before 7.0 it
// refuses one within a script when it comes to it, and keeps what the script wrote before, so
// half of a change would be stored; from then on, the script asks first. None of these
// commands writes anything: the layout is a text that exists, and the other key does not.
func (s *conn) checkPermissions(ctx context.Context) error {
	pipe := s.client.Pipeline()
	for _, words := range s.commandsOfChanges() {
		pipe.Do(ctx, words...)
	}
	asked, _ := pipe.Exec(ctx) // those that are permitted fail too, at a key of another type
	return forbidden(asked)
}

// commandsOfChanges are those that run the scripts, and the commands in these. Where the
// layout is stored, they change nothing.
func (s *conn) commandsOfChanges() [][]any {
	text := string(s.partition(0).layout())
	nothing := text + ":nothing"
	return [][]any{
		{"EXISTS", nothing},
		{"GET", nothing},
		{"HDEL", nothing, "f"},
		{"HGET", nothing, "f"},
		{"HMGET", nothing, "f"},
		{"HSET", text, "f", ""},
		{"LLEN", nothing},
		{"PERSIST", nothing},
		{"PEXPIRE", nothing, 1},
		{"PUBLISH", s.wakes(), ""}, // which wakes nobody
		{"RPUSH", text, ""},
		{"SET", text, "", "NX"},
		{"UNLINK", nothing},
		{"XADD", text, "*", "f", ""},
		{"ZADD", text, 0, "m"},
		{"ZRANGEBYSCORE", nothing, 0, 0},
		{"ZREM", nothing, "m"},
		{"ZREMRANGEBYRANK", nothing, 0, 0},
		{"ZSCORE", nothing, "m"},
		{"EVAL", "", 1, nothing},
		{"EVALSHA", strings.Repeat("0", 40), 1, nothing}, // no script has this name
	}
}

// forbidden is the error of the first command that Redis does not permit.
func forbidden(asked []redis.Cmder) error {
	for _, cmd := range asked {
		if err := cmd.Err(); notPermitted(err) {
			return fmt.Errorf("redis does not permit %s to the bot: %w", strings.ToUpper(cmd.Name()), err)
		}
	}
	return nil
}

// Permissions asks, without a store, whether Redis permits the commands of changes under the
// prefix to the user of the client; an empty prefix means "countersign". It runs none of
// them: Redis refuses a command of a transaction when it is queued, and the transaction is
// discarded. It refuses them too when it takes no changes at the moment, because it is full
// for example. It is unknown to a user who may not use transactions.
func Permissions(ctx context.Context, client redis.UniversalClient, prefix string) (unknown bool, err error) {
	s := &conn{client: client, prefix: orDefault(prefix)}
	node := client
	if cluster, ok := client.(*redis.ClusterClient); ok { // a transaction is one connection to one server
		if node, err = cluster.MasterForKey(ctx, string(s.partition(0).layout())); err != nil {
			return false, fmt.Errorf("find a server of the cluster: %w", err)
		}
	}
	in := func(commands [][]any) ([]redis.Cmder, error) {
		pipe := node.Pipeline()
		pipe.Do(ctx, "MULTI")
		for _, words := range commands {
			pipe.Do(ctx, words...)
		}
		pipe.Do(ctx, "DISCARD")
		return pipe.Exec(ctx)
	}
	switch _, err := in(nil); {
	case redis.HasErrorPrefix(err, "NOPERM"): // the commands would be run
		return true, nil
	case err != nil:
		return false, fmt.Errorf("ask redis for a transaction: %w", err)
	}
	asked, refused := in(s.commandsOfChanges()) // one that is refused is an error of all
	if err := forbidden(asked); err != nil {
		return false, err
	}
	return false, refused
}
