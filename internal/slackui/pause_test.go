package slackui_test

import (
	"testing"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/stretchr/testify/require"
)

// Slack has limited all changes of messages. A card on which calls still wait
// and a card that is decided may both change at the same time after that: the
// decided one goes first, whichever of them comes first.
func TestAnUpdateThatCanWaitYieldsToOneThatCannot(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	waits := o.another("waits", 0, call("c1", "x", `{}`, sre), call("c2", "x", `{"n":2}`, sre))
	decided := o.another("decided", 0, call("c1", "x", `{}`, sre))
	o.drawsAll(waits, decided)
	draw := func(b approvals.Batch) error { return o.ui.Cards.Reconcile(t.Context(), string(b.ID)) }
	later := func(err error) time.Duration {
		t.Helper()
		var later *slackapi.LaterError
		require.ErrorAs(t, err, &later)
		return later.After
	}

	o.approves(waits, 0)
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "chat.update", Status: 429, RetryAfter: 10}}})
	first := later(draw(waits))
	o.approves(decided, 0)
	second := later(draw(decided))
	require.Equal(t, first, second, "both have the first turn")
	updates := len(o.Calls("chat.update"))

	o.now.Advance(first)
	again := later(draw(waits))
	require.Len(t, o.Calls("chat.update"), updates, "it lets the other go first")
	require.NoError(t, draw(decided))
	require.Len(t, o.Calls("chat.update"), updates+1)
	o.now.Advance(again)
	require.NoError(t, draw(waits))
	require.Len(t, o.Calls("chat.update"), updates+2)
}

// Putting a card off is cheap, so that many cards that wait take nothing from those
// who decide: it claims nothing, writes nothing, and loads no arguments.
func TestACardThatHasToWaitIsPutOffWithOneRead(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	limited, waits := o.another("limited", 0, call("c1", "x", `{}`, sre)), o.another("waits", 0, call("c1", "x", `{}`, sre))
	o.drawsAll(limited, waits)
	o.approves(limited, 0)
	o.approves(waits, 0)
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "chat.update", Status: 429, RetryAfter: 10}}})
	require.Error(t, o.ui.Cards.Reconcile(t.Context(), string(limited.ID)))

	seen := o.counted()
	var later *slackapi.LaterError
	require.ErrorAs(t, o.ui.Cards.Reconcile(t.Context(), string(waits.ID)), &later)
	require.Equal(t, [][]string{{"hmget", "hmget"}}, seen.Taken())
	updates := len(o.Calls("chat.update"))
	o.now.Advance(later.After)
	o.draw(waits)
	require.Len(t, o.Calls("chat.update"), updates+1)
}

// An escalation asks more people, in a channel that has no card yet: that does not
// wait for the card in the thread.
func TestAnEscalationIsPostedWhileTheCardHasToWait(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	limited, waits := o.another("limited", 0, call("c1", "x", `{}`, sre)), o.another("waits", 0, escalating(o))
	o.drawsAll(limited, waits)
	o.approves(limited, 0)
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "chat.update", Status: 429, RetryAfter: 600}}})
	require.Error(t, o.ui.Cards.Reconcile(t.Context(), string(limited.ID)))
	posted := len(o.Calls("chat.postMessage"))
	o.now.Advance(2 * time.Minute)
	o.climbs(waits)
	require.Error(t, o.ui.Cards.Reconcile(t.Context(), string(waits.ID)), "the card in the thread waits")
	require.Len(t, o.Calls("chat.postMessage"), posted+1)
	require.Error(t, o.ui.Cards.Reconcile(t.Context(), string(waits.ID)))
	require.Len(t, o.Calls("chat.postMessage"), posted+1)
}
