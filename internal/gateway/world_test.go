package gateway_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/gateway"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/intake/intaketest"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
	"github.com/countersign/countersign/internal/tools/mcptool"
)

var redisServer redis.UniversalClient

func TestMain(m *testing.M) {
	statetest.Main(m, func(c redis.UniversalClient) { redisServer = c })
}

// A tool is one of an MCP server, as the gateway sees it.
type tool struct {
	name, output string // the schema of its results
	definition   string // guarded by mu
	effect       agentrun.Effect
	execute      func(ctx context.Context, c agentrun.Call) (agentrun.Result, error)

	mu   sync.Mutex
	gone error
	ran  []string // the arguments of its executions
}

func (t *tool) Spec() agentrun.Spec {
	t.mu.Lock()
	defer t.mu.Unlock()
	return agentrun.Spec{
		Name: t.name, Description: "It does " + t.name + ".", Kind: agentrun.KindFunction, Timeout: time.Minute, Effect: t.effect,
		Definition: t.definition,
		Schema:     json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
	}
}

func (t *tool) Validate(_ context.Context, c agentrun.Call) error {
	var in struct{ N *int }
	if err := json.Unmarshal(c.Args, &in); err != nil || in.N == nil {
		return &agentrun.RetryError{Message: "the arguments do not fit the schema: n is missing"}
	}
	return nil
}

func (t *tool) Execute(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
	t.mu.Lock()
	t.ran = append(t.ran, string(c.Args))
	t.mu.Unlock()
	if t.execute != nil {
		return t.execute(ctx, c)
	}
	return agentrun.Result{Value: json.RawMessage(fmt.Sprintf("%q", "did "+string(c.Args)))}, nil
}

func (t *tool) Available() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.gone
}

func (t *tool) Defined() json.RawMessage {
	doc := map[string]json.RawMessage{"name": json.RawMessage(`"x"`), "title": json.RawMessage(`"A title"`), "inputSchema": t.Spec().Schema}
	if t.output != "" {
		doc["outputSchema"] = json.RawMessage(t.output)
	}
	raw, _ := json.Marshal(doc)
	return raw
}

func (t *tool) executions() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.ran...)
}

// A watched intake says which request was asked about, and which callers are gone.
type watched struct {
	gateway.Intake

	asked chan intake.Request
	gone  chan approvals.RunID
	told  func() // if not nil, it happens before it is stored that a caller is told
}

func (i *watched) Answered(ctx context.Context, c intake.Client, id approvals.RunID) (bool, error) {
	if i.told != nil {
		i.told()
	}
	return i.Intake.Answered(ctx, c, id)
}

func (i *watched) Ask(ctx context.Context, c intake.Client, a intake.Ask) (intake.Request, error) {
	q, err := i.Intake.Ask(ctx, c, a)
	if err == nil {
		i.asked <- q
	}
	return q, err
}

func (i *watched) Gone(ctx context.Context, c intake.Client, id approvals.RunID) error {
	err := i.Intake.Gone(ctx, c, id)
	i.gone <- id
	return err
}

// A world is the store with people who decide, and tools. Each process has a
// gateway on it.
type world struct {
	*testing.T
	prefix string
	policy *intaketest.Rules
	tools  []*tool
	keeps  bool
	redis  redis.UniversalClient
	now    func() time.Time
	first  *process
}

const token = "desk-token"

var (
	desk  = intake.Client{Name: "desk", Owner: "alice", Channel: "C1", PerMinute: 10_000, OpenLimit: 10_000}
	other = intake.Client{Name: "desk", Owner: "carol", Channel: "C1", PerMinute: 10_000, OpenLimit: 10_000}
)

// A process is one replica.
type process struct {
	*world
	gateway *gateway.Server
	server  *httptest.Server
	store   *state.Store
	desk    *approvals.Desk
	runner  *agentrun.Runner
	intake  *intake.Service
	watch   *watched
	tokens  sync.Map // those that were taken away
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, prefix: rand.Text(), now: time.Now, redis: redisServer, policy: intaketest.NewRules(map[string]approvals.Ruling{
		"srv.free": approvals.Permit{}, "srv.never": approvals.Refuse{Reason: "not on Fridays"},
		"srv.both": approvals.Ask{Requirement: intaketest.Needs(2), Why: "it writes twice"},
	})}
	for _, name := range []string{"srv.write", "srv.free", "srv.never", "srv.both"} {
		w.tools = append(w.tools, &tool{name: name})
	}
	return w
}

func (w *world) tool(name string) *tool {
	for _, t := range w.tools {
		if t.name == name {
			return t
		}
	}
	w.Fatal("no tool " + name)
	return nil
}

func (w *world) start(changes ...func(*gateway.Config)) *process {
	w.Helper()
	p := &process{world: w}
	var err error
	p.store, err = state.Open(w.Context(), state.Options{Client: w.redis, Prefix: w.prefix})
	require.NoError(w, err)
	agents := func(name string) (agentrun.Agent, bool) {
		a := agentrun.Agent{Name: "desk"}
		for _, t := range w.tools {
			a.Tools = append(a.Tools, t)
		}
		return a, name == "desk"
	}
	p.desk = approvals.NewDesk(p.store, w.policy, agentrun.NewCatalog(agents, nil).CheckCall, w.now)
	p.runner = agentrun.NewRunner(agentrun.Config{
		Store: p.store, Policy: w.policy, Ledger: state.NewLedger(p.store), Now: w.now, Agents: agents,
		Deliver: map[approvals.Executor]agentrun.Deliverer{
			intake.Executor: func(ctx context.Context, d agentrun.Delivery) error { return p.intake.Deliver(ctx, d) },
		},
	})
	p.intake, err = intake.New(intake.Config{Store: p.store, Feed: state.NewFeed(p.store), Runner: p.runner, Desk: p.desk, Now: w.now})
	require.NoError(w, err)
	p.watch = &watched{Intake: p.intake, asked: make(chan intake.Request, 1000), gone: make(chan approvals.RunID, 64)}
	credentials := func() []bearer.Agent {
		var all []bearer.Agent
		for secret, c := range map[string]intake.Client{token: desk, "carols-token": other} {
			if _, taken := p.tokens.Load(secret); !taken {
				all = append(all, bearer.Agent{Client: c, Doors: []intake.Door{intake.DoorGateway}, Tokens: []bearer.Sum{bearer.SumOf(secret)}})
			}
		}
		return append(all, bearer.Agent{
			Client: intake.Client{Name: "elsewhere", Owner: "carol", Channel: "C1"}, Doors: []intake.Door{intake.DoorAPI, intake.DoorMCP}, Tokens: []bearer.Sum{bearer.SumOf("api-token")},
		})
	}
	log := slog.New(slog.NewTextHandler(w.Output(), nil))
	c := gateway.Config{
		Intake: p.watch, Runner: p.runner, Now: w.now, Log: log, Refuses: func(*http.Request) string { return "" }, Sent: mcptool.Sent,
		Guard: bearer.New(bearer.Config{Agents: credentials, Now: time.Now, Log: log}), Keeps: func(string) bool { return w.keeps },
		Summary: func(string, string) string { return "" }, Progress: 20 * time.Millisecond, Poll: 20 * time.Millisecond,
		Tools: func(string) []gateway.Tool {
			var all []gateway.Tool
			for _, t := range w.tools {
				all = append(all, t)
			}
			return all
		},
	}
	for _, change := range changes {
		change(&c)
	}
	p.gateway, err = gateway.New(c)
	require.NoError(w, err)
	p.server = httptest.NewServer(p.gateway.Handler())
	w.Cleanup(p.stop)
	if w.first == nil {
		w.first = p
	}
	return p
}

// stop is the end of a process: what is held is answered, and the connections end.
func (p *process) stop() {
	p.gateway.Drain()
	p.runner.Drain()
	_ = p.gateway.Finish(context.Background())
	p.server.CloseClientConnections()
	p.server.Close()
}

// carrying sends the token with each request, and what the headers are when it is sent.
type carrying struct {
	token   string
	headers http.Header
	to      *http.Transport
}

func (c carrying) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	maps.Copy(r.Header, c.headers)
	r.Header.Set("Authorization", "Bearer "+c.token)
	return c.to.RoundTrip(r)
}

// A client is the Go SDK's.
type client struct {
	*process
	session   *mcp.ClientSession
	transport *http.Transport
	headers   http.Header // that it sends besides
	progress  chan mcp.ProgressNotificationParams
}

func (p *process) client(secret string) *client { return p.speaking(secret, "") }

// speaking is a client that speaks this version of the protocol.
func (p *process) speaking(secret, version string) *client {
	p.Helper()
	c := &client{process: p, progress: make(chan mcp.ProgressNotificationParams, 10_000), transport: &http.Transport{}, headers: http.Header{}}
	of := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { c.progress <- *r.Params },
	})
	var err error
	c.session, err = of.Connect(p.Context(), &mcp.StreamableClientTransport{
		Endpoint: p.server.URL, HTTPClient: &http.Client{Transport: carrying{secret, c.headers, c.transport}}, MaxRetries: -1, DisableStandaloneSSE: true,
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(p, err)
	p.Cleanup(func() { _ = c.session.Close() })
	return c
}

// A said is what a client was answered.
type said struct {
	*mcp.CallToolResult
	err error
}

// text is all text of the answer.
func (s said) text() string {
	if s.err != nil {
		return "error: " + s.err.Error()
	}
	all := ""
	for _, c := range s.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			all += t.Text + "\n"
		}
	}
	return all
}

// call makes a call, with progress or without.
func (c *client) call(ctx context.Context, name, args string, progress bool) <-chan said {
	params := &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(args)}
	if progress {
		params.SetProgressToken(rand.Text())
	}
	answers := make(chan said, 1)
	go func() {
		got, err := c.session.CallTool(ctx, params)
		answers <- said{got, err}
	}()
	return answers
}

func (c *client) now(name, args string) said {
	c.Helper()
	return <-c.call(c.Context(), name, args, false)
}

// leftInDoubt makes a call, ends its hold once the caller has heard that the call is
// in doubt, and returns the answer. The process holds nothing any more.
func (c *client) leftInDoubt(name, args string) said {
	c.Helper()
	answer := c.call(c.Context(), name, args, true)
	for heard := ""; !strings.HasPrefix(heard, "in doubt, people decide"); {
		select {
		case p := <-c.progress:
			heard = p.Message
		case got := <-answer:
			require.Fail(c, "it was answered before it was in doubt", got.text())
		}
	}
	c.gateway.Drain()
	return <-answer
}

func (p *process) decide(q intake.Request, by approvals.UserID, v approvals.Verdict, reason string) {
	p.Helper()
	b, err := p.store.Batch(p.Context(), q.Batch)
	require.NoError(p, err)
	a := b.Approvals[0]
	_, err = p.desk.Decide(p.Context(), q.Batch, approvals.RequestID(rand.Text()), approvals.Decide{Decision: approvals.Decision{
		Call: a.Call.ID, By: approvals.Principal{User: by}, Verdict: v, Digest: a.Call.Digest, Reason: reason,
	}})
	require.NoError(p, err)
}

func (p *process) edit(q intake.Request, args string) error {
	p.Helper()
	b, err := p.store.Batch(p.Context(), q.Batch)
	require.NoError(p, err)
	a := b.Approvals[0]
	_, err = p.desk.Amend(p.Context(), q.Batch, approvals.RequestID(rand.Text()), approvals.Amend{
		Call: a.Call.ID, By: approvals.Principal{User: "dora"}, From: a.Call.Digest, Args: json.RawMessage(args),
	})
	return err
}

func (p *process) batch(q intake.Request) approvals.Approval {
	p.Helper()
	b, err := p.store.Batch(p.Context(), q.Batch)
	require.NoError(p, err)
	return b.Approvals[0]
}
