package slackui_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
)

// shelf is a store for batches, runs and memos that lives as long as a test.
type shelf struct {
	mu       sync.Mutex
	batches  map[approvals.BatchID]approvals.Batch
	args     map[approvals.Digest]json.RawMessage
	answered map[approvals.RequestID]bool
	runs     map[approvals.RunID]agentrun.Run
	threads  map[agentrun.ThreadID]agentrun.Thread
	memos    map[string]memo
	drawn    map[string]int64
	mentions []agentrun.Mention
	fail     error // what every call answers instead
	volatile error // what is answered to who asks whether it is durable
}

var errOutage = errors.New("the store does not answer")

type memo struct {
	data    []byte
	version int64
}

func newShelf() *shelf {
	return &shelf{
		batches: map[approvals.BatchID]approvals.Batch{}, args: map[approvals.Digest]json.RawMessage{},
		answered: map[approvals.RequestID]bool{}, runs: map[approvals.RunID]agentrun.Run{},
		threads: map[agentrun.ThreadID]agentrun.Thread{}, memos: map[string]memo{}, drawn: map[string]int64{},
	}
}

// breaks makes every call fail until it is called with nil.
func (s *shelf) breaks(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

func (s *shelf) Batch(_ context.Context, id approvals.BatchID) (approvals.Batch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.batches[id]
	if s.fail != nil {
		return approvals.Batch{}, s.fail
	}
	if !ok {
		return approvals.Batch{}, approvals.ErrNotFound
	}
	return b, nil
}

func (s *shelf) Args(_ context.Context, _ approvals.BatchID, d approvals.Digest) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	args, ok := s.args[d]
	if !ok {
		return nil, approvals.ErrNotFound
	}
	return args, nil
}

func (s *shelf) CommitBatch(_ context.Context, c approvals.BatchCommit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	if s.answered[c.Request] {
		return nil
	}
	if s.batches[c.Batch.ID].Version != c.Before.Version {
		return approvals.ErrConflict
	}
	s.batches[c.Batch.ID] = c.Batch
	maps.Copy(s.args, c.Args)
	s.answered[c.Request] = true
	return nil
}

func (s *shelf) Answered(_ context.Context, _ approvals.BatchID, r approvals.RequestID) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered[r], s.fail
}

func (s *shelf) Confirm(context.Context, string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.fail, s.volatile)
}

// forgets makes everything that is stored such that it may be lost, until it is
// called with nil.
func (s *shelf) forgets(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.volatile = err
}

func (s *shelf) Run(_ context.Context, id approvals.RunID) (agentrun.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.runs[id]
	if !ok {
		return r, approvals.ErrNotFound
	}
	return r, nil
}

func (s *shelf) Thread(_ context.Context, id agentrun.ThreadID) (agentrun.Thread, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.threads[id], nil
}

func (s *shelf) Mention(_ context.Context, m agentrun.Mention) (agentrun.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return agentrun.Run{}, s.fail
	}
	s.mentions = append(s.mentions, m)
	return agentrun.Run{ID: "run-01-x"}, nil
}

func (s *shelf) mentioned() []agentrun.Mention {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mentions)
}

func (s *shelf) Memo(_ context.Context, id, surface string) ([]byte, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.memos[id+"/"+surface]
	return slices.Clone(m.data), m.version, s.fail
}

func (s *shelf) CommitMemo(_ context.Context, id, surface string, data []byte, version, drawn int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := id + "/" + surface
	if s.fail != nil {
		return s.fail
	}
	if s.memos[key].version != version {
		return approvals.ErrConflict
	}
	s.memos[key] = memo{slices.Clone(data), version + 1}
	if drawn > 0 {
		s.drawn[key] = drawn
	}
	return nil
}

func (s *shelf) drawnVersion(id, surface string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drawn[id+"/"+surface]
}

func (s *shelf) setRun(r agentrun.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[r.ID] = r
}

// noPolicy rules on amendments, which these tests do not make.
type noPolicy struct{ approvals.Policy }

// office is Countersign in a simulated workspace.
type office struct {
	*slacksim.Server
	*shelf

	t    *testing.T
	ui   *slackui.UI
	desk *approvals.Desk
	api  string // of Slack
	now  *clock

	later *clock // of Slack, where a test moves it too
	log   *logbook
}

// logbook is a log that a test reads while others write it.
type logbook struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// says is how often the log has these words.
func (l *logbook) says(words string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), words)
}

// clock is a clock that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func newOffice(t *testing.T, sim slacksim.Config, tune ...func(*slackui.Config)) *office {
	t.Helper()
	o := &office{t: t, shelf: newShelf(), now: &clock{at: time.Now()}, log: &logbook{}}
	o.Server = slacksim.New(sim)
	api := httptest.NewServer(o.Server)
	o.SetPublicURL(api.URL)
	o.desk = approvals.NewDesk(o.shelf, noPolicy{}, nil, o.now.read)
	cfg := slackui.Config{
		BotToken: o.BotToken, SigningSecret: o.SigningSecret,
		APIURL: api.URL + "/api/", Team: slacksim.TeamID, Agent: "ops",
		Desk: o.desk, Runs: o.shelf, Runner: o.shelf, Memos: o.shelf,
		Now: o.now.read, Log: slog.New(slog.NewTextHandler(o.log, nil)),
	}
	for _, f := range tune {
		f(&cfg)
	}
	ui, err := slackui.New(cfg)
	require.NoError(t, err)
	o.ui = ui
	front := httptest.NewServer(ui.Server)
	o.api = api.URL + "/api/"
	o.SetURLs(front.URL+"/slack/events", front.URL+"/slack/interactivity", front.URL+"/slack/commands")
	t.Cleanup(func() {
		front.Close()
		require.NoError(t, ui.Server.Shutdown(context.Background()))
		o.Close()
		api.Close()
	})
	return o
}

// say posts in #ops as a person and returns the message.
func (o *office) say(user, text string) string {
	o.t.Helper()
	ts, err := o.PostAs(slacksim.Post{User: user, Channel: "C0OPS", Text: text})
	require.NoError(o.t, err)
	return ts
}

// call is one call that needs people.
func call(id, tool, args string, q ...approvals.Quorum) approvals.Deferral {
	return approvals.Deferral{
		Call: approvals.ToolCall{ID: approvals.ToolCallID(id), Name: tool, Args: json.RawMessage(args)},
		Ask:  approvals.Ask{Requirement: approvals.Requirement{Quorums: q}, Why: "Deleting files needs a signature."},
	}
}

var sre = approvals.Quorum{Name: "sre", Need: 1, From: approvals.From{Groups: []approvals.GroupID{"S0SRE"}}}

// opens stores a batch of a run in the thread root, as if it had just deferred.
func (o *office) opens(root string, calls ...approvals.Deferral) approvals.Batch {
	o.t.Helper()
	return o.opensIn("C0OPS", root, calls...)
}

func (o *office) opensIn(channel, root string, calls ...approvals.Deferral) approvals.Batch {
	o.t.Helper()
	run := agentrun.Run{
		ID: "run-07-one", Thread: "thread", Status: agentrun.RunDeferred,
		Origin:   agentrun.Origin{Surface: "slack", Team: slacksim.TeamID, Channel: channel, Root: root},
		Deferred: "batch-07-one", Agent: "ops", Requester: "U0ALICE", Version: 3,
	}
	b, _, err := approvals.Open(approvals.Batch{
		ID: run.Deferred, Run: run.ID, Thread: "thread", Channel: channel, Agent: "ops", Requester: "U0ALICE", OpenedAt: o.now.read(),
	}, calls, nil)
	require.NoError(o.t, err)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.runs[run.ID] = run
	o.batches[b.ID] = b
	for _, c := range calls {
		o.args[approvals.DigestOf(b.ID, c.Call)] = c.Call.Args
	}
	return b
}

func (o *office) draw(b approvals.Batch) {
	o.t.Helper()
	require.NoError(o.t, o.ui.Cards.Reconcile(o.t.Context(), string(b.ID)))
}

// thread returns what a person sees in the thread, without its root.
func (o *office) thread(user, root string) []slacksim.Message {
	o.t.Helper()
	all, err := o.Messages(user, "C0OPS", root)
	require.NoError(o.t, err)
	return slices.DeleteFunc(all, func(m slacksim.Message) bool { return m.TS == root })
}

// whispers returns what only this person was told, after everything was said.
func (o *office) whispers(user, root string) []string {
	o.t.Helper()
	require.NoError(o.t, o.ui.Server.Shutdown(o.t.Context()))
	var words []string
	for _, m := range o.thread(user, root) {
		if m.Ephemeral {
			words = append(words, m.Shown())
		}
	}
	return words
}

// press clicks the i-th button of this kind on a message, and means it.
func (o *office) press(user string, m slacksim.Message, action string, i int) slacksim.ClickOutcome {
	o.t.Helper()
	out, err := o.Click(slacksim.Click{User: user, Channel: m.Channel, TS: m.TS, ActionID: fmt.Sprintf("countersign.%s.%d", action, i), Confirmed: true})
	require.NoError(o.t, err)
	return out
}
