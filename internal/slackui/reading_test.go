package slackui_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// sentSince is everything that was sent to Slack since then, as Slack reads it.
func (o *workspace) sentSince(since int) string {
	o.t.Helper()
	require.NoError(o.t, o.Idle(o.t.Context()))
	require.NoError(o.t, o.ui.Server.Shutdown(o.t.Context()))
	var all strings.Builder
	for _, e := range o.Log()[since:] {
		said := e.Request
		if e.Direction != slacksim.FromApp {
			said = e.Response // the answer to what was delivered
		}
		if plain, err := url.QueryUnescape(said); err == nil {
			said = plain
		}
		all.WriteString(said + "\n")
	}
	return all.String()
}

// inModal puts a press into a modal of this kind.
func inModal(payload map[string]any, callback, metadata string) map[string]any {
	payload["view"] = map[string]any{"id": "V1", "type": "modal", "callback_id": callback, "private_metadata": metadata}
	return payload
}

// commandElsewhere is a slash command in a channel that shows no request.
func (o *workspace) commandElsewhere(user, text string) {
	o.t.Helper()
	_, err := o.Command(slacksim.Command{User: user, Channel: "C0GENERAL", Command: "/countersign", Text: text})
	require.NoError(o.t, err)
}

// Every surface asks who looks: those who may read a request get its arguments,
// and somebody who is not in its channel and cannot decide it gets none,
// whichever button they press, for buttons can be forged.
func TestArgumentsAreShownToThoseWhoMayReadThemOnly(t *testing.T) {
	const secret = "TOPSECRET"
	press := func(action string) func(*workspace, string, approvals.Batch) {
		return func(o *workspace, user string, b approvals.Batch) {
			o.deliver(pressed(user, "1.1.a", action, button(b, 0)))
		}
	}
	for name, c := range map[string]struct {
		act   func(o *workspace, user string, b approvals.Batch)
		never bool // it shows arguments to nobody
	}{
		"approve":      {act: press("approve.0")},
		"signing form": {act: press("sign.0")},
		"denial":       {act: press("deny.0")},
		"edit":         {act: press("edit.0")},
		"view full":    {act: press("view.0")},
		"a page of the full view": {act: func(o *workspace, user string, b approvals.Batch) {
			o.deliver(inModal(pressed(user, "1.1.a", "page.0", button(b, 0)+"|0"), "", ""))
		}},
		"a page of the signing form": {act: func(o *workspace, user string, b approvals.Batch) {
			o.deliver(inModal(pressed(user, "1.1.a", "page.0", button(b, 0)+"|0"), ref.CallbackApprove, `{"p":"`+button(b, 0)+`","c":"C0OPS"}`))
		}},
		"review": {act: func(o *workspace, user string, b approvals.Batch) {
			o.deliver(pressed(user, "1.1.a", "review.0", ref.Card{Batch: b.ID}.String()))
		}},
		"another card of the review": {act: func(o *workspace, user string, b approvals.Batch) {
			o.deliver(inModal(pressed(user, "1.1.a", "review.0", ref.Card{Batch: b.ID}.String()), ref.CallbackReview, ""))
		}},
		"approve in the review": {act: func(o *workspace, user string, b approvals.Batch) {
			o.deliver(inModal(pressed(user, "1.1.a", "approve.0", button(b, 0)), ref.CallbackReview, `{"r":"`+ref.Card{Batch: b.ID}.String()+`"}`))
		}},
		"the shortcut": {act: func(o *workspace, user string, b approvals.Batch) {
			o.deliver(map[string]any{
				"type": "message_action", "callback_id": ref.CallbackHere, "team": map[string]any{"id": slacksim.TeamID},
				"user": map[string]any{"id": user}, "trigger_id": "1.1.a", "channel": map[string]any{"id": "C0OPS"},
				"message": map[string]any{"ts": "1700000000.000001", "metadata": map[string]any{
					"event_type": ref.MarkerType, "event_payload": map[string]any{"batch": string(b.ID), "part": 0},
				}},
			})
		}},
		"the form of an edit": {never: true, act: func(o *workspace, user string, b approvals.Batch) {
			o.deliver(map[string]any{
				"type": "view_submission", "team": map[string]any{"id": slacksim.TeamID}, "user": map[string]any{"id": user},
				"view": map[string]any{"id": "V1", "callback_id": ref.CallbackEdit, "private_metadata": `{"p":"` + button(b, 0) + `"}`},
			})
		}},
		"home":   {never: true, act: func(o *workspace, user string, _ approvals.Batch) { o.atHome(user) }},
		"list":   {never: true, act: func(o *workspace, user string, _ approvals.Batch) { o.commandElsewhere(user, "list all") }},
		"status": {never: true, act: func(o *workspace, user string, _ approvals.Batch) { o.commandElsewhere(user, "status") }},
	} {
		t.Run(name, func(t *testing.T) {
			for user, reads := range map[string]bool{"U0BOB": !c.never, "U0DAVE": false} {
				o := newWorkspace(t, slacksim.Config{}, inLists)
				root := o.say("U0ALICE", "clean up")
				// It is too long for a card, so that it is not approved by one click.
				b := o.opens(root, call("c1", "delete_file", `{"path":"`+secret+strings.Repeat("x", 2000)+`","size":1}`, sre))
				o.draw(b)
				require.NoError(t, o.Leave(user, "C0OPS"))
				o.now.Advance(2 * time.Minute)
				since := len(o.Log())
				c.act(o, user, b)
				sent := o.sentSince(since)
				require.NotEmpty(t, sent)
				require.Equal(t, reads, strings.Contains(sent, secret), "%s: %s", user, sent)
				require.Equal(t, b.Version, o.batch(b.ID).Version)
			}
		})
	}
}

// A channel that an escalation has left is shown the arguments no more: the
// message there is emptied, and new arguments never reach it.
func TestAChannelThatIsAskedNoMoreReadsNothing(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, escalating(o))
	o.draw(b)
	o.now.Advance(2 * time.Minute)
	require.NoError(t, o.desk.Tick(t.Context(), b.ID))
	o.draw(b)
	further := func() slacksim.Message {
		t.Helper()
		all, err := o.Messages("U0DAVE", "C0GENERAL", "")
		require.NoError(t, err)
		require.Len(t, all, 1)
		return all[0]
	}
	require.Contains(t, plainWords(further()), `path: "a.txt"`)
	o.moves(b, func(now *approvals.Batch) {
		a := now.Approvals[0]
		a.Requirement.Ladder, a.Climbed = nil, 0
		now.Approvals[0] = a
	})
	o.draw(b)
	require.NotContains(t, plainWords(further()), "a.txt")
	require.Contains(t, plainWords(further()), "You no longer need to look at this request")
	require.Empty(t, further().Actions())
	require.Contains(t, plainWords(o.card("U0BOB", root)), `path: "a.txt"`, "its own thread shows them as before")
}
