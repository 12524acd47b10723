package slackui_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/stretchr/testify/require"
)

// apart are calls with long arguments that differ at their ends only.
func apart(n int) []approvals.Deferral {
	var all []approvals.Deferral
	for i := range n {
		all = append(all, call(fmt.Sprintf("call_%d", i), "delete_file", fmt.Sprintf(`{"path":"%s%d","force":true}`, strings.Repeat("very/long/", 200), i), sre))
	}
	return all
}

// alike is a card of a bot with sheets; the calls get ids of their own.
func alike(tb testing.TB, calls ...approvals.Deferral) card.Card {
	tb.Helper()
	for i := range calls {
		calls[i].Call.ID = approvals.ToolCallID(fmt.Sprintf("call_%d", i))
	}
	return sheets(drawn(tb, calls))
}

func sheets(c card.Card) card.Card {
	c.Sheets = true
	return c
}

// same is one of several calls that are the same.
func same(i int) approvals.Deferral {
	two := sre
	two.Need = 2
	return call(fmt.Sprintf("call_%d", i), "restart_pod", `{"pod":"web-1","grace":"30s"}`, two)
}

// together are four calls that are the same and two others between them. Their
// deadlines are some moments apart, as those of one answer are.
func together(tb testing.TB, deadline time.Time, cmds ...approvals.Command) card.Card {
	tb.Helper()
	calls := []approvals.Deferral{same(0), same(1), call("x", "delete_file", `{"path":"a.txt"}`, sre), same(2), call("y", "restart_pod", `{"pod":"web-1","grace":"31s"}`, sre), same(3)}
	for i := range calls {
		if !deadline.IsZero() {
			calls[i] = until(calls[i], deadline.Add(time.Duration(i)*time.Millisecond), false)
		}
	}
	return sheets(drawn(tb, calls, cmds...))
}

// everyone are the two approvals that each of these calls needs.
func everyone(calls ...int) []approvals.Command {
	var all []approvals.Command
	for _, i := range calls {
		all = append(all, says("U0BOB", approvals.Approve, same(i), "It hangs."), says("U0CAROL", approvals.Approve, same(i), ""))
	}
	return all
}

func TestCallsAreOneRowOnlyIfNothingDiffers(t *testing.T) {
	other := func(f func(d *approvals.Deferral)) approvals.Deferral {
		d := same(1)
		f(&d)
		return d
	}
	group := approvals.Quorum{Name: "leads", Need: 1, From: approvals.From{Groups: []approvals.GroupID{"S0SEC"}}}
	for name, d := range map[string]approvals.Deferral{
		"tool":      other(func(d *approvals.Deferral) { d.Call.Name = "restart_pods" }),
		"a blank":   other(func(d *approvals.Deferral) { d.Call.Args = json.RawMessage(`{"pod":"web-1", "grace":"30s"}`) }),
		"an escape": other(func(d *approvals.Deferral) { d.Call.Args = json.RawMessage(`{"pod":"web-\u0031","grace":"30s"}`) }),
		"why":       other(func(d *approvals.Deferral) { d.Ask.Why = "Because." }),
		"rule":      other(func(d *approvals.Deferral) { d.Ask.Rule = "other@0123abcd" }),
		"quorum":    other(func(d *approvals.Deferral) { d.Ask.Requirement.Quorums = append(d.Ask.Requirement.Quorums, group) }),
		"denials":   other(func(d *approvals.Deferral) { d.Ask.Requirement.Deny = 2 }),
		"hidden":    other(func(d *approvals.Deferral) { d.WriteOnly = []string{"/pod"} }),
		"deadline":  other(func(d *approvals.Deferral) { d.Ask.Requirement.Deadline = noon.Add(time.Hour) }),
	} {
		require.NotContains(t, shownText(t, sheets(drawn(t, []approvals.Deferral{same(0), d}))), "the same call", name)
	}
	for name, cmd := range map[string]approvals.Command{
		"a signature": says("U0BOB", approvals.Approve, same(1), ""),
		"a denial":    says("U0BOB", approvals.Deny, same(1), "No."),
	} {
		b := sheets(drawn(t, []approvals.Deferral{same(0), same(1)}))
		next, _, err := b.Batch.Apply(cmd)
		require.NoError(t, err)
		b.Batch = next
		require.NotContains(t, shownText(t, b), "the same call ", name)
	}
	was := other(func(d *approvals.Deferral) { d.Call.Args = json.RawMessage(`{"pod":"web-2"}`) })
	edited := sheets(drawn(t, []approvals.Deferral{same(0), was}, approvals.Amend{
		Call: "call_1", From: approvals.DigestOf("batch-07-gold", was.Call), Args: same(1).Call.Args, Ruling: approvals.Permit{}, At: noon.Add(time.Minute),
		By: approvals.Principal{User: "U0CAROL", Groups: []approvals.GroupID{"S0SRE"}, GroupsAt: noon},
	}))
	edited.Calls["call_1"] = same(1).Call
	require.Len(t, edited.Batch.Approvals[1].Amendments, 1)
	require.NotContains(t, shownText(t, edited), "the same call ", "what somebody wrote is not what the model wrote")
	pair := sheets(drawn(t, []approvals.Deferral{same(0), same(1)}))
	require.Contains(t, shownText(t, pair), "the same call 2 times")
	pair.Place = card.PlaceReview
	require.NotContains(t, shownText(t, pair), "the same call ", "a review has a row for each")
	pair.Place, pair.Sheets = card.PlaceThread, false
	require.NotContains(t, shownText(t, pair), "the same call ", "without sheets nobody could sign them")
	lost := sheets(drawn(t, []approvals.Deferral{same(0), same(1)}))
	delete(lost.Calls, "call_0")
	delete(lost.Calls, "call_1")
	require.NotContains(t, shownText(t, lost), "the same call ", "what cannot be shown is not the same")
}

// repeats is a card in #ops of four calls that are the same and another one.
func (h *sheetWorkspace) repeats(tool string, q ...approvals.Quorum) (approvals.Batch, slacksim.Message) {
	h.t.Helper()
	var calls []approvals.Deferral
	for i := range 4 {
		calls = append(calls, call(fmt.Sprintf("t%d", i), tool, `{"path":"reports/a.txt","tag":"old"}`, q...))
	}
	calls = append(calls[:2:2], append([]approvals.Deferral{call("d", tool, `{"path":"reports/b.txt"}`, q...)}, calls[2:]...)...)
	root := h.say("U0ALICE", "tag the reports")
	b := h.asksIn("C0OPS", root, "same", "U0ALICE", time.Hour, calls...)
	require.NoError(h.t, h.ui.Cards.Reconcile(h.t.Context(), string(b.ID)))
	cards := h.thread("U0BOB", root)
	require.Len(h.t, cards, 1)
	return b, cards[0]
}

// labeled presses the button with this label on a message.
func (h *sheetWorkspace) labeled(user string, m slacksim.Message, label string) slacksim.ClickOutcome {
	h.t.Helper()
	for _, a := range m.Actions() {
		if a.Text == label {
			out, err := h.Click(slacksim.Click{User: user, Channel: m.Channel, TS: m.TS, ActionID: a.ActionID, BlockID: a.BlockID, Confirmed: true})
			require.NoError(h.t, err)
			require.NoError(h.t, h.ui.Server.Shutdown(h.t.Context()))
			return out
		}
	}
	h.t.Fatalf("no button %q in %v", label, m.Actions())
	return slacksim.ClickOutcome{}
}

func (h *sheetWorkspace) edits(b approvals.Batch, id approvals.ToolCallID, user, args string) {
	h.t.Helper()
	for _, a := range h.stored(b).Approvals {
		if a.Call.ID == id {
			_, err := h.desk.Amend(h.t.Context(), b.ID, approvals.RequestID("edit "+args), approvals.Amend{
				Call: id, From: a.Call.Digest, Args: json.RawMessage(args), At: h.now.Now(),
				By: approvals.Principal{User: approvals.UserID(user), Groups: []approvals.GroupID{"S0SRE"}, GroupsAt: h.now.Now()},
			})
			require.NoError(h.t, err)
		}
	}
}

func TestTheSameCallsAreApprovedTogetherOverASheet(t *testing.T) {
	h := newSheetWorkspace(t)
	b, card := h.repeats("tag_file", sre)
	require.Contains(t, plainWords(card), "1, 2, 4 and 5 of 5: Tag file (path: \"reports/a.txt\", tag: \"old\"), the same call 4 times")
	require.Equal(t, 1, strings.Count(plainWords(card), "tag_file with exactly these arguments:path: \"reports/a.txt\""), "the arguments stand there once")
	h.labeled("U0BOB", card, "Approve all 4…")
	v := h.top1("U0BOB")
	require.Contains(t, shows(v), "4 calls of 1 request")
	require.NotContains(t, shows(v), "reports/b.txt")
	require.Equal(t, "Approve 4 calls", v.Submit)
	require.Equal(t, "pending pending pending pending pending", h.statuses(b), "the button signs nothing")
	id := h.sheetID("U0BOB")
	h.sendsSheet("U0BOB")
	require.Equal(t, approvals.SheetSummary{Signed: 4}, h.finishes(id).Summary())
	require.Equal(t, "approved approved pending approved approved", h.statuses(b))
	for i, a := range h.stored(b).Approvals {
		require.Len(t, a.Decisions, bit(i != 2))
	}
	require.NoError(t, h.ui.Cards.Reconcile(t.Context(), string(b.ID)))
	card = h.thread("U0BOB", card.ThreadTS)[0]
	require.Contains(t, plainWords(card), "1, 2, 4 and 5 of 5: Tag file (path: \"reports/a.txt\", tag: \"old\"), the same call 4 times")
	require.Equal(t, 1, strings.Count(plainWords(card), "Approved by U0BOB"))
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestTheSameCallsAreDeniedTogetherWithAReason(t *testing.T) {
	h := newSheetWorkspace(t)
	b, card := h.repeats("delete_file", sre)
	h.labeled("U0BOB", card, "Deny all 4…")
	require.Equal(t, "Deny 4 calls", h.top1("U0BOB").Submit)
	id := h.sheetID("U0BOB")
	require.NotEmpty(t, h.sendsSheet("U0BOB", "  ").Errors, "blanks are no reason")
	h.sendsSheet("U0BOB", "Not these.")
	h.finishes(id)
	require.Equal(t, "denied denied pending denied denied", h.statuses(b))
	require.Equal(t, "Not these.", h.stored(b).Approvals[4].Decisions[0].Reason)
}

func TestEachOfTheSameCallsThatMayDoHarmHasItsOwnTick(t *testing.T) {
	h := newSheetWorkspace(t)
	b, card := h.repeats("delete_file", sre)
	h.labeled("U0BOB", card, "Approve all 4…")
	require.Equal(t, "Approve selected calls", h.top1("U0BOB").Submit)
	h.ticks("U0BOB", 0, 3)
	id := h.sheetID("U0BOB")
	h.sendsSheet("U0BOB")
	h.finishes(id)
	require.Equal(t, "approved pending pending pending approved", h.statuses(b))
}

// A call that was changed after the card was drawn is not one of the calls that
// the button means, and is named; neither is one that was made the same later.
func TestAnApprovalOfTheSameCallsTakesOnlyWhatWasDrawn(t *testing.T) {
	h := newSheetWorkspace(t)
	b, card := h.repeats("tag_file", sre)
	h.edits(b, "t1", "U0CAROL", `{"path":"/etc/passwd"}`)
	h.edits(b, "d", "U0CAROL", `{"path":"reports/a.txt","tag":"old"}`)
	_, err := h.desk.Decide(t.Context(), b.ID, "carol", approvals.Decide{Decision: approvals.Decision{
		Call: "t2", By: approvals.Principal{User: "U0CAROL", Groups: []approvals.GroupID{"S0SRE"}, GroupsAt: h.now.Now()},
		Verdict: approvals.Approve, Digest: b.Approvals[3].Call.Digest, At: h.now.Now(),
	}})
	require.NoError(t, err)
	h.labeled("U0BOB", card, "Approve all 4…")
	changed := h.stored(b).Approvals[1].Call.Digest
	require.Contains(t, shows(h.top1("U0BOB")), "Left out: 1 call whose arguments were edited after the card was drawn: read it again ( tag_file : "+changed.String()[:6]+" )")
	require.Contains(t, shows(h.top1("U0BOB")), "Left out: 1 call already decided, expired or withdrawn (")
	require.Equal(t, "Approve 2 calls", h.top1("U0BOB").Submit)
	// And one that is changed while the sheet is read is skipped.
	h.edits(b, "t0", "U0CAROL", `{"path":"/etc/shadow"}`)
	id := h.sheetID("U0BOB")
	h.sendsSheet("U0BOB")
	require.Equal(t, []approvals.Tally{{Why: approvals.WhyStale, Lines: 1}}, h.finishes(id).Summary().Skipped)
	require.Equal(t, "pending pending pending approved approved", h.statuses(b))
}

func TestAnOutsiderApprovesNoneOfTheSameCalls(t *testing.T) {
	h := newSheetWorkspace(t)
	b, card := h.repeats("tag_file", sre)
	h.labeled("U0DAVE", card, "Approve all 4…")
	require.Contains(t, shows(h.top1("U0DAVE")), "You can't approve any of these calls now. Left out: 4 calls that you can't decide")
	require.Equal(t, "pending pending pending pending pending", h.statuses(b))

	forged := func(value string) {
		raw, err := json.Marshal(map[string]any{
			"type": "block_actions", "team": map[string]any{"id": slacksim.TeamID}, "user": map[string]any{"id": "U0BOB"}, "trigger_id": "t9",
			"container": map[string]any{"message_ts": card.TS, "channel_id": card.Channel},
			"actions":   []any{map[string]any{"action_id": "countersign.sheet.0", "value": value, "action_ts": "1.2"}},
		})
		require.NoError(t, err)
		status, _ := h.deliverBody(string(raw))
		require.Equal(t, 200, status)
	}
	for _, value := range []string{
		``, `{}`, `{"v":"maybe"}`, `{"v":"approve","f":{"batch":"x","drawn":["00"]}}`,
		`{"v":"approve","f":{"batch":"` + string(b.ID) + `","drawn":["` + strings.Repeat("0", 64) + `"]}}`,
	} {
		forged(value)
		require.Equal(t, "pending pending pending pending pending", h.statuses(b))
		require.Empty(t, h.letters("U0BOB"))
	}
}

func TestTheSameCallsAreReviewedOneByOne(t *testing.T) {
	h := newSheetWorkspace(t)
	b, card := h.repeats("tag_file", sre)
	h.labeled("U0BOB", card, "View full")
	require.Contains(t, shows(h.top1("U0BOB")), b.Approvals[0].Call.Digest.String())
	h.labeled("U0BOB", card, "Review one by one")
	v := h.top1("U0BOB")
	require.Equal(t, "Review", v.Title)
	require.NotContains(t, shows(v), "the same call ")
	require.Equal(t, 5, strings.Count(fmt.Sprint(v.Actions()), "countersign.approve."))
}

// The button opens the sheet of all that waits, from the Home and from a digest.
func TestSeveralAreApprovedFromTheHomeAndFromADigest(t *testing.T) {
	h := newSheetWorkspace(t, func(c *slackui.Config) { c.CardsPerMinute = 1 })
	var all []approvals.Batch
	for i := range 3 {
		b := h.asksIn("C0OPS", h.say("U0ALICE", "tag"), fmt.Sprintf("n%d", i), "U0ALICE", time.Hour, tags(1, sre)...)
		all = append(all, b)
	}
	h.drawsAll(all...)
	digests := h.digests()
	require.Len(t, digests, 1)
	h.labeled("U0DAVE", digests[0], "Approve several…")
	require.Contains(t, shows(h.top1("U0DAVE")), "that you can't decide")
	h.labeled("U0BOB", digests[0], "Approve several…")
	require.Equal(t, "Approve 3 calls", h.top1("U0BOB").Submit)
	require.NoError(t, h.CloseView("U0BOB", h.top1("U0BOB").ID, true))

	h.uses("U0BOB", h.atHome("U0BOB"), "Approve several…")
	require.Equal(t, "Approve 3 calls", h.top1("U0BOB").Submit)
	id := h.sheetID("U0BOB")
	h.sendsSheet("U0BOB")
	h.finishes(id)
	for _, b := range all {
		require.Equal(t, "approved", h.statuses(b))
	}
}

// Calls that the same people settled one after the other say from when to when.
func TestTheSameCallsThatWereSettledOneByOneSayWhen(t *testing.T) {
	late := says("U0BOB", approvals.Approve, same(1), "")
	late.At = noon.Add(time.Hour)
	calls := []approvals.Deferral{same(0), same(1), same(2)}
	c := drawn(t, calls, append(everyone(0), late, says("U0CAROL", approvals.Approve, same(1), ""), says("U0CAROL", approvals.Deny, same(2), "No."))...)
	require.NotContains(t, shownText(t, c), "the same call ", "not everybody wrote the same")
	first, second := says("U0BOB", approvals.Deny, same(0), "No."), says("U0BOB", approvals.Deny, same(1), "No.")
	second.At = noon.Add(time.Hour)
	text := shownText(t, drawn(t, calls, first, second, says("U0CAROL", approvals.Deny, same(2), "No.")))
	require.Contains(t, text, "1 and 2 of 3: ")
	require.Contains(t, text, "Decided one by one, from")
	require.Equal(t, 2, strings.Count(text, "Denied"), "by others is another outcome")
}
