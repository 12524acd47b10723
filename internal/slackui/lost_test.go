package slackui_test

import (
	"strings"
	"testing"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// Nobody can decide on a card whose batch is gone, so after a click it does not
// look as if they could.
func TestACardWhoseBatchIsGoneLosesItsButtons(t *testing.T) {
	for _, action := range []string{"approve", "deny", "view"} {
		t.Run(action, func(t *testing.T) {
			o, root, b := one(t)
			card := o.card("U0BOB", root)
			require.NotEmpty(t, card.Actions())
			o.loses(b)
			require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0BOB", card, action, 0))
			require.NoError(t, o.ui.Server.Shutdown(t.Context()))
			after := o.card("U0BOB", root)
			require.Empty(t, after.Actions())
			require.Contains(t, after.Shown(), "Countersign no longer has this request")
			require.Contains(t, after.Shown(), "ask the agent again")
			require.Contains(t, strings.Join(o.whispers("U0BOB", root), ""), "no longer exists", "who clicked is told too")
		})
	}
}

// A store that does not answer says nothing about the batch, and a message that
// was not posted as this card is nobody's to draw over.
func TestOnlyTheCardOfABatchThatIsGoneIsDrawnOver(t *testing.T) {
	o, root, b := one(t)
	card := o.card("U0BOB", root)
	o.breaks(errOutage)
	require.NotEmpty(t, o.press("U0BOB", card, "approve", 0).VisibleError)
	o.breaks(nil)
	require.NoError(t, o.ui.Server.Shutdown(t.Context()))
	require.Equal(t, card.Shown(), o.card("U0BOB", root).Shown())

	value := strings.Join([]string{"1", string(b.ID), b.Approvals[0].Call.Digest.String(), "c1"}, "|")
	button := blockkit.Button("countersign.approve.0", value, "Approve", "Approve the call of a test")
	api := slack.New(o.BotToken(), slack.OptionAPIURL(o.api))
	_, ts, err := api.PostMessageContext(t.Context(), "C0OPS", slack.MsgOptionTS(root),
		slack.MsgOptionText("Lunch?", false), slack.MsgOptionBlocks(slack.NewActionBlock("", button)))
	require.NoError(t, err)
	o.loses(b)
	require.Equal(t, 200, o.press("U0BOB", slacksim.Message{Channel: "C0OPS", TS: ts}, "approve", 0).Status)
	require.NoError(t, o.ui.Server.Shutdown(t.Context()))
	for _, m := range o.thread("U0BOB", root) {
		if m.TS == ts {
			require.NotEmpty(t, m.Actions())
		}
	}
}

// Who says that they are away is answered when that is durable.
func TestAnAbsenceIsAnsweredOnceItIsDurable(t *testing.T) {
	o := atNoon(t, slacksim.Config{})
	o.forgets(approvals.ErrNotDurable)
	out, err := o.Command(slacksim.Command{User: "U0ALICE", Channel: "C0OPS", Command: "/countersign", Text: "away until friday"})
	require.NoError(t, err)
	require.NotEmpty(t, out.VisibleError)
	o.forgets(nil)
	require.Contains(t, o.slash("U0ALICE", "away until friday"), "away")
}
