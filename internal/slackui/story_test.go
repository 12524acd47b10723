package slackui_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
)

func TestAMentionBecomesARun(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "<@U0BOT> clean up a & b <see C++>")
	require.NoError(t, o.Idle(t.Context()))
	got := o.mentioned()
	require.Len(t, got, 1)
	require.Equal(t, "clean up a & b <see C++>", got[0].Text)
	require.Equal(t, approvals.UserID("U0ALICE"), got[0].Requester)
	require.Equal(t, root, got[0].Origin.Root)
	require.Equal(t, "ops", got[0].Agent)
	require.NotEmpty(t, got[0].Event)
}

func TestACardIsApprovedByAClick(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{"path":"reports/2023-q1.csv"}`, sre))
	o.draw(b)
	require.Equal(t, int64(1), o.drawnVersion(string(b.ID), "cards"))
	cards := o.thread("U0BOB", root)
	require.Len(t, cards, 1)
	t.Log(cards[0].Shown())
	require.Len(t, cards[0].Actions(), 3)

	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0BOB", cards[0], "approve", 0))
	require.Equal(t, approvals.Approved, o.batch(b.ID).Approvals[0].Status)
	require.Empty(t, o.whispers("U0BOB", root))

	o.draw(b)
	cards = o.thread("U0BOB", root)
	require.Len(t, cards, 1)
	require.Empty(t, cards[0].Actions())
	t.Log(cards[0].Shown())
}

// Slack delivers again when an answer was lost. Both deliveries are committed:
// the event's id tells the store that they are one.
func TestARepeatedDeliveryIsNotDroppedHere(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	o.SetFaults(slacksim.Faults{DuplicateDeliveries: 1})
	o.say("U0ALICE", "<@U0BOT> clean up")
	o.hears(2)
	got := o.mentioned()
	require.Equal(t, got[0].Event, got[1].Event)
}

func TestAMentionThatCannotBeCommittedIsDeliveredAgain(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{RetryScale: 0.001})
	o.breaks(errOutage)
	o.say("U0ALICE", "<@U0BOT> clean up")
	require.NoError(t, o.Idle(t.Context()))
	require.Empty(t, o.mentioned())
	o.breaks(nil)
	o.hears(1)
}

func TestAMentionThatIsNotTakenIsTurnedAwayInWords(t *testing.T) {
	for err, says := range map[error]string{
		agentrun.ErrQueueFull:    "yours wasn't added",
		agentrun.ErrThreadClosed: "This thread can't continue, so nothing was started. To ask again, start a new thread",
	} {
		o := newWorkspace(t, slacksim.Config{})
		o.breaks(fmt.Errorf("mention: %w", err))
		o.say("U0ALICE", "<@U0BOT> clean up")
		require.NoError(t, o.Idle(t.Context()))
		require.NoError(t, o.ui.Server.Shutdown(t.Context()))
		all, listErr := o.Messages("U0ALICE", "C0OPS", "")
		require.NoError(t, listErr)
		require.Contains(t, all[len(all)-1].Shown(), says)
		require.True(t, all[len(all)-1].Ephemeral)
	}
}

func TestAMentionWithoutWordsOrAgentIsAnswered(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{}, func(c *slackui.Config) {
		c.Agent, c.Agents = "", map[string]string{"C0GENERAL": "general"}
	})
	for _, text := range []string{"<@U0BOT>", "<@U0BOT> clean up"} {
		o.say("U0ALICE", text)
		require.NoError(t, o.Idle(t.Context()))
		require.NoError(t, o.ui.Server.Shutdown(t.Context()))
	}
	all, err := o.Messages("U0ALICE", "C0OPS", "")
	require.NoError(t, err)
	var told []string
	for _, m := range all {
		if m.Ephemeral {
			told = append(told, m.Shown())
		}
	}
	require.Len(t, told, 2)
	require.Contains(t, told[0], "Write what you need")
	require.Contains(t, told[1], "No agent works in this channel")
	require.Empty(t, o.mentioned())
}
