package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/redisserver"
	"github.com/countersign/countersign/internal/state"
)

// A prefix of keys is as long as that of a bot, which is "countersign": its length
// counts in each figure about memory and the log. It begins with these letters, others
// that are the same in one run, and ends with a number.
const prefix = "csb"

// scratch begins the names of all folders that are made.
const scratch = "countersign-bench-"

// A server is the Redis that is measured with.
type server struct {
	url    string
	client redis.UniversalClient
	prefix string       // begins the prefixes of all keys that are written
	end    func() error // of a server of our own; nil for one that was named
}

// open returns the Redis at the URL, or starts one that ends with close. It
// refuses one with data, unless that is wanted.
func open(ctx context.Context, url string, busy bool, said io.Writer) (*server, error) {
	s := &server{url: url, prefix: prefix + rand.Text()[:5]}
	if url == "" {
		if err := s.start(ctx, said); errors.Is(err, redisserver.ErrMissing) {
			return nil, fmt.Errorf("%w, or name a Redis that is for this alone with --redis redis://HOST:PORT", err)
		} else if err != nil {
			return nil, err
		}
	}
	var err error
	if s.client, err = state.Dial(s.url); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	tries := 1
	if s.end != nil {
		tries = starting
	}
	if err := await(ctx, s.client, tries); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	n, err := s.client.DBSize(ctx).Result()
	if err == nil && n > 0 && !busy {
		err = fmt.Errorf("this Redis holds %d keys; the measurements write a lot and need it for themselves. "+
			"Name one that is empty, or pass --busy if you want to measure beside other data", n)
	}
	if err != nil {
		return nil, errors.Join(err, s.client.Close(), s.stop())
	}
	return s, nil
}

// start starts a server on a socket in a new folder.
func (s *server) start(ctx context.Context, said io.Writer) (err error) {
	s.url, s.end, err = launch(ctx, said)
	return err
}

// launch starts a redis-server in a new folder, with these settings besides those that
// are measured with. It returns the URL of its socket, and what ends it.
func launch(ctx context.Context, said io.Writer, settings ...string) (url string, end func() error, err error) {
	dir, remove, err := redisserver.Scratch(scratch)
	if err != nil {
		return "", nil, fmt.Errorf("make a folder for Redis: %w", err)
	}
	child, err := redisserver.Start(ctx, dir, said, append([]string{
		"--save", "", "--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0",
		"--hash-max-ziplist-value", "512", // as docs/settings.md has it; versions before 7 know it by this name only
	}, settings...)...)
	if err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return child.URL(), func() error { return errors.Join(child.Stop(), remove()) }, nil
}

// each calls f with a client of each server that takes writes: of the only one, or of the
// shards of a cluster, one after the other.
func (s *server) each(ctx context.Context, f func(redis.UniversalClient) error) error {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return f(s.client)
	}
	var one sync.Mutex
	return cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		one.Lock()
		defer one.Unlock()
		return f(node)
	})
}

const (
	// awaited is the time between two questions whether Redis is ready.
	awaited = 50 * time.Millisecond
	// starting is how often a server is asked that was started just now.
	starting = 100
)

// await returns when the server that c reaches answers. It gives one that was started just
// now some seconds for that.
func await(ctx context.Context, c redis.UniversalClient, tries int) error {
	var err error
	for range tries {
		if err = c.Ping(ctx).Err(); err == nil {
			break
		}
		if err := sleep(ctx, awaited); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("redis does not answer: %w", err)
	}
	return nil
}

// settings are the levels of durability that are measured: of a server that was
// named only the one that it is set to.
func (s *server) settings(ctx context.Context) ([]state.Durability, error) {
	if s.end != nil {
		return []state.Durability{state.Fsync, state.Everysec}, nil
	}
	got, err := s.client.ConfigGet(ctx, "append*").Result()
	if err != nil {
		return nil, fmt.Errorf("ask Redis for its settings: %w", err)
	}
	switch {
	case got["appendonly"] != "yes" || got["appendfsync"] == "no":
		return []state.Durability{state.None}, nil
	case got["appendfsync"] == "always":
		return []state.Durability{state.Fsync}, nil
	}
	return []state.Durability{state.Everysec}, nil
}

// set makes a server of our own keep what it is asked to keep.
func (s *server) set(ctx context.Context, keeps state.Durability) error {
	if s.end == nil {
		return nil
	}
	value := "always"
	if keeps == state.Everysec {
		value = "everysec"
	}
	return s.each(ctx, func(c redis.UniversalClient) error { return c.ConfigSet(ctx, "appendfsync", value).Err() })
}

// close removes what was written, with the server if it is ours.
func (s *server) close(ctx context.Context) error {
	if s.client == nil {
		return s.stop()
	}
	var err error
	if s.end == nil {
		err = s.each(ctx, func(c redis.UniversalClient) error { return s.clean(ctx, c) })
	}
	return errors.Join(err, s.client.Close(), s.stop())
}

func (s *server) stop() error {
	if s.end == nil {
		return nil
	}
	return s.end()
}

// clean deletes the keys below our prefixes. Each is deleted by itself: those of a shard are
// in several slots.
func (s *server) clean(ctx context.Context, c redis.UniversalClient) error {
	pipe := c.Pipeline()
	unlink := func() error {
		if _, err := pipe.Exec(ctx); err != nil {
			return fmt.Errorf("delete what was measured with: %w", err)
		}
		return nil
	}
	all := c.Scan(ctx, 0, s.prefix+"*", 1000).Iterator()
	for all.Next(ctx) {
		if pipe.Unlink(ctx, all.Val()); pipe.Len() == 1000 {
			if err := unlink(); err != nil {
				return err
			}
		}
	}
	return errors.Join(all.Err(), unlink())
}

// A cost is what a machine spent.
type cost struct {
	process  time.Duration // the CPU of this process: the bot, the load, and Slack
	server   time.Duration // the CPU of Redis
	commands float64       // that Redis ran, those of scripts too
	trips    float64       // reads of Redis from its connections: a round trip each, with all that was sent together
	aof      float64       // bytes written to the log of Redis
	memory   float64       // bytes that Redis holds, without its buffers of connections and of the log
}

func (c cost) minus(o cost) cost {
	return cost{c.process - o.process, c.server - o.server, c.commands - o.commands, c.trips - o.trips, c.aof - o.aof, c.memory - o.memory}
}

// each returns the cost of one, if c is the cost of n.
func (c cost) each(n float64) cost {
	part := func(d time.Duration) time.Duration { return time.Duration(float64(d) / n) }
	return cost{part(c.process), part(c.server), c.commands / n, c.trips / n, c.aof / n, c.memory / n}
}

// cost returns what was spent until now, by all shards if it is a cluster.
func (s *server) cost(ctx context.Context) (cost, error) {
	c := cost{process: cpu()}
	return c, s.each(ctx, func(node redis.UniversalClient) error {
		info, err := node.Info(ctx, "stats", "cpu", "persistence", "memory", "commandstats").Result()
		if err != nil {
			return fmt.Errorf("ask Redis what it did: %w", err)
		}
		c.add(info)
		return nil
	})
}

// add adds what a server says of itself.
func (c *cost) add(info string) {
	var seconds float64
	for line := range strings.Lines(info) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		n, _ := strconv.ParseFloat(value, 64) // 0 for what is no number
		switch {
		case strings.HasPrefix(key, "cmdstat_") && key != "cmdstat_info":
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			n, _ := strconv.ParseFloat(calls, 64)
			c.commands += n
		case key == "total_reads_processed":
			c.trips += n
		case key == "aof_current_size":
			c.aof += n
		case key == "used_memory":
			c.memory += n
		case key == "mem_clients_normal", key == "mem_aof_buffer":
			c.memory -= n
		case key == "used_cpu_user", key == "used_cpu_sys":
			seconds += n
		}
	}
	c.server += time.Duration(seconds * float64(time.Second))
}

// cpu is what this process has used of the CPU.
func cpu() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
