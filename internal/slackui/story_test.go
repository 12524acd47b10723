package slackui_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/slacksim"
)

func TestAMentionBecomesARun(t *testing.T) {
	o := newOffice(t, slacksim.Config{})
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
	o := newOffice(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{"path":"reports/2023-q1.csv"}`, sre))
	o.draw(b)
	require.Equal(t, int64(1), o.drawnVersion(string(b.ID), "cards"))
	cards := o.thread("U0BOB", root)
	require.Len(t, cards, 1)
	t.Log(cards[0].Shown())
	require.Len(t, cards[0].Actions(), 3)

	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0BOB", cards[0], "approve", 0))
	require.Equal(t, approvals.Approved, o.batches[b.ID].Approvals[0].Status)
	require.Empty(t, o.whispers("U0BOB", root))

	o.draw(b)
	cards = o.thread("U0BOB", root)
	require.Len(t, cards, 1)
	require.Empty(t, cards[0].Actions())
	t.Log(cards[0].Shown())
}
