package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/state"
)

const shardsAbout = `One replica of the bot, on one Redis and on a Redis Cluster of up to %d shards without replicas of theirs: clicks over 64 connections with
their drawing. The bot, the load and all shards share the cores of this machine, so more shards are not faster here; they show what a
cluster costs, of which each shard has its part.`

// shards measures what a Redis Cluster costs. It starts clusters of its own.
func (b *bench) shards(ctx context.Context) error {
	if b.redis.end == nil {
		b.said("shards: not measured on a Redis that was named")
		return nil
	}
	t := Table{Name: "shards", About: fmt.Sprintf(shardsAbout, b.Shards), Columns: measured}
	row := func(name string) error {
		seen, err := b.draw(ctx)
		if err != nil {
			return err
		}
		got, err := b.clicksOfReplicas(ctx, seen, 1)
		t.Rows = append(t.Rows, Row{name, got})
		return err
	}
	if err := row("no cluster"); err != nil {
		return err
	}
	for n := 1; n <= b.Shards; n++ {
		name := fmt.Sprintf("%d shards", n)
		if n == 1 {
			name = "1 shard"
		}
		if err := b.sharded(ctx, n, func() error { return row(name) }); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return b.table(t)
}

// sharded calls f while b measures with a cluster of so many shards.
func (b *bench) sharded(ctx context.Context, shards int, f func() error) (err error) {
	single := b.redis
	defer func() { b.redis = single }()
	if b.redis, err = b.cluster(ctx, shards); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.redis.close(context.WithoutCancel(ctx))) }()
	if err := b.redis.set(ctx, b.keeps); err != nil {
		return err
	}
	return f()
}

// cluster starts a Redis Cluster, whose shards are on ports of the loopback interface.
// They keep nobody's data.
func (b *bench) cluster(ctx context.Context, shards int) (_ *server, err error) {
	var running ends
	defer func() {
		if err != nil {
			err = errors.Join(err, running.close())
		}
	}()
	var nodes []*redis.Client
	at := url.URL{Scheme: "redis"}
	seeds := url.Values{}
	for range shards {
		port, err := busPort(ctx)
		if err != nil {
			return nil, err
		}
		socket, end, err := launch(ctx, b.Stderr, "--port", port, "--bind", "127.0.0.1", "--cluster-enabled", "yes")
		if err != nil {
			return nil, err
		}
		running.after(end)
		node, err := reached(ctx, &running, socket)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
		if at.Host == "" {
			at.Host = net.JoinHostPort("127.0.0.1", port)
		}
		seeds.Add("addr", net.JoinHostPort("127.0.0.1", port))
		if err := nodes[0].ClusterMeet(ctx, "127.0.0.1", port).Err(); err != nil {
			return nil, fmt.Errorf("let the shards meet: %w", err)
		}
	}
	if err := share(ctx, nodes); err != nil {
		return nil, err
	}
	at.RawQuery = seeds.Encode()
	s := &server{url: at.String(), prefix: b.redis.prefix, end: running.close}
	if s.client, err = state.Dial(s.url); err != nil {
		return nil, err
	}
	return s, nil
}

// reached returns a client of the server on this socket once that answers. Running closes
// the client.
func reached(ctx context.Context, running *ends, socket string) (*redis.Client, error) {
	o, err := redis.ParseURL(socket)
	if err != nil {
		return nil, fmt.Errorf("reach a shard: %w", err)
	}
	o.DisableIdentity = true
	c := redis.NewClient(o)
	running.after(c.Close)
	return c, await(ctx, c, starting)
}

// slots are how many a cluster has.
const slots = 16384

// share gives each of the nodes its part of the slots, and returns when all of them agree.
func share(ctx context.Context, nodes []*redis.Client) error {
	for i, c := range nodes {
		if err := c.ClusterAddSlotsRange(ctx, i*slots/len(nodes), (i+1)*slots/len(nodes)-1).Err(); err != nil {
			return fmt.Errorf("share the slots: %w", err)
		}
	}
	for _, c := range nodes {
		for tries := 0; ; tries++ {
			info, err := c.ClusterInfo(ctx).Result()
			if err != nil {
				return fmt.Errorf("ask a shard for the cluster: %w", err)
			}
			if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_slots_ok:%d\r", slots)) {
				break
			}
			if tries == 600 {
				return errors.New("the shards did not become a cluster within half a minute")
			}
			if err := sleep(ctx, awaited); err != nil {
				return err
			}
		}
	}
	return nil
}

// busPort returns a free port for a shard. The port of its bus is higher by 10,000, and
// free too: versions before 7 can't be told another one.
func busPort(ctx context.Context) (string, error) {
	const above, highest = 10_000, 65_535
	for range 100 {
		l, err := listen(ctx)
		if err != nil {
			return "", err
		}
		n := l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it is one
		if err := l.Close(); err != nil {
			return "", fmt.Errorf("find a port: %w", err)
		}
		if n+above > highest {
			n -= above
		}
		if isFree(ctx, n) && isFree(ctx, n+above) {
			return strconv.Itoa(n), nil
		}
	}
	return "", errors.New("find two ports for a shard of Redis: none are free")
}

// isFree reports whether nobody listens on this port of the loopback interface.
func isFree(ctx context.Context, port int) bool {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
