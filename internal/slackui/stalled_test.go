package slackui_test

import (
	"fmt"
	"net/http"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/countersign/countersign/internal/slackui/toolcards"
	"github.com/countersign/countersign/internal/state"
)

// A valve is the way to Slack of a process that may stop right before a call is sent.
type valve struct {
	mu      sync.Mutex
	method  string
	reached chan struct{} // closed when the process has stopped
	opened  chan struct{} // close it to have the process go on
}

// stops makes the process stop before the next call of the method.
func (v *valve) stops(method string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.method, v.reached, v.opened = method, make(chan struct{}), make(chan struct{})
}

// RoundTrip sends the call, and stops before it if it is the one.
func (v *valve) RoundTrip(r *http.Request) (*http.Response, error) {
	v.mu.Lock()
	stops := v.method == path.Base(r.URL.Path)
	if stops {
		v.method = ""
	}
	reached, opened := v.reached, v.opened
	v.mu.Unlock()
	if stops {
		close(reached)
		<-opened
	}
	return http.DefaultTransport.RoundTrip(r)
}

// stalled has drawn stop before its next call of the method, until the claim is over and
// others have done what they do. It returns what drawn returned in the end.
func (v *valve) stalled(o *workspace, method string, drawn func() error, others func()) error {
	v.stops(method)
	ended := make(chan error, 1)
	go func() { ended <- drawn() }()
	<-v.reached
	o.now.Advance(slackapi.CallTimeout + 3*time.Second)
	others()
	close(v.opened)
	return <-ended
}

// due reports whether work of the kind is due for a document.
func (o *workspace) due(kind state.Kind, id string) bool {
	o.t.Helper()
	at, err := o.DueAt(o.t.Context(), kind, id)
	require.NoError(o.t, err)
	return !at.IsZero()
}

// through makes a workspace whose calls to Slack go through the valve.
func (v *valve) through(c *slackui.Config) { c.Transport = v }

// A process that stops right before it updates a card, and goes on when another process
// has drawn the decision that came then, covers it. The decision is drawn again.
func TestADecisionThatAStalledProcessCoversIsDrawnAgain(t *testing.T) {
	v := &valve{}
	o := newWorkspace(t, slacksim.Config{}, v.through)
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{"path":"a.txt"}`, sre), call("c2", "delete_file", `{"path":"b.txt"}`, sre))
	o.draw(b)
	o.approves(b, 0)
	err := v.stalled(o, "chat.update", func() error { return o.ui.Cards.Reconcile(t.Context(), string(b.ID)) }, func() {
		o.approves(b, 1)
		o.draw(b)
		require.Contains(t, o.card("U0BOB", root).Shown(), "2 calls: 2 approved")
		require.False(t, o.due("cards", string(b.ID)))
	})
	var later *slackapi.LaterError
	require.ErrorAs(t, err, &later, "being slow is no failure")
	require.NotContains(t, o.card("U0BOB", root).Shown(), "2 calls: 2 approved", "it is covered")
	require.True(t, o.due("cards", string(b.ID)))
	o.draw(b)
	require.Contains(t, o.card("U0BOB", root).Shown(), "2 calls: 2 approved")
	require.False(t, o.due("cards", string(b.ID)))
	updates := len(o.Calls("chat.update"))
	o.draw(b)
	require.Len(t, o.Calls("chat.update"), updates)
}

// Two processes have posted the card, because the first was too slow. Both cards are kept
// up to date.
func TestACardThatAStalledProcessPostedIsKeptUpToDate(t *testing.T) {
	v := &valve{}
	o := newWorkspace(t, slacksim.Config{}, v.through)
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{}`, sre))
	err := v.stalled(o, "chat.postMessage", func() error { return o.ui.Cards.Reconcile(t.Context(), string(b.ID)) }, func() { o.draw(b) })
	var later *slackapi.LaterError
	require.ErrorAs(t, err, &later)
	require.Len(t, o.thread("U0BOB", root), 2)
	require.True(t, o.due("cards", string(b.ID)))
	o.approves(b, 0)
	o.draw(b)
	for _, m := range o.thread("U0BOB", root) {
		require.Contains(t, m.Shown(), "Approved: ")
		require.Empty(t, m.Actions())
	}
}

// An answer that a stalled process covers with the progress of the run is shown again.
func TestAnAnswerThatAStalledProcessCoversIsDrawnAgain(t *testing.T) {
	v := &valve{}
	o := newWorkspace(t, slacksim.Config{}, v.through)
	root := o.say("U0ALICE", "clean up")
	run := startedIn(root)
	require.NoError(t, o.reply(run))
	run.Status, run.Activity, run.Version = agentrun.RunRunning, []string{"list_files"}, 2
	o.now.Advance(time.Second)
	err := v.stalled(o, "chat.update", func() error { return o.reply(run) }, func() {
		run.Status, run.Output, run.Version = agentrun.RunCompleted, "Both reports are gone.", 3
		require.NoError(t, o.reply(run))
	})
	require.Error(t, err)
	require.NotContains(t, o.card("U0ALICE", root).Shown(), "Both reports are gone.")
	require.True(t, o.due("replies", string(run.ID)))
	require.NoError(t, o.ui.Replies.Reconcile(t.Context(), string(run.ID)))
	require.Contains(t, o.card("U0ALICE", root).Shown(), "Both reports are gone.")
}

// The card of a review that has ended asks nobody, whoever drew it last.
func TestAReviewThatAStalledProcessCoversIsDrawnAgain(t *testing.T) {
	v := &valve{}
	o, c := newChangesOver(t, v, changedTool("-a"))
	o.drawTools()
	c.review.Digest, c.review.Tools = "sha256:ef", []toolcards.Tool{changedTool("-b")}
	err := v.stalled(o, "chat.update", func() error { return o.ui.ToolCards.Reconcile(t.Context(), changesID) }, func() {
		c.review.Ended, c.review.By, c.review.At = toolcards.Accepted, "U0BOB", o.now.Now()
		require.False(t, accepts(o.drawTools()[0]))
	})
	require.Error(t, err)
	require.True(t, o.due("toolchanges", changesID))
	require.False(t, accepts(o.drawTools()[0]))
}

// A digest that a stalled process covers with what it listed before is drawn again, also
// if nothing of what that process drew is listed any more.
func TestADigestThatAStalledProcessCoversIsDrawnAgain(t *testing.T) {
	v := &valve{}
	o := atNoon(t, slacksim.Config{}, v.through, func(c *slackui.Config) { c.CardsPerMinute, c.MessagesPerMinute = 1, 2 })
	var all []approvals.Batch
	for n := range 4 {
		all = append(all, o.another(fmt.Sprint("n", n), 0, call("c1", fmt.Sprint("tool_", n), `{}`, sre)))
	}
	o.drawsAll(all...)
	first, second := all[1], all[2]
	o.now.Advance(time.Minute)
	o.approves(first, 0)
	err := v.stalled(o, "chat.update", func() error { return o.ui.Cards.Reconcile(t.Context(), string(first.ID)) }, func() {
		o.approves(second, 0)
		o.drawsAll(first, second)
		require.NotContains(t, o.digests()[0].Shown(), "tool_2")
	})
	require.Error(t, err)
	require.Contains(t, o.digests()[0].Shown(), "tool_2")
	require.True(t, o.due("cards", string(first.ID)))
	o.drawsAll(first)
	require.NotContains(t, o.digests()[0].Shown(), "tool_2")
}
