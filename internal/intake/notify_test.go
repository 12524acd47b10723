package intake_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/state"
)

// notified is a world whose notices are kept, and fail while err is set.
type notified struct {
	*world
	got  []intake.Notice
	err  error
	twin func() // works once, while a notice is told
}

func newNotified(t *testing.T) *notified {
	t.Helper()
	n := &notified{world: newWorld(t)}
	n.listens()
	return n
}

// listens makes the service of the world tell its endpoints.
func (n *notified) listens() {
	n.Helper()
	var err error
	n.Service, err = intake.New(intake.Config{Store: n.store, Feed: state.NewFeed(n.store), Runner: n.runner, Desk: n.desk, Now: n.clock.Now, Notify: n.notify})
	require.NoError(n, err)
}

func (n *notified) notify(_ context.Context, x intake.Notice) error {
	if twin := n.twin; twin != nil {
		n.twin = nil
		twin()
	}
	if n.err == nil {
		n.got = append(n.got, x)
	}
	return n.err
}

var hooked = func() intake.Client {
	c := claude
	c.Endpoints = []string{"ci"}
	return c
}()

func TestWhatFollowsADecisionReadsTogetherWhatItCan(t *testing.T) {
	n := newNotified(t)
	seen := n.counted()
	n.listens()
	r := n.ask(ask("x", "write"))
	n.approve(r, "c0")
	seen.Taken()
	require.NoError(t, n.runner.Deliver(t.Context(), r.Batch))
	require.Equal(t, [][]string{
		{"hmget"},                   // the batch
		{"hmget", "hmget", "hmget"}, // the run, its thread, and whom to tell
		{"evalsha"},                 // the end of the run
	}, seen.Taken())
	require.NoError(t, n.Announce(t.Context(), r.Batch))
	require.Equal(t, [][]string{{"hmget", "hmget"}, {"hmget"}, {"evalsha"}}, seen.Taken())
	_, version, err := n.store.Memo(t.Context(), string(r.Batch), "announcements")
	require.NoError(t, err)
	require.Zero(t, version, "no decision about it is taken back any more")
}

func TestAnEndpointIsToldThatARequestWaitsAndThatItIsSettled(t *testing.T) {
	n := newNotified(t)
	a := ask("x", "write", "free")
	a.Notify = "ci"
	r, err := n.Ask(t.Context(), hooked, a)
	require.NoError(t, err)
	require.Len(t, n.got, 1)
	require.Equal(t, intake.EventCreated, n.got[0].Type)
	require.Equal(t, intake.StatePending, n.got[0].Request.State)

	n.approve(r, "c0")
	n.err = errors.New("full")
	require.ErrorIs(t, n.runner.Deliver(t.Context(), r.Batch), n.err, "it is due again")
	n.err = nil
	require.NoError(t, n.runner.Deliver(t.Context(), r.Batch))
	require.NoError(t, n.runner.Deliver(t.Context(), r.Batch))
	require.Len(t, n.got, 2)
	last := n.got[1]
	require.Equal(t, []string{"claude", "ci", intake.EventSettled}, []string{last.Agent, last.Endpoint, last.Type})
	require.Equal(t, n.get(r.ID).Calls, last.Request.Calls)
	require.Equal(t, last.Request.Calls[0].DecidedAt, last.At)
}

// A request that cannot be announced is not acknowledged: its caller asks again,
// and then the notice is made.
func TestARequestIsNotAcknowledgedBeforeItsNoticeIsKept(t *testing.T) {
	n := newNotified(t)
	a := ask("x", "write")
	a.Notify = "ci"
	n.err = errors.New("full")
	_, err := n.Ask(t.Context(), hooked, a)
	require.ErrorIs(t, err, n.err)
	n.err = nil
	_, err = n.Ask(t.Context(), hooked, a)
	require.NoError(t, err)
	require.Len(t, n.got, 1)
}

// Whoever needs nobody has the answer already, and whoever names no endpoint wants
// no message.
func TestNobodyIsToldWithoutNeed(t *testing.T) {
	n := newNotified(t)
	free := ask("x", "free")
	free.Notify = "ci"
	_, err := n.Ask(t.Context(), hooked, free)
	require.NoError(t, err)
	r, err := n.Ask(t.Context(), hooked, ask("y", "write"))
	require.NoError(t, err)
	n.approve(r, "c0")
	require.NoError(t, n.runner.Deliver(t.Context(), r.Batch))
	require.Empty(t, n.got)
}

func TestAnEndpointThatIsNotTheClientsIsRefused(t *testing.T) {
	n := newNotified(t)
	a := ask("x", "write")
	a.Notify = "other"
	_, err := n.Ask(t.Context(), hooked, a)
	require.ErrorIs(t, err, approvals.ErrInvalid)
	require.ErrorContains(t, err, "notify names no webhook of the agent's configuration")
}
