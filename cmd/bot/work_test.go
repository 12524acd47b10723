package main

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state"
)

func TestABotWithoutATaskForSomeKindDoesNotStart(t *testing.T) {
	t.Parallel()
	b := newInstallation(t, slacksim.Config{}).bot()
	all := b.work()
	for i, task := range all {
		_, err := state.NewTasks(slices.Delete(slices.Clone(all), i, i+1)...)
		require.ErrorContains(t, err, string(task.Kind)+" has 0 tasks")
	}
}

// What a decision starts makes the work on cards and messages wait, which never makes
// anything wait.
func TestWhatADecisionStartsIsUrgent(t *testing.T) {
	t.Parallel()
	urgent := map[state.Kind]bool{}
	for _, task := range newInstallation(t, slacksim.Config{}).bot().work() {
		urgent[task.Kind] = task.Urgent
		require.False(t, task.Urgent && task.Slow, "%s draws", task.Kind)
	}
	require.True(t, urgent[state.Resumes] && urgent[state.Runs])
}

// A follower of a bot sees what becomes of a deferral of its agent.
type follower struct {
	*installation
	b    *bot
	root string // of the thread
	id   approvals.BatchID
}

// deferral starts a bot, opens Bob's Home and lets Alice ask for what is deferred.
// more is added to the configuration.
func deferral(t *testing.T, more ...string) *follower {
	t.Helper()
	i := newInstallation(t, slacksim.Config{})
	i.text, i.rules = twoAgents+strings.Join(more, ""), oneOfSRE
	return deferralOn(t, i)
}

// deferralOn is deferral on an installation whose configuration and policy are
// written.
func deferralOn(t *testing.T, i *installation) *follower {
	t.Helper()
	i.deletes()
	f := &follower{installation: i, b: i.bot()}
	i.reconciles(f.b)

	i.mentions(f.b) // nothing yet, but Slack knows where the bot is
	require.NoError(t, i.slack.OpenHome(bob))
	f.sees("an empty Home", func() bool { _, opened := i.slack.Home(bob); return opened })
	i.mentions(f.b, slacksim.Post{User: alice, Channel: ops})
	messages, err := i.slack.Messages(alice, ops, "")
	require.NoError(t, err)
	f.root = messages[0].TS
	f.sees("the card", func() bool {
		for _, key := range i.redis.Keys() {
			if _, id, ok := strings.Cut(key, ":batch:"); ok {
				f.id = approvals.BatchID(id)
			}
		}
		return f.id != "" && f.reads(alice, ops, f.root, "Delete a.txt")
	})
	return f
}

// deletes has the model ask for the deletion of a.txt, and then say that this is all.
func (i *installation) deletes() {
	model := httptest.NewServer(openaisim.New(openaisim.Story{
		Name: "delete", Prompt: "clean up", Match: func(string) bool { return true },
		Turn: func(c openaisim.Conversation) openaisim.Reply {
			if len(c.Results) > 0 {
				return openaisim.Reply{Text: "That is all."}
			}
			return openaisim.Reply{Calls: []openaisim.Call{{Name: "delete_file", Args: `{"path":"a.txt"}`}}}
		},
	}))
	i.t.Cleanup(model.Close)
	i.env["OPENAI_BASE_URL"] = model.URL + "/v1"
}

// reconciles has the bot work on what is due until the test ends.
func (i *installation) reconciles(b *bot) {
	ctx, cancel := context.WithCancel(i.t.Context())
	working := make(chan struct{})
	go func() { defer close(working); b.reconcile(ctx) }()
	i.t.Cleanup(func() { cancel(); <-working })
}

// approves has Bob click on the card and waits for the answer of the agent.
func (f *follower) approves() {
	f.t.Helper()
	require.Equal(f.t, slacksim.ClickOutcome{Status: 200}, f.clicks(f.root, "Delete a.txt"))
	f.sees("the answer", func() bool { return f.reads(alice, ops, f.root, "That is all.") })
}

// clicks has Bob approve on the card with these words.
func (f *follower) clicks(thread, words string) slacksim.ClickOutcome {
	f.t.Helper()
	messages, err := f.slack.Messages(bob, ops, thread)
	require.NoError(f.t, err)
	card := slices.IndexFunc(messages, func(m slacksim.Message) bool { return strings.Contains(m.Shown(), words) })
	require.NotEqual(f.t, -1, card, "there is no card")
	out, err := f.slack.Click(slacksim.Click{User: bob, Channel: ops, TS: messages[card].TS, ActionID: "countersign.approve.0", Confirmed: true})
	require.NoError(f.t, err)
	return out
}

// sees waits until something in the workspace is as ok says.
func (f *follower) sees(what string, ok func() bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	require.NoError(f.t, f.slack.Await(ctx, ok), what)
}

func (f *follower) reads(user, channel, thread, words string) bool {
	messages, err := f.slack.Messages(user, channel, thread)
	return err == nil && slices.ContainsFunc(messages, func(m slacksim.Message) bool { return strings.Contains(m.Shown(), words) })
}

// sooner brings times forward that a policy cannot set below a minute.
func (f *follower) sooner(change func(r *approvals.Requirement, now time.Time)) {
	f.t.Helper()
	before, err := f.b.desk.Batch(f.t.Context(), f.id)
	require.NoError(f.t, err)
	after := before
	after.Version++
	after.Approvals = slices.Clone(before.Approvals)
	change(&after.Approvals[0].Requirement, time.Now())
	require.NoError(f.t, f.b.store.CommitBatch(f.t.Context(), approvals.BatchCommit{Before: before, Batch: after}))
}

// It takes state.Homes.
func TestARequestIsShownOnTheHomeOfAnApprover(t *testing.T) {
	t.Parallel()
	f := deferral(t)
	f.sees("the request", func() bool {
		v, _ := f.slack.Home(bob)
		blocks, err := json.Marshal(v.Blocks)
		return err == nil && strings.Contains(string(blocks), "Delete a.txt")
	})
}

// It takes state.Deadlines, which takes the rung, and state.Notices, which tells.
func TestAnApproverIsReminded(t *testing.T) {
	t.Parallel()
	f := deferral(t)
	f.sooner(func(r *approvals.Requirement, now time.Time) {
		r.Ladder = []approvals.Rung{{Kind: approvals.Remind, At: now}}
	})
	f.sees("the reminder", func() bool { return f.reads(bob, "D0BOB", "", "Delete a.txt") })
}

// It takes state.Deadlines, which ends the call, and state.Resumes.
func TestARunGoesOnAfterTheDeadlineOfItsCall(t *testing.T) {
	t.Parallel()
	f := deferral(t)
	f.sooner(func(r *approvals.Requirement, now time.Time) { r.Deadline = now })
	f.sees("the answer", func() bool { return f.reads(alice, ops, f.root, "That is all.") })
}

// No reconciler is running, so that the run stays as it is until it is parked.
func TestAThreadIsToldThatItsRunIsParked(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	i.text, i.rules = twoAgents, oneOfSRE
	f := &follower{installation: i, b: i.bot()}
	i.mentions(f.b, slacksim.Post{User: alice, Channel: ops})
	messages, err := i.slack.Messages(alice, ops, "")
	require.NoError(t, err)
	tasks := map[state.Kind]state.Task{}
	for _, task := range f.b.work() {
		tasks[task.Kind] = task
	}
	for _, key := range i.redis.Keys() {
		if _, run, ok := strings.Cut(key, ":run:"); ok {
			tasks[state.Runs].Parked(t.Context(), run)
			require.NoError(t, tasks[state.Replies].Reconcile(t.Context(), run))
		}
	}
	require.True(t, f.reads(alice, ops, messages[0].TS, "so the bot stopped trying"))
}

// The same for a sheet: its person gets a direct message.
func TestAPersonIsToldThatTheirSheetIsParked(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	f := &follower{installation: i, b: i.bot()}
	i.mentions(f.b) // Slack knows where the bot is
	call := approvals.ToolCall{ID: "c1", Name: "delete_file", Args: json.RawMessage(`{}`)}
	line := approvals.Line{Batch: "batch-03-b", Call: call.ID, Digest: approvals.DigestOf("batch-03-b", call), Tool: call.Name}
	shown, err := approvals.NewSheet(approvals.Sheet{
		ID: approvals.NewSheetID(slacksim.TeamID, bob, "1"), By: bob, Verdict: approvals.Approve, Lines: []approvals.Line{line},
	}, time.Now())
	require.NoError(t, err)
	require.NoError(t, f.b.store.CommitSheet(t.Context(), approvals.SheetCommit{Sheet: shown}))
	sent, err := shown.Submit(approvals.Submission{Request: "r", By: approvals.Principal{User: bob}, At: time.Now()})
	require.NoError(t, err)
	require.NoError(t, f.b.store.CommitSheet(t.Context(), approvals.SheetCommit{Request: "r", Before: shown, Sheet: sent}))
	for _, task := range f.b.work() {
		if task.Kind == state.Sheets {
			task.Parked(t.Context(), string(sent.ID))
		}
	}
	require.True(t, f.reads(bob, "D0BOB", "", "the bot stopped trying"))
}
