package httpapi_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/httpapi"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/intake/intaketest"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

var redisServer redis.UniversalClient

func TestMain(m *testing.M) {
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.PlainBodyDecoder)
	statetest.Main(m, func(c redis.UniversalClient) { redisServer = c })
	if missing := unseen(); len(missing) > 0 {
		_, _ = fmt.Fprintf(os.Stderr, "no test got these answers of the document: %s\n", strings.Join(missing, ", "))
		os.Exit(1)
	}
}

// A world is the API on a real store, with people who decide and agents that ask.
type world struct {
	*testing.T
	api    *httpapi.API
	server *httptest.Server
	store  *state.Store
	desk   *approvals.Desk
	policy *intaketest.Rules
	intake *intake.Service
	ahead  atomic.Int64 // of the clock
	log    statetest.Log
	agents atomic.Pointer[[]bearer.Agent]
	prefix string
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

const (
	claudeToken = "claude-token"
	otherToken  = "other-token"
	noDoorToken = "no-door-token"
)

func newWorld(t *testing.T, changes ...func(*httpapi.Config)) *world {
	t.Helper()
	return build(t, redisServer, rand.Text(), changes...)
}

// newWorldOn is another process on the store of a world, whose changes are counted.
func newWorldOn(t *testing.T, w *world, changes *atomic.Int64) *world {
	t.Helper()
	counted, ok := redisServer.(*redis.Client)
	require.True(t, ok)
	client := redis.NewClient(counted.Options())
	client.AddHook(statetest.Hook(func(_ context.Context, cmds []redis.Cmder, send func() error) error {
		for _, cmd := range cmds {
			switch cmd.Name() {
			case "evalsha", "eval", "set", "hset", "zadd", "xadd", "del":
				changes.Add(1)
			}
		}
		return send()
	}))
	t.Cleanup(func() { _ = client.Close() })
	return build(t, client, w.prefix)
}

func build(t *testing.T, client redis.UniversalClient, prefix string, changes ...func(*httpapi.Config)) *world {
	t.Helper()
	w := &world{T: t, prefix: prefix, policy: intaketest.NewRules(map[string]approvals.Ruling{"free": approvals.Permit{}, "render": approvals.Permit{}, "never": approvals.Refuse{Reason: "not on Fridays"}})}
	w.agents.Store(&[]bearer.Agent{
		{Client: intake.Client{Name: "claude", Owner: "alice", Channel: "C1", PerMinute: 100_000, OpenLimit: 100_000}, Doors: []intake.Door{intake.DoorAPI}, Tokens: []bearer.Sum{bearer.SumOf(claudeToken)}},
		{Client: intake.Client{Name: "other", Owner: "carol", Channel: "C1", PerMinute: 3, Fulfills: []intake.Fulfills{{Agent: "claude", Tool: "render"}}}, Doors: []intake.Door{"mcp", intake.DoorAPI}, Tokens: []bearer.Sum{bearer.SumOf(otherToken)}},
		{Client: intake.Client{Name: "elsewhere", Owner: "carol", Channel: "C1"}, Doors: []intake.Door{"mcp"}, Tokens: []bearer.Sum{bearer.SumOf(noDoorToken)}},
	})
	var err error
	w.store, err = state.Open(t.Context(), state.Options{Client: client, Prefix: prefix})
	require.NoError(t, err)
	w.desk = approvals.NewDesk(w.store, w.policy, func(context.Context, approvals.Batch, approvals.ToolCall) error { return nil }, w.now)
	runner := agentrun.NewRunner(agentrun.Config{
		Store: w.store, Policy: w.policy, Ledger: state.NewLedger(w.store), Now: w.now,
		Agents: func(string) (agentrun.Agent, bool) { return agentrun.Agent{}, false },
	})
	w.intake, err = intake.New(intake.Config{Store: w.store, Feed: state.NewFeed(w.store), Runner: runner, Desk: w.desk, Now: w.now})
	require.NoError(t, err)
	log := slog.New(slog.NewTextHandler(&w.log, nil))
	c := httpapi.Config{
		Intake: w.intake, Now: time.Now, Log: log,
		Guard: bearer.New(bearer.Config{Agents: func() []bearer.Agent { return *w.agents.Load() }, Now: time.Now, Log: log}),
	}
	for _, change := range changes {
		change(&c)
	}
	w.api, err = httpapi.New(c)
	require.NoError(t, err)
	w.server = httptest.NewServer(w.api)
	t.Cleanup(func() {
		w.api.Drain()
		w.server.Close()
	})
	return w
}

// An exchange is a request and its answer.
type exchange struct {
	status int
	header http.Header
	body   []byte
}

func (e exchange) json(t *testing.T, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(e.body, into), string(e.body))
}

// kind is the type of the problem.
func (e exchange) kind(t *testing.T) string {
	t.Helper()
	require.Equal(t, "application/problem+json", e.header.Get("Content-Type"), string(e.body))
	var p struct{ Type string }
	e.json(t, &p)
	return p.Type[len("/v1/problems/"):]
}

// headers are pairs of a name and a value.
func (w *world) do(method, path, token, body string, headers ...string) exchange {
	w.Helper()
	q, err := http.NewRequestWithContext(w.Context(), method, w.server.URL+path, bytes.NewReader([]byte(body)))
	require.NoError(w, err)
	if body == "" {
		q.Body, q.ContentLength = http.NoBody, 0
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(q)
	require.NoError(w, err)
	defer func() { _ = answer.Body.Close() }()
	got, err := io.ReadAll(answer.Body)
	require.NoError(w, err)
	e := exchange{answer.StatusCode, answer.Header, got}
	conforms(w.T, q, body, e)
	return e
}

// ours is a request as a client sees it.
type ours struct {
	ID     approvals.RunID `json:"id"`
	Status string          `json:"status"`
	Calls  []struct {
		ID        string          `json:"id"`
		Outcome   string          `json:"outcome"`
		Args      json.RawMessage `json:"args"`
		ArgsText  string          `json:"args_text"`
		SHA256    string          `json:"args_sha256"`
		Edited    bool            `json:"edited"`
		Reason    string          `json:"reason"`
		Approvers []string        `json:"approvers"`
		ClaimedAt string          `json:"claimed_at"`
		Report    *struct {
			State string `json:"state"`
		} `json:"report"`
	} `json:"calls"`
	State      json.RawMessage `json:"state"`
	Superseded string          `json:"superseded_by"`
	Format     string          `json:"format"`
	tag        string
}

func (w *world) read(e exchange) ours {
	w.Helper()
	require.Less(w, e.status, 300, string(e.body))
	var q ours
	e.json(w.T, &q)
	q.tag = e.header.Get("ETag")
	return q
}

func (w *world) post(body string, headers ...string) ours {
	w.Helper()
	return w.read(w.do(http.MethodPost, "/v1/approvals", claudeToken, body, headers...))
}

func (w *world) get(id approvals.RunID, query string, headers ...string) exchange {
	w.Helper()
	return w.do(http.MethodGet, "/v1/approvals/"+string(id)+query, claudeToken, "", headers...)
}

// decide is what bob does in Slack.
func (w *world) decide(id approvals.RunID, call string, v approvals.Verdict, reason string) {
	w.Helper()
	q, err := w.intake.Get(w.Context(), intake.Client{Name: "claude", Credential: "x", Owner: "alice"}, id)
	require.NoError(w, err)
	b, err := w.store.Batch(w.Context(), q.Batch)
	require.NoError(w, err)
	a, ok := b.Approval(approvals.ToolCallID(call))
	require.True(w, ok)
	_, err = w.desk.Decide(w.Context(), q.Batch, approvals.RequestID(rand.Text()), approvals.Decide{Decision: approvals.Decision{
		Call: a.Call.ID, By: approvals.Principal{User: "bob"}, Verdict: v, Digest: a.Call.Digest, Reason: reason,
	}})
	require.NoError(w, err)
}

// edit is what dora does in Slack with Edit and approve.
func (w *world) edit(id approvals.RunID, call, args string) {
	w.Helper()
	q, err := w.intake.Get(w.Context(), intake.Client{Name: "claude", Credential: "x", Owner: "alice"}, id)
	require.NoError(w, err)
	b, err := w.store.Batch(w.Context(), q.Batch)
	require.NoError(w, err)
	a, ok := b.Approval(approvals.ToolCallID(call))
	require.True(w, ok)
	_, err = w.desk.Amend(w.Context(), q.Batch, approvals.RequestID(rand.Text()), approvals.Amend{
		Call: a.Call.ID, By: approvals.Principal{User: "dora"}, From: a.Call.Digest, Args: json.RawMessage(args),
	})
	require.NoError(w, err)
}
