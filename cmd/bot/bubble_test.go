package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state"
)

// A bubble is everything around bots that run in this process, without a socket,
// so that synctest moves the time: leases and retries take none of ours. Bots are
// connected with Redis, Slack and the model by wires that suffer faults.
type bubble struct {
	t      *testing.T
	redis  *miniredis.Miniredis
	serves *server.Server        // of Redis; read here once, because Close writes it and a client may still dial
	kept   redis.UniversalClient // on a wire of its own
	store  *state.Store          // of kept
	slack  *slacksim.Server
	sim    *sim
	tools  func(*replica) ([]agentrun.Tool, error)
	env    []string
	c      config.Config

	hosts map[string]*port

	mu     sync.Mutex
	bots   []*replica
	wrote  int // writes to Redis of all bots
	at     int // the write to which it happens
	mishap mishap
	outage time.Duration // for which Redis is away from then on
	until  time.Time     // when it is back
	calls  int           // to Slack, of all bots
	stall  int           // the call before which a process freezes
	struck bool
}

// A mishap is what happens to one write.
type mishap int

const (
	fine   mishap = iota
	unsent        // it fails before it is sent
	unread        // Redis does it, and the reply is lost
	cut           // Redis does it, and half of the reply is lost
	denied        // Redis refuses all of it
	broken        // Redis refuses what is in its second half
	crash         // Redis does it, and the process dies
	freeze        // the process stops before it is sent, and continues when its lease is over
	stall         // likewise, before a call to Slack
)

// refusals are answers of a Redis that cannot do what it is asked, in turn. A client
// sends again what was refused with one of the first four.
var refusals = []string{
	"LOADING Redis is loading the dataset in memory",
	"READONLY You can't write against a read only replica.",
	"CLUSTERDOWN The cluster is down",
	"TRYAGAIN Multiple keys request during rehashing of slot",
	"OOM command not allowed when used memory > 'maxmemory'.",
	"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
	"NOREPLICAS Not enough good replicas to write.",
	"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
	"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
	"NOPERM User bot has no permissions to run the 'evalsha' command",
	"ERR max number of clients reached",
}

// frozen is how long a process stops: several leases. Before a call to Slack it is less
// than the time after which the call is given up, so that Slack takes it.
const (
	bubbleLease = 4 * time.Second
	frozenFor   = 3 * bubbleLease
	stalledFor  = 2 * bubbleLease
)

// newBubble is called in a bubble of synctest.
func newBubble(t *testing.T, policy string, tools func(*replica) ([]agentrun.Tool, error), stories ...openaisim.Story) *bubble {
	t.Helper()
	t.Cleanup(func() { time.Sleep(time.Minute) }) // goroutines of closed connections end after their last wait
	w := &bubble{t: t, redis: miniredis.NewMiniRedis(), tools: tools, hosts: map[string]*port{}}
	first, err := w.redis.Dial() // starts it without a listener
	require.NoError(t, err)
	require.NoError(t, first.Close())
	w.serves = w.redis.Server()
	t.Cleanup(w.redis.Close)
	w.kept = w.client(func() (net.Conn, error) { return w.dialRedis(), nil })
	t.Cleanup(func() { _ = w.kept.Close() })
	w.store, err = state.Open(t.Context(), state.Options{Client: w.kept})
	require.NoError(t, err)

	ours := &http.Transport{DialContext: w.dial}
	theirs := http.DefaultTransport
	http.DefaultTransport = ours
	t.Cleanup(func() { ours.CloseIdleConnections(); http.DefaultTransport = theirs })
	toBots := &http.Transport{DialContext: w.dialBot, DisableKeepAlives: true}
	w.slack = slacksim.New(slacksim.Config{
		EventsURL: "http://bot/slack/events", InteractivityURL: "http://bot/slack/interactivity", CommandsURL: "http://bot/slack/commands",
		Client: &http.Client{Transport: toBots}, AnyHost: true, PublicURL: "http://slack", RetryScale: 0.1,
	})
	t.Cleanup(w.slack.Close)
	w.host("slack", w.slack)
	w.host("model", openaisim.New(stories...))
	w.sim = newSim(t, "http://slack")
	w.env = []string{
		"SLACK_BOT_TOKEN=" + w.slack.BotToken(), "SLACK_SIGNING_SECRET=" + w.slack.SigningSecret(),
		"REDIS_URL=redis://unused:1", "OPENAI_API_KEY=scripted",
	}
	w.c = config.Config{
		Agents: []config.Agent{{Name: "ops"}}, Policy: writePolicy(t, t.TempDir(), policy),
		Redis: config.Redis{Durability: state.None}, Runs: config.Runs{Lease: bubbleLease},
	}
	return w
}

// host serves a handler under a name until the test ends.
func (w *bubble) host(name string, h http.Handler) {
	l := newPort()
	w.hosts[name] = l
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	w.t.Cleanup(func() { _ = s.Close() })
}

// dial leads to a host. What stands before the host's name and a dot is the bot
// that dials.
func (w *bubble) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	name, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	for _, r := range w.replicas() {
		if after, ok := strings.CutPrefix(name, r.name+"."); ok {
			conn, err := w.hosts[after].dial(ctx)
			if err != nil {
				return nil, err
			}
			if after == "slack" {
				return r.wire(conn, w.stalls)
			}
			return r.wire(conn, nil)
		}
	}
	return w.hosts[name].dial(ctx)
}

// dialBot leads to the first bot that answers, as a load balancer does.
func (w *bubble) dialBot(ctx context.Context, _, _ string) (net.Conn, error) {
	for _, r := range w.replicas() {
		if r.well() {
			return r.door.dial(ctx)
		}
	}
	return nil, errors.New("no bot answers")
}

func (w *bubble) replicas() []*replica {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bots
}

func (w *bubble) dialRedis() net.Conn {
	near, far := newPipe()
	w.serves.ServeConn(far)
	return near
}

func (w *bubble) client(dial func() (net.Conn, error)) *redis.Client {
	return redis.NewClient(&redis.Options{
		Dialer:                func(context.Context, string, string) (net.Conn, error) { return dial() },
		ContextTimeoutEnabled: true, DisableIdentity: true,
		DialerRetries:            1, // it waits between them with a lock held
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// A replica is one bot in a bubble.
type replica struct {
	w    *bubble
	name string
	door *port
	log  *output
	stop func()

	mu    sync.Mutex
	moved sync.Cond // of what is below
	up    bool
	dead  bool
	still bool
	conns []net.Conn
}

var (
	errDead = errors.New("the process is dead")
	errAway = errors.New("no connection to Redis")
)

// start starts one more bot.
func (w *bubble) start() *replica {
	w.t.Helper()
	r := &replica{w: w, name: string(rune('a' + len(w.bots))), door: newPort(), log: newOutput()}
	r.moved.L = &r.mu
	client := w.client(func() (net.Conn, error) {
		if w.away() {
			return nil, errAway
		}
		conn, err := r.wire(w.dialRedis(), w.suffers)
		if c, ok := conn.(*wire); ok {
			c.greets = true
		}
		return conn, err
	})
	w.mu.Lock()
	w.bots = append(w.bots, r)
	w.mu.Unlock()
	e, err := config.ReadEnvironment(append(w.env, "SLACK_API_URL=http://"+r.name+".slack/api/", "OPENAI_BASE_URL=http://"+r.name+".model/v1"))
	require.NoError(w.t, err)
	log := config.NewLogger(r.log, "debug")
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	r.stop = sync.OnceFunc(func() {
		stop()
		r.kill()
		<-ended
	})
	w.t.Cleanup(r.stop)
	go func() {
		defer close(ended)
		defer client.Close() //nolint:errcheck // it complains about what was cut
		b, err := newBotOn(ctx, state.Options{Client: client, Log: log}, w.c, e, func(string) ([]agentrun.Tool, error) { return w.tools(r) }, log, func(string) {})
		if err != nil {
			log.ErrorContext(ctx, "no start", slog.Any("err", err))
			r.kill()
			return
		}
		front := &http.Server{Handler: b.handler(), ReadHeaderTimeout: time.Minute}
		served := make(chan struct{})
		go func() { defer close(served); _ = front.Serve(listener{r.door, r}) }()
		r.mu.Lock()
		r.up = true
		r.mu.Unlock()
		b.reconcile(ctx)
		b.runner.Drain()
		_ = front.Shutdown(context.WithoutCancel(ctx)) // what follows an answer is waited for when nothing is answered any more
		<-served
		_ = b.close(ctx)
	}()
	return r
}

// away reports whether Redis cannot be reached.
func (w *bubble) away() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Before(w.until)
}

// suffers counts the writes to Redis and says what happens to them.
func (w *bubble) suffers() mishap {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrote++
	switch {
	case time.Now().Before(w.until):
		return unsent
	case w.wrote == w.at:
		w.until, w.struck = time.Now().Add(w.outage), true
		return w.mishap
	}
	return fine
}

// stalls counts the calls to Slack and says before which one the process stops.
func (w *bubble) stalls() mishap {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	if w.calls != w.stall {
		return fine
	}
	w.struck = true
	return stall
}

func (r *replica) well() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.up && !r.dead && !r.still
}

// starts waits until the bot is at work.
func (r *replica) starts() {
	r.w.t.Helper()
	for range 10_000 {
		if r.well() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	require.Fail(r.w.t, "the bot does not start", r.log.String())
}

// living is true of a bot that is well or starts.
func (r *replica) living() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.dead && !r.still
}

// kill cuts the bot off from everything: as far as the world can tell it is dead.
func (r *replica) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dead = true
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
	_ = r.door.Close()
	r.moved.Broadcast()
}

func (r *replica) set(still bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.still = still
	r.moved.Broadcast()
}

// alive waits while the bot is frozen, and reports whether it lives.
func (r *replica) alive() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.still && !r.dead {
		r.moved.Wait()
	}
	return !r.dead
}

// wire returns the connection as the bot has it.
func (r *replica) wire(c net.Conn, suffers func() mishap) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead {
		_ = c.Close()
		return nil, errDead
	}
	r.conns = append(r.conns, c)
	return &wire{Conn: c, of: r, suffers: suffers}, nil
}

type wire struct {
	net.Conn

	of      *replica
	suffers func() mishap // nil: nothing
	greets  bool          // what is written first is no command
	listens bool          // it is subscribed to wake-ups

	mu   sync.Mutex
	then mishap // when the reply is there
	over bool   // nothing more comes
}

func (c *wire) Write(b []byte) (int, error) {
	// A client greets and subscribes with a mutex held, and while others wait for
	// that synctest moves no time. So both go on while a bot is frozen, and what can
	// fail of a greeting is the dial.
	if c.suffers != nil {
		c.listens = c.listens || bytes.Contains(b, []byte("subscribe\r\n"))
		if c.listens || c.greets {
			c.greets = false
			return c.Conn.Write(b)
		}
	}
	if !c.of.alive() {
		return 0, errDead
	}
	if c.suffers == nil {
		return c.Conn.Write(b)
	}
	switch m := c.suffers(); m {
	case unsent:
		return 0, errors.Join(io.EOF, c.Close())
	case denied, broken:
		_, err := c.Conn.Write(c.of.w.denies(b, m))
		return len(b), err
	case unread, cut, crash:
		c.mu.Lock()
		c.then = m
		c.mu.Unlock()
	case freeze, stall:
		c.of.set(true)
		time.AfterFunc(map[mishap]time.Duration{freeze: frozenFor, stall: stalledFor}[m], func() { c.of.set(false) })
		if !c.of.alive() {
			return 0, errDead
		}
	case fine:
	}
	return c.Conn.Write(b)
}

func (c *wire) Read(b []byte) (int, error) {
	c.mu.Lock()
	over := c.over
	c.mu.Unlock()
	if over {
		return 0, errors.Join(io.EOF, c.Close())
	}
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	then := c.then
	c.over = then != fine
	c.mu.Unlock()
	switch {
	case then == crash:
		c.of.kill()
	case then == cut && n > 1:
		return n / 2, nil
	}
	if then != fine {
		return 0, errors.Join(io.EOF, c.Close())
	}
	if !c.of.alive() {
		return 0, errDead
	}
	return n, err
}

// denies returns what is sent with other commands in place of those that are to be
// refused: each of them is answered with the same error.
func (w *bubble) denies(sent []byte, m mishap) []byte {
	w.mu.Lock()
	word := refusals[w.at%len(refusals)]
	w.mu.Unlock()
	commands := commandsIn(sent)
	from := 0
	if m == broken && !slices.ContainsFunc(commands, func(c []byte) bool { return bytes.HasPrefix(c, []byte("*1\r\n$5\r\nmulti")) }) {
		from = len(commands) / 2
	}
	script := "return redis.error_reply(ARGV[1])"
	answer := fmt.Appendf(nil, "*4\r\n$4\r\neval\r\n$%d\r\n%s\r\n$1\r\n0\r\n$%d\r\n%s\r\n", len(script), script, len(word), word)
	for i := from; i < len(commands); i++ {
		commands[i] = answer
	}
	return bytes.Join(commands, nil)
}

// commandsIn returns the commands of a client one by one. What it sends at once are whole
// commands.
func commandsIn(sent []byte) [][]byte {
	var all [][]byte
	for len(sent) > 0 {
		rest := sent
		for range lineOf(&rest) {
			n := lineOf(&rest)
			rest = rest[n+len("\r\n"):]
		}
		n := len(sent) - len(rest)
		all, sent = append(all, sent[:n:n]), rest
	}
	return all
}

// lineOf takes a line off that is a mark and a number, and returns the number.
func lineOf(from *[]byte) int {
	line, rest, _ := bytes.Cut(*from, []byte("\r\n"))
	n, err := strconv.Atoi(string(line[1:]))
	if err != nil {
		panic(err)
	}
	*from = rest
	return n
}

// listener gives the connections of a bot its faults.
type listener struct {
	*port

	of *replica
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.port.Accept()
	if err != nil {
		return nil, err
	}
	return l.of.wire(c, nil)
}

// frozen reports whether a process is suspended and will continue.
func (w *bubble) frozen() bool {
	return slices.ContainsFunc(w.replicas(), func(r *replica) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.still && !r.dead
	})
}

// keepOneAlive starts a bot if all are dead or frozen.
func (w *bubble) keepOneAlive() {
	if !slices.ContainsFunc(w.bots, (*replica).living) {
		w.start()
	}
}

// fails says what people see and what the bots wrote.
func (w *scenario) fails(what string) {
	w.t.Helper()
	var seen []string
	for _, m := range w.sim.thread(bob, w.root) {
		seen = append(seen, m.words())
	}
	for _, r := range w.bots {
		seen = append(seen, "the log of "+r.name+":\n"+r.log.String())
	}
	require.Fail(w.t, what, strings.Join(seen, "\n---\n"))
}
