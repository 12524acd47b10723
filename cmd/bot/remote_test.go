package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/state/statetest"
)

// remote is an agent that runs elsewhere, as the bot's HTTP API sees it.
type remote struct {
	t      *testing.T
	url    string
	token  string
	tokens string // the file of its tokens
}

// listen opens the HTTP API in the configuration of the world, for one agent.
func (w *world) listen() *remote {
	w.t.Helper()
	addr := statetest.FreeAddr(w.t)
	r := &remote{t: w.t, url: "http://" + addr, token: "first", tokens: filepath.Join(w.t.TempDir(), "tokens")}
	r.accept("first")
	old, err := os.ReadFile(w.config)
	require.NoError(w.t, err)
	w.config = write(w.t, string(old)+fmt.Sprintf(`
http: {listen: %q}
remote_agents:
  - {name: refunds, owner: %s, channel: %s, tokens_file: %q, doors: [api, hooks, mcp], per_minute: 10000, open_limit: 10000}
`, addr, alice, ops, r.tokens))
	return r
}

// measures opens the listener for metrics in the configuration of the world, and returns
// what reads them.
func (w *world) measures() (metrics func() string) {
	w.t.Helper()
	addr := statetest.FreeAddr(w.t)
	old, err := os.ReadFile(w.config)
	require.NoError(w.t, err)
	w.config = write(w.t, string(old)+fmt.Sprintf("metrics: {listen: %q}\n", addr))
	return func() string {
		r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://"+addr+"/metrics", nil)
		require.NoError(w.t, err)
		resp, err := http.DefaultClient.Do(r)
		require.NoError(w.t, err)
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		require.NoError(w.t, err)
		return string(text)
	}
}

// accept makes these the tokens of the agent.
func (r *remote) accept(tokens ...string) {
	r.t.Helper()
	var lines strings.Builder
	for _, t := range tokens {
		fmt.Fprintf(&lines, "sha256:%x\n", sha256.Sum256([]byte(t)))
	}
	require.NoError(r.t, os.WriteFile(r.tokens, []byte(lines.String()), 0o600))
}

type approval struct {
	ID     string
	Status string
	Calls  []struct{ Outcome string }
}

// do calls the API.
func (r *remote) do(method, path, body string) (int, approval) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, bytes.NewReader([]byte(body)))
	require.NoError(r.t, err)
	req.Header.Set("Authorization", "Bearer "+r.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(r.t, err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	var a approval
	if resp.StatusCode < http.StatusBadRequest {
		require.NoError(r.t, json.Unmarshal(b, &a), "%s", b)
	}
	return resp.StatusCode, a
}

// ask asks for a call that only this request has.
func (r *remote) ask(path string) approval {
	r.t.Helper()
	status, a := r.do(http.MethodPost, "/v1/approvals", `{"calls":[{"id":"c1","tool":"delete_file","args":{"path":"`+path+`"},"reason":"It is old."}]}`)
	require.Equal(r.t, http.StatusCreated, status)
	return a
}

// A bot for agents that run elsewhere has no agent and no model of its own.
func TestABotForRemoteAgentsAloneNeedsNoModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.listen()
	text, err := os.ReadFile(w.config)
	require.NoError(t, err)
	own := regexp.MustCompile(`(?m)^agents: .*$`)
	require.Regexp(t, own, string(text))
	w.config = write(t, own.ReplaceAllString(string(text), ""))
	w.env = slices.DeleteFunc(w.env, func(v string) bool { return strings.HasPrefix(v, "OPENAI_") })
	p := w.start()
	asked := agent.ask("/srv/old.csv")
	card := w.sim.await(bob, "", "the card", says("refunds", "/srv/old.csv"))
	require.Empty(t, w.sim.click(bob, card, "/srv/old.csv", "Approve").VisibleError)
	status, _ := agent.do(http.MethodPost, "/v1/approvals/"+asked.ID+"/calls/c1/claim", "")
	require.Equal(t, http.StatusOK, status)
	w.sim.ask("hello", "")
	w.sim.await(alice, "", "that nobody answers", says("No agent takes messages here"))
	var out, stderr bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"check", "--config", w.config, "--online"}, w.env, &out, &stderr), "%s", &out)
	require.Contains(t, out.String(), ": 1 remote agent\n")
	require.NotContains(t, out.String(), "model")
	require.NoError(t, p.term())
}

// An agent elsewhere asks, a person clicks in Slack, and the agent that waits is
// answered, claims the call and reports it.
func TestAClickAnswersAnAgentElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.listen()
	metrics := w.measures()
	p := w.start()
	asked := agent.ask("/srv/old.csv")
	card := w.sim.await(bob, "", "the card", says("refunds", "/srv/old.csv"))
	var held sync.WaitGroup
	var status int
	var got approval
	held.Go(func() { status, got = agent.do(http.MethodGet, "/v1/approvals/"+asked.ID+"?wait=50s", "") })
	require.Empty(t, w.sim.click(bob, card, "/srv/old.csv", "Approve").VisibleError)
	held.Wait()
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "approved", got.Calls[0].Outcome)
	call := "/v1/approvals/" + asked.ID + "/calls/c1"
	status, _ = agent.do(http.MethodPost, call+"/claim", "")
	require.Equal(t, http.StatusOK, status)
	status, _ = agent.do(http.MethodPost, call+"/claim", "")
	require.Equal(t, http.StatusConflict, status)
	status, _ = agent.do(http.MethodPost, call+"/result", `{"state":"ran","took_ms":40}`)
	require.Equal(t, http.StatusOK, status)

	agent.accept("second")
	status, _ = agent.do(http.MethodGet, "/v1/approvals", "")
	require.Equal(t, http.StatusUnauthorized, status, "a token that was replaced")
	agent.token = "second"
	status, _ = agent.do(http.MethodGet, "/v1/approvals", "")
	require.Equal(t, http.StatusOK, status, "without a restart")
	require.NotContains(t, p.out.String(), "first")

	asked = agent.ask("/srv/other.csv")
	held.Go(func() { status, got = agent.do(http.MethodGet, "/v1/approvals/"+asked.ID+"?wait=50s", "") })
	w.sim.await(bob, "", "the card", says("/srv/other.csv"))
	require.Eventually(t, func() bool {
		return strings.Contains(metrics(), `countersign_http_requests_in_flight{listener="agents"} 1`)
	}, time.Minute, 5*time.Millisecond, "it waits")
	require.NoError(t, p.term())
	held.Wait()
	require.Equal(t, http.StatusOK, status, "who waits is told how it stands before the bot is gone")
	require.Equal(t, "pending", got.Status)
}

// The time from a click in Slack to the answer that a waiting agent gets, over
// real HTTP, a real Redis with fsync and another process. Three clicks in a test
// run; CLICKS=200 measures.
func TestFromTheClickToTheAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.listen()
	old, err := os.ReadFile(w.config)
	require.NoError(t, err)
	w.config = write(t, string(old)+"slack: {cards_per_minute: 10000}\n")
	w.start()
	n := 3
	if s := os.Getenv("CLICKS"); s != "" {
		n, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	var took, acknowledged []time.Duration
	for i := range n {
		path := fmt.Sprintf("/srv/%d.csv", i)
		asked := agent.ask(path)
		card := w.sim.await(bob, "", "the card", says(path))
		answered := make(chan time.Time, 1)
		go func() {
			_, got := agent.do(http.MethodGet, "/v1/approvals/"+asked.ID+"?wait=50s", "")
			if got.Status == "settled" {
				answered <- time.Now()
			}
			close(answered)
		}()
		clicked := time.Now()
		require.Empty(t, w.sim.click(bob, card, path, "Approve").VisibleError)
		acknowledged = append(acknowledged, time.Since(clicked))
		at, ok := <-answered
		require.True(t, ok)
		took = append(took, at.Sub(clicked))
	}
	slices.Sort(took)
	slices.Sort(acknowledged)
	t.Logf("%d clicks: from the click to the answer p50 %s, p99 %s; to the acknowledgment p50 %s", n, took[n/2], took[n*99/100], acknowledged[n/2])
}
