package state

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Options say where the store is. URL, To or Client is required.
type Options struct {
	// URL is redis://, rediss:// or unix://. With addr= parameters it names the
	// seeds of a cluster, with master_name= a Sentinel. It is never logged with
	// its password.
	URL string
	// To says instead of URL where Redis is, if it has addresses.
	To Target
	// Client is used as it is and stays the caller's to close.
	Client redis.UniversalClient
	// Hooks see every command of the client that Open makes.
	Hooks []redis.Hook
	// Prefix begins every key; empty means "countersign". Stores with different
	// prefixes do not see each other.
	Prefix string
	// Once makes Open fail at once if Redis does not answer. Otherwise Open tries
	// again until its context ends.
	Once bool
	// Now is the clock; nil means the system's.
	Now func() time.Time
	// Log is where the store says what it waits for; nil means nowhere.
	Log *slog.Logger
	// Durability is what must be true of a commit before it is answered; empty
	// is [None]. Open asks the server whether it can keep that, as far as an
	// empty change tells. What the server is set to is for the caller to look
	// at, see [Servers].
	Durability Durability
	// Replicas is how many replicas must have a commit, with [Replicated].
	Replicas int
}

func orDefault(prefix string) string { return cmp.Or(prefix, "countersign") }

func (o Options) target() Target {
	if to := o.To; len(to.Addresses) > 0 {
		to.Log = o.Log
		return to
	}
	return Target{URL: o.URL}
}

// Store keeps everything in Redis. It holds no state of its own: any number of
// stores may work on one Redis.
//
// It is the [approvals.Store], the [agentrun.Store] and the store of memos, of
// sheets and of lists at once. These are one type because each method is small
// and ends in the same commit script, and because one commit often writes
// documents of several of them. What is not committed together with these
// documents has a type of its own: [Due] works on the index of due work, [Feed]
// reads the events, [Ledger] counts the calls of people, and [Browser] shows
// people what is stored.
type Store struct {
	*conn
	owned   bool          // Close closes the client
	present *redis.PubSub // nil, or what keeps others from [Store.Convert]
}

// A conn is one Redis under one prefix. It runs changes and confirms that they
// are durable. It knows no document.
type conn struct {
	client redis.UniversalClient
	script *redis.Script
	prefix string
	now    func() time.Time
	log    *slog.Logger
	apart  bool         // the layout of the store is [apart]; never changed once it is used
	ahead  atomic.Int64 // by how many nanoseconds the clock of this process was ahead of the store's, see [Clock]

	barrier barrier
	writes  writes
	works   works
	pipes   autoPipes
}

// Open returns a store once its Redis answers. Until then it logs what it waits
// for and tries again until ctx ends, or returns an error with [Options.Once].
// A Redis that answers and refuses us, or is older than [OldestRedis], is an error at
// once.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{conn: &conn{client: o.Client, script: redis.NewScript(commitSource), prefix: orDefault(o.Prefix), now: o.Now, log: o.Log, works: works{id: rand.Text()[:8]}}}
	s.pipes.init(s.conn)
	if strings.ContainsAny(s.prefix, "{} \r\n") {
		return nil, fmt.Errorf("the key prefix %q holds a brace or a space", s.prefix)
	}
	if s.now == nil {
		s.now = time.Now //nolint:forbidigo // the one place where the clock comes from
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.client == nil {
		c, err := Connect(o.target())
		if err != nil {
			return nil, err
		}
		for _, h := range o.Hooks {
			c.AddHook(h)
		}
		s.client, s.owned = c, true
	}
	if err := s.begin(ctx, o); err != nil {
		return nil, errors.Join(s.advised(err), s.Close())
	}
	return s, nil
}

// begin waits for Redis and takes from it how the store works.
func (s *Store) begin(ctx context.Context, o Options) (err error) {
	if err := s.await(ctx, o); err != nil {
		return err
	}
	if err := s.checkVersions(ctx); err != nil {
		return err
	}
	if err := s.checkLayout(ctx); err != nil {
		return err
	}
	s.barrier, err = s.barrierOf(ctx, o)
	return err
}

// Ping reports whether Redis answers.
func (s *conn) Ping(ctx context.Context) error {
	if err := s.client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ping redis: %w", err)
	}
	return nil
}

// Prefix is what every key begins with.
func (s *conn) Prefix() string { return s.prefix }

// Close gives back the connections that Open made.
func (s *Store) Close() error {
	var err error
	if s.present != nil {
		err = s.present.Close()
		s.present = nil
	}
	if !s.owned {
		return err
	}
	return errors.Join(err, s.client.Close())
}

// await returns when Redis answers.
func (s *conn) await(ctx context.Context, o Options) error {
	where := o.target().String()
	const longest = 5 * time.Second
	wait := 100 * time.Millisecond
	for waited := false; ; waited = true {
		err := s.Ping(ctx)
		if err == nil {
			if waited {
				s.log.InfoContext(ctx, "Redis answers", slog.String("redis", where))
			}
			return nil
		}
		for _, refusal := range []string{"NOAUTH", "WRONGPASS", "NOPERM", "ERR invalid password"} {
			if redis.HasErrorPrefix(err, refusal) {
				return fmt.Errorf("redis at %s refuses us: %w", where, err)
			}
		}
		if o.Once {
			return fmt.Errorf("redis at %s does not answer: %w", where, err)
		}
		s.log.WarnContext(ctx, "Redis does not answer; trying again until it does",
			slog.String("redis", where), slog.Duration("wait", wait), slog.Any("err", err))
		select {
		case <-ctx.Done():
			return fmt.Errorf("redis at %s does not answer: %w", where, errors.Join(ctx.Err(), err))
		case <-time.After(wait):
		}
		wait = min(2*wait, longest)
	}
}
