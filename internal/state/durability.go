package state

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

// Durability says what must be true of a change before anyone is told that it
// is stored, and before a call may run because of it.
type Durability string

// The levels. Each of the first three keeps what the one after it keeps.
const (
	// Replicated: a number of replicas have the change, and the server has it on
	// its disk.
	Replicated Durability = "replicated"
	// Fsync: the server has the change on its disk. That is the work of
	// appendfsync always, which answers a write after it is synced.
	Fsync Durability = "fsync"
	// Everysec: the server has the change in its log, and syncs that within two
	// seconds.
	Everysec Durability = "everysec"
	// None: the server has the change in memory. It is for the demo and for
	// tests.
	None Durability = "none"
)

// confirming is how long a server may take to say that a change is durable.
const confirming = time.Second

// A notDurableError is a change that is stored and may yet be lost. The due
// index tries again without counting a failure: nothing is wrong with the work.
type notDurableError struct{ why string }

func (e *notDurableError) Error() string { return approvals.ErrNotDurable.Error() + ": " + e.why }

// Is makes it an [approvals.ErrNotDurable].
func (e *notDurableError) Is(target error) bool { return target == approvals.ErrNotDurable }

// RetryAfter is what the due index asks.
func (*notDurableError) RetryAfter() time.Duration { return time.Second }

// A barrier is the question that follows a change, on the connection of the
// change: WAIT and WAITAOF are about the writes of their connection. The zero
// barrier asks nothing.
type barrier struct {
	replicas int  // that must have the change
	disk     bool // whether the server must say that it has synced the change
}

func (b barrier) asks() bool { return b.replicas > 0 || b.disk }

// ask adds the questions to a pipeline. The returned function reads the answers
// once the pipeline is through.
func (b barrier) ask(ctx context.Context, pipe redis.Pipeliner) (answered func() error) {
	var disk, replicas *redis.Cmd
	if b.disk {
		disk = pipe.Do(ctx, "WAITAOF", 1, 0, confirming.Milliseconds())
	}
	if b.replicas > 0 {
		replicas = pipe.Do(ctx, "WAIT", b.replicas, confirming.Milliseconds())
	}
	return func() error {
		if disk != nil {
			synced, err := disk.Int64Slice()
			if err != nil {
				return &notDurableError{fmt.Sprintf("WAITAOF: %s", err)}
			}
			if len(synced) != 2 || synced[0] < 1 {
				return &notDurableError{"the server has not synced it"}
			}
		}
		if replicas != nil {
			have, err := replicas.Int64()
			if err != nil {
				return &notDurableError{fmt.Sprintf("WAIT: %s", err)}
			}
			if have < int64(b.replicas) {
				return &notDurableError{fmt.Sprintf("%d of %d replicas have it", have, b.replicas)}
			}
		}
		return nil
	}
}

// barrierOf returns the barrier for the options, and whether this server can
// hold it.
func (s *conn) barrierOf(ctx context.Context, o Options) (barrier, error) {
	var b barrier
	switch o.Durability {
	case "", None, Everysec:
		return b, nil
	case Replicated:
		if b.replicas = o.Replicas; b.replicas < 1 {
			return b, errors.New("the durability replicated needs a number of replicas")
		}
	case Fsync:
	default:
		return b, fmt.Errorf("there is no durability %q", o.Durability)
	}
	// A server that knows WAITAOF (Redis 7.2, Valkey) answers for each change,
	// whatever becomes of its settings. For an older one the setting appendfsync
	// always is assumed; the caller of [Open] checks it, see [Servers].
	b.disk = true
	err := s.confirm(ctx, 0, b)
	if err != nil && strings.Contains(strings.ToLower(err.Error()), "unknown command") {
		b.disk = false
		err = s.confirm(ctx, 0, b)
	}
	switch {
	case err == nil:
		return b, nil
	case errors.Is(err, approvals.ErrNotDurable):
		return b, fmt.Errorf("redis does not keep what redis.durability %s promises: %w", o.Durability, err)
	}
	return b, fmt.Errorf("%s: %w", Refusal(err), err)
}

// Confirm returns once everything that is stored in the partition of the id is
// as durable as a commit: what was read there may be acknowledged then.
// Otherwise it is [approvals.ErrNotDurable].
func (s *conn) Confirm(ctx context.Context, id string) error {
	if !s.barrier.asks() {
		return nil
	}
	p, err := s.partitionOf(id)
	if err != nil {
		return err
	}
	return wrap(s.confirm(ctx, p.n, s.barrier), "confirm %s", id)
}

// confirm asks for an empty change. Logs and replication streams have one
// order: what follows everything else there is durable after everything else.
func (s *conn) confirm(ctx context.Context, partition int, b barrier) error {
	p := s.partition(partition)
	_, err := s.commitBehind(ctx, newChange(p, p.request("confirm", newRequest("")), confirming), b)
	return err
}

// commitBehind is commit with a barrier after it. An [approvals.ErrNotDurable]
// says that the change is applied and may be lost; the same request may be sent
// again, and asks again.
func (s *conn) commitBehind(ctx context.Context, c *change, b barrier) (failed int, err error) {
	if !b.asks() {
		return s.commit(ctx, c)
	}
	defer s.written(ctx, c)
	defer func() {
		s.writes.note(c.partition, s.now(), err)
		c.noteMoves(ctx, failed, err)
	}()
	args := c.args(ctx)
	var shared *redis.Cmd // is written in a round trip of others, after which it may be read
	r, done := s.together(ctx, b, func(pipe redis.Pipeliner) { shared = s.script.EvalSha(ctx, pipe, c.keys.all, args...) })
	defer done()
	if r != nil && shared.Err() == nil {
		return c.verdictBehind(shared, r.durable)
	}
	node, err := s.master(ctx, c.keys.all[0])
	if err != nil {
		return 0, err
	}
	cmd, answered := behind(ctx, node, b, func(pipe redis.Pipeliner) *redis.Cmd {
		return s.script.EvalSha(ctx, pipe, c.keys.all, args...)
	})
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		cmd, answered = behind(ctx, node, b, func(pipe redis.Pipeliner) *redis.Cmd {
			return s.script.Eval(ctx, pipe, c.keys.all, args...)
		})
	}
	if cluster, ok := s.client.(*redis.ClusterClient); ok && astray(cmd.Err()) {
		// The client of the cluster finds the way for the change, and tries again. Then the
		// change is sent once more, with the question: the server that it reaches now may
		// have taken the place of the one that has the change, and not have it.
		cluster.ReloadState(ctx)
		if err := s.script.Run(ctx, s.client, c.keys.all, args...).Err(); err != nil {
			return 0, err
		}
		if node, err = s.master(ctx, c.keys.all[0]); err != nil {
			return 0, err
		}
		cmd, answered = behind(ctx, node, b, func(pipe redis.Pipeliner) *redis.Cmd {
			return s.script.Eval(ctx, pipe, c.keys.all, args...)
		})
	}
	return c.verdictBehind(cmd, answered)
}

// verdictBehind reads the answers of the script and of the barrier after it.
func (c *change) verdictBehind(cmd *redis.Cmd, durable func() error) (failed int, err error) {
	failed, err = c.verdictOf(cmd.Int64Slice())
	if err != nil || (failed != 0 && failed != repeated) {
		return failed, err
	}
	return failed, durable()
}

// behind runs a script and asks the barrier, in one pipeline: that is one
// connection.
func behind(ctx context.Context, node redis.Cmdable, b barrier, run func(redis.Pipeliner) *redis.Cmd) (*redis.Cmd, func() error) {
	pipe := node.Pipeline()
	cmd := run(pipe)
	answered := b.ask(ctx, pipe)
	execute(ctx, pipe)
	return cmd, answered
}

// astray reports whether a server of a cluster did not answer, or is not the
// one that has the key.
func astray(err error) bool {
	var answer redis.Error
	if err != nil && !errors.As(err, &answer) {
		return true
	}
	for _, word := range []string{"MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"} {
		if redis.HasErrorPrefix(err, word) {
			return true
		}
	}
	return false
}

// master returns the server that has the key. A question without a key would
// be sent to any server of a cluster.
func (s *conn) master(ctx context.Context, key string) (redis.Cmdable, error) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return s.client, nil
	}
	node, err := cluster.MasterForKey(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("find the server of %s: %w", key, err)
	}
	return node, nil
}
