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
// partitions, or by a newer one that stores the indexes in another way. Ids have their
// partition in them, and a sweep looks at all partitions that there are, so work in the
// others would never be found.
var ErrLayout = errors.New("the store has a layout that this program does not know")

// ErrEmptied says that what [Store.LayOut] stored is not in Redis any more, and so
// presumably nothing that was stored before.
var ErrEmptied = errors.New("redis does not hold what this process stored at its start: it was emptied, or is another one")

// ErrLayoutChanged says that another process has changed the layout of the store. Who goes
// on would not find what others store, nor they what it stores.
var ErrLayoutChanged = errors.New("the layout of the store has changed while this process worked on it")

// ErrConverting says that a change of the layout was begun and not finished.
var ErrConverting = errors.New("the layout of the store is being changed, or that was interrupted: bot admin convert finishes it")

// The layouts, as they are stored.
var (
	// apart is the layout of older versions: each kind of due work and each list has a
	// sorted set of its own. A store keeps it until [Store.Convert], so that replicas of
	// older versions can work on it.
	apart = strconv.Itoa(approvals.Partitions)
	// converting is that of a store that is being changed from apart to joined.
	converting = apart + "+"
	// joined is the layout of new stores.
	joined = apart + "/2"
)

// checkLayout takes the layout that is stored, and that of new stores if none is. [Open]
// calls it, and [Store.LayOut], before anything else uses the store.
func (s *conn) checkLayout(ctx context.Context) error {
	stored, err := s.layout(ctx)
	if err != nil && !errors.Is(err, ErrEmptied) {
		return err
	}
	s.apart = stored == apart
	return nil
}

// layout returns the layout that is stored, if this program knows it.
func (s *conn) layout(ctx context.Context) (string, error) {
	stored, err := s.client.Get(ctx, string(s.partition(0).layout())).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return "", ErrEmptied
	case err != nil:
		return "", fmt.Errorf("read how the store is laid out: %w", err)
	case stored != apart && stored != converting && stored != joined:
		return "", fmt.Errorf("%w: %.20q, not %q", ErrLayout, stored, joined)
	}
	return stored, nil
}

// Holds reports with [ErrEmptied] that Redis has lost everything since LayOut, with
// [ErrLayout] that it holds what another program stored, and with [ErrLayoutChanged] or
// [ErrConverting] that nobody may work on it as this process does.
func (s *conn) Holds(ctx context.Context) error {
	switch stored, err := s.layout(ctx); {
	case err != nil:
		return err
	case stored == converting:
		return ErrConverting
	case (stored == apart) != s.apart:
		return ErrLayoutChanged
	}
	return nil
}

// CheckLayout reports, without a store, whether this program can work on the store under the
// prefix, and whether that is one of an older version; an empty prefix means "countersign".
// Its errors are those of [Store.LayOut].
func CheckLayout(ctx context.Context, client redis.UniversalClient, prefix string) (older bool, err error) {
	s := &conn{client: client, prefix: orDefault(prefix)}
	stored, err := s.layout(ctx)
	switch {
	case errors.Is(err, ErrEmptied):
		return false, nil
	case stored == converting:
		return false, ErrConverting
	}
	return stored == apart, err
}

// LayOut stores the layout of this version if the store is new, which [Open] compares from
// then on. A process that will write calls it once, before it works. It is an error if
// Redis does not permit a command of a change, and [ErrConverting] until a change of the
// layout has ended.
func (s *Store) LayOut(ctx context.Context) error { return s.advised(s.layOut(ctx)) }

func (s *Store) layOut(ctx context.Context) error {
	if err := s.label(ctx); err != nil {
		return fmt.Errorf("store how the store is laid out: %w", err)
	}
	if err := s.checkPermissions(ctx); err != nil {
		return err
	}
	if err := s.checkLayout(ctx); err != nil {
		return err
	}
	if s.apart {
		if err := s.attend(ctx); err != nil {
			return err
		}
	}
	if err := s.Holds(ctx); err != nil {
		return err
	}
	switch mixed, err := s.mixed(ctx); {
	case err != nil:
		return err
	case s.apart && mixed:
		s.log.WarnContext(ctx, "some work is in the layout of this version, and is not done until all replicas are stopped and bot admin convert has run")
	case s.apart:
		s.log.InfoContext(ctx, "the store has the layout of older versions, in which a decision costs more of Redis; bot admin convert changes it while no replica runs")
	case mixed:
		s.log.WarnContext(ctx, "some work is in the layout of older versions, of a process that should have been stopped; it is moved")
		_, err := s.move(ctx, true)
		return err
	}
	return nil
}

// label stores the layout if none is stored: that of this version, unless the store is that
// of a version which did not say how it is laid out, or was emptied while processes work in
// the layout of older versions.
func (s *conn) label(ctx context.Context) error {
	if _, err := s.layout(ctx); !errors.Is(err, ErrEmptied) {
		return err
	}
	held, err := s.heldApart(ctx, dueApart, listApart)
	if err != nil {
		return err
	}
	others, err := s.heard(ctx, channelApart, ":wake:*")
	if err != nil && !notPermitted(err) {
		return err
	}
	is := joined
	if len(held) > 0 || others {
		is = apart
	}
	return s.client.SetNX(ctx, string(s.partition(0).layout()), is, 0).Err()
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
		{"ZRANGE", nothing, 0, 0},
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

// advised adds what to do to an error that says that Redis does not permit something to the
// user of the bot.
func (s *conn) advised(err error) error {
	if !notPermitted(err) || redis.HasErrorPrefix(err, "unknown command") {
		return err
	}
	return fmt.Errorf("%w; %s", err, Rights(s.client, s.prefix))
}

// Rights says what to do when Redis does not permit something to the user of the client; an
// empty prefix means "countersign".
func Rights(client redis.UniversalClient, prefix string) string {
	var user, password string
	switch c := client.(type) {
	case *redis.Client:
		user, password = c.Options().Username, c.Options().Password
	case *redis.ClusterClient:
		user, password = c.Options().Username, c.Options().Password
	}
	if user == "" || password == "" { // a name without a password is not sent, and may be one in the wrong place
		user = "default"
	}
	return fmt.Sprintf("give the user %s of Redis the rights that docs/settings.md names at redis.user, "+
		"on keys and channels that begin with %q (ACL SETUSER), or correct redis.prefix", user, orDefault(prefix)+":")
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
