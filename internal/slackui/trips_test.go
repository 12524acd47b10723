package slackui_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state/statetest"
)

// counted makes the store use a client of its own whose round trips are kept.
func (o *workspace) counted() *statetest.Trips {
	o.t.Helper()
	seen := &statetest.Trips{}
	o.connect(o.Prefix(), o.now.Now, seen)
	seen.Taken()
	return seen
}

// asks stores a batch with one call and ids as long as those of production, and draws it.
func (o *workspace) asks(root, name string, q approvals.Quorum) approvals.Batch {
	o.t.Helper()
	unique := strings.Repeat("x", 26-len(name)) + name
	d := call("call_"+strings.Repeat("c", 24), "delete_file", `{"path":"a.txt"}`, q)
	d.Ask.Rule, d.Ask.Requirement.Deadline = "files@1f2e3d4c", o.now.Now().Add(24*time.Hour)
	thread := approvals.NewID("thread", 7, unique)
	run := agentrun.Run{
		ID: approvals.RunID(approvals.NewID("run", 7, unique)), Thread: agentrun.ThreadID(thread), Status: agentrun.RunDeferred,
		Origin:   agentrun.Origin{Surface: "slack", Team: slacksim.TeamID, Channel: "C0OPS", Root: root},
		Deferred: approvals.BatchID(approvals.NewID("batch", 7, unique)), Agent: "ops", Requester: "U0ALICE", Version: 3,
	}
	b, _, err := approvals.Open(approvals.Batch{
		ID: run.Deferred, Run: run.ID, Thread: thread, Channel: "C0OPS", Agent: run.Agent, Requester: run.Requester, OpenedAt: o.now.Now(),
		Prompt: approvals.Quote{Text: "Please delete the old report a.txt: nobody reads it any more."},
	}, []approvals.Deferral{d}, nil)
	require.NoError(o.t, err)
	o.setRun(run)
	o.setBatch(b, d.Call)
	o.draw(b)
	return b
}

// newest is the message that was posted last in the thread.
func (o *workspace) newest(root string) slacksim.Message {
	o.t.Helper()
	all := o.thread("U0ALICE", root)
	return all[len(all)-1]
}

// A cost is what something costs the Redis of a workspace.
type cost struct {
	Trips int
	Sent  int // commands of the client
	Ran   int // those of the server, in scripts too
	Log   int // bytes of its log
}

// costs measures what a function costs Redis, on a server of its own.
func (o *workspace) costs(of *statetest.Instance, f func()) cost {
	o.t.Helper()
	ctx := o.t.Context()
	seen := o.counted()
	logged := func() int {
		_, at, _ := strings.Cut(of.Client.Info(ctx, "persistence").Val(), "aof_current_size:")
		var n int
		_, err := fmt.Sscan(at, &n)
		require.NoError(o.t, err)
		return n
	}
	before := logged()
	require.NoError(o.t, of.Client.ConfigResetStat(ctx).Err())
	f()
	c := cost{}
	for name, of := range of.Client.InfoMap(ctx, "commandstats").Val()["Commandstats"] {
		var n int
		_, err := fmt.Sscanf(of, "calls=%d", &n)
		require.NoError(o.t, err)
		if !slices.ContainsFunc([]string{"config", "info", "hello", "client"}, func(x string) bool { return strings.Contains(name, x) }) {
			c.Ran += n
		}
	}
	c.Log = logged() - before
	for _, trip := range seen.Taken() {
		c.Trips++
		c.Sent += len(trip)
	}
	return c
}

// The last decision about a request costs Redis no more than this, and so does drawing
// it afterwards. Counting is exact, so a command more is seen here. What is packed has a
// few bytes more or less with other ids, so the log may have 60 more than it has mostly.
func TestAClickAndItsDrawingAreCheapForRedis(t *testing.T) {
	i := statetest.NewInstance(t)
	shared := server
	server = i.Client
	t.Cleanup(func() { server = shared })
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	first := o.asks(root, "first", sre) // after it the person and the group are known
	require.Equal(t, 200, o.press("U0BOB", o.newest(root), "approve", 0).Status)
	require.NoError(t, o.ui.Homes.Reconcile(t.Context(), string(first.ID)))

	b := o.asks(root, "second", sre)
	card := o.newest(root)
	decide := o.costs(i, func() {
		require.Equal(t, 200, o.press("U0BOB", card, "approve", 0).Status)
		require.NoError(t, o.ui.Server.Shutdown(t.Context()))
	})
	require.Equal(t, approvals.Approved, o.status(b, 0))
	draw := o.costs(i, func() {
		o.draw(b)
		require.NoError(t, o.ui.Homes.Reconcile(t.Context(), string(b.ID)))
	})
	require.Contains(t, o.newest(root).Shown(), "Approved")
	t.Logf("decide: %+v, draw: %+v", decide, draw)
	for what, c := range map[string]struct{ is, most cost }{
		"decide": {decide, cost{Trips: 2, Sent: 5, Ran: 20, Log: 1790}},
		"draw":   {draw, cost{Trips: 5, Sent: 11, Ran: 22, Log: 1080}},
	} {
		require.LessOrEqual(t, c.is.Trips, c.most.Trips, what)
		require.LessOrEqual(t, c.is.Sent, c.most.Sent, what)
		require.LessOrEqual(t, c.is.Ran, c.most.Ran, what)
		require.LessOrEqual(t, c.is.Log, c.most.Log, what)
	}
}

func TestAClickReadsEverythingAtOnceAndDecidesWithOneCommit(t *testing.T) {
	o, root, b := one(t)
	card := o.card("U0BOB", root)
	seen := o.counted()
	require.Equal(t, 200, o.press("U0BOB", card, "approve", 0).Status)
	require.Equal(t, [][]string{
		{"hmget", "hmget", "hmget"}, // what shows the batch, the person, and the batch
		{"hmget"},                   // the group, which nobody has asked here before
		{"evalsha"},                 // the decision
	}, seen.Taken())
	require.Equal(t, approvals.Approved, o.status(b, 0))

	o.asks(root, "next", sre)
	card = o.newest(root)
	seen.Taken()
	require.Equal(t, 200, o.press("U0BOB", card, "approve", 0).Status)
	require.Equal(t, [][]string{{"hmget", "hmget", "hmget", "hmget"}, {"evalsha"}}, seen.Taken())
}

// That a card shows all of a call is noted when it is drawn. Where it is not noted of the
// card as it has to be now, the arguments are read and the card is drawn again.
func TestOnlyACardThatShowsTheRequestAsItIsSaysThatItShowsAll(t *testing.T) {
	long := call("call-1", "delete_file", `{"path":"`+strings.Repeat("a long name ", 20)+`"}`, approvals.Quorum{Name: "sre", Need: 2, From: sre.From})
	for name, c := range map[string]struct {
		before func(o *workspace, b approvals.Batch)
		reads  bool // the arguments
	}{
		"drawn": {func(*workspace, approvals.Batch) {}, false},
		"of an older version of the program": {func(o *workspace, b approvals.Batch) {
			memo, version, err := o.Store.Memo(t.Context(), string(b.ID), "cards")
			require.NoError(t, err)
			require.Contains(t, string(memo), `,"whole":true`)
			memo = []byte(strings.ReplaceAll(string(memo), `,"whole":true`, ""))
			require.NoError(t, o.Store.CommitMemo(t.Context(), string(b.ID), "cards", memo, version, 0))
		}, true},
		"of an older version of the request": {func(o *workspace, b approvals.Batch) {
			_, err := o.desk.Decide(t.Context(), b.ID, "elsewhere", approvals.Decide{Decision: approvals.Decision{
				Call: "call-1", By: approvals.Principal{User: "U0CAROL", Groups: sre.From.Groups}, Verdict: approvals.Approve,
				Digest: b.Approvals[0].Call.Digest,
			}})
			require.NoError(t, err)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			o, root, b := one(t, long)
			card := o.card("U0BOB", root)
			c.before(o, b)
			seen := o.counted()
			require.Equal(t, 200, o.press("U0BOB", card, "approve", 0).Status)
			reads := slices.ContainsFunc(seen.Taken(), func(trip []string) bool { return slices.Contains(trip, "get") })
			require.Equal(t, c.reads, reads)
			now, err := o.Batch(t.Context(), b.ID)
			require.NoError(t, err)
			require.Contains(t, now.Deciders(), approvals.UserID("U0BOB"))
		})
	}
}

// What was expected of a channel is a guess about what to read, and nothing else.
func TestACallThatAsksOtherGroupsThanTheLastIsDecidedByThose(t *testing.T) {
	o, root, _ := one(t)
	require.Equal(t, 200, o.press("U0BOB", o.card("U0BOB", root), "approve", 0).Status)
	b := o.asks(root, "other", approvals.Quorum{Name: "security", Need: 1, From: approvals.From{Groups: []approvals.GroupID{"S0SEC"}}})
	card := o.newest(root)
	require.Equal(t, 200, o.press("U0BOB", card, "approve", 0).Status)
	require.Equal(t, approvals.Pending, o.status(b, 0))
	require.Equal(t, 200, o.press("U0CAROL", card, "approve", 0).Status)
	require.Equal(t, approvals.Approved, o.status(b, 0))
}

// A reply that may not be edited yet is put off with one read, and nothing is written.
func TestAReplyThatChangedAMomentAgoIsPutOffWithOneRead(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	run := startedIn(o.say("U0ALICE", "look"))
	require.NoError(t, o.reply(run))
	run.Status, run.Version = agentrun.RunRunning, 2
	o.setRun(run)
	seen := o.counted()
	err := o.ui.Replies.Reconcile(t.Context(), string(run.ID))
	require.ErrorContains(t, err, "the message changed a moment ago")
	require.Equal(t, [][]string{{"hmget", "hmget"}}, seen.Taken())
	o.now.Advance(2 * time.Second)
	require.NoError(t, o.ui.Replies.Reconcile(t.Context(), string(run.ID)))
}
