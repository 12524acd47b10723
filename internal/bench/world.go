package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/redisserver"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state"
)

// The people and places of the simulated Slack that take part.
const (
	alice = "U0ALICE" // asks
	bob   = "U0BOB"   // in the group that approves
	sre   = "S0SRE"
	ops   = "C0OPS"
)

// policy lets someone in @sre approve what needs approval. What the hook asks for
// is permitted.
const policy = `
groups: {sre: S0SRE}
default:
  why: It changes something.
  quorums: [{name: sre, need: 1, from: {groups: [sre]}}]
rules:
  - {name: builds, tools: [Bash], allow: true}
`

// world is everything but Redis that the bot talks to. It is in this process.
type world struct {
	folder string // with the policy
	secret string // in the tokens of the coding agents
	slack  *slacksim.Server
	api    string // the address of Slack

	published chan struct{} // has one after a Home was published
	stand     standIn
	ends
}

func newWorld(ctx context.Context) (w *world, err error) {
	w = &world{secret: rand.Text(), published: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	folder, remove, err := redisserver.Scratch(scratch)
	if err != nil {
		return w, fmt.Errorf("make a folder for the policy: %w", err)
	}
	w.folder = folder
	w.after(remove)
	if err := os.WriteFile(w.policy(), []byte(policy), 0o600); err != nil {
		return w, fmt.Errorf("write the policy: %w", err)
	}
	w.slack = slacksim.New(slacksim.Config{People: everybody()}) //nolint:contextcheck // it ends with Close
	w.after(func() error { w.slack.Close(); return nil })
	if w.api, err = w.serve(ctx, http.HandlerFunc(w.takes)); err != nil {
		return w, err
	}
	w.slack.SetPublicURL("http://" + w.api)
	return w, nil
}

// takes serves a request of the bot to Slack.
func (w *world) takes(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api/chat.update" {
		w.stand.updated(rw, r, w.slack)
		return
	}
	w.slack.ServeHTTP(rw, r)
	if r.URL.Path == "/api/views.publish" {
		select {
		case w.published <- struct{}{}:
		default:
		}
	}
}

// A standIn is the message that the measured requests claim as their card.
// Slack is asked for the first update of it. Every other update is read and answered like
// that one, because the cost of the simulated Slack would be taken for the bot's.
type standIn struct {
	mu     sync.Mutex
	ts     string // of the message; empty: there is none
	answer []byte
}

// is makes this message the stand-in.
func (s *standIn) is(ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ts, s.answer = ts, nil
}

// updated serves an update of a message.
func (s *standIn) updated(rw http.ResponseWriter, r *http.Request, slack http.Handler) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(rw, "body not readable", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	is, answer := s.ts != "" && bytes.Contains(body, []byte("ts="+s.ts)), s.answer
	s.mu.Unlock()
	if is && answer != nil {
		rw.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = rw.Write(answer) // an error is the client's to find
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	heard := &overheard{ResponseWriter: rw}
	slack.ServeHTTP(heard, r)
	if is && bytes.Contains(heard.body.Bytes(), []byte(`"ok":true`)) {
		s.mu.Lock()
		s.answer = heard.body.Bytes()
		s.mu.Unlock()
	}
}

// overheard keeps a copy of what is written.
type overheard struct {
	http.ResponseWriter

	body bytes.Buffer
}

func (o *overheard) Write(p []byte) (int, error) {
	o.body.Write(p)
	return o.ResponseWriter.Write(p)
}

func (w *world) policy() string { return filepath.Join(w.folder, "policy.yaml") }

// anywhere is a free port of the loopback interface.
const anywhere = "127.0.0.1:0"

func listen(ctx context.Context) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", anywhere)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}

// ends are what is to be ended, the last first.
type ends []func() error

func (e *ends) after(f func() error) { *e = append(*e, f) }

func (e *ends) close() error {
	var problems []error
	for _, f := range slices.Backward(*e) {
		problems = append(problems, f())
	}
	*e = nil
	return errors.Join(problems...)
}

// serve answers at a new address until the end.
func (e *ends) serve(ctx context.Context, h http.Handler) (addr string, err error) {
	l, err := listen(ctx)
	if err != nil {
		return "", err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	e.after(func() error {
		err := s.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	})
	return l.Addr().String(), nil
}

// configuration is that of the bot. Slack's limits on messages are lifted, which
// are not what is measured.
func (b *bench) configuration(prefix string) config.Config {
	return config.Config{
		Agents:       []config.Agent{{Name: "ops"}},
		RemoteAgents: b.coders(),
		Policy:       b.policy(),
		Slack:        config.Slack{CardsPerMinute: 1_000_000, MessagesPerMinute: 1_000_000},
		HTTP:         config.HTTP{Listen: anywhere},
		Runs:         config.Runs{PerRequester: unlimited}, // one person asks for all of them
		Redis:        config.Redis{Prefix: prefix, Durability: b.keeps},
	}
}

// coders is how many coding agents there are.
const coders = 64

func (b *bench) coders() []config.RemoteAgent {
	all := make([]config.RemoteAgent, coders)
	for i := range all {
		all[i] = config.RemoteAgent{
			Name: fmt.Sprintf("coder-%d", i), Owner: alice, Channel: ops, Doors: []string{"hooks"}, OpenLimit: unlimited, PerMinute: unlimited,
			Tokens: []string{fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(b.token(i))))},
		}
	}
	return all
}

// token proves the n-th coding agent.
func (w *world) token(n int) string { return fmt.Sprintf("%s-%d", w.secret, n) }

func (b *bench) environment() config.Environment {
	return config.Environment{
		SlackToken: config.NewSecret(b.slack.BotToken()), SigningSecret: config.NewSecret(b.slack.SigningSecret()), SlackAPIURL: "http://" + b.api + "/api/",
		RedisURL: config.NewSecret(b.redis.url), OpenAIKey: config.NewSecret("scripted"), OpenAIBaseURL: "http://127.0.0.1:1/v1", OpenAIModel: "scripted", LogLevel: "error",
	}
}

func (b *bench) log() *slog.Logger { return config.NewLogger(b.Stderr, "error") }

// store opens what the bots with this prefix work on.
func (b *bench) store(ctx context.Context, prefix string) (*state.Store, error) {
	return state.Open(ctx, state.Options{URL: b.redis.url, Hooks: []redis.Hook{&b.own}, Prefix: prefix, Now: b.Now})
}

// fresh is a prefix that nothing is stored under.
func (b *bench) fresh() string {
	b.n++
	return fmt.Sprintf("%s%03d", b.redis.prefix, b.n)
}

// A replica is a bot that runs.
type replica struct {
	addr   string // where it takes what Slack sends
	agents string // where it serves remote agents
	end    func() error
}

// group starts n replicas, which running ends, and returns the addresses at which they
// take clicks.
func (b *bench) group(ctx context.Context, running *ends, c config.Config, n int) (addrs []string, err error) {
	for range n {
		r, err := b.replica(ctx, c)
		if err != nil {
			return nil, err
		}
		running.after(r.end)
		addrs = append(addrs, r.addr)
	}
	return addrs, nil
}

// replica starts a bot, all of it, and returns once it is at work.
func (b *bench) replica(ctx context.Context, c config.Config) (replica, error) {
	return b.replicaWith(ctx, c, "http://127.0.0.1:1/v1", nil)
}

// replicaWith is replica with a model, and tools.
func (b *bench) replicaWith(ctx context.Context, c config.Config, model string, extra config.ToolsFor) (replica, error) {
	l, err := listen(ctx)
	if err != nil {
		return replica{}, err
	}
	agents, err := listen(ctx)
	if err != nil {
		return replica{}, errors.Join(err, l.Close())
	}
	e := b.environment()
	e.OpenAIBaseURL = model
	ctx, stop := context.WithCancel(ctx)
	ended, ready := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- b.Serve(ctx, l, agents, c, e, extra, func() { close(ready) }, b.log())
	}()
	select {
	case <-ready:
		return replica{l.Addr().String(), agents.Addr().String(), func() error { stop(); return <-ended }}, nil
	case err := <-ended:
		stop()
		return replica{}, fmt.Errorf("start the bot: %w", err)
	}
}
