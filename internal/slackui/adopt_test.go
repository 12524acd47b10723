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

// posts a message of the app with an Approve button of the call, and this
// marker; it is no card of ours otherwise.
func (o *workspace) postsButton(root string, b approvals.Batch, marker *slack.SlackMetadata) slacksim.Message {
	o.t.Helper()
	return o.postsButtonIn("C0OPS", root, b, marker)
}

func (o *workspace) postsButtonIn(channel, root string, b approvals.Batch, marker *slack.SlackMetadata) slacksim.Message {
	o.t.Helper()
	value := strings.Join([]string{"1", string(b.ID), b.Approvals[0].Call.Digest.String(), string(b.Approvals[0].Call.ID)}, "|")
	button := blockkit.Button("countersign.approve.0", value, "Approve", "Approve the call of a test")
	opts := []slack.MsgOption{slack.MsgOptionText("Lunch?", false), slack.MsgOptionTS(root), slack.MsgOptionBlocks(slack.NewActionBlock("", button))}
	if marker != nil {
		opts = append(opts, slack.MsgOptionMetadata(*marker))
	}
	api := slack.New(o.BotToken(), slack.OptionAPIURL(o.api))
	_, ts, err := api.PostMessageContext(o.t.Context(), channel, opts...)
	require.NoError(o.t, err)
	return slacksim.Message{Channel: channel, TS: ts}
}

func markerOf(kind string, batch any, part any) *slack.SlackMetadata {
	return &slack.SlackMetadata{EventType: kind, EventPayload: map[string]any{"batch": batch, "part": part}}
}

// TestOnlyItsOwnCardIsDrawnOver: a click makes a message a card of the batch
// only if it was posted as one, and only if whoever clicked may decide.
func TestOnlyItsOwnCardIsDrawnOver(t *testing.T) {
	const card, batch = "countersign_batch", "batch-07-one"
	for name, c := range map[string]struct {
		marker *slack.SlackMetadata
		user   string
		drawn  bool
	}{
		"a copy of the card":             {markerOf(card, batch, 0), "U0BOB", true},
		"pressed by an outsider":         {markerOf(card, batch, 0), "U0DAVE", false},
		"pressed by whoever asked":       {markerOf(card, batch, 0), "U0ALICE", false},
		"no marker":                      {nil, "U0BOB", false},
		"the card of another batch":      {markerOf(card, "batch-07-two", 0), "U0BOB", false},
		"a message of another kind":      {markerOf("countersign_digest", batch, 0), "U0BOB", false},
		"a part that the batch has not":  {markerOf(card, batch, 7), "U0BOB", false},
		"a marker that cannot be read":   {markerOf(card, 7, "x"), "U0BOB", false},
		"a part of which it is no whole": {markerOf(card, batch, -1), "U0BOB", false},
	} {
		t.Run(name, func(t *testing.T) {
			d := call("c1", "delete_file", `{"path":"a.txt"}`, sre)
			d.Ask.Requirement.Separation = true
			o, root, b := one(t, d)
			m := o.postsButton(root, b, c.marker)
			require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press(c.user, m, "approve", 0))
			require.NoError(t, o.ui.Server.Shutdown(t.Context()))
			o.draw(b)
			shown := ""
			for _, x := range o.thread("U0BOB", root) {
				if x.TS == m.TS {
					shown = x.Shown()
				}
			}
			require.Equal(t, c.drawn, strings.Contains(shown, "delete_file"), shown)
			signed := c.user == "U0BOB"
			require.Equal(t, signed, o.status(b, 0) == approvals.Approved, "a signature counts wherever it is given")
		})
	}
}

// TestAnOldCopyOfASettledCardIsDrawnToo: nobody can decide there any more, and
// it must not look as if they could.
func TestACopyOfASettledCardIsDrawnToo(t *testing.T) {
	o, root, b := one(t)
	m := o.postsButton(root, b, markerOf("countersign_batch", "batch-07-one", 0))
	o.approves(b, 0)
	o.press("U0CAROL", m, "approve", 0)
	require.NoError(t, o.ui.Server.Shutdown(t.Context()))
	o.draw(b)
	for _, x := range o.thread("U0ALICE", root) {
		require.Contains(t, x.Shown(), "Approved: ")
		require.Empty(t, x.Actions())
	}
}

// A copy that Slack does not let the app update when it is pressed is updated later.
func TestACopyThatCannotBeUpdatedAtOnceIsDue(t *testing.T) {
	o, root, b := one(t)
	m := o.postsButton(root, b, markerOf("countersign_batch", "batch-07-one", 0))
	o.approves(b, 0)
	o.draw(b)
	require.False(t, o.isDue(b))
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "chat.update", Status: 500}}})
	o.press("U0CAROL", m, "approve", 0)
	require.NoError(t, o.ui.Server.Shutdown(t.Context()))
	require.True(t, o.isDue(b), "the copy still has buttons")
	o.SetFaults(slacksim.Faults{})
	o.draw(b)
	require.False(t, o.isDue(b))
	for _, x := range o.thread("U0ALICE", root) {
		require.Contains(t, x.Shown(), "Approved: ")
		require.Empty(t, x.Actions())
	}
}

// TestAnEphemeralMessageIsNoCard: Slack sends nothing of it back, and nobody
// can update it.
func TestAnEphemeralMessageIsNoCard(t *testing.T) {
	o, root, b := one(t)
	value := strings.Join([]string{"1", string(b.ID), b.Approvals[0].Call.Digest.String(), "c1"}, "|")
	button := blockkit.Button("countersign.approve.0", value, "Approve", "Approve the call of a test")
	api := slack.New(o.BotToken(), slack.OptionAPIURL(o.api))
	ts, err := api.PostEphemeralContext(t.Context(), "C0OPS", "U0BOB", slack.MsgOptionTS(root), slack.MsgOptionText("x", false), slack.MsgOptionBlocks(slack.NewActionBlock("", button)))
	require.NoError(t, err)
	require.Equal(t, 200, o.press("U0BOB", slacksim.Message{Channel: "C0OPS", TS: ts}, "approve", 0).Status)
	require.NoError(t, o.ui.Server.Shutdown(t.Context()))
	o.draw(b)
	require.Len(t, o.Calls("chat.update"), 1, "the card only")
}

// TestACopyInAChannelThatReadsNothingShowsNothing: a card that an escalation had
// posted, and whose record was lost, is no card of the thread once the channel is
// one that the escalation has left.
func TestACopyInAChannelThatReadsNothingShowsNothing(t *testing.T) {
	o, root, b := one(t)
	m := o.postsButtonIn("C0GENERAL", "", b, markerOf("countersign_batch", "batch-07-one", 0))
	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0BOB", m, "approve", 0))
	require.NoError(t, o.ui.Server.Shutdown(t.Context()))
	o.draw(b)
	require.Equal(t, approvals.Approved, o.status(b, 0), "an approval counts wherever it is given")
	require.Contains(t, o.card("U0BOB", root).Shown(), "Approved: ")
	shown, err := o.Messages("U0DAVE", "C0GENERAL", "")
	require.NoError(t, err)
	require.Len(t, shown, 1)
	require.NotContains(t, shown[0].Shown(), "a.txt")
	require.Empty(t, shown[0].Actions(), "it must not look as if somebody could decide there")
}
