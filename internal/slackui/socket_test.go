package slackui_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/state/statetest"
)

const appToken = "xapp-1-workspace"

// newSocketWorkspace is a workspace whose app is set to Socket Mode and has no
// signing secret. stop does what the end of the process does; it is called at
// the end of the test if not before.
func newSocketWorkspace(t *testing.T, sim slacksim.Config, tune ...func(*slackui.Config)) (o *workspace, stop func()) {
	t.Helper()
	sim.SocketMode, sim.AppToken = true, appToken
	if sim.AckTimeout == 0 {
		sim.AckTimeout = 20 * time.Second // nothing here is about being late
	}
	tune = append([]func(*slackui.Config){func(c *slackui.Config) {
		c.SigningSecret, c.AppToken = nil, func() string { return appToken }
	}}, tune...)
	o = newWorkspace(t, sim, tune...)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o.ui.Socket.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	o.connected()
	return o, stop
}

// connected waits until two connections are open that are not about to be
// closed.
func (o *workspace) connected() {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), time.Minute)
	defer cancel()
	require.NoError(o.t, o.Await(ctx, func() bool {
		fresh := 0
		for _, s := range o.Sockets() {
			if !s.Warned {
				fresh++
			}
		}
		return fresh == 2
	}), "connections: %v", o.Sockets())
}

// hears waits until the bot has taken so many mentions. The workspace may not change
// when it does: an acknowledgement can be lost.
func (o *workspace) hears(n int) {
	o.t.Helper()
	statetest.Await(o.t, "mentions", func() bool { return len(o.mentioned()) >= n })
}

// gate holds up whoever passes it until it is opened.
type gate struct{ arrived, open chan struct{} }

func newGate() gate { return gate{make(chan struct{}, 16), make(chan struct{})} }

func (g gate) pass() {
	g.arrived <- struct{}{}
	<-g.open
}

// slowRunner takes mentions once the gate is open.
type slowRunner struct {
	*testStore
	gate gate
}

func (r slowRunner) Mention(ctx context.Context, m agentrun.Mention) (agentrun.Run, error) {
	r.gate.pass()
	return r.testStore.Mention(ctx, m)
}

// What comes in envelopes is what comes over HTTP: a mention, a click, a form
// that is refused and one that is taken, a slash command.
func TestTheStoryOverSockets(t *testing.T) {
	o, _ := newSocketWorkspace(t, slacksim.Config{})
	require.NoError(t, o.ui.Socket.Check(t.Context()))
	root := o.say("U0ALICE", "<@U0BOT> clean up")
	require.NoError(t, o.Idle(t.Context()))
	require.NoError(t, o.ui.Socket.Ready())
	require.Len(t, o.mentioned(), 1)

	b := o.opens(root, call("c1", "delete_file", `{"path":"a"}`, sre), call("c2", "delete_file", `{"path":"b"}`, sre),
		call("c3", "delete_file", `{"path":"c"}`, sre))
	o.draw(b)
	card := o.thread("U0BOB", root)[0]
	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0BOB", card, "approve", 0))
	require.Equal(t, approvals.Approved, o.batch(b.ID).Approvals[0].Status)

	denies := func(i int) slacksim.SubmitOutcome {
		view := o.Views("U0BOB")[0]
		out, err := o.SubmitView(slacksim.Submit{User: "U0BOB", ViewID: view.ID})
		require.NoError(t, err, "call %d", i)
		return out
	}
	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0BOB", card, "deny", 1))
	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0CAROL", card, "approve", 1))
	refused := denies(1)
	require.False(t, refused.Closed)
	require.Contains(t, words(refused.View.Blocks), "approved by <@U0CAROL>", "the answer came with the acknowledgment")
	require.NoError(t, o.CloseView("U0BOB", refused.View.ID, false))
	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0BOB", card, "deny", 2))
	require.True(t, denies(2).Closed)
	require.Equal(t, approvals.Denied, o.batch(b.ID).Approvals[2].Status)

	listed, err := o.Command(slacksim.Command{User: "U0BOB", Channel: "C0OPS", Command: "/countersign", Text: "list"})
	require.NoError(t, err)
	require.Empty(t, listed.VisibleError)
	require.Contains(t, listed.Message.Shown(), "Nothing waits")
}

// A commit that does not work is not acknowledged: Slack delivers the mention
// again, and warns whoever clicked.
func TestWhatIsNotCommittedIsNotAcknowledged(t *testing.T) {
	o, _ := newSocketWorkspace(t, slacksim.Config{AckTimeout: time.Second})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{"path":"a"}`, sre))
	o.draw(b)
	card := o.thread("U0BOB", root)[0]
	o.breaks(errOutage)
	require.NotEmpty(t, o.press("U0BOB", card, "approve", 0).VisibleError)
	o.say("U0ALICE", "<@U0BOT> clean up")
	require.NoError(t, o.Idle(t.Context()))
	require.Empty(t, o.mentioned())
	o.breaks(nil)
	o.Advance(time.Minute)
	require.NoError(t, o.Idle(t.Context()))
	require.Len(t, o.mentioned(), 1)
	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0BOB", card, "approve", 0))
}

// A connection whose end is announced is replaced first. What it brought is
// acknowledged on it, and what it still brings is taken.
func TestAConnectionIsReplacedBeforeItGoes(t *testing.T) {
	hold := newGate()
	o, _ := newSocketWorkspace(t, slacksim.Config{}, func(c *slackui.Config) {
		c.Runner = slowRunner{c.Runner.(*testStore), hold}
	})
	o.say("U0ALICE", "<@U0BOT> one")
	o.say("U0ALICE", "<@U0BOT> two")
	<-hold.arrived
	<-hold.arrived
	old := o.Sockets()
	n, err := o.Disconnect("", slacksim.Warning)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	o.connected()
	require.Len(t, o.Sockets(), 4, "the old ones are still there")
	require.NoError(t, o.ui.Socket.Ready())
	for range 4 { // each connection gets one
		o.say("U0ALICE", "<@U0BOT> more")
		<-hold.arrived
	}
	close(hold.open)
	require.NoError(t, o.Idle(t.Context()))
	require.Len(t, o.mentioned(), 6)
	for _, e := range o.Log() {
		require.Empty(t, e.Problem, "%s: %s", e.Kind, e.Request)
	}
	for _, s := range o.Sockets() {
		require.Zero(t, s.Waiting)
	}
	o.Advance(10 * time.Second)
	require.NoError(t, o.Await(t.Context(), func() bool { return len(o.Sockets()) == 2 }))
	for _, s := range o.Sockets() {
		require.NotEqual(t, old[0].ID, s.ID)
		require.NotEqual(t, old[1].ID, s.ID)
	}
}

// A connection that is gone without a word takes nothing with it: the event
// comes again, and is known by its id.
func TestWhatALostConnectionBroughtComesAgain(t *testing.T) {
	hold := newGate()
	o, _ := newSocketWorkspace(t, slacksim.Config{}, func(c *slackui.Config) {
		c.Runner = slowRunner{c.Runner.(*testStore), hold}
	})
	o.say("U0ALICE", "<@U0BOT> clean up")
	<-hold.arrived
	_, err := o.Disconnect("", slacksim.Cut)
	require.NoError(t, err)
	o.connected()
	o.Advance(time.Minute) // for the case that it was tried in between
	<-hold.arrived
	close(hold.open)
	o.hears(2)
	require.NoError(t, o.Idle(t.Context()))
	got := o.mentioned()
	require.Equal(t, got[0].Event, got[1].Event)
}

// A stop finishes what was begun, acknowledges it, and leaves the connections
// as the protocol wants it.
func TestAStopFinishesWhatWasBegun(t *testing.T) {
	hold := newGate()
	o, stop := newSocketWorkspace(t, slacksim.Config{}, func(c *slackui.Config) {
		c.Runner = slowRunner{c.Runner.(*testStore), hold}
	})
	o.say("U0ALICE", "<@U0BOT> clean up")
	<-hold.arrived
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	require.NoError(t, o.Await(t.Context(), func() bool { return len(o.Sockets()) == 1 }), "the idle connection goes at once")
	select {
	case <-stopped:
		require.Fail(t, "it did not wait")
	default:
	}
	close(hold.open)
	<-stopped
	require.NoError(t, o.Idle(t.Context()))
	require.Len(t, o.mentioned(), 1)
	for _, e := range o.Log() {
		require.Empty(t, e.Problem, "%s: %s", e.Kind, e.Request)
	}
	require.ErrorContains(t, o.ui.Socket.Ready(), "no connection")
}

// Turning Socket Mode off and on again needs no restart.
func TestSocketModeMayBeTurnedOff(t *testing.T) {
	o, _ := newSocketWorkspace(t, slacksim.Config{})
	o.SetSocketMode(false)
	require.Eventually(t, func() bool {
		err := o.ui.Socket.Ready()
		return err != nil && strings.Contains(err.Error(), "turned off")
	}, time.Minute, time.Millisecond)
	o.SetSocketMode(true)
	o.connected()
	require.Eventually(t, func() bool { return o.ui.Socket.Ready() == nil }, time.Minute, time.Millisecond)
}

func TestWhatIsWrongWithTheAppTokenIsSaid(t *testing.T) {
	for _, c := range []struct {
		sim   slacksim.Config
		token string
		says  string
	}{
		{slacksim.Config{SocketMode: true}, "xapp-1-other", "invalid_auth"},
		{slacksim.Config{SocketMode: true, BotToken: "xoxb-1"}, "xoxb-1", "not_allowed_token_type"},
		{slacksim.Config{SocketMode: true, AppToken: "xapp-1-a", AppScopes: []string{"none"}}, "xapp-1-a", "missing_scope"},
	} {
		o := newWorkspace(t, c.sim, func(cfg *slackui.Config) { cfg.AppToken = func() string { return c.token } })
		require.ErrorContains(t, o.ui.Socket.Check(t.Context()), c.says)
		require.Error(t, o.ui.Socket.Ready())
	}
}

// Without a signing secret there is nothing to believe a request by.
func TestNothingIsServedWithoutASigningSecret(t *testing.T) {
	o, _ := newSocketWorkspace(t, slacksim.Config{})
	o.SetSocketMode(false)
	o.say("U0ALICE", "<@U0BOT> clean up")
	require.NoError(t, o.Idle(t.Context()))
	require.Empty(t, o.mentioned())
	var answers []int
	for _, e := range o.Log() {
		if e.Kind == "app_mention" {
			answers = append(answers, e.Status)
		}
	}
	require.NotEmpty(t, answers)
	require.Equal(t, 404, answers[len(answers)-1])
}
