package uistream_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/draft"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
	"github.com/countersign/countersign/internal/uistream"
)

var redisClient redis.UniversalClient

func TestMain(m *testing.M) {
	statetest.Main(m, func(c redis.UniversalClient) { redisClient = c })
}

// A script is a model that does what the newest prompt says: steps between "|",
// each of them calls such as "del:a" or "say words".
type script struct{ typist *typist }

func (s script) Request(ctx context.Context, q agentrun.ModelRequest) (agentrun.Response, error) {
	prompt, at := "", -1
	for i, m := range q.Messages {
		if r, ok := m.(agentrun.Request); ok {
			for _, p := range r.Parts {
				if u, ok := p.(agentrun.UserPrompt); ok {
					prompt, at = u.Content, i
				}
			}
		}
	}
	step, turn := 0, 0
	for i, m := range q.Messages {
		if _, ok := m.(agentrun.Response); ok && i > at {
			step++
		} else if ok {
			turn++
		}
	}
	r := agentrun.Response{ModelName: "script", FinishReason: agentrun.FinishStop}
	if prompt == "fail" {
		return r, &agentrun.ModelError{Code: agentrun.ModelUnavailable, Words: "The model is away."}
	}
	r.Parts = ranByProvider(q)
	steps := strings.Split(prompt, "|")
	if step >= len(steps) {
		r.Parts = append(r.Parts, agentrun.Text{Content: "Done: " + last(q.Messages)})
		return r, nil
	}
	for n, word := range strings.Fields(steps[step]) {
		name, path, isCall := strings.Cut(word, ":")
		if !isCall {
			r.Parts = append(r.Parts, agentrun.Text{Content: word + " "})
			continue
		}
		id := approvals.ToolCallID(fmt.Sprintf("c%d.%d.%d", turn, step, n))
		if name == "type" || name == "typo" || name == "args" {
			p, err := s.typist.types(ctx, q, id, name, path)
			if err != nil {
				return r, err
			}
			if r.Parts = append(r.Parts, p); name == "args" {
				r.FinishReason = agentrun.FinishToolCall
			}
			continue
		}
		args := fmt.Sprintf(`{"path":%q}`, path)
		if path == "BAD" {
			args = `{"nopath":1}`
		}
		r.FinishReason = agentrun.FinishToolCall
		c := agentrun.CallPart{ToolCall: approvals.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}}
		if name == "docs.ask" {
			c.ApprovalRequest = "mcpr_" + string(id)
		}
		r.Parts = append(r.Parts, c)
	}
	return r, nil
}

// ranByProvider are the calls that the request approves, as the provider ran them.
func ranByProvider(q agentrun.ModelRequest) (parts []agentrun.ResponsePart) {
	for _, m := range q.Messages {
		r, _ := m.(agentrun.Response)
		for _, p := range r.Parts {
			if c, ok := p.(agentrun.CallPart); ok && slices.Contains(q.Approved, c.ID) {
				parts = append(parts, agentrun.ProviderCall{ToolCall: c.ToolCall, ApprovalRequest: c.ApprovalRequest, Output: "42"})
			}
		}
	}
	return parts
}

// last is what came of the newest calls.
func last(all []agentrun.Message) string {
	r, ok := all[len(all)-1].(agentrun.Request)
	if !ok {
		return "nothing"
	}
	var words []string
	for _, p := range r.Parts {
		if p, ok := p.(agentrun.ToolReturn); ok {
			words = append(words, string(p.CallID)+" "+string(p.Outcome))
		}
	}
	return strings.Join(words, ", ")
}

// A tool notes each of its executions.
type tool struct {
	w    *world
	spec agentrun.Spec
}

func (t tool) Spec() agentrun.Spec { return t.spec }

func (tool) Validate(_ context.Context, c agentrun.Call) error {
	if !bytes.Contains(c.Args, []byte(`"path"`)) {
		return &agentrun.ArgumentError{Pointer: "/path", Message: agentrun.ArgumentMissing}
	}
	return nil
}

func (t tool) Execute(_ context.Context, c agentrun.Call) (agentrun.Result, error) {
	t.w.mu.Lock()
	t.w.ran = append(t.w.ran, c.Name+string(c.Args))
	gate := t.w.gate
	t.w.mu.Unlock()
	if gate != nil {
		<-gate
	}
	switch c.Name {
	case "breaks":
		return agentrun.Result{}, &agentrun.FailedError{Message: "it broke"}
	case "links":
		image := func(kind string) agentrun.Part {
			return agentrun.Part{Type: agentrun.PartImage, MIMEType: kind, Data: []byte("x")}
		}
		return agentrun.Result{Value: json.RawMessage(`{"type":"finish","finishReason":"stop"}`), Parts: []agentrun.Part{
			{Type: agentrun.PartLink, URI: "https://docs.example/a", Name: "a"},
			{Type: agentrun.PartLink, URI: "javascript:alert(1)", Name: "b"},
			{Type: agentrun.PartLink, URI: "https://user:pw@docs.example/", Name: "c"},
			{Type: agentrun.PartLink, URI: "data:text/html,x", Name: "d"},
			image("image/png"), image("image/svg+xml"), image("text/html"),
			{Type: agentrun.PartResource, URI: "file:///etc/passwd", MIMEType: "text/plain", Text: "x"},
			{Type: "finish", Text: "stop"},
		}}, nil
	}
	return agentrun.Result{Value: json.RawMessage(`{"done":true}`)}, nil
}

// rules says by the name of a tool who is asked.
type rules struct{}

func (rules) Rule(_ context.Context, p approvals.Proposal) (approvals.Ruling, error) {
	ask := func(r approvals.Requirement) (approvals.Ruling, error) {
		return approvals.Ask{Requirement: r, Why: "It changes something.", Rule: p.Call.Name + "@1"}, nil
	}
	one := approvals.Requirement{Quorums: []approvals.Quorum{{Name: "ops", Need: 1, From: approvals.From{Users: []approvals.UserID{alice, bob}}}}}
	switch p.Call.Name {
	case "free", "breaks", "links", "ext":
		return approvals.Permit{}, nil
	case "never":
		return approvals.Refuse{Reason: "Not on Fridays."}, nil
	case "two":
		one.Quorums[0].Need = 2
	case "sep":
		one.Separation = true
	case "brief":
		one.Deadline = time.Now().Add(50 * time.Millisecond)
	case "hour":
		one.Deadline = time.Now().Add(time.Hour)
	case "bobs":
		one.Quorums[0].From.Users = []approvals.UserID{bob}
	case "why":
		one.ReasonNeeded = true
	case "checked":
		return approvals.Ask{Requirement: one, Why: "It changes something.", Rule: "checked@1", Checked: approvals.Checked{
			Check: "fraud", Answer: approvals.CheckAsk, Said: approvals.Quote{Text: "A new customer."},
		}}, nil
	}
	return ask(one)
}

func (rules) Strictest(time.Time) approvals.Requirement { return approvals.Requirement{} }
func (rules) CountsToday() bool                         { return false }
func (rules) Midnight(at time.Time) time.Time           { return at }

const (
	alice approvals.UserID = "UALICE"
	bob   approvals.UserID = "UBOB"
	carol approvals.UserID = "UCAROL"
)

// people are those whose token is their name.
type people struct{}

func (people) Prove(r *http.Request) (approvals.UserID, error) {
	name, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || !strings.HasPrefix(name, "U") {
		return "", &uistream.RefusedError{Status: http.StatusUnauthorized, Words: "Sign in."}
	}
	return approvals.UserID(name), nil
}

func (people) MayAsk(_ context.Context, user approvals.UserID, _ string) error {
	if user == "UNOBODY" {
		return &uistream.RefusedError{Status: http.StatusForbidden, Words: "You can't ask this agent."}
	}
	return nil
}

func (people) MayOpen(context.Context, approvals.UserID, agentrun.Origin) (string, error) {
	return "", &uistream.RefusedError{Status: http.StatusForbidden, Words: "You are not in this conversation."}
}

func (people) Principal(_ context.Context, user approvals.UserID, _ approvals.Asked) (approvals.Principal, error) {
	if user == "ULOST" {
		return approvals.Principal{}, errors.New("slack does not answer")
	}
	return approvals.Principal{User: user, GroupsAt: time.Now()}, nil
}

func (people) MayRead(_ context.Context, user approvals.UserID, b approvals.Batch) error {
	if user == carol {
		return &uistream.RefusedError{Status: http.StatusForbidden, Words: "You can't read this."}
	}
	return nil
}

// A world is a bot with a server of chats and no Slack: decisions "in Slack" are
// made at the desk.
type world struct {
	*testing.T
	store  *state.Store
	runner *agentrun.Runner
	desk   *approvals.Desk
	chats  *uistream.Server
	http   *httptest.Server
	config uistream.Config

	typist *typist

	mu   sync.Mutex
	ran  []string
	gate chan struct{} // executions wait for it, if there is one
}

func newWorld(t *testing.T, change ...func(*uistream.Config, *agentrun.Agent)) *world {
	t.Helper()
	w := &world{T: t, typist: newTypist()}
	var err error
	w.store, err = state.Open(t.Context(), state.Options{Client: redisClient, Prefix: rand.Text()})
	require.NoError(t, err)
	agent := agentrun.Agent{Name: "ops", Model: script{w.typist}}
	for _, name := range []string{"free", "del", "two", "sep", "brief", "hour", "bobs", "why", "never", "breaks", "links", "secret", "checked"} {
		spec := agentrun.Spec{Name: name, Kind: agentrun.KindFunction, Schema: json.RawMessage(`{"type":"object"}`), MaxRetries: 3}
		if name == "secret" {
			spec.WriteOnly = []string{"/path"}
		}
		agent.Tools = append(agent.Tools, tool{w, spec})
	}
	agent.Tools = append(agent.Tools, tool{w, agentrun.Spec{Name: "docs.ask", Kind: agentrun.KindHosted}},
		tool{w, agentrun.Spec{Name: "ext", Kind: agentrun.KindExternal, Schema: json.RawMessage(`{"type":"object"}`)}})
	w.config = uistream.Config{
		Runs: w.store, Changes: state.NewFeed(w.store), Drafts: draft.NewReader(state.NewRelay(w.store)), People: people{}, Agent: "ops", Channel: "C0OPS",
		Heartbeat: 200 * time.Millisecond, Now: time.Now, Log: slog.New(slog.DiscardHandler), Origins: []string{"https://app.example"},
	}
	for _, c := range change {
		c(&w.config, &agent)
	}
	agents := func(name string) (agentrun.Agent, bool) { return agent, name == agent.Name }
	w.runner = agentrun.NewRunner(agentrun.Config{Store: w.store, Policy: rules{}, Ledger: state.NewLedger(w.store), Agents: agents, Now: time.Now, Watchers: draft.NewWriter(state.NewRelay(w.store), uistream.Watched)})
	catalog := agentrun.NewCatalog(agents, nil)
	w.desk = approvals.NewDesk(w.store, rules{}, catalog.CheckCall, time.Now)
	w.config.Runner, w.config.Desk, w.config.Tools = w.runner, w.desk, catalog
	w.chats, err = uistream.New(w.config)
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/api/chat", w.chats)
	mux.Handle("/api/chat/", w.chats)
	mux.HandleFunc("POST /control/decide", w.controlDecide)
	mux.HandleFunc("POST /control/edit", w.controlEdit)
	mux.HandleFunc("POST /control/fulfill", w.controlFulfill)
	mux.HandleFunc("POST /control/typist/{what}", w.typist.control)
	mux.HandleFunc("GET /control/ran", w.controlRan)
	w.http = httptest.NewServer(mux)
	w.work()
	t.Cleanup(func() { w.chats.Drain(); w.http.Close() })
	return w
}

// work does what is due until the test ends.
func (w *world) work() {
	kinds := map[state.Kind]func(ctx context.Context, id string) error{
		state.Runs: func(ctx context.Context, id string) error {
			ctx, kill := context.WithCancel(ctx)
			defer kill()
			err := w.runner.Work(context.WithValue(ctx, worker{}, kill), approvals.RunID(id))
			if ctx.Err() != nil {
				return nil // another worker takes it
			}
			return err
		},
		state.Resumes:   func(ctx context.Context, id string) error { return w.runner.Resume(ctx, approvals.BatchID(id)) },
		state.Deadlines: func(ctx context.Context, id string) error { return w.desk.Tick(ctx, approvals.BatchID(id)) },
	}
	var all []state.Task
	for _, k := range state.Kinds() {
		do := kinds[k]
		if do == nil {
			do = func(context.Context, string) error { return nil }
		}
		all = append(all, state.Task{Kind: k, Limit: time.Minute, Reconcile: do})
	}
	tasks, err := state.NewTasks(all...)
	require.NoError(w, err)
	due := state.NewDue(w.store, state.DueOptions{Grace: time.Second})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- due.Run(ctx, tasks) }()
	w.Cleanup(func() { stop(); require.NoError(w, <-ended) })
}

// executed is what has run.
func (w *world) executed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.ran)
}

// caseOf is the call with this path as a person sees it in Slack, as soon as it
// waits.
func (w *world) caseOf(ctx context.Context, user approvals.UserID, path string) (approvals.Case, error) {
	deadline := time.Now().Add(waitTime)
	for time.Now().Before(deadline) {
		batches, _, err := w.store.Inbox(ctx, []approvals.ListKey{approvals.Everything}, "", 200)
		if err != nil {
			return approvals.Case{}, err
		}
		for _, b := range batches {
			for _, a := range b.Approvals {
				call, err := w.desk.Call(ctx, b, a.Call.ID)
				if err == nil && strings.Contains(string(call.Args), `"`+path+`"`) && a.Status == approvals.Pending {
					return w.desk.Case(ctx, b, a.Call.ID, a.Call.Digest, people{}.resolver(user))
				}
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return approvals.Case{}, fmt.Errorf("no call with the path %s waits", path)
}

// pass has Redis forget what it would forget in this time.
func (w *world) pass(d time.Duration) {
	w.Helper()
	ctx := w.Context()
	keys, err := redisClient.Keys(ctx, w.store.Prefix()+":*").Result()
	require.NoError(w, err)
	for _, key := range keys {
		if left := redisClient.PTTL(ctx, key).Val(); left > 0 {
			require.NoError(w, redisClient.PExpire(ctx, key, left-d).Err())
		}
	}
}

// decide is a decision in Slack on the call with this path.
func (w *world) decide(ctx context.Context, user approvals.UserID, path string, v approvals.Verdict, reason string) error {
	c, err := w.caseOf(ctx, user, path)
	if err == nil {
		_, err = w.desk.DecideCase(ctx, c, approvals.RequestID(rand.Text()), v, reason)
	}
	return err
}

func (w *world) controlEdit(rw http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	c, err := w.caseOf(r.Context(), approvals.UserID(q.Get("user")), q.Get("path"))
	if err == nil {
		_, err = w.desk.AmendCase(r.Context(), c, approvals.RequestID(rand.Text()), json.RawMessage(fmt.Sprintf(`{"path":%q}`, q.Get("to"))))
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusConflict)
	}
}

func (w *world) controlDecide(rw http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if err := w.decide(r.Context(), approvals.UserID(q.Get("user")), q.Get("path"), approvals.Verdict(q.Get("verdict")), q.Get("reason")); err != nil {
		http.Error(rw, err.Error(), http.StatusConflict)
	}
}

// controlFulfill gives the result of the external call that stands beside a call with this
// path, once people have decided that one.
func (w *world) controlFulfill(rw http.ResponseWriter, r *http.Request) {
	batches, _, err := w.store.Inbox(r.Context(), []approvals.ListKey{approvals.AwaitsResult("ops")}, "", 200)
	for _, b := range batches {
		call, _ := w.desk.Call(r.Context(), b, b.Approvals[0].Call.ID)
		if len(b.Calls) == 0 || b.Approvals[0].Status == approvals.Pending || !strings.Contains(string(call.Args), r.URL.Query().Get("path")) {
			continue
		}
		given := approvals.Fulfill{Call: b.Calls[0].Call.ID, Result: approvals.ToolReturn{ReturnValue: json.RawMessage(`{"name":"Ann"}`)}, By: bob}
		if _, err = w.desk.Fulfill(r.Context(), b.ID, approvals.RequestID(rand.Text()), given); err == nil {
			return
		}
	}
	http.Error(rw, fmt.Sprint("no such call waits: ", err), http.StatusConflict)
}

func (w *world) controlRan(rw http.ResponseWriter, _ *http.Request) {
	_ = json.NewEncoder(rw).Encode(w.executed())
}

// A client is a person with a chat, by hand.
type client struct {
	*world
	user approvals.UserID
	chat string
	head http.Header
}

func (w *world) client(user approvals.UserID) *client {
	return &client{world: w, user: user, chat: "chat1", head: http.Header{}}
}

// A reply is what the server answers.
type reply struct {
	code   int
	header http.Header
	body   io.ReadCloser
}

// do sends a request.
func (c *client) do(method, path string, body any) reply {
	c.Helper()
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		require.NoError(c, err)
		in = bytes.NewReader(raw)
	}
	q, err := http.NewRequestWithContext(c.Context(), method, c.http.URL+path, in)
	require.NoError(c, err)
	q.Header = c.head.Clone()
	if c.user != "" {
		q.Header.Set("Authorization", "Bearer "+string(c.user))
	}
	if q.Header.Get("Content-Type") == "" {
		q.Header.Set("Content-Type", "application/json")
	}
	r, err := http.DefaultClient.Do(q)
	require.NoError(c, err)
	c.Cleanup(func() { _ = r.Body.Close() })
	return reply{r.StatusCode, r.Header, r.Body}
}

type object = map[string]any

// say posts a message.
func (c *client) say(id, text string) reply {
	return c.do(http.MethodPost, uistream.Path, object{"id": c.chat, "trigger": "submit-message", "messages": []any{userMessage(id, text)}})
}

func userMessage(id, text string) object {
	return object{"id": id, "role": "user", "parts": []any{object{"type": "text", "text": text}}}
}

// A sse reads a stream chunk by chunk.
type sse struct {
	t *testing.T
	r *bufio.Scanner
}

func read(t *testing.T, r reply) *sse {
	t.Helper()
	require.Equal(t, http.StatusOK, r.code)
	s := bufio.NewScanner(r.body)
	s.Buffer(nil, 1<<20)
	return &sse{t, s}
}

// next returns the next chunk; nil is the end.
func (s *sse) next() object {
	s.t.Helper()
	for s.r.Scan() {
		data, ok := strings.CutPrefix(s.r.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			return nil
		}
		var c object
		require.NoError(s.t, json.Unmarshal([]byte(data), &c))
		return c
	}
	return nil
}

// all returns what is left.
func (s *sse) all() []object {
	s.t.Helper()
	var all []object
	for c := s.next(); c != nil; c = s.next() {
		all = append(all, c)
	}
	return all
}

// until reads to the first chunk of this type.
func (s *sse) until(kind string) {
	s.t.Helper()
	for c := s.next(); c != nil; c = s.next() {
		if c["type"] == kind {
			return
		}
	}
	require.Fail(s.t, "the stream ended without "+kind)
}

// of returns the last of these chunks of this type.
func of(all []object, kind string) object {
	var found object
	for _, c := range all {
		if c["type"] == kind {
			found = c
		}
	}
	return found
}

// short is chunks as one line each, for comparing; data chunks are left out.
func short(all []object) string {
	var lines []string
	for _, c := range all {
		line := fmt.Sprint(c["type"])
		for _, key := range []string{"toolCallId", "delta", "inputTextDelta", "errorText", "finishReason", "url"} {
			if v, ok := c[key]; ok {
				line += " " + fmt.Sprint(v)
			}
		}
		if v, ok := c["approved"]; ok {
			line += fmt.Sprint(" ", v, " ", c["reason"])
		}
		if c["type"] == "data-approval" {
			d, _ := c["data"].(object)
			line += fmt.Sprint(" ", d["toolCallId"], " ", d["status"], " ", d["progress"])
			if d["message"] != nil {
				line += fmt.Sprint(" ", d["message"])
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func (people) resolver(user approvals.UserID) approvals.Resolver {
	return func(context.Context, approvals.Asked) (approvals.Principal, error) {
		return approvals.Principal{User: user, GroupsAt: time.Now()}, nil
	}
}
