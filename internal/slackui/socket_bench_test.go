package slackui_test

import (
	"context"
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

// BenchmarkClickToAck measures what a person waits for: from the click until
// Slack has the answer, over HTTP and in Socket Mode, on one machine and with
// a store in memory. What is left is what the two ways differ in.
func BenchmarkClickToAck(b *testing.B) {
	overHTTP, overSocket := benchClicks(b, false), benchClicks(b, true)
	var http, socket []time.Duration
	for b.Loop() {
		http, socket = append(http, overHTTP()), append(socket, overSocket())
	}
	slices.Sort(http)
	slices.Sort(socket)
	one, other := http[len(http)/2], socket[len(socket)/2]
	b.ReportMetric(float64(one.Microseconds())/1000, "ms/HTTP")
	b.ReportMetric(float64(other.Microseconds())/1000, "ms/socket")
	b.ReportMetric(float64(other)/float64(one), "socket/HTTP")
}

// benchClicks returns what approves an open call with one click and says how
// long that took.
func benchClicks(b *testing.B, socket bool) func() time.Duration {
	b.Helper()
	store := newTestStore(b, time.Now)
	sim := slacksim.New(slacksim.Config{SocketMode: socket})
	api := httptest.NewServer(sim)
	sim.SetPublicURL(api.URL)
	ui, err := slackui.New(slackui.Config{
		BotToken: sim.BotToken, SigningSecret: sim.SigningSecret, AppToken: sim.AppToken,
		APIURL: api.URL + "/api/", Team: slacksim.TeamID, Agent: "ops",
		Desk: approvals.NewDesk(store, noPolicy{}, nil, time.Now), Runs: store, Runner: store, Memos: store,
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(b, err)
	front := httptest.NewServer(ui.Server)
	sim.SetURLs(front.URL+"/slack/events", front.URL+"/slack/interactivity", front.URL+"/slack/commands")
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if socket {
			ui.Socket.Run(ctx)
		}
	}()
	b.Cleanup(func() {
		stop()
		<-stopped
		front.Close()
		require.NoError(b, ui.Server.Shutdown(context.Background()))
		sim.Close()
		api.Close()
	})

	o := &workspace{Server: sim, testStore: store, ui: ui, now: statetest.NewClock(time.Now())}
	open := func() approvals.Batch {
		batch, _, err := approvals.Open(approvals.Batch{
			ID: "batch-07-one", Run: "run-07-one", Thread: "thread-07-one", Channel: "C0OPS", Agent: "ops", Requester: "U0ALICE", OpenedAt: time.Now(),
		}, []approvals.Deferral{call("c1", "delete_file", `{"path":"a"}`, sre)}, nil)
		require.NoError(b, err)
		o.setBatch(batch, approvals.ToolCall{ID: "c1", Name: "delete_file", Args: []byte(`{"path":"a"}`)})
		return batch
	}
	root, err := sim.PostAs(slacksim.Post{User: "U0ALICE", Channel: "C0OPS", Text: "clean up"})
	require.NoError(b, err)
	batch := open()
	store.setRun(runOf(batch, root))
	require.NoError(b, ui.Cards.Reconcile(b.Context(), string(batch.ID)))
	require.NoError(b, sim.Await(b.Context(), func() bool { return !socket || len(sim.Sockets()) == 2 }))
	all, err := sim.Messages("U0BOB", "C0OPS", root)
	require.NoError(b, err)
	click := slacksim.Click{User: "U0BOB", Channel: "C0OPS", TS: all[1].TS, ActionID: "countersign.approve.0", Confirmed: true}
	return func() time.Duration {
		open()
		began := time.Now()
		out, err := sim.Click(click)
		took := time.Since(began)
		require.NoError(b, err)
		require.Equal(b, slacksim.ClickOutcome{Status: 200}, out)
		require.Equal(b, approvals.Approved, o.batch(batch.ID).Approvals[0].Status)
		return took
	}
}

// runOf is the run that waits for the batch, in the thread root.
func runOf(b approvals.Batch, root string) agentrun.Run {
	return agentrun.Run{
		ID: b.Run, Thread: agentrun.ThreadID(b.Thread), Status: agentrun.RunDeferred, Deferred: b.ID, Agent: b.Agent, Requester: b.Requester, Version: 3,
		Origin: agentrun.Origin{Surface: "slack", Team: slacksim.TeamID, Channel: b.Channel, Root: root},
	}
}
