package slackui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/state/statetest"
)

// tags are calls of a tool that says it does no harm.
func tags(n int, q ...approvals.Quorum) []approvals.Deferral {
	var all []approvals.Deferral
	for i := range n {
		all = append(all, call(fmt.Sprintf("t%d", i), "tag_file", fmt.Sprintf(`{"path":"reports/%d.txt","tag":"old"}`, i), q...))
	}
	return all
}

func TestASheetSignsWhatItListsAndWhatIsTicked(t *testing.T) {
	h := newSheetWorkspace(t)
	b := h.asks("one", "U0ALICE", time.Hour, append(tags(3, sre), call("d1", "delete_file", `{"path":"a"}`, sre), call("d2", "delete_file", `{"path":"b"}`, sre))...)
	own := sre
	mine := h.asks("two", "U0BOB", time.Hour, func() approvals.Deferral {
		d := call("own", "tag_file", `{}`, own)
		d.Ask.Requirement.Separation = true
		return d
	}())
	v := h.sheet("U0BOB", "approve all")
	text := shows(v)
	require.Contains(t, text, "5 calls of 1 request")
	require.Contains(t, text, "Approve applies to 3 calls without a checkbox. Select the others")
	require.Contains(t, text, `path: "reports/2.txt"`, "arguments are read before they are approved")
	require.Contains(t, text, "Left out: 1 call that you requested: someone else must approve ( tag_file")
	require.Equal(t, "Approve 3 calls", v.Submit)
	require.Equal(t, "pending pending pending pending pending", h.statuses(b), "nothing is signed by looking")

	h.ticks("U0BOB", 4)
	require.Equal(t, "Approve 4 calls", h.top1("U0BOB").Submit)
	id := h.sheetID("U0BOB")
	out := h.sendsSheet("U0BOB")
	require.Contains(t, shows(*out.View), "Approving 4 calls…")
	require.Equal(t, "pending pending pending pending pending", h.statuses(b), "the word is stored, and then done")

	sheet := h.finishes(id)
	require.Equal(t, approvals.SheetSummary{Signed: 4, NotChosen: 1}, sheet.Summary())
	require.Equal(t, "approved approved approved pending approved", h.statuses(b))
	require.Equal(t, "pending", h.statuses(mine))
	letters := h.letters("U0BOB")
	require.Len(t, letters, 1, "one answer")
	require.Contains(t, letters[0], "Approved 4 calls.")
	require.Contains(t, letters[0], "1 not selected.")
	require.Contains(t, letters[0], "tag_file ×3")
}

// What cannot be undone is ticked by hand, whatever its tool declares otherwise.
func TestWhatIsIrreversibleIsTickedByItself(t *testing.T) {
	h := newSheetWorkspace(t)
	calls := tags(2, sre)
	calls[1] = rated(calls[1], approvals.SeverityIrreversible, "Tag {args.path} as {args.tag} for good")
	b := h.asks("one", "U0ALICE", time.Hour, calls...)
	v := h.sheet("U0BOB", "approve all")
	require.Equal(t, "Approve 1 call", v.Submit, "nothing is ticked yet")
	require.Contains(t, shows(v), "Tag reports/1.txt as old for good · Irreversible")
	require.Contains(t, shows(v), `path: "reports/1.txt"`, "the exact arguments are below")
	require.Contains(t, shows(v), "Approve "+b.Approvals[1].Call.Digest.String()[:6]+": Tag reports/1.txt as old for good")
	id := h.sheetID("U0BOB")
	h.sendsSheet("U0BOB")
	h.finishes(id)
	require.Equal(t, "approved pending", h.statuses(b))
}

// A list is where people approve, too: it rates a call with the words of the card.
func TestAListSaysOfALowRiskThatTheToolIsNotKnown(t *testing.T) {
	h := newSheetWorkspace(t)
	unknown := rated(call("x", "other", `{"path":"a"}`, sre), approvals.SeverityLow, "Do something else")
	h.asks("one", "U0ALICE", time.Hour, rated(tags(1, sre)[0], approvals.SeverityLow, "Tag {args.path}"), unknown)
	text := shows(h.sheet("U0BOB", "approve all"))
	require.Contains(t, text, "Tag reports/0.txt · Low risk")
	require.Contains(t, text, "Do something else · Rated low risk, but Countersign doesn't know the tool")
}

func TestTheFrozenSet(t *testing.T) {
	t.Run("a call that came later is not signed", func(t *testing.T) {
		h := newSheetWorkspace(t)
		h.asks("one", "U0ALICE", time.Hour, tags(2, sre)...)
		h.sheet("U0BOB", "approve tool:tag_*")
		late := h.asks("late", "U0ALICE", 0, tags(1, sre)...)
		id := h.sheetID("U0BOB")
		h.sendsSheet("U0BOB")
		require.Equal(t, 2, h.finishes(id).Summary().Signed)
		require.Equal(t, "pending", h.statuses(late))
	})
	t.Run("a call whose arguments changed is skipped, and said so", func(t *testing.T) {
		h := newSheetWorkspace(t)
		both := sre
		both.Need = 2
		b := h.asks("one", "U0ALICE", time.Hour, tags(2, both)...)
		h.sheet("U0BOB", "approve all")
		_, err := h.desk.Amend(t.Context(), b.ID, "edit", approvals.Amend{
			Call: "t0", From: b.Approvals[0].Call.Digest, Args: json.RawMessage(`{"path":"/etc/passwd"}`), At: h.now.Now(),
			By: approvals.Principal{User: "U0CAROL", Groups: []approvals.GroupID{"S0SRE"}, GroupsAt: h.now.Now()},
		})
		require.NoError(t, err)
		id := h.sheetID("U0BOB")
		h.sendsSheet("U0BOB")
		require.Equal(t, []approvals.Tally{{Why: approvals.WhyStale, Lines: 1}}, h.finishes(id).Summary().Skipped)
		require.Empty(t, h.stored(b).Approvals[0].Decisions)
		require.Len(t, h.stored(b).Approvals[1].Decisions, 1)
		require.Contains(t, h.letters("U0BOB")[0], "Skipped, 1 call: it was edited after the list was made")
	})
	for name, c := range map[string]struct {
		user, memo string
		state      map[string]any
		want       string
	}{
		"a line that has no box":     {user: "U0BOB", memo: `{"s":"%s","t":"AQ=="}`, want: "doesn't match the list"},
		"a line that is not on it":   {user: "U0BOB", memo: `{"s":"%s","t":"AAAAAAAAAAAB"}`, want: "doesn't match the list"},
		"a box that was never shown": {user: "U0BOB", memo: `{"s":"%s"}`, state: map[string]any{"tick.0": map[string]any{"countersign.tick.0": map[string]any{"selected_options": []any{map[string]any{"value": "0"}}}}}, want: "doesn't match the list"},
		"somebody else":              {user: "U0CAROL", memo: `{"s":"%s"}`, want: "someone else's"},
		"somebody else, nothing":     {user: "U0CAROL", memo: `{"s":"%s","p":9}`, want: "someone else's"},
		"another sheet":              {user: "U0BOB", memo: `{"s":"sheet-01-other"}`, want: "no longer stored"},
		"no sheet":                   {user: "U0BOB", memo: `{"s":"x"}`, want: "doesn't match the list"},
		"a batch for a sheet":        {user: "U0BOB", memo: `{"s":"batch-01-one"}`, want: "no longer stored"},
		"nothing":                    {user: "U0BOB", memo: ``, want: "doesn't match the list"},
		"a page that is not there":   {user: "U0BOB", memo: `{"s":"%s","p":-7}`, want: "Approving 1 call…"},
		"more ticks than any list":   {user: "U0BOB", memo: `{"s":"%s","t":"` + strings.Repeat("AAAA", 300) + `"}`, want: "doesn't match the list"},
	} {
		t.Run("forged: "+name, func(t *testing.T) {
			h := newSheetWorkspace(t)
			b := h.asks("one", "U0ALICE", time.Hour, append(tags(1, sre), call("d", "delete_file", `{"path":"b"}`, sre))...)
			h.sheet("U0BOB", "approve all")
			id := h.sheetID("U0BOB")
			memo := strings.ReplaceAll(c.memo, "%s", string(id))
			require.Contains(t, h.delivers(map[string]any{
				"type": "view_submission", "team": map[string]any{"id": slacksim.TeamID}, "user": map[string]any{"id": c.user}, "trigger_id": "t1",
				"view": map[string]any{
					"id": "V1", "callback_id": "countersign.sheet", "private_metadata": memo, "state": map[string]any{"values": c.state},
				},
			}), c.want)
			sheet, err := h.store.Sheet(t.Context(), id)
			require.NoError(t, err)
			if sheet.Status == approvals.SheetShown {
				require.NoError(t, h.bulk.Work(t.Context(), id))
				require.Equal(t, "pending pending", h.statuses(b))
			}
		})
	}
}

func TestASheetIsSentOnce(t *testing.T) {
	h := newSheetWorkspace(t)
	b := h.asks("one", "U0ALICE", time.Hour, tags(1, sre)...)
	h.sheet("U0BOB", "approve all")
	again := map[string]any{
		"type": "view_submission", "team": map[string]any{"id": slacksim.TeamID}, "user": map[string]any{"id": "U0BOB"}, "trigger_id": "t1",
		"view": map[string]any{"id": "V1", "callback_id": "countersign.sheet", "private_metadata": h.memo("U0BOB")},
	}
	require.Contains(t, h.delivers(again), "Approving 1 call…")
	require.Contains(t, h.delivers(again), "Approving 1 call…", "the same word delivered again is answered as the first time")
	again["trigger_id"] = "t2"
	require.Contains(t, h.delivers(again), "You already sent this list")
	h.finishes(h.sheetID("U0BOB"))
	require.Equal(t, "approved", h.statuses(b))
	require.Contains(t, h.delivers(again), "You already sent this list")
	require.Len(t, h.letters("U0BOB"), 1)
}

func TestASheetThatIsTooOldIsRefused(t *testing.T) {
	h := newSheetWorkspace(t)
	b := h.asks("one", "U0ALICE", time.Hour, tags(1, sre)...)
	h.sheet("U0BOB", "approve all")
	h.pass(31 * time.Minute)
	require.Contains(t, shows(*h.sendsSheet("U0BOB").View), "too old: a list can be sent for 30 minutes")
	require.Equal(t, "pending", h.statuses(b))
}

func TestTicksAreKeptFromPageToPage(t *testing.T) {
	h := newSheetWorkspace(t)
	var calls []approvals.Deferral
	for i := range 25 {
		calls = append(calls, call(fmt.Sprintf("d%d", i), "delete_file", fmt.Sprintf(`{"path":"%d"}`, i), sre))
	}
	b := h.asks("one", "U0ALICE", time.Hour, calls...)
	v := h.sheet("U0CAROL", "approve all")
	require.Contains(t, shows(v), "Page 1 of 3.")
	require.Equal(t, "Approve selected calls", v.Submit)
	require.Contains(t, shows(*h.sendsSheet("U0CAROL").View), "Nothing is selected")
	h.ticks("U0CAROL", 2, 7)
	h.turns(1)
	require.Contains(t, shows(h.top1("U0CAROL")), "Page 2 of 3.")
	h.ticks("U0CAROL", 13)
	h.turns(2)
	h.ticks("U0CAROL", 24)
	h.turns(1)
	h.turns(0)
	require.Equal(t, "Approve 4 calls", h.top1("U0CAROL").Submit)
	_, err := h.Click(slacksim.Click{User: "U0CAROL", ViewID: h.top1("U0CAROL").ID, ActionID: "countersign.tick.7", BlockID: "tick.7", Value: []any{}})
	require.NoError(t, err)
	require.Equal(t, "Approve 3 calls", h.top1("U0CAROL").Submit)
	id := h.sheetID("U0CAROL")
	h.sendsSheet("U0CAROL")
	require.Equal(t, 3, h.finishes(id).Summary().Signed)
	for i, a := range h.stored(b).Approvals {
		require.Equal(t, i == 2 || i == 13 || i == 24, a.Status == approvals.Approved, i)
	}
}

func TestWhatHasAHiddenValueIsTickedByItself(t *testing.T) {
	h := newSheetWorkspace(t)
	long := call("c1", "tag_file", `{"text":"`+strings.Repeat("x", 400)+`THE END"}`, sre)
	secret := call("c2", "tag_file", `{"token":"hunter2"}`, sre)
	secret.WriteOnly = []string{"/token"}
	h.asks("one", "U0ALICE", time.Hour, long, secret, call("c3", "odd_tool", `{}`, sre), tags(1, sre)[0])
	v := h.sheet("U0BOB", "approve all")
	text := shows(v)
	require.Equal(t, "Approve 1 call", v.Submit, "what is hidden or unknown is ticked by itself")
	require.Contains(t, text, "token: (hidden, 7 characters)")
	require.Contains(t, text, "Left out: 1 call that a list can't show in full")
	require.NotContains(t, text, "THE END")
	out, err := h.Click(slacksim.Click{User: "U0BOB", ViewID: v.ID, ActionID: "countersign.view.2"})
	require.NoError(t, err)
	require.Equal(t, 200, out.Status)
	require.Len(t, h.Views("U0BOB"), 2, "over the list, which is not lost")
	for _, e := range h.Log() {
		require.NotContains(t, e.Request+e.Response, "hunter2")
	}
}

func TestManyAreDeniedWithAReason(t *testing.T) {
	h := newSheetWorkspace(t)
	b := h.asks("one", "U0ALICE", time.Hour, append(tags(1, sre), call("d", "delete_file", `{}`, sre))...)
	h.asksIn("C0GENERAL", "1700000000.000900", "elsewhere", "U0ALICE", time.Hour, tags(1, sre)...)
	v := h.sheet("U0BOB", "deny channel the <plan> has changed")
	require.Equal(t, "Deny 2 calls", v.Submit, "a denial does no harm: no boxes")
	id := h.sheetID("U0BOB")
	require.NotEmpty(t, h.sendsSheet("U0BOB", "   ").Errors, "a denial needs a reason")
	h.sendsSheet("U0BOB", "the <plan> has changed & so on")
	require.Equal(t, 2, h.finishes(id).Summary().Signed)
	require.Equal(t, "denied denied", h.statuses(b))
	require.Equal(t, "the <plan> has changed & so on", h.stored(b).Approvals[0].Decisions[0].Reason)
	require.Contains(t, h.letters("U0BOB")[0], "Denied 2 calls.")
}

func TestAnApprovalThatMustSayWhyAsksOnTheSheet(t *testing.T) {
	h := newSheetWorkspace(t)
	d := tags(1, sre)[0]
	d.Ask.Requirement.ReasonNeeded = true
	b := h.asks("one", "U0ALICE", time.Hour, d)
	h.sheet("U0BOB", "approve all")
	id := h.sheetID("U0BOB")
	require.NotEmpty(t, h.sendsSheet("U0BOB").Errors)
	h.sendsSheet("U0BOB", "checked")
	h.finishes(id)
	require.Equal(t, "checked", h.stored(b).Approvals[0].Decisions[0].Reason)
}

func TestNothingIsGuessed(t *testing.T) {
	h := newSheetWorkspace(t)
	b := h.asks("one", "U0ALICE", 3*time.Hour, tags(1, sre)...)
	id := b.Approvals[0].Call.Digest.String()[:6]
	for text, want := range map[string]string{
		"approve":                        "Say which calls.",
		"approve everything":             "everything isn't a filter",
		"approve all now":                "now isn't a filter",
		"approve tols:tag_*":             "There is no such filter.",
		"approve tool:":                  "Add a value after the colon.",
		"approve older:soon":             "Write an age as a number with m, h, d or w",
		"approve from:bob":               "Mention the person with an @",
		"approve thread:https://x.test/": "isn't a link to a message",
		"approve tool:drop_*":            "No open call that you can see matches this filter",
		"approve older:4h":               "No open call that you can see matches this filter",
		"approve agent:dev":              "No open call that you can see matches this filter",
		"approve 000000":                 "No open call that you can see matches this filter",
		"deny":                           "Say which calls, and why.",
		"deny not today":                 "not isn't a filter",
		"deny all tols:tag_* not today":  "There is no such filter.",
		`deny "not today"`:               "Say which calls, and why.",
		"approve *all* <!here>":          "*all* isn't a filter",
	} {
		require.Contains(t, h.slashes("U0BOB", text), want, text)
		require.Empty(t, h.Views("U0BOB"), text)
	}
	for _, text := range []string{
		"approve " + id, "approve #" + strings.ToUpper(id), "approve tool:tag_*", "approve tool:t?g_file agent:o*", "approve from: @alice", "approve from:<@U0ALICE|alice>", "approve from:U0ALICE older:2h",
		"approve newer:1d", "approve channel", "approve ALL", "approve thread:<https://acme.slack.com/archives/C0OPS/p1700000003000100>",
		"approve thread:https://acme.slack.com/archives/C0OPS/p1700000009000100?thread_ts=1700000003.000100&cid=C0OPS",
		"deny all " + `"tool: is wrong"`,
	} {
		h.sheet("U0BOB", text)
		require.NoError(t, h.CloseView("U0BOB", h.top1("U0BOB").ID, true))
	}
	require.Contains(t, h.slashes("U0DAVE", "approve all"), "You can't approve any of the calls that match this filter.")
	require.Equal(t, "pending", h.statuses(b))
}

// The request of an agent that runs elsewhere has no thread in Slack: what a person can
// copy is the link of its card, or of a message below that.
func TestTheLinkOfACardFindsItsRequest(t *testing.T) {
	h := newSheetWorkspace(t)
	link := func(m slacksim.Message, query string) string {
		return "https://acme.slack.com/archives/" + m.Channel + "/p" + strings.Replace(m.TS, ".", "", 1) + query
	}
	first := h.asksOver("api", "one", tags(1, sre)...)
	second := h.asksOver("hook", "another", tags(1, sre)...)
	all, err := h.Messages("U0BOB", "C0OPS", "")
	require.NoError(t, err)
	require.Len(t, all, 2)
	below, err := h.PostAs(slacksim.Post{User: "U0ALICE", Channel: "C0OPS", Text: "ok?", ThreadTS: all[1].TS})
	require.NoError(t, err)

	h.sheet("U0BOB", "approve thread:"+link(all[0], ""))
	h.finishes(func() approvals.SheetID { id := h.sheetID("U0BOB"); h.sendsSheet("U0BOB"); return id }())
	require.Equal(t, "approved", h.statuses(first))
	require.Equal(t, "pending", h.statuses(second))

	h.sheet("U0BOB", "deny thread:<"+link(slacksim.Message{Channel: "C0OPS", TS: below}, "?thread_ts="+all[1].TS+"&cid=C0OPS")+"> not now")
	h.finishes(func() approvals.SheetID { id := h.sheetID("U0BOB"); h.sendsSheet("U0BOB", "not now"); return id }())
	require.Equal(t, "denied", h.statuses(second))
	require.Contains(t, h.slashes("U0BOB", "approve thread:"+link(slacksim.Message{Channel: "C0GENERAL", TS: all[0].TS}, "")), "No open call that you can see matches this filter")
}

// What cannot be read of one request does not keep people from finding another.
func TestADamagedRecordOfCardsHidesOnlyItsRequestFromALink(t *testing.T) {
	h := newSheetWorkspace(t)
	damaged, other := h.asksOver("api", "one", tags(1, sre)...), h.asksOver("api", "two", tags(1, sre)...)
	_, version, err := h.store.Memo(t.Context(), string(damaged.ID), "cards")
	require.NoError(t, err)
	require.NoError(t, h.store.CommitMemo(t.Context(), string(damaged.ID), "cards", []byte("{"), version, 0))
	all, err := h.Messages("U0BOB", "C0OPS", "")
	require.NoError(t, err)
	approve := func(b approvals.Batch) string {
		i := slices.IndexFunc(all, func(m slacksim.Message) bool {
			said, _ := m.Metadata["event_payload"].(map[string]any)
			return said["batch"] == string(b.ID)
		})
		return "approve thread:https://acme.slack.com/archives/C0OPS/p" + strings.Replace(all[i].TS, ".", "", 1)
	}
	require.Contains(t, h.slashes("U0BOB", approve(damaged)), "No open call that you can see matches this filter")
	h.sheet("U0BOB", approve(other))
	h.finishes(func() approvals.SheetID { id := h.sheetID("U0BOB"); h.sendsSheet("U0BOB"); return id }())
	require.Equal(t, "approved", h.statuses(other))
}

// The link of a card costs one round trip for many requests, not one for each.
func TestTheCardsOfManyRequestsAreLookedUpTogether(t *testing.T) {
	seen, client := &statetest.Trips{}, statetest.Miniredis(t)
	client.AddHook(seen)
	h := newSheetWorkspaceOn(t, client)
	for n := range 20 {
		name := fmt.Sprint("request ", n)
		h.asksFrom(agentrun.Origin{Surface: "api", Team: "ops", Channel: "C0OPS", Root: name}, name, "U0ALICE", time.Hour, tags(1, sre)...)
	}
	trips := func(filter string) int {
		h.slashes("U0BOB", "approve "+filter)
		seen.Taken()
		require.Contains(t, h.slashes("U0BOB", "approve "+filter), "No open call that you can see matches this filter")
		return len(seen.Taken())
	}
	require.Equal(t, trips("tool:nothing")+1, trips("tool:nothing thread:https://acme.slack.com/archives/C0OPS/p1700000000000100"))
}

// The copy of a card that a person has in their direct messages has a link of its own.
func TestTheLinkOfACardInDirectMessagesFindsItsRequest(t *testing.T) {
	h := newSheetWorkspace(t)
	h.asksOver("api", "one", directCall(sre))
	card := h.directs("U0BOB")[0]
	h.sheet("U0BOB", "approve thread:https://acme.slack.com/archives/"+card.Channel+"/p"+strings.Replace(card.TS, ".", "", 1))
}

func TestAnIDThatNamesTwoCallsIsRefused(t *testing.T) {
	h := newSheetWorkspace(t)
	b := h.asks("one", "U0ALICE", time.Hour, tags(2, sre)...)
	// All digests begin with the empty word; a true collision of six characters
	// is made of a filter that a button holds.
	value, err := json.Marshal(map[string]any{"v": "approve", "f": map[string]any{"id": []string{""}}})
	require.NoError(t, err)
	require.Equal(t, 200, h.deliver(pressed("U0BOB", "t1", "sheet.0", string(value))))
	require.NoError(t, h.ui.Server.Shutdown(t.Context()))
	require.Equal(t, "pending pending", h.statuses(b))
	sheetCalls := h.Calls("views.open")
	require.Contains(t, sheetCalls[len(sheetCalls)-1].Request, "matches 2 calls")
}

func TestASheetIsNotMadeOrSentWhileGroupsAreUnknown(t *testing.T) {
	h := newSheetWorkspace(t)
	b := h.asks("one", "U0ALICE", time.Hour, tags(1, sre)...)
	h.sheet("U0BOB", "approve all")
	h.pass(2 * time.Minute)
	h.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "usergroups.users.list", Error: "internal_error"}}})
	out := h.sendsSheet("U0BOB")
	require.Contains(t, shows(*out.View), "Slack couldn't tell who is in", "and the form is still there")
	requireNoMarkup(t, out)
	require.Equal(t, "pending", h.statuses(b))
	id := h.sheetID("U0BOB")
	h.sendsSheet("U0BOB")
	h.finishes(id)
	require.Equal(t, "approved", h.statuses(b))

	b = h.asks("denied", "U0ALICE", time.Hour, tags(1, sre)...)
	h.sheet("U0BOB", "deny all")
	h.pass(2 * time.Minute)
	h.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "usergroups.users.list", Error: "internal_error"}}})
	out = h.sendsSheet("U0BOB", "not today")
	require.Contains(t, shows(*out.View), "Slack couldn't tell who is in", "an error under the reason would show the group's id")
	requireNoMarkup(t, out)
	id = h.sheetID("U0BOB")
	h.sendsSheet("U0BOB", "not today")
	h.finishes(id)
	require.Equal(t, "denied", h.statuses(b))

	h.asks("two", "U0ALICE", time.Hour, tags(1, sre)...)
	h.pass(2 * time.Minute)
	h.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "usergroups.users.list", Error: "internal_error"}}})
	require.Contains(t, h.slashes("U0BOB", "approve all"), "Slack couldn't tell who is in")
}

// requireNoMarkup: no group is shown by the markup that means it.
func requireNoMarkup(t *testing.T, out slacksim.SubmitOutcome) {
	t.Helper()
	require.Empty(t, out.Errors)
	for _, block := range out.View.Blocks {
		if b, _ := block.(map[string]any); b["type"] == "rich_text" {
			raw, err := json.Marshal(b)
			require.NoError(t, err)
			require.NotContains(t, string(raw), `subteam^`)
		}
	}
}

// slowLists answer once the gate is open.
type slowLists struct {
	lists
	gate gate
}

type lists interface{ directory.Lists }

func (s slowLists) Inbox(c context.Context, keys []approvals.ListKey, after approvals.Cursor, limit int) ([]approvals.Batch, approvals.Cursor, error) {
	s.gate.pass()
	return s.lists.Inbox(c, keys, after, limit)
}

func TestAListThatTakesLongIsShownInAFormThatIsOpenAlready(t *testing.T) {
	g := newGate()
	h := newSheetWorkspace(t, func(c *slackui.Config) { c.Lists = slowLists{c.Lists, g} })
	h.asks("one", "U0ALICE", time.Hour, tags(1, sre)...)
	out, err := h.Command(slacksim.Command{User: "U0BOB", Channel: "C0OPS", Command: "/countersign", Text: "approve all"})
	require.NoError(t, err)
	require.Equal(t, slacksim.CommandOutcome{Status: 200}, out, "the command was answered while the list is being made")
	require.Contains(t, shows(h.top1("U0BOB")), "Collecting the calls.")
	close(g.open)
	require.NoError(t, h.ui.Server.Shutdown(t.Context()))
	require.Equal(t, "Approve 1 call", h.top1("U0BOB").Submit)
}

// TestAPageOfAListIsForWhoMayStillLook: the list outlives a membership, what is
// on its pages does not.
func TestAPageOfAListIsForWhoMayStillLook(t *testing.T) {
	h := newSheetWorkspace(t)
	h.asks("one", "U0ALICE", time.Hour, tags(40, sre)...)
	first := shows(h.sheet("U0CAROL", "approve all"))
	require.NoError(t, h.SetGroup("S0SRE", []string{"U0BOB"}))
	require.NoError(t, h.Leave("U0CAROL", "C0OPS"))
	h.pass(15 * time.Minute)
	h.turns(1)
	second := shows(h.top1("U0CAROL"))
	require.Contains(t, first, "path:")
	require.NotContains(t, second, "path:")
	require.Contains(t, second, "is no longer there for you and will be skipped")
}
