package slackui_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// sheetWorkspace is a workspace on the store alone, where many calls are decided at
// once.
type sheetWorkspace struct {
	*workspace

	store *state.Store
	desk  *approvals.Desk
	bulk  *approvals.Bulk

	counts *counts
}

// counts counts the commits of a store, and can stop in the middle as a process
// does that is killed.
type counts struct {
	*state.Store

	batches, sheets atomic.Int64
	dies            atomic.Int64 // with the commit of this batch; 0: never

	mu   sync.Mutex
	made map[approvals.BatchID]int // commits that were made of each batch
}

var errKilled = errors.New("killed")

func (c *counts) CommitBatch(ctx context.Context, b approvals.BatchCommit) error {
	if n := c.batches.Add(1); c.dies.Load() > 0 && n >= c.dies.Load() {
		return errKilled
	}
	err := c.Store.CommitBatch(ctx, b)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.made[b.Batch.ID]++
	}
	return err
}

func (c *counts) CommitSheet(ctx context.Context, s approvals.SheetCommit) error {
	if c.dies.Load() > 0 && c.batches.Load() >= c.dies.Load() {
		return errKilled
	}
	c.sheets.Add(1)
	return c.Store.CommitSheet(ctx, s)
}

// harmless are tools that say what they do.
func harmless() toolbox {
	no := false
	return toolbox{
		"delete_file": {Name: "delete_file", Schema: json.RawMessage(fileSchema)},
		"tag_file":    {Name: "tag_file", Annotations: agentrun.Annotations{DestructiveHint: &no}},
		"move_file":   {Name: "move_file", Annotations: agentrun.Annotations{DestructiveHint: &no}},
	}
}

func newSheetWorkspace(t *testing.T, tune ...func(*slackui.Config)) *sheetWorkspace {
	t.Helper()
	return newSheetWorkspaceOn(t, statetest.Miniredis(t), tune...)
}

func newSheetWorkspaceOn(t *testing.T, c redis.UniversalClient, tune ...func(*slackui.Config)) *sheetWorkspace {
	t.Helper()
	return newSheetWorkspaceIn(t, escaping(), c, tune...)
}

func newSheetWorkspaceIn(t *testing.T, sim slacksim.Config, c redis.UniversalClient, tune ...func(*slackui.Config)) *sheetWorkspace {
	t.Helper()
	h := &sheetWorkspace{}
	slack := statetest.NewClock(noon)
	sim.Now = slack.Now
	h.workspace = newWorkspace(t, sim, append([]func(*slackui.Config){func(c2 *slackui.Config) {
		store, err := state.Open(t.Context(), state.Options{Client: c, Prefix: "t", Now: c2.Now, Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		t.Cleanup(func() { _ = store.Close() })
		check := func(context.Context, approvals.Batch, approvals.ToolCall) error { return nil }
		h.counts = &counts{Store: store, made: map[approvals.BatchID]int{}}
		h.store, h.desk = store, approvals.NewDesk(h.counts, rulings{}, check, c2.Now)
		h.bulk = approvals.NewBulk(h.desk, h.counts, "one", c2.Now)
		c2.Desk, c2.Runs, c2.Memos, c2.Lists, c2.Bulk, c2.Tools = h.desk, store, store, store, h.bulk, harmless()
	}}, tune...)...)
	h.now.Advance(noon.Sub(h.now.Now()))
	h.later = slack
	return h
}

// asks opens a batch in #ops, as a run that has just deferred, the given time
// ago.
func (h *sheetWorkspace) asks(name, requester string, since time.Duration, calls ...approvals.Deferral) approvals.Batch {
	h.t.Helper()
	return h.asksIn("C0OPS", fmt.Sprintf("17000000%02d.000100", len(name)), name, requester, since, calls...)
}

func (h *sheetWorkspace) asksIn(channel, root, name, requester string, since time.Duration, calls ...approvals.Deferral) approvals.Batch {
	h.t.Helper()
	return h.asksFrom(agentrun.Origin{Surface: "slack", Team: slacksim.TeamID, Channel: channel, Root: root}, name, requester, since, calls...)
}

// asksOver opens a batch of an agent that runs elsewhere, to be shown in #ops, and draws
// it there.
func (h *sheetWorkspace) asksOver(door, name string, calls ...approvals.Deferral) approvals.Batch {
	h.t.Helper()
	b := h.asksFrom(agentrun.Origin{Surface: door, Team: "ops", Channel: "C0OPS", Root: name}, name, "U0ALICE", time.Hour, calls...)
	h.draw(b)
	return b
}

func (h *sheetWorkspace) asksFrom(origin agentrun.Origin, name, requester string, since time.Duration, calls ...approvals.Deferral) approvals.Batch {
	h.t.Helper()
	thread := agentrun.ThreadIDOf(origin)
	partition := approvals.PartitionOf(origin.Surface, origin.Team, origin.Channel, origin.Root)
	run := agentrun.Run{
		ID: approvals.RunID(approvals.NewID("run", partition, name)), Thread: thread, Status: agentrun.RunDeferred, Origin: origin,
		Deferred: approvals.BatchID(approvals.NewID("batch", partition, name)), Agent: "ops", Requester: approvals.UserID(requester),
	}
	if origin.Surface != "slack" {
		run.Executor = approvals.Executor(origin.Surface)
	}
	b, events, err := approvals.Open(approvals.Batch{
		ID: run.Deferred, Run: run.ID, Thread: string(thread), Channel: origin.Channel, Agent: "ops", Requester: run.Requester, Executor: run.Executor,
		OpenedAt: h.now.Now().Add(-since),
	}, calls, nil)
	require.NoError(h.t, err)
	args := map[approvals.Digest]json.RawMessage{}
	for _, c := range calls {
		args[approvals.DigestOf(b.ID, c.Call)] = c.Call.Args
	}
	require.NoError(h.t, h.store.Commit(h.t.Context(), agentrun.Commit{
		Runs: []agentrun.Run{run}, Opens: &agentrun.OpenBatch{Batch: b, Events: events, Args: args},
	}))
	require.NoError(h.t, h.ui.Homes.Reconcile(h.t.Context(), string(b.ID)))
	return b
}

// stored is the batch as it is stored.
func (h *sheetWorkspace) stored(b approvals.Batch) approvals.Batch {
	h.t.Helper()
	b, err := h.desk.Batch(h.t.Context(), b.ID)
	require.NoError(h.t, err)
	return b
}

func (h *sheetWorkspace) statuses(b approvals.Batch) string {
	var all []string
	for _, a := range h.stored(b).Approvals {
		all = append(all, string(a.Status))
	}
	return strings.Join(all, " ")
}

// slashes sends /countersign in #ops, and returns what was answered, if
// anything was, once everything that follows has been said.
func (h *sheetWorkspace) slashes(user, text string) string {
	h.t.Helper()
	out, err := h.Command(slacksim.Command{User: user, Channel: "C0OPS", Command: "/countersign", Text: text})
	require.NoError(h.t, err)
	require.Empty(h.t, out.VisibleError)
	require.NoError(h.t, h.ui.Server.Shutdown(h.t.Context()))
	if out.Message == nil {
		return ""
	}
	require.True(h.t, out.Message.Ephemeral)
	return strings.Join(strings.Fields(out.Message.Shown()), " ")
}

// sheet is the form that the command has opened.
func (h *sheetWorkspace) sheet(user, text string) slacksim.View {
	h.t.Helper()
	require.Empty(h.t, h.slashes(user, text))
	views := h.Views(user)
	require.Len(h.t, views, 1)
	return views[0]
}

func (h *sheetWorkspace) top1(user string) slacksim.View {
	h.t.Helper()
	views := h.Views(user)
	require.NotEmpty(h.t, views)
	return views[len(views)-1]
}

// ticks ticks the box of a line, as a person does.
func (h *sheetWorkspace) ticks(user string, lines ...int) {
	h.t.Helper()
	for _, i := range lines {
		out, err := h.Click(slacksim.Click{
			User: user, ViewID: h.top1(user).ID, ActionID: fmt.Sprintf("countersign.tick.%d", i), BlockID: fmt.Sprintf("tick.%d", i),
			Value: []any{fmt.Sprint(i)},
		})
		require.NoError(h.t, err)
		require.Equal(h.t, 200, out.Status)
	}
}

func (h *sheetWorkspace) turns(page int) {
	h.t.Helper()
	const user = "U0CAROL"
	out, err := h.Click(slacksim.Click{User: user, ViewID: h.top1(user).ID, ActionID: fmt.Sprintf("countersign.sheet_page.%d", page)})
	require.NoError(h.t, err)
	require.Equal(h.t, 200, out.Status)
}

// sendsSheet presses the button below the form.
func (h *sheetWorkspace) sendsSheet(user string, reason ...string) slacksim.SubmitOutcome {
	h.t.Helper()
	in := slacksim.Submit{User: user, ViewID: h.top1(user).ID}
	if len(reason) > 0 {
		in.Values = map[string]map[string]any{"reason": {"text": reason[0]}}
	}
	out, err := h.SubmitView(in)
	require.NoError(h.t, err)
	return out
}

// sheetID is the sheet of the form on top.
func (h *sheetWorkspace) sheetID(user string) approvals.SheetID {
	h.t.Helper()
	var memo struct {
		S approvals.SheetID `json:"s"`
	}
	require.NoError(h.t, json.Unmarshal([]byte(h.memo(user)), &memo))
	return memo.S
}

// memo is what the form on top keeps.
func (h *sheetWorkspace) memo(user string) string {
	h.t.Helper()
	v := h.top1(user)
	require.Equal(h.t, "countersign.sheet", v.CallbackID)
	return v.PrivateMetadata
}

// shows is what a person reads in a form, with single blanks.
func shows(v slacksim.View) string { return strings.Join(strings.Fields(words(v.Blocks)), " ") }

// finishes does the due work on the sheet, as often as it is handed out.
func (h *sheetWorkspace) finishes(id approvals.SheetID) approvals.Sheet {
	h.t.Helper()
	require.NoError(h.t, h.bulk.Work(h.t.Context(), id))
	for range 2 {
		require.NoError(h.t, h.ui.Answers.Reconcile(h.t.Context(), string(id)))
	}
	sheet, err := h.store.Sheet(h.t.Context(), id)
	require.NoError(h.t, err)
	return sheet
}

// delivers sends a payload as Slack does and returns the body of the answer.
func (h *sheetWorkspace) delivers(payload map[string]any) string {
	h.t.Helper()
	raw, err := json.Marshal(payload)
	require.NoError(h.t, err)
	status, body := h.deliverBody(string(raw))
	require.Equal(h.t, 200, status)
	return body
}

func (h *sheetWorkspace) deliverBody(raw string) (int, string) {
	h.t.Helper()
	body := url.Values{"payload": {raw}}.Encode()
	stamp := strconv.FormatInt(h.now.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(h.SigningSecret()))
	mac.Write([]byte("v0:" + stamp + ":" + body))
	r := httptest.NewRequest(http.MethodPost, "/slack/interactivity", strings.NewReader(body))
	r.Header.Set("X-Slack-Request-Timestamp", stamp)
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	w := httptest.NewRecorder()
	h.ui.Server.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}
