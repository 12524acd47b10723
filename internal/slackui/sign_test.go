package slackui_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
)

// long is a call that no card shows whole, with one page of arguments in full.
func long(q ...approvals.Quorum) approvals.Deferral {
	return call("c1", "write_file", `{"path":"a.txt","content":"`+strings.Repeat("x", 2000)+`FINISH"}`, q...)
}

// veryLong has three pages.
func veryLong(q ...approvals.Quorum) approvals.Deferral {
	return call("c1", "write_file", `{"path":"a.txt","content":"`+strings.Repeat("x", 65_000)+`FINISH","mode":"w"}`, q...)
}

// onTop is the modal that the person looks at.
func (o *workspace) onTop(user string) slacksim.View {
	o.t.Helper()
	views := o.Views(user)
	require.NotEmpty(o.t, views)
	return views[len(views)-1]
}

// clicksTop presses a button of the modal that Bob looks at.
func (o *workspace) clicksTop(action string) {
	o.t.Helper()
	const user = "U0BOB"
	out, err := o.Click(slacksim.Click{User: user, ViewID: o.onTop(user).ID, ActionID: action, Confirmed: true})
	require.NoError(o.t, err)
	require.Equal(o.t, 200, out.Status, out.VisibleError)
	require.NoError(o.t, o.ui.Server.Shutdown(o.t.Context()))
}

func (o *workspace) submitsTop(user string, reason ...string) slacksim.SubmitOutcome {
	o.t.Helper()
	in := slacksim.Submit{User: user, ViewID: o.onTop(user).ID}
	if len(reason) > 0 {
		in.Values = map[string]map[string]any{"reason": {"text": reason[0]}}
	}
	out, err := o.SubmitView(in)
	require.NoError(o.t, err)
	return out
}

// sendsTop sends the modal that Bob looks at as submitted, although it has no button for
// that, and returns what the app answers.
func (o *workspace) sendsTop() string {
	o.t.Helper()
	v := o.onTop("U0BOB")
	require.Empty(o.t, v.Submit)
	_, err := o.SubmitView(slacksim.Submit{User: "U0BOB", ViewID: v.ID})
	require.ErrorIs(o.t, err, slacksim.ErrForbidden)
	answer := o.delivered(map[string]any{
		"type": "view_submission", "team": map[string]any{"id": slacksim.TeamID}, "user": map[string]any{"id": "U0BOB"},
		"view": map[string]any{
			"id": v.ID, "type": "modal", "hash": v.Hash, "callback_id": v.CallbackID, "private_metadata": v.PrivateMetadata,
			"state": map[string]any{"values": map[string]any{}},
		},
	})
	require.Equal(o.t, 200, answer.Code)
	return answer.Body.String()
}

// TestACallThatIsNotShownWholeIsSignedInItsFullView: from wherever its card is
// shown, the first click decides nothing.
func TestACallThatIsNotShownWholeIsSignedInItsFullView(t *testing.T) {
	for name, open := range map[string]func(o *workspace, root string, b approvals.Batch){
		"the card": func(o *workspace, root string, _ approvals.Batch) {
			card := o.card("U0BOB", root)
			require.NotContains(o.t, card.Actions(), "countersign.approve.0")
			o.press("U0BOB", card, "sign", 0)
		},
		"a card that was drawn with the old button": func(o *workspace, root string, b approvals.Batch) {
			o.press("U0BOB", o.postsButton(root, b, markerOf("countersign_batch", string(b.ID), 0)), "approve", 0)
		},
		"an old button elsewhere": func(o *workspace, root string, b approvals.Batch) {
			o.press("U0BOB", o.postsButton(root, b, nil), "approve", 0)
		},
		"a direct message": func(o *workspace, _ string, b approvals.Batch) {
			cards := o.directs("U0BOB")
			require.Len(o.t, cards, 1)
			o.press("U0BOB", cards[0], "sign", 0)
		},
		"the shortcut of a message": func(o *workspace, root string, _ approvals.Batch) {
			_, err := o.Shortcut(slacksim.Shortcut{User: "U0BOB", CallbackID: "countersign.here", Channel: "C0OPS", TS: o.card("U0BOB", root).TS})
			require.NoError(o.t, err)
			o.clicksTop("countersign.sign.0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := long(sre)
			d.Ask.Requirement.Direct = approvals.DirectEveryone
			o, root, b := one(t, d)
			open(o, root, b)
			require.Equal(t, approvals.Pending, o.status(b, 0), "the first click decides nothing")
			view := o.onTop("U0BOB")
			text := words(view.Blocks)
			require.Contains(t, text, "FINISH")
			require.Contains(t, text, strings.Repeat("x", 1900))
			require.Contains(t, text, "You approve exactly the arguments above")
			require.NotContains(t, text, "on the card")
			require.Equal(t, "Approve", view.Submit)
			o.submitsTop("U0BOB")
			require.Equal(t, approvals.Approved, o.status(b, 0))
			require.Equal(t, b.Approvals[0].Call.Digest, o.batch(b.ID).Approvals[0].Decisions[0].Digest)
		})
	}
}

// TestACardApprovesNothingThatItCuts: also if a press is sent on a button that it does not have.
func TestACardApprovesNothingThatItCuts(t *testing.T) {
	o, root, b := one(t, long(sre))
	card := o.card("U0BOB", root)
	press := pressed("U0BOB", "1.2.a", "approve.0", button(b, 0))
	press["container"] = map[string]any{"channel_id": card.Channel, "message_ts": card.TS}
	o.deliver(press) // the form with the arguments cannot be opened with this trigger
	require.Equal(t, approvals.Pending, o.status(b, 0))
}

// TestEveryPageIsReadBeforeASignature: the form has no button to approve before
// the last page, and one that is sent all the same decides nothing.
func TestEveryPageIsReadBeforeASignature(t *testing.T) {
	o, root, b := one(t, veryLong(sre))
	o.press("U0BOB", o.card("U0BOB", root), "sign", 0)
	require.Empty(t, o.onTop("U0BOB").Submit)
	require.Contains(t, words(o.onTop("U0BOB").Blocks), "Page 1 of 3.")
	require.Contains(t, words(o.onTop("U0BOB").Blocks), "Approve is on the last one")

	answer := o.sendsTop()
	require.Contains(t, answer, "you haven't seen all pages of this call")
	require.Contains(t, answer, `"action_id":"countersign.page.1"`)
	require.Equal(t, approvals.Pending, o.status(b, 0))
	o.clicksTop("countersign.page.1")
	require.Contains(t, words(o.onTop("U0BOB").Blocks), "Page 2 of 3.")
	o.clicksTop("countersign.page.0")
	require.Contains(t, words(o.onTop("U0BOB").Blocks), "Page 1 of 3.")
	require.Contains(t, o.sendsTop(), `"action_id":"countersign.page.2"`, "it goes on where it was left")
	require.Equal(t, approvals.Pending, o.status(b, 0))
	o.clicksTop("countersign.page.1")
	o.clicksTop("countersign.page.2")
	require.Contains(t, words(o.onTop("U0BOB").Blocks), "Page 3 of 3.")
	require.Contains(t, words(o.onTop("U0BOB").Blocks), "FINISH")
	require.Equal(t, "Approve", o.onTop("U0BOB").Submit)
	o.clicksTop("countersign.page.1")
	require.Empty(t, o.onTop("U0BOB").Submit)
	o.clicksTop("countersign.page.2")
	require.True(t, o.submitsTop("U0BOB").Closed)
	require.Equal(t, approvals.Approved, o.status(b, 0))
}

// TestAPageIsTurnedOnce: a second press on a button of a page that is gone, and one in
// a form that was closed meanwhile, turn nothing, and are no failure that Slack shows.
func TestAPageIsTurnedOnce(t *testing.T) {
	for _, form := range []string{"sign", "view"} {
		o, root, b := one(t, veryLong(sre))
		o.press("U0BOB", o.card("U0BOB", root), form, 0)
		first := o.onTop("U0BOB")
		turns := func(trigger string, page int) int {
			p := pressed("U0BOB", trigger, fmt.Sprintf("page.%d", page), fmt.Sprintf("%s|%d", button(b, 0), page))
			p["view"] = map[string]any{
				"id": first.ID, "type": "modal", "hash": first.Hash, "callback_id": first.CallbackID, "private_metadata": first.PrivateMetadata,
			}
			return o.deliver(p)
		}
		require.Equal(t, 200, turns("1.a", 1))
		require.Contains(t, words(o.onTop("U0BOB").Blocks), "Page 2 of 3.")
		require.Equal(t, 200, turns("1.b", 1), form)
		require.Equal(t, 200, turns("1.c", 0), form)
		require.Contains(t, words(o.onTop("U0BOB").Blocks), "Page 2 of 3.")
		first.ID = "V0CLOSED"
		require.Equal(t, 200, turns("1.d", 1), form)
	}
}

// TestASigningFormWithoutAPageBeginsAtTheFirst: no version has written such metadata,
// and it must not be an index.
func TestASigningFormWithoutAPageBeginsAtTheFirst(t *testing.T) {
	o, root, b := one(t, veryLong(sre))
	o.press("U0BOB", o.card("U0BOB", root), "sign", 0)
	v := o.onTop("U0BOB")
	p := pressed("U0BOB", "1.a", "page.1", button(b, 0)+"|1")
	p["view"] = map[string]any{
		"id": v.ID, "type": "modal", "hash": v.Hash, "callback_id": v.CallbackID,
		"private_metadata": `{"p":"` + button(b, 0) + `","n":-5}`,
	}
	require.Equal(t, 200, o.deliver(p))
	require.Contains(t, words(o.onTop("U0BOB").Blocks), "Page 1 of 3.")
}

// TestAReasonIsGivenWhereTheArgumentsAreShown: in the same form, which keeps it
// while pages are turned.
func TestAReasonIsGivenWhereTheArgumentsAreShown(t *testing.T) {
	d := veryLong(sre)
	d.Ask.Requirement.ReasonNeeded = true
	o, root, b := one(t, d)
	o.press("U0BOB", o.card("U0BOB", root), "sign", 0)
	o.clicksTop("countersign.page.1")
	o.clicksTop("countersign.page.2")
	require.NotEmpty(t, o.submitsTop("U0BOB", "  ").Errors["reason"])
	require.Equal(t, approvals.Pending, o.status(b, 0))
	require.True(t, o.submitsTop("U0BOB", "Read it all.").Closed)
	require.Equal(t, "Read it all.", o.batch(b.ID).Approvals[0].Decisions[0].Reason)
}

// TestTheSigningFormExplainsWhatItDoesNotDo: it is opened only for those who
// may approve, and says what has changed since.
func TestTheSigningFormExplainsWhatItDoesNotDo(t *testing.T) {
	o, root, b := one(t, long(sre))
	o.press("U0DAVE", o.card("U0DAVE", root), "sign", 0)
	require.Empty(t, o.Views("U0DAVE"))
	require.Contains(t, strings.Join(o.whispers("U0DAVE", root), ""), "You can't approve this")

	o.press("U0BOB", o.card("U0BOB", root), "sign", 0)
	o.press("U0CAROL", o.card("U0CAROL", root), "deny", 0)
	o.submitsTop("U0CAROL")
	require.Equal(t, approvals.Denied, o.status(b, 0), "a denial is one click and its form")
	require.Contains(t, words(o.submitsTop("U0BOB").View.Blocks), "Already denied by <@U0CAROL>")
}

// TestASigningFormSurvivesAnOutage: the same button works afterwards.
func TestASigningFormSurvivesAnOutage(t *testing.T) {
	o, root, b := one(t, long(sre))
	o.press("U0BOB", o.card("U0BOB", root), "sign", 0)
	o.now.Advance(61e9)
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "usergroups.users.list", Error: "internal_error"}}})
	out := o.submitsTop("U0BOB")
	require.Empty(t, out.VisibleError)
	require.Contains(t, words(o.onTop("U0BOB").Blocks), "Not decided yet")
	require.True(t, o.submitsTop("U0BOB").Closed)
	require.Equal(t, approvals.Approved, o.status(b, 0))
}

// To press the button again does not help while the app lacks a scope.
func TestASigningFormSaysThatSlackRefusesToLookUp(t *testing.T) {
	o, root, b := one(t, long(sre))
	o.press("U0BOB", o.card("U0BOB", root), "sign", 0)
	o.now.Advance(61e9)
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "usergroups.users.list", Error: "missing_scope"}}})
	o.submitsTop("U0BOB")
	require.Contains(t, words(o.onTop("U0BOB").Blocks), "Slack refuses to tell this app who is in")
	require.Equal(t, approvals.Pending, o.status(b, 0))
}

// TestWhatIsShownWholeIsApprovedAtOnce: also next to a call that is not.
func TestWhatIsShownWholeIsApprovedAtOnce(t *testing.T) {
	plain := call("c2", "delete_file", `{"path":"`+strings.Repeat("p", 500)+`"}`, sre)
	o, root, b := one(t, long(sre), plain)
	o.press("U0BOB", o.card("U0BOB", root), "approve", 1)
	require.Equal(t, approvals.Approved, o.status(b, 1))
	require.Empty(t, o.Views("U0BOB"))
}

// TestACardThatCutsMoreSignsLess: a value that one call alone shows whole is
// cut where eight share a card, and what the card does not show is not signed
// there.
func TestACardThatCutsMoreSignsLess(t *testing.T) {
	var calls []approvals.Deferral
	for _, id := range []string{"c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"} {
		args := `{"a":"` + strings.Repeat(id, 250) + `","b":"` + strings.Repeat(id, 250) + `","c":"` + strings.Repeat(id, 250) + `"}`
		calls = append(calls, call(id, "write_file", args, sre))
	}
	o, root, b := one(t, calls...)
	require.NotContains(t, o.card("U0BOB", root).Actions(), "countersign.approve.0")
	o.press("U0BOB", o.postsButton(root, b, markerOf("countersign_batch", string(b.ID), 0)), "approve", 0)
	require.Equal(t, approvals.Pending, o.status(b, 0))
	require.Equal(t, "Approve", o.onTop("U0BOB").Submit)

	alone, thread, single := one(t, calls[0])
	alone.press("U0BOB", alone.card("U0BOB", thread), "approve", 0)
	require.Equal(t, approvals.Approved, alone.status(single, 0))
}

// TestOldFormsShowWhatTheySign: a form for a reason that an earlier version has
// opened becomes the full view.
func TestOldFormsShowWhatTheySign(t *testing.T) {
	h := newSheetWorkspace(t)
	d := long(sre)
	d.Ask.Requirement.ReasonNeeded = true
	b := h.asks("one", "U0ALICE", 0, d)
	value := strings.Join([]string{"1", string(b.ID), b.Approvals[0].Call.Digest.String(), "c1"}, "|")
	body := h.delivers(map[string]any{
		"type": "view_submission", "team": map[string]any{"id": slacksim.TeamID}, "user": map[string]any{"id": "U0BOB"}, "trigger_id": "1.a",
		"view": map[string]any{
			"id": "V1", "type": "modal", "callback_id": "countersign.approve", "private_metadata": `{"p":"` + value + `","c":"C0OPS"}`,
			"state": map[string]any{"values": map[string]any{"reason": map[string]any{"text": map[string]any{"type": "plain_text_input", "value": "why"}}}},
		},
	})
	require.Equal(t, "pending", h.statuses(b))
	require.Contains(t, body, "you haven't seen all pages of this call")
	require.Contains(t, body, "countersign.page.0")
}

// TestEditAndApproveSignsOnlyWhatTheCardShows.
func TestEditAndApproveSignsOnlyWhatTheCardShows(t *testing.T) {
	d := deletion(sre)
	d.Ask.Requirement.EditorMaySign = true
	for name, c := range map[string]struct {
		path   string
		signed bool
	}{"short": {"c.txt", true}, "long": {strings.Repeat("c", 700), false}} {
		t.Run(name, func(t *testing.T) {
			o, root, b := rewrite(t, rulings{}, nil, d)
			out := o.sends("U0BOB", o.edit("U0BOB", root), map[string]string{"path": c.path, "Your approval": "yes"})
			require.NotNil(t, out.View)
			require.Equal(t, c.signed, o.status(b, 0) == approvals.Approved)
			if c.signed {
				return
			}
			require.Contains(t, words(out.View.Blocks), "aren't approved yet")
			o.clicksTop("countersign.sign.0")
			require.Contains(t, words(o.onTop("U0BOB").Blocks), c.path)
			o.submitsTop("U0BOB")
			require.Equal(t, approvals.Approved, o.status(b, 0))
		})
	}
}

// TestASheetLeavesOutWhatItCannotShow: with its reason, and the way to its own
// review, where it is signed.
func TestASheetLeavesOutWhatItCannotShow(t *testing.T) {
	h := newSheetWorkspace(t)
	cut := call("c1", "tag_file", `{"path":"`+strings.Repeat("x", 400)+`"}`, sre)
	b := h.asks("one", "U0ALICE", 0, cut, call("c2", "tag_file", `{"path":"a"}`, sre))
	view := h.sheet("U0BOB", "approve tool:tag_*")
	text := shows(view)
	require.Contains(t, text, "Left out: 1 call that a list can't show in full")
	require.NotContains(t, text, "xxx")
	require.Equal(t, "Approve 1 call", view.Submit)

	h.clicksTop("countersign.review.0")
	h.clicksTop("countersign.approve.0")
	require.Equal(t, "approved pending", h.statuses(b), "its card shows it whole")
	for len(h.Views("U0BOB")) > 1 {
		require.NoError(t, h.CloseView("U0BOB", h.onTop("U0BOB").ID, false))
	}
	h.finishes(func() approvals.SheetID { id := h.sheetID("U0BOB"); h.sendsSheet("U0BOB"); return id }())
	require.Equal(t, "approved approved", h.statuses(b))
}

// TestAFormOverThreeOthersReplacesTheThird: Slack shows no fourth.
func TestAFormOverThreeOthersReplacesTheThird(t *testing.T) {
	h := newSheetWorkspace(t)
	d := call("c1", "delete_file", `{"path":"`+strings.Repeat("x", 2400)+`","size":1}`, sre)
	d.Ask.Requirement.EditorMaySign = true
	b := h.asks("one", "U0ALICE", 0, d, call("c2", "tag_file", `{"path":"a"}`, sre))
	h.sheet("U0BOB", "approve all")
	h.clicksTop("countersign.review.0")
	h.clicksTop("countersign.edit.0")
	changed := strings.Repeat("c", 2400)
	require.NotNil(t, h.sends("U0BOB", h.onTop("U0BOB"), map[string]string{"path": changed, "Your approval": "yes"}).View)
	require.Len(t, h.Views("U0BOB"), 3)

	h.clicksTop("countersign.sign.0")
	require.Len(t, h.Views("U0BOB"), 3)
	require.Contains(t, words(h.onTop("U0BOB").Blocks), changed)
	h.submitsTop("U0BOB")
	require.NoError(t, h.ui.Server.Shutdown(t.Context()))
	require.Equal(t, "approved pending", h.statuses(b))
	require.Len(t, h.Views("U0BOB"), 2)
	require.Contains(t, words(h.onTop("U0BOB").Blocks), "1 waiting, 1 approved", "the review shows it")
}

func TestASheetOfNothingThatCanBeShownLeadsToTheReviews(t *testing.T) {
	h := newSheetWorkspace(t)
	b := h.asks("one", "U0ALICE", 0, long(sre))
	out, err := h.Command(slacksim.Command{User: "U0BOB", Channel: "C0OPS", Command: "/countersign", Text: "approve all"})
	require.NoError(t, err)
	require.NoError(t, h.ui.Server.Shutdown(t.Context()))
	require.Contains(t, out.Message.Shown(), "that a list can't show in full")
	require.Empty(t, h.Views("U0BOB"))
	_, err = h.Click(slacksim.Click{User: "U0BOB", Channel: "C0OPS", TS: out.Message.TS, ActionID: "countersign.review.0"})
	require.NoError(t, err)
	h.clicksTop("countersign.sign.0")
	h.submitsTop("U0BOB")
	require.Equal(t, "approved", h.statuses(b))
}

// TestEqualCallsThatNoListShowsAreReviewedOneByOne.
func TestEqualCallsThatNoListShowsAreReviewedOneByOne(t *testing.T) {
	h := newSheetWorkspace(t)
	args := `{"path":"` + strings.Repeat("x", 700) + `"}`
	root := h.say("U0ALICE", "tag them")
	b := h.asksIn("C0OPS", root, "one", "U0ALICE", 0, call("c1", "tag_file", args, sre), call("c2", "tag_file", args, sre))
	h.draw(b)
	card := h.card("U0BOB", root)
	require.Contains(t, card.Shown(), "the same call 2 times")
	require.NotContains(t, card.Shown(), "Approve all")
	require.Contains(t, card.Shown(), "Deny all 2…")
	h.press("U0BOB", card, "each", 0)
	h.clicksTop("countersign.sign.1")
	h.submitsTop("U0BOB")
	require.Equal(t, "pending approved", h.statuses(b))
}

// TestAConfirmationSaysWhatIsSigned: only a card that shows everything says so.
func TestAConfirmationIsOnlyOfWhatIsShown(t *testing.T) {
	o, root, _ := one(t, long(sre), call("c2", "delete_file", `{"path":"a"}`, sre))
	card := o.card("U0BOB", root)
	out, err := o.Click(slacksim.Click{User: "U0BOB", Channel: card.Channel, TS: card.TS, ActionID: "countersign.approve.1"})
	require.NoError(t, err)
	require.NotNil(t, out.Confirm)
	out, err = o.Click(slacksim.Click{User: "U0BOB", Channel: card.Channel, TS: card.TS, ActionID: "countersign.sign.0"})
	require.NoError(t, err)
	require.Nil(t, out.Confirm, "nothing is signed by it")
	require.Contains(t, words(o.onTop("U0BOB").Blocks), "may change or delete things permanently")
}

// TestAListOfAnEarlierVersionIsMadeAnew: it may list calls that it cut.
func TestAListOfAnEarlierVersionIsMadeAnew(t *testing.T) {
	h := newSheetWorkspace(t)
	b := h.asks("one", "U0ALICE", 0, long(sre))
	id := approvals.NewSheetID(slacksim.TeamID, "U0BOB", "old")
	_, err := h.bulk.Show(t.Context(), approvals.Sheet{
		ID: id, By: "U0BOB", Verdict: approvals.Approve, Origin: "{}", Lines: []approvals.Line{b.Line(b.Approvals[0], false)},
	})
	require.NoError(t, err)
	body := h.delivers(map[string]any{
		"type": "view_submission", "team": map[string]any{"id": slacksim.TeamID}, "user": map[string]any{"id": "U0BOB"}, "trigger_id": "1.a",
		"view": map[string]any{"id": "V1", "type": "modal", "callback_id": "countersign.sheet", "private_metadata": `{"s":"` + string(id) + `"}`},
	})
	require.Contains(t, body, "earlier version")
	sheet, err := h.bulk.Sheet(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, approvals.SheetShown, sheet.Status)
}
