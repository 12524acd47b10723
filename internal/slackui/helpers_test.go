package slackui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/state/statetest"
)

// noPolicy rules on amendments, which these tests do not make.
type noPolicy struct{ approvals.Policy }

// workspace is Countersign in a simulated workspace.
type workspace struct {
	*slacksim.Server
	*testStore

	t    *testing.T
	ui   *slackui.UI
	desk *approvals.Desk
	api  string // of Slack
	now  *statetest.Clock

	later *statetest.Clock // of Slack, where a test moves it too
	log   *statetest.Log
}

// Calls and Messages are those of Slack: the store has some too.
func (o *workspace) Calls(method string) []slacksim.LogEntry { return o.Server.Calls(method) }

func (o *workspace) Messages(user, channel, root string) ([]slacksim.Message, error) {
	return o.Server.Messages(user, channel, root)
}

func newWorkspace(t *testing.T, sim slacksim.Config, tune ...func(*slackui.Config)) *workspace {
	t.Helper()
	o := &workspace{t: t, now: statetest.NewClock(time.Now()), log: &statetest.Log{}}
	o.testStore = newTestStore(t, o.now.Now)
	o.Server = slacksim.New(sim)
	api := httptest.NewServer(labeled(t, o.Server))
	o.SetPublicURL(api.URL)
	o.desk = approvals.NewDesk(o.testStore, noPolicy{}, nil, o.now.Now)
	cfg := slackui.Config{
		BotToken: o.BotToken, SigningSecret: o.SigningSecret,
		APIURL: api.URL + "/api/", Team: slacksim.TeamID, Agent: "ops",
		Desk: o.desk, Runs: o.testStore, Runner: o.testStore, Memos: o.testStore,
		Now: o.now.Now, Log: slog.New(slog.NewTextHandler(o.log, nil)),
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
func (o *workspace) say(user, text string) string {
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
func (o *workspace) opens(root string, calls ...approvals.Deferral) approvals.Batch {
	o.t.Helper()
	return o.opensIn("C0OPS", root, calls...)
}

func (o *workspace) opensIn(channel, root string, calls ...approvals.Deferral) approvals.Batch {
	o.t.Helper()
	run := agentrun.Run{
		ID: "run-07-one", Thread: "thread-07-one", Status: agentrun.RunDeferred,
		Origin:   agentrun.Origin{Surface: "slack", Team: slacksim.TeamID, Channel: channel, Root: root},
		Deferred: "batch-07-one", Agent: "ops", Requester: "U0ALICE", Version: 3,
	}
	b, _, err := approvals.Open(approvals.Batch{
		ID: run.Deferred, Run: run.ID, Thread: "thread-07-one", Channel: channel, Agent: "ops", Requester: "U0ALICE", OpenedAt: o.now.Now(),
	}, calls, nil)
	require.NoError(o.t, err)
	o.setRun(run)
	o.setBatch(b, toolCalls(calls)...)
	return b
}

func toolCalls(from []approvals.Deferral) []approvals.ToolCall {
	var all []approvals.ToolCall
	for _, d := range from {
		all = append(all, d.Call)
	}
	return all
}

func (o *workspace) draw(b approvals.Batch) {
	o.t.Helper()
	if err := o.ui.Cards.Reconcile(o.t.Context(), string(b.ID)); err != nil {
		require.Regexp(o.t, "others may be asked later|the approval may still be used", err.Error(), "the card is drawn")
	}
}

// thread returns what a person sees in the thread, without its root.
func (o *workspace) thread(user, root string) []slacksim.Message {
	o.t.Helper()
	all, err := o.Messages(user, "C0OPS", root)
	require.NoError(o.t, err)
	return slices.DeleteFunc(all, func(m slacksim.Message) bool { return m.TS == root })
}

// whispers returns what only this person was told, after everything was said.
func (o *workspace) whispers(user, root string) []string {
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
func (o *workspace) press(user string, m slacksim.Message, action string, i int) slacksim.ClickOutcome {
	o.t.Helper()
	out, err := o.Click(slacksim.Click{User: user, Channel: m.Channel, TS: m.TS, ActionID: fmt.Sprintf("countersign.%s.%d", action, i), Confirmed: true})
	require.NoError(o.t, err)
	return out
}
