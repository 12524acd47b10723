package hookserver_test

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
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/hookserver"
	"github.com/countersign/countersign/internal/httpapi"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/intake/intaketest"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

var redisServer redis.UniversalClient

func TestMain(m *testing.M) {
	statetest.Main(m, func(c redis.UniversalClient) { redisServer = c })
}

// A watched intake says which request was asked about, and can be made to fail.
type watched struct {
	hookserver.Intake

	asked chan intake.Request
	gone  chan approvals.RunID
	fail  func() error // instead of asking; nil to ask
}

func (i *watched) Ask(ctx context.Context, c intake.Client, a intake.Ask) (intake.Request, error) {
	if i.fail != nil {
		return intake.Request{}, i.fail()
	}
	q, err := i.Intake.Ask(ctx, c, a)
	if err == nil {
		i.asked <- q
	}
	return q, err
}

// A whole intake is what the HTTP API needs, asked through the watched one.
type whole struct {
	httpapi.Intake

	watch *watched
}

func (i whole) Ask(ctx context.Context, c intake.Client, a intake.Ask) (intake.Request, error) {
	return i.watch.Ask(ctx, c, a)
}

func (i whole) Gone(ctx context.Context, c intake.Client, id approvals.RunID) error {
	return i.watch.Gone(ctx, c, id)
}

func (i *watched) Gone(ctx context.Context, c intake.Client, id approvals.RunID) error {
	err := i.Intake.Gone(ctx, c, id)
	i.gone <- id
	return err
}

// A world is the door on a real store, with people who decide.
type world struct {
	*testing.T
	hooks  *hookserver.Server
	server *httptest.Server
	store  *state.Store
	desk   *approvals.Desk
	policy *intaketest.Rules
	intake *intake.Service
	watch  *watched
	log    *statetest.Log
}

func (w *world) logger() *slog.Logger { return slog.New(slog.NewTextHandler(w.log, nil)) }

const token = "claude-token"

var claude = intake.Client{Name: "claude", Owner: "alice", Channel: "C1", Credential: "x", PerMinute: 10_000, OpenLimit: 10_000}

func newWorld(t *testing.T, changes ...func(*hookserver.Config)) *world {
	t.Helper()
	w := &world{T: t, log: &statetest.Log{}, policy: intaketest.NewRules(map[string]approvals.Ruling{
		"Read": approvals.Permit{}, "Never": approvals.Refuse{Reason: "not on Fridays"},
	})}
	var err error
	w.store, err = state.Open(t.Context(), state.Options{Client: redisServer, Prefix: rand.Text()})
	require.NoError(t, err)
	w.desk = approvals.NewDesk(w.store, w.policy, func(context.Context, approvals.Batch, approvals.ToolCall) error { return nil }, time.Now)
	runner := agentrun.NewRunner(agentrun.Config{
		Store: w.store, Policy: w.policy, Ledger: state.NewLedger(w.store), Now: time.Now,
		Agents: func(string) (agentrun.Agent, bool) { return agentrun.Agent{}, false },
	})
	w.intake, err = intake.New(intake.Config{Store: w.store, Feed: state.NewFeed(w.store), Runner: runner, Desk: w.desk, Now: time.Now})
	require.NoError(t, err)
	w.watch = &watched{Intake: w.intake, asked: make(chan intake.Request, 64), gone: make(chan approvals.RunID, 64)}
	log := w.logger()
	agents := []bearer.Agent{
		{Client: claude, Doors: []intake.Door{intake.DoorHooks, intake.DoorMCP}, Tokens: []bearer.Sum{bearer.SumOf(token)}},
		{Client: intake.Client{Name: "elsewhere", Owner: "carol", Channel: "C1"}, Doors: []intake.Door{intake.DoorAPI}, Tokens: []bearer.Sum{bearer.SumOf("api-token")}},
	}
	c := hookserver.Config{
		Intake: w.watch, Now: time.Now, Log: log, Refuses: func(*http.Request) string { return "" },
		Guard: bearer.New(bearer.Config{Agents: func() []bearer.Agent { return agents }, Now: time.Now, Log: log}),
	}
	for _, change := range changes {
		change(&c)
	}
	w.hooks, err = hookserver.New(c)
	require.NoError(t, err)
	routes := http.NewServeMux()
	routes.Handle(hookserver.Path, w.hooks.Hooks())
	routes.Handle(hookserver.PromptPath, w.hooks.Prompt())
	w.server = httptest.NewServer(routes)
	t.Cleanup(func() {
		w.hooks.Drain()
		w.server.Close()
	})
	return w
}

// A said is what a hook was answered.
type said struct {
	Event    string          `json:"hookEventName"`
	Decision string          `json:"permissionDecision"`
	Reason   string          `json:"permissionDecisionReason"`
	Input    json.RawMessage `json:"updatedInput"`
	Request  struct {
		Behavior, Message string
		UpdatedInput      json.RawMessage
	} `json:"decision"`
}

// body is what Claude Code 2.1.330 sends, with the parts that differ.
func body(event, use, tool, input string) string {
	return fmt.Sprintf(`{"session_id":"s-1","transcript_path":"/home/a/.claude/x.jsonl","cwd":"/srv/app","prompt_id":"p","permission_mode":"default",`+
		`"hook_event_name":%q,"tool_name":%q,"tool_input":%s,"tool_use_id":%q}`, event, tool, input, use)
}

func bash(use, command string) string {
	return body("PreToolUse", use, "Bash", `{"command":"`+command+`","description":"x"}`)
}

// ask calls the hook as Claude Code does. Every answer is a 200 with a document.
func (w *world) ask(ctx context.Context, query, bearerToken, body string) (said, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, w.server.URL+hookserver.ClaudePath+query, bytes.NewBufferString(body))
	if err != nil {
		return said{}, err
	}
	q.Header.Set("Content-Type", "application/json")
	if bearerToken != "" {
		q.Header.Set("Authorization", "Bearer "+bearerToken)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return said{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return said{}, err
	}
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "application/json" {
		return said{}, fmt.Errorf("status %d: %s", answer.StatusCode, raw)
	}
	var doc struct{ HookSpecificOutput said }
	return doc.HookSpecificOutput, json.Unmarshal(raw, &doc)
}

// now calls the hook and waits for its answer.
func (w *world) now(query, body string) said {
	w.Helper()
	s, err := w.ask(w.Context(), query, token, body)
	require.NoError(w, err)
	return s
}

// later calls the hook and returns the request that it made, and its answer.
func (w *world) later(body string) (intake.Request, <-chan said) {
	w.Helper()
	answers := make(chan said, 1)
	go func() {
		s, err := w.ask(w.Context(), "", token, body)
		if err != nil {
			s.Reason = err.Error()
		}
		answers <- s
	}()
	return <-w.watch.asked, answers
}

func (w *world) decide(q intake.Request, v approvals.Verdict, reason string) {
	w.Helper()
	b, err := w.store.Batch(w.Context(), q.Batch)
	require.NoError(w, err)
	a := b.Approvals[0]
	_, err = w.desk.Decide(w.Context(), q.Batch, approvals.RequestID(rand.Text()), approvals.Decide{Decision: approvals.Decision{
		Call: a.Call.ID, By: approvals.Principal{User: "bob"}, Verdict: v, Digest: a.Call.Digest, Reason: reason,
	}})
	require.NoError(w, err)
}

// edit is what dora does in Slack with Edit and approve.
func (w *world) edit(q intake.Request, args string) {
	w.Helper()
	b, err := w.store.Batch(w.Context(), q.Batch)
	require.NoError(w, err)
	a := b.Approvals[0]
	_, err = w.desk.Amend(w.Context(), q.Batch, approvals.RequestID(rand.Text()), approvals.Amend{
		Call: a.Call.ID, By: approvals.Principal{User: "dora"}, From: a.Call.Digest, Args: json.RawMessage(args),
	})
	require.NoError(w, err)
}

// stands is how the only call of the request stands.
func (w *world) stands(id approvals.RunID) intake.CallStatus {
	w.Helper()
	q, err := w.intake.Get(w.Context(), claude, id)
	require.NoError(w, err)
	return q.Calls[0]
}

// reason is why the request was withdrawn, as its card says it.
func (w *world) reason(q intake.Request) string {
	w.Helper()
	b, err := w.store.Batch(w.Context(), q.Batch)
	require.NoError(w, err)
	return b.Approvals[0].Ending.Reason
}
