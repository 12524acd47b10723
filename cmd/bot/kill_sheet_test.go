package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state"
)

// opensMany stores calls of many runs that have just deferred: 500 of 200.
func (w *world) opensMany() []approvals.Batch {
	w.t.Helper()
	ctx := context.Background()
	store, err := state.Open(ctx, state.Options{Client: w.redis, Now: time.Now})
	require.NoError(w.t, err)
	root := w.sim.ask("hello", "")
	var all []approvals.Batch
	for i := range 200 {
		// Their cards are all in one thread, which Slack knows.
		origin := agentrun.Origin{Surface: "slack", Team: slacksim.TeamID, Channel: ops, Root: root}
		name := fmt.Sprintf("many%03d", i)
		run := agentrun.Run{
			ID: approvals.RunID(approvals.NewID("run", i%approvals.Partitions, name)), Thread: agentrun.ThreadID(approvals.NewID("thread", i%approvals.Partitions, name)),
			Status: agentrun.RunDeferred, Origin: origin, Deferred: approvals.BatchID(approvals.NewID("batch", i%approvals.Partitions, name)), Agent: "ops", Requester: alice,
		}
		args := map[approvals.Digest]json.RawMessage{}
		var calls []approvals.Deferral
		for n := range 2 + i%2 {
			call := approvals.ToolCall{ID: approvals.ToolCallID(fmt.Sprint("c", n)), Name: "delete_file", Args: json.RawMessage(fmt.Sprintf(`{"path":"reports/%d-%d.txt"}`, i, n))}
			args[approvals.DigestOf(run.Deferred, call)] = call.Args
			calls = append(calls, approvals.Deferral{Call: call, Ask: approvals.Ask{Why: "it deletes", Requirement: approvals.Requirement{
				// One approval is not enough, so that no run resumes.
				Quorums: []approvals.Quorum{{Name: "operations", Need: 2, From: approvals.From{Groups: []approvals.GroupID{"S0SRE"}}}},
			}}})
		}
		b, events, err := approvals.Open(approvals.Batch{
			ID: run.Deferred, Run: run.ID, Thread: string(run.Thread), Channel: ops, Agent: "ops", Requester: alice, OpenedAt: time.Now().Add(-time.Hour),
		}, calls, nil)
		require.NoError(w.t, err)
		require.NoError(w.t, store.Commit(ctx, agentrun.Commit{Runs: []agentrun.Run{run}, Opens: &agentrun.OpenBatch{Batch: b, Events: events, Args: args}}))
		all = append(all, b)
	}
	return all
}

// lettersTo are the direct messages of the bot to a person.
func (s *sim) lettersTo(user string) []message {
	s.t.Helper()
	var out struct{ Messages []message }
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet,
		s.url+"/sim/messages?"+url.Values{"user": {user}, "channel": {"D" + user[1:]}}.Encode(), nil)
	require.NoError(s.t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil // there is no such conversation yet
	}
	require.NoError(s.t, json.NewDecoder(resp.Body).Decode(&out))
	return out.Messages
}

// answersTo are those that say what became of a sheet.
func (s *sim) answersTo(user string) []message {
	s.t.Helper()
	var found []message
	for _, m := range s.lettersTo(user) {
		if strings.Contains(m.words(), "You sent the list") {
			found = append(found, m)
		}
	}
	return found
}

// TestKillInTheMiddleOfASheet: a word on 500 calls that was acknowledged is
// carried out by the next process, once, and answered once.
func TestKillInTheMiddleOfASheet(t *testing.T) {
	t.Parallel()
	times := 1 // it takes long
	if os.Getenv("KILLS") != "" {
		times = tries(t)
	}
	for i := range times {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			w := newWorld(t)
			first := w.start()
			batches := w.opensMany()
			ctx := context.Background()
			store, err := state.Open(ctx, state.Options{Client: w.redis, Now: time.Now})
			require.NoError(t, err)
			decided := func() (n int) {
				for _, b := range batches {
					now, err := store.Batch(ctx, b.ID)
					require.NoError(t, err)
					for _, a := range now.Approvals {
						require.LessOrEqual(t, len(a.Decisions), 1, "nobody approves twice")
						n += len(a.Decisions)
					}
				}
				return n
			}
			type seen struct {
				VisibleError string `json:"visible_error"`
			}
			// A denial needs no boxes to be ticked.
			var out seen
			w.sim.do(http.MethodPost, "/sim/command", map[string]string{
				"user": bob, "channel": ops, "command": "/countersign", "text": "deny channel tool:delete_* not this year",
			}, &out)
			require.Empty(t, out.VisibleError)
			var sheet view
			w.sim.awaits("the sheet", func() bool {
				views := w.sim.views(bob)
				if len(views) == 1 && strings.HasPrefix(views[0].Title, "Deny") {
					sheet = views[0]
				}
				return sheet.ID != ""
			})
			out = seen{}
			began := time.Now()
			w.sim.do(http.MethodPost, "/sim/submit", map[string]any{
				"user": bob, "view_id": sheet.ID, "values": map[string]map[string]string{"reason": {"text": "not this year"}},
			}, &out)
			took := time.Since(began)
			require.Empty(t, out.VisibleError, "acknowledged inside Slack's 3 s")
			time.Sleep(rand.N(150 * time.Millisecond)) // where exactly the kill hits
			first.kill()
			before := decided()

			second := w.start()
			w.sim.awaits("the answer", func() bool { return len(w.sim.answersTo(bob)) > 0 })
			require.Equal(t, 500, decided())
			require.Contains(t, w.sim.answersTo(bob)[0].words(), "Denied 500 calls.")
			require.NoError(t, second.term())
			require.Len(t, w.sim.answersTo(bob), 1, "one answer")
			t.Logf("acknowledged after %s, killed with %d of 500 signed", took, before)
		})
	}
}

// awaits waits until ok says so, and looks again whenever something changed.
func (s *sim) awaits(what string, ok func() bool) {
	s.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for !ok() {
		select {
		case <-s.changed:
		case <-deadline.C:
			require.Fail(s.t, "not seen: "+what)
		}
	}
}
