package slackui_test

import (
	"testing"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/slackui/memo"
)

// covers has Slack show something else in this message than what was drawn: a decision
// that was lost with the newer store.
func (o *workspace) covers(m slacksim.Message) {
	o.t.Helper()
	api := slack.New(o.BotToken(), slack.OptionAPIURL(o.api))
	_, _, _, err := api.UpdateMessageContext(o.t.Context(), m.Channel, m.TS,
		slack.MsgOptionText("Approved", false), slack.MsgOptionBlocks(slack.NewHeaderBlock(slack.NewTextBlockObject("plain_text", "Approved", false, false))))
	require.NoError(o.t, err)
}

// After an older copy of the store was restored, a card may show a decision that is not
// stored, and have no button. An operator has it drawn anew.
func TestACardThatShowsALostDecisionIsDrawnAnew(t *testing.T) {
	o, root, b := one(t)
	before := o.card("U0BOB", root)
	require.NotEmpty(t, before.Actions())
	o.covers(before)
	o.draw(b)
	require.Empty(t, o.card("U0BOB", root).Actions(), "by itself it is not noticed")

	require.NoError(t, slackui.Redraw(t.Context(), o.testStore, o.now.Now, b))
	o.draw(b)
	after := o.card("U0BOB", root)
	require.Equal(t, before.Shown(), after.Shown())
	require.Len(t, after.Actions(), len(before.Actions()))
	require.Len(t, o.Calls("chat.postMessage"), 1)
}

func TestADigestThatShowsALostDecisionIsDrawnAnew(t *testing.T) {
	o := crowded(t)
	o.drawsAll(o.another("n0", 0, call("c1", "x", `{}`, sre)))
	b := o.another("n1", 0, call("c1", "delete_file", `{}`, sre))
	o.drawsAll(b)
	before := o.digests()[0]
	o.covers(before)
	require.NoError(t, slackui.Redraw(t.Context(), o.testStore, o.now.Now, b))
	o.drawsAll(b)
	require.Equal(t, before.Shown(), o.digests()[0].Shown())
}

// Nothing is drawn anew of what was never drawn: that is due anyway.
func TestWhatWasNeverDrawnIsNotDrawnAnew(t *testing.T) {
	o := crowded(t)
	b := o.another("n0", 0, call("c1", "x", `{}`, sre))
	require.NoError(t, slackui.Redraw(t.Context(), o.testStore, o.now.Now, b))
	o.drawsAll(b)
	require.Len(t, o.Calls("chat.postMessage"), 1)
}

// What cannot be redrawn is an error at once, and the rest is redrawn all the same.
func TestARecordThatCannotBeReadIsReportedByARedraw(t *testing.T) {
	o, root, b := one(t)
	before := o.card("U0BOB", root)
	o.covers(before)
	_, version, err := o.Memo(t.Context(), string(b.Run), "replies")
	require.NoError(t, err)
	require.NoError(t, o.CommitMemo(t.Context(), string(b.Run), "replies", []byte("{"), version, 0))
	require.ErrorIs(t, slackui.Redraw(t.Context(), o.testStore, o.now.Now, b), memo.ErrUnreadable)
	o.draw(b)
	require.Equal(t, before.Shown(), o.card("U0BOB", root).Shown())
}
