package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/receipt"
)

// What a receipt says comes from what the agent is told of the call, and from
// nothing else: it is signed without a look at the store.
func TestAReceiptSaysWhatTheRequestSays(t *testing.T) {
	t.Parallel()
	key, err := receipt.GenerateKey()
	require.NoError(t, err)
	signer, err := receipt.ParseSigner(key)
	require.NoError(t, err)
	b, at := &bot{receipts: signer}, time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	call := func(o intake.Outcome) intake.CallStatus {
		return intake.CallStatus{
			ID: "c1", Tool: "refund", Args: []byte(`{}`), Fingerprint: "f", Outcome: o, Rule: "refunds@1a2b3c4d", DecidedAt: at, UsableUntil: at.Add(time.Hour),
			Place:   approvals.Place{Server: "till", Cwd: "/srv", Repository: "acme/shop", Branch: "main"},
			Editors: []approvals.UserID{"U5"},
		}
	}
	plain := receipt.Statement{
		Request: "run-1", Call: "c1", Tool: "refund", Arguments: receipt.DigestOf([]byte(`{}`)), Fingerprint: "f", Agent: "till",
		Place: receipt.Place{Server: "till", Cwd: "/srv", Repository: "acme/shop", Branch: "main"},
		Rule:  "refunds", Policy: "1a2b3c4d", DecidedAt: at, Editors: []receipt.Person{{ID: "U5"}},
	}
	until := at.Add(time.Hour)
	for o, want := range map[intake.Outcome]struct {
		outcome  receipt.Outcome
		notAfter time.Time
	}{
		intake.OutcomeApproved: {receipt.Approved, until}, intake.OutcomeDenied: {receipt.Denied, time.Time{}},
		intake.OutcomeExpired: {receipt.Expired, time.Time{}}, intake.OutcomeWithdrawn: {receipt.Withdrawn, time.Time{}},
		intake.OutcomeSuperseded: {receipt.Superseded, time.Time{}}, intake.OutcomeRefused: {receipt.Refused, time.Time{}},
		intake.OutcomeAllowed: {receipt.Permitted, until},
	} {
		// Whose decision stood when the call ended is said whatever it ended with.
		c, s := call(o), plain
		if o != intake.OutcomeAllowed {
			c.Approvers, c.Deniers = []approvals.Seat{{User: "U2", For: "U3"}, {User: "U4"}}, []approvals.UserID{"U6"}
			s.Approvers, s.Deniers = []receipt.Person{{ID: "U2", For: "U3"}, {ID: "U4"}}, []receipt.Person{{ID: "U6"}}
		}
		s.Outcome, s.NotAfter = want.outcome, want.notAfter
		text, err := b.sign(intake.Request{ID: "run-1", Agent: "till"}, c)
		require.NoError(t, err, o)
		got, err := receipt.Verify(receipt.NewKeys(signer.Key()), text)
		require.NoError(t, err)
		require.Equal(t, s, got)
	}
	for name, change := range map[string]func(c *intake.CallStatus){
		"pending":                          func(c *intake.CallStatus) { c.Outcome = intake.OutcomePending },
		"it has its result":                func(c *intake.CallStatus) { c.Outcome = intake.OutcomeFulfilled },
		"others of the request are open":   func(c *intake.CallStatus) { c.UsableUntil = time.Time{} },
		"nobody knows when it was decided": func(c *intake.CallStatus) { c.DecidedAt = time.Time{} },
	} {
		c := call(intake.OutcomeApproved)
		change(&c)
		text, err := b.sign(intake.Request{ID: "run-1", Agent: "till"}, c)
		require.NoError(t, err, name)
		require.Empty(t, text, name)
	}
}
