package intake_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/state"
)

// announced tells what is new since the last time, by type, and that the same
// notices, which have the same keys, are told again.
func (n *notified) announced(r intake.Request) []string {
	n.Helper()
	seen := map[string]bool{}
	for _, x := range n.got {
		seen[x.Endpoint+x.Type+x.Key] = true
	}
	require.NoError(n, n.Announce(n.Context(), r.Batch))
	var news []string
	for _, x := range n.got {
		if key := x.Endpoint + x.Type + x.Key; !seen[key] {
			seen[key] = true
			news = append(news, x.Type+" "+string(x.Call))
		}
	}
	return news
}

// Only a request that names an endpoint has its changes announced.
func TestARequestThatNamesNoEndpointIsUntold(t *testing.T) {
	n := newNotified(t)
	n.policy.set("write", approvals.Ask{Requirement: needs("bob")})
	for endpoint, untold := range map[string]bool{"": true, "ci": false} {
		a := ask("untold "+endpoint, "write")
		a.Notify = endpoint
		r, err := n.Ask(t.Context(), hooked, a)
		require.NoError(t, err)
		b, err := n.desk.Batch(t.Context(), r.Batch)
		require.NoError(t, err)
		require.Equal(t, untold, b.Untold, "endpoint %q", endpoint)
	}
}

// Two processes that announce the same change do not make the work fail.
func TestWhatAnotherProcessAnnouncesIsNoFailure(t *testing.T) {
	n := newNotified(t)
	n.policy.set("write", approvals.Ask{Requirement: needs("bob", "carol")})
	a := ask("x", "write")
	a.Notify = "ci"
	r, err := n.Ask(t.Context(), hooked, a)
	require.NoError(t, err)
	n.approve(r, "c0")
	n.twin = func() { require.NoError(t, n.Announce(t.Context(), r.Batch)) }
	require.Equal(t, []string{"approval.decided c0"}, n.announced(r))
	require.Nil(t, n.twin)
	require.Empty(t, n.announced(r))
}

// What a stream of events says, an endpoint is told too.
func TestAnEndpointIsToldWhateverHappensToARequest(t *testing.T) {
	n := newNotified(t)
	n.policy.set("write", approvals.Ask{Requirement: needs("bob", "carol")})
	a := ask("x", "write", "write")
	a.Notify, a.Group = "ci", "g"
	r, err := n.Ask(t.Context(), hooked, a)
	require.NoError(t, err)
	require.Empty(t, n.announced(r))
	_, version, err := n.store.Memo(t.Context(), string(r.Batch), "announcements")
	require.NoError(t, err)
	require.Zero(t, version, "what waits needs no memory for this")

	n.approve(r, "c0")
	n.err = errors.New("full")
	require.ErrorIs(t, n.Announce(t.Context(), r.Batch), n.err, "it is due again")
	n.err = nil
	require.Equal(t, []string{"approval.decided c0"}, n.announced(r))
	require.Empty(t, n.announced(r))
	last := n.got[len(n.got)-1]
	require.Equal(t, intake.Request{ID: r.ID, Agent: "claude", ExternalID: "x", Group: "g", State: intake.StatePending}, last.Request)
	require.Equal(t, n.clock.Now(), last.At)

	_, err = n.desk.Retract(t.Context(), r.Batch, "back", approvals.Retract{Call: "c0", By: approvals.Principal{User: "bob"}})
	require.NoError(t, err)
	require.Equal(t, []string{"approval.retracted c0"}, n.announced(r))
	require.Empty(t, n.announced(r))

	n.clock.Advance(time.Second)
	n.approve(r, "c1")
	require.Equal(t, []string{"approval.decided c1"}, n.announced(r))
	b, err := n.store.Batch(t.Context(), r.Batch)
	require.NoError(t, err)
	_, err = n.desk.Amend(t.Context(), r.Batch, "edit", approvals.Amend{
		Call: "c1", By: approvals.Principal{User: "carol"}, From: b.Approvals[1].Call.Digest, Args: []byte(`{"n":1}`),
	})
	require.NoError(t, err)
	require.Equal(t, []string{"approval.amended c1"}, n.announced(r), "an edit cleared the decision; nobody took it back")

	n.clock.Advance(time.Second)
	n.deny(r, "c1", "no")
	require.Equal(t, []string{"approval.decided c1", "approval.call_settled c1"}, n.announced(r))
}

func TestAnEndpointIsToldThatACallIsClaimedAndReported(t *testing.T) {
	n := newNotified(t)
	a := ask("x", "write")
	a.Notify = "ci"
	r, err := n.Ask(t.Context(), hooked, a)
	require.NoError(t, err)
	n.approve(r, "c0")
	n.announced(r)
	_, err = n.Claim(t.Context(), hooked, r.ID, "c0")
	require.NoError(t, err)
	require.Equal(t, []string{"approval.claimed c0"}, n.announced(r))
	_, err = n.Report(t.Context(), hooked, r.ID, "c0", intake.Report{State: approvals.Ran})
	require.NoError(t, err)
	require.Equal(t, []string{"approval.reported c0"}, n.announced(r))
}

// Whoever may give the result of a call is told that it waits, also if the agent
// that asks wants no messages; and is told nothing that it reads over the API.
func TestFulfillersAreToldThatACallWaits(t *testing.T) {
	n := newNotified(t)
	var err error
	n.Service, err = intake.New(intake.Config{
		Store: n.store, Feed: state.NewFeed(n.store), Runner: n.runner, Desk: n.desk, Now: n.clock.Now, Notify: n.notify,
		Fulfillers: func(agent, tool string) []intake.Client {
			require.Equal(t, "claude free", agent+" "+tool)
			return []intake.Client{{Name: "crm", Endpoints: []string{"first", "second"}}, {Name: "idle"}}
		},
	})
	require.NoError(t, err)
	a := ask("x", "free", "write")
	a.Calls[0].External = true
	r := n.ask(a)
	require.Equal(t, []string{"call.waiting c0", "call.waiting c0"}, n.announced(r))
	got := n.got[0]
	require.Equal(t, intake.Notice{
		Agent: "crm", Endpoint: "first", Type: intake.EventWaiting, At: n.clock.Now(), Call: "c0", Tool: "free", Key: "c0",
		Request: intake.Request{ID: r.ID, Agent: "claude", State: intake.StatePending},
	}, got)

	crm := intake.Client{Name: "crm", Fulfills: []intake.Fulfills{{Agent: "claude", Tool: "free"}}}
	require.NoError(t, n.Fulfill(t.Context(), crm, r.ID, "c0", approvals.ToolReturn{ReturnValue: []byte("1")}))
	told := len(n.got)
	require.Empty(t, n.announced(r))
	require.Len(t, n.got, told, "it waits no more")
}
